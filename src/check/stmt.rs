//! Blocks and statements.

use crate::base::{Diagnostic, Span};
use crate::hir::{Expr, ExprKind, Pattern, Stmt, StmtKind, Ty};
use crate::syntax::ast;
use crate::types::DType;

use super::body::{Body, FrameKind, Origin};

impl Body<'_, '_> {
    /// A block with its own scope. Its type is that of its tail, unit without one, and `Never` when it does not end.
    pub(super) fn block(&mut self, block: &ast::Block) -> Option<Expr> {
        self.push_scope(block.span);
        let checked = self.open_block(block);
        self.pop_scope();
        checked
    }

    fn open_block(&mut self, block: &ast::Block) -> Option<Expr> {
        let mut stmts = Vec::new();
        let mut ok = true;
        let mut ended = false;
        let mut warned = false;
        for stmt in &block.stmts {
            if ended && !warned {
                self.unreachable(stmt.span);
                warned = true;
            }
            let checked = self.stmt(stmt);
            ok &= checked.is_some();
            if let (Some(checked), false) = (checked, ended) {
                ended = matches!(&checked.kind, StmtKind::Expr(e) if e.ty == Ty::Never);
                stmts.push(checked);
            }
        }
        let mut tail = None;
        if let Some(expr) = &block.tail {
            if ended && !warned {
                self.unreachable(expr.span);
            }
            match self.expr(expr) {
                Some(expr) => tail = Some(Box::new(expr)),
                None => ok = false,
            }
        }
        if !ok {
            return None;
        }
        if ended {
            tail = None;
        }
        let ty = match &tail {
            _ if ended => Ty::Never,
            Some(tail) => tail.ty.clone(),
            None => Ty::unit(),
        };
        Some(Expr { kind: ExprKind::Block(stmts, tail), ty, span: block.span })
    }

    fn unreachable(&mut self, span: Span) {
        let warning =
            Diagnostic::warning("W0002", "this is never reached", span, "what stands before it does not end here");
        self.cx.warn(self.module, warning);
    }

    fn stmt(&mut self, stmt: &ast::Stmt) -> Option<Stmt> {
        let span = stmt.span;
        let expr = |kind, ty| Some(effect(kind, ty, span));
        match &stmt.kind {
            ast::StmtKind::Error => None,
            ast::StmtKind::Let { pattern, ty, value } => self.let_stmt(pattern, ty.as_ref(), value, span),
            ast::StmtKind::Assign { place, op, value } => self.assign(place, *op, value, span),
            ast::StmtKind::Expr(value) => {
                let value = self.expr(value)?;
                self.warn_pure(&value);
                Some(Stmt { kind: StmtKind::Expr(value), span })
            }
            ast::StmtKind::While { condition, body } => {
                let condition = self.condition(condition);
                let body = self.loop_body(body);
                let kind = ExprKind::While(Box::new(condition?), Box::new(body?));
                expr(kind, Ty::unit())
            }
            ast::StmtKind::For { var, start, end, body } => {
                let start = self.bound(start);
                let end = self.bound(end);
                self.push_scope(span);
                let local = self.declare(var, Ty::Scalar(DType::Int), Origin::Loop, false);
                let body = self.loop_body(body);
                self.pop_scope();
                let kind = ExprKind::For(local, Box::new(start?), Box::new(end?), Box::new(body?));
                expr(kind, Ty::unit())
            }
            ast::StmtKind::Break => {
                self.in_loop("break", span)?;
                expr(ExprKind::Break, Ty::Never)
            }
            ast::StmtKind::Continue => {
                self.in_loop("continue", span)?;
                expr(ExprKind::Continue, Ty::Never)
            }
            ast::StmtKind::Return(value) => self.return_stmt(value.as_ref(), span),
            ast::StmtKind::Emit { stream, args } => self.emit(stream, args, span),
        }
    }

    /// An int bound of a loop.
    fn bound(&mut self, bound: &ast::Expr) -> Option<Expr> {
        let bound = self.expr(bound)?;
        if bound.ty == Ty::Scalar(DType::Int) {
            return Some(bound);
        }
        let found = self.show(&bound.ty);
        let error = Diagnostic::error(
            "E0412",
            format!("the bounds of a loop are ints, found {found}"),
            bound.span,
            format!("this is {found}"),
        );
        self.cx.report(error);
        None
    }

    /// A bool scalar.
    pub(super) fn condition(&mut self, condition: &ast::Expr) -> Option<Expr> {
        let condition = self.expr(condition)?;
        if condition.ty == Ty::Scalar(DType::Bool) {
            return Some(condition);
        }
        let found = self.show(&condition.ty);
        let mut error = Diagnostic::error(
            "E0204",
            format!("a condition is a bool, found {found}"),
            condition.span,
            format!("this is {found}"),
        );
        error = match condition.ty {
            Ty::Array(DType::Bool, _) => error.with_help("reduce it with `any(…)` or `all(…)`"),
            Ty::Scalar(_) => error.with_help("compare it: `x != 0`"),
            _ => error,
        };
        self.cx.report(error);
        None
    }

