//! Which names an expression reads that it does not bind itself.

use std::sync::Arc;

use crate::syntax::ast::{
    Block, Clause, Expr, ExprKind, Index, Message, MessagePart, Name, Pattern, PatternKind, Stmt, StmtKind,
};

/// The names that an expression reads, in order.
pub(super) fn reads(expr: &Expr) -> Vec<&Name> {
    let mut reader = Reader::default();
    reader.expr(expr);
    reader.found
}

/// The names that a pattern binds.
pub(super) fn bound(pattern: &Pattern) -> Vec<&Name> {
    match &pattern.kind {
        PatternKind::Name { name, .. } => vec![name],
        PatternKind::Wildcard => vec![],
        PatternKind::Tuple(parts) => parts.iter().flat_map(bound).collect(),
        PatternKind::Struct { fields, .. } => fields.iter().flat_map(|(_, part)| bound(part)).collect(),
    }
}

#[derive(Default)]
struct Reader<'a> {
    found: Vec<&'a Name>,
    /// Names that are bound around.
    inner: Vec<Arc<str>>,
}

impl<'a> Reader<'a> {
    fn scoped(&mut self, walk: impl FnOnce(&mut Self)) {
        let depth = self.inner.len();
        walk(self);
        self.inner.truncate(depth);
    }

    fn bind(&mut self, name: &Name) {
        self.inner.push(name.text.clone());
    }

    fn each(&mut self, exprs: impl IntoIterator<Item = &'a Expr>) {
        exprs.into_iter().for_each(|expr| self.expr(expr));
    }

    fn expr(&mut self, expr: &'a Expr) {
        match &expr.kind {
            ExprKind::Bool(_) | ExprKind::Int(_) | ExprKind::Real(_) | ExprKind::Error => {}
            ExprKind::Path(path) => {
                if path.module.is_none() && !self.inner.contains(&path.name.text) {
                    self.found.push(&path.name);
                }
            }
            ExprKind::Unary(_, a) => self.expr(a),
            ExprKind::Binary(_, a, b) => self.each([&**a, &**b]),
            ExprKind::Call { callee, args, named } => {
                self.expr(callee);
                self.each(args);
                self.each(named.iter().map(|(_, value)| value));
            }
            ExprKind::Index { base, indices } => {
                self.expr(base);
                indices.iter().for_each(|index| self.index(index));
            }
            ExprKind::Field { base, .. } | ExprKind::TupleField { base, .. } => self.expr(base),
            ExprKind::Tuple(parts) | ExprKind::Array(parts) => self.each(parts),
            ExprKind::Comprehension { body, clauses } | ExprKind::Reduction { body, clauses, .. } => {
                self.comprehension(body, clauses);
            }
            ExprKind::Struct { fields, base, .. } => {
                self.each(fields.iter().map(|(_, value)| value));
                self.each(base.as_deref());
            }
            ExprKind::If { condition, then, otherwise } => {
                self.expr(condition);
                self.block(then);
                otherwise.iter().for_each(|block| self.block(block));
            }
            ExprKind::Block(block) => self.block(block),
            ExprKind::Lambda { params, body } => self.scoped(|reader| {
                params.iter().for_each(|(name, _)| reader.bind(name));
                reader.expr(body);
            }),
            ExprKind::Print(message) => self.message(message),
            ExprKind::Assert { condition, message } => {
                self.expr(condition);
                message.iter().for_each(|message| self.message(message));
            }
        }
    }

    fn index(&mut self, index: &'a Index) {
        match index {
            Index::At(at) => self.expr(at),
            Index::Range { start, end, .. } => self.each(start.iter().chain(end)),
        }
    }

    fn comprehension(&mut self, body: &'a Expr, clauses: &'a [Clause]) {
        self.scoped(|reader| {
            for clause in clauses {
                reader.each([&clause.start, &clause.end]);
                reader.bind(&clause.var);
            }
            reader.expr(body);
        });
    }

    fn message(&mut self, message: &'a Message) {
        let holes = message.parts.iter().filter_map(|part| match part {
            MessagePart::Hole(expr) => Some(expr),
            MessagePart::Text(_) => None,
        });
        self.each(holes);
    }

    fn block(&mut self, block: &'a Block) {
        self.scoped(|reader| {
            block.stmts.iter().for_each(|stmt| reader.stmt(stmt));
            reader.each(block.tail.as_deref());
        });
    }

    fn stmt(&mut self, stmt: &'a Stmt) {
        match &stmt.kind {
            StmtKind::Let { pattern, value, .. } => {
                self.expr(value);
                bound(pattern).into_iter().for_each(|name| self.bind(name));
            }
            StmtKind::Assign { place, value, .. } => self.each([place, value]),
            StmtKind::Expr(expr) => self.expr(expr),
            StmtKind::While { condition, body } => {
                self.expr(condition);
                self.block(body);
            }
            StmtKind::For { var, start, end, body } => {
                self.each([start, end]);
                self.scoped(|reader| {
                    reader.bind(var);
                    reader.block(body);
                });
            }
            StmtKind::Return(value) => self.each(value),
            StmtKind::Emit { args, .. } => self.each(args.iter().map(|arg| &arg.value)),
            StmtKind::Break | StmtKind::Continue | StmtKind::Error => {}
        }
    }
}