    fn loop_body(&mut self, body: &ast::Block) -> Option<Expr> {
        self.frame().loops += 1;
        let body = self.block(body);
        self.frame().loops -= 1;
        body.map(discard)
    }

    fn in_loop(&mut self, what: &str, span: Span) -> Option<()> {
        let frame = self.frame();
        if frame.loops > 0 {
            return Some(());
        }
        let error = match frame.kind {
            FrameKind::Comprehension => Diagnostic::error(
                "E0604",
                format!("`{what}` cannot leave a comprehension"),
                span,
                "every element is computed",
            ),
            _ => {
                Diagnostic::error("E0405", format!("`{what}` outside of a loop"), span, "there is no loop around this")
            }
        };
        self.cx.report(error);
        None
    }

    fn return_stmt(&mut self, value: Option<&ast::Expr>, span: Span) -> Option<Stmt> {
        let ret = self.ret.clone();
        let instance = self.instance;
        let refused = match self.frame().kind {
            FrameKind::Fn if instance => Some(("E0311", "`return` in an elementwise function")),
            FrameKind::Fn => None,
            FrameKind::Closure => Some(("E0314", "`return` inside a closure")),
            FrameKind::Comprehension => Some(("E0604", "`return` cannot leave a comprehension")),
        };
        if let Some((code, message)) = refused {
            let error = Diagnostic::error(code, message, span, "not possible here");
            self.cx.report(error.with_help("let the last expression be the value"));
            return None;
        }
        let value = match value {
            Some(value) if ret.is_unit() => {
                let value = self.expr(value)?;
                if !value.ty.is_unit() {
                    let error = Diagnostic::error(
                        "E0407",
                        format!("`{}` gives no value", self.name),
                        span,
                        "but a value is returned here",
                    );
                    let shown = self.show(&value.ty);
                    self.cx.report(error.with_help(format!("write its result: `-> {shown}`")));
                    return None;
                }
                Some(value)
            }
            Some(value) => {
                let value = self.expr(value)?;
                let message = format!("`{}` gives {}", self.name, self.show(&ret));
                Some(self.coerce_to(value, &ret, |found| (message, format!("this is {found}")))?)
            }
            None if ret.is_unit() => None,
            None => {
                let shown = self.show(&ret);
                let error = Diagnostic::error(
                    "E0408",
                    format!("`return` without a value in a function that gives {shown}"),
                    span,
                    format!("{shown} is needed"),
                );
                self.cx.report(error);
                return None;
            }
        };
        Some(effect(ExprKind::Return(value.map(Box::new)), Ty::Never, span))
    }

    fn let_stmt(
        &mut self,
        pattern: &ast::Pattern,
        written: Option<&ast::TypeExpr>,
        value: &ast::Expr,
        span: Span,
    ) -> Option<Stmt> {
        let value = match written {
            None => self.let_value(value),
            Some(written) => {
                let dims = self.dims.clone();
                match self.cx.resolve_type(self.module, &dims, written) {
                    Some(ty) => self.expr_as(value, &ty),
                    None => {
                        self.let_value(value);
                        None
                    }
                }
            }
        };
        let value = value.and_then(|v| self.needs_value(v));
        let Some(value) = value else {
            self.bind_broken(pattern);
            return None;
        };
        let bound = self.bind(pattern, &value.ty, &value)?;
        Some(Stmt { kind: StmtKind::Let(bound, value), span })
    }

    /// Refuses an expression that never ends normally where its value is needed.
    pub(super) fn needs_value(&mut self, value: Expr) -> Option<Expr> {
        if value.ty != Ty::Never {
            return Some(value);
        }
        let error = Diagnostic::error(
            "E0225",
            "a value is needed here, but this never gives one",
            value.span,
            "it leaves on every path",
        );
        self.cx.report(error);
        None
    }

    /// Binds the names of a pattern to the parts of a value.
    fn bind(&mut self, pattern: &ast::Pattern, ty: &Ty, value: &Expr) -> Option<Pattern> {
        if let Ty::Fn(..) = ty {
            match &pattern.kind {
                ast::PatternKind::Name { mutable, name } => {
                    if *mutable {
                        self.cx.function_is_immutable(&name.text, name.span);
                    }
                    let local = self.declare(name, ty.clone(), Origin::Let, false);
                    return (!*mutable).then_some(Pattern::Local(local));
                }
                _ => {
                    let error = Diagnostic::error("E0312", "a function is bound to a name", pattern.span, "not a name");
                    self.cx.report(error);
                    return None;
                }
            }
        }
        self.check_distinct(pattern, &mut Vec::new());
        let bound = self.bind_part(pattern, ty);
        if let Some(Pattern::Local(local)) = bound {
            self.remember_linear(local, value);
        }
        bound
    }

    fn check_distinct<'p>(&mut self, pattern: &'p ast::Pattern, seen: &mut Vec<&'p ast::Name>) {
        match &pattern.kind {
            ast::PatternKind::Wildcard => {}
            ast::PatternKind::Name { name, .. } => {
                if let Some(first) = seen.iter().find(|n| n.text == name.text) {
                    let error = Diagnostic::error(
                        "E0410",
                        format!("`{}` is bound twice in one pattern", name.text),
                        name.span,
                        "again here",
                    );
                    let error = error.with_label(first.span, "first here");
                    self.cx.report(error.with_help("use `_` for what is not needed"));
                } else {
                    seen.push(name);
                }
            }
            ast::PatternKind::Tuple(parts) => {
                for part in parts {
                    self.check_distinct(part, seen);
                }
            }
            ast::PatternKind::Struct { fields, .. } => {
                for (_, part) in fields {
                    self.check_distinct(part, seen);
                }
            }
        }
    }

    pub(super) fn bind_part(&mut self, pattern: &ast::Pattern, ty: &Ty) -> Option<Pattern> {
        match &pattern.kind {
            ast::PatternKind::Wildcard => Some(Pattern::Wildcard),
            ast::PatternKind::Name { mutable, name } => {
                let local = self.declare(name, ty.clone(), Origin::Let, *mutable);
                Some(Pattern::Local(local))
            }
            ast::PatternKind::Tuple(parts) => {
                let Ty::Tuple(types) = ty else {
                    return self.wrong_pattern(pattern, ty, "a tuple");
                };
                if types.len() != parts.len() {
                    let what = format!("a tuple of {}", parts.len());
                    return self.wrong_pattern(pattern, ty, &what);
                }
                let bound: Vec<_> = (parts.iter().zip(types).enumerate())
                    .map(|(i, (part, ty))| Some((i, self.bind_part(part, ty)?)))
                    .collect();
                Some(Pattern::Fields(bound.into_iter().collect::<Option<_>>()?))
            }
            ast::PatternKind::Struct { path, fields, rest } => self.bind_struct(pattern, path, fields, *rest, ty),
        }
    }

    /// Reports that the value is not what the pattern takes apart.
    pub(super) fn wrong_pattern(&mut self, pattern: &ast::Pattern, ty: &Ty, what: &str) -> Option<Pattern> {
        let found = self.show(ty);
        let error = Diagnostic::error(
            "E0409",
            format!("the pattern takes {what} apart, but the value is {found}"),
            pattern.span,
            format!("does not fit {found}"),
        );
        self.cx.report(error);
        self.bind_broken(pattern);
        None
    }

    /// Binds the names of a pattern without a value: uses of them stay silent.
    pub(super) fn bind_broken(&mut self, pattern: &ast::Pattern) {
        match &pattern.kind {
            ast::PatternKind::Wildcard => {}
            ast::PatternKind::Name { name, .. } => self.declare_broken(name),
            ast::PatternKind::Tuple(parts) => {
                for part in parts {
                    self.bind_broken(part);
                }
            }
            ast::PatternKind::Struct { fields, .. } => {
                for (_, part) in fields {
                    self.bind_broken(part);
                }
            }
        }
    }

    fn warn_pure(&mut self, value: &Expr) {
        let pure = match &value.kind {
            ExprKind::Literal(_)
            | ExprKind::Dim(_)
            | ExprKind::Local(_)
            | ExprKind::Field(..)
            | ExprKind::Struct(..)
            | ExprKind::Comprehension { .. } => true,
            ExprKind::Tuple(parts) => !parts.is_empty(),
            ExprKind::Prim(op, _) => op.row().batch != crate::prim::BatchRule::Random,
            _ => false,
        };
        if pure {
            let warning = Diagnostic::warning("W0004", "this value is not used", value.span, "computed for nothing");
            self.cx.warn(self.module, warning.with_help("bind it with `let`, assign it, or remove it"));
        }
    }
}

/// An expression as a statement.
pub(super) fn effect(kind: ExprKind, ty: Ty, span: Span) -> Stmt {
    Stmt { kind: StmtKind::Expr(Expr { kind, ty, span }), span }
}

/// The block without its value.
pub(super) fn discard(block: Expr) -> Expr {
    match block.kind {
        ExprKind::Block(mut stmts, Some(tail)) if !block.ty.is_unit() => {
            let span = tail.span;
            let never = tail.ty == Ty::Never;
            stmts.push(Stmt { kind: StmtKind::Expr(*tail), span });
            Expr {
                kind: ExprKind::Block(stmts, None),
                ty: if never { Ty::Never } else { Ty::unit() },
                span: block.span,
            }
        }
        kind => Expr { kind, ty: block.ty, span: block.span },
    }
}
