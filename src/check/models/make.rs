//! Makes tree: what a desugared model is written of. Names with `%` are none that a user can write.

use std::sync::Arc;

use crate::base::Span;
use crate::syntax::ast::{
    BinaryOp, Block, Clause, Expr, ExprKind, Index, Name, Param, Path, Pattern, PatternKind, Stmt, StmtKind, TypeExpr,
    TypeKind,
};

/// The module before a name of the library, whatever the file calls so.
pub(in crate::check) const LIBRARY: &str = "%library";
/// The module before a name of the file itself, whatever is in scope.
pub(in crate::check) const HERE: &str = "%here";

/// Makes nodes at one place.
#[derive(Clone, Copy)]
pub(super) struct At(pub(super) Span);

impl At {
    pub(super) fn name(self, text: &str) -> Name {
        Name { text: Arc::from(text), span: self.0 }
    }

    pub(super) fn expr(self, kind: ExprKind) -> Expr {
        Expr { kind, span: self.0 }
    }

    pub(super) fn int(self, value: i64) -> Expr {
        self.expr(ExprKind::Int(Some(value)))
    }

    pub(super) fn real(self, value: f64) -> Expr {
        self.expr(ExprKind::Real(value))
    }

    /// A local, parameter or dimension.
    pub(super) fn var(self, text: &str) -> Expr {
        self.expr(ExprKind::Path(Path { module: None, name: self.name(text) }))
    }

    pub(super) fn path(self, module: &str, text: &str) -> Path {
        Path { module: Some(self.name(module)), name: self.name(text) }
    }

    pub(super) fn binary(self, op: BinaryOp, a: Expr, b: Expr) -> Expr {
        self.expr(ExprKind::Binary(op, Box::new(a), Box::new(b)))
    }

    pub(super) fn call(self, module: &str, function: &str, args: Vec<Expr>) -> Expr {
        let callee = Box::new(self.expr(ExprKind::Path(self.path(module, function))));
        self.expr(ExprKind::Call { callee, args, named: Vec::new() })
    }

    /// A call of the library.
    pub(super) fn library(self, function: &str, args: Vec<Expr>) -> Expr {
        self.call(LIBRARY, function, args)
    }

    pub(super) fn index(self, base: Expr, indices: Vec<Index>) -> Expr {
        self.expr(ExprKind::Index { base: Box::new(base), indices })
    }

    /// `if condition { a } else { b }`
    pub(super) fn choose(self, condition: Expr, a: Expr, b: Expr) -> Expr {
        let (then, otherwise) = (self.block(vec![], a), Some(self.block(vec![], b)));
        self.expr(ExprKind::If { condition: Box::new(condition), then, otherwise })
    }

    pub(super) fn slice(self, base: Expr, start: Expr, end: Expr) -> Expr {
        let range = Index::Range { start: Some(start), end: Some(end), span: self.0 };
        self.index(base, vec![range])
    }

    /// `[body for %0 in 0..extents[0], …]`, or the body where there are no extents.
    pub(super) fn each(self, body: Expr, extents: &[Expr]) -> Expr {
        let clauses = self.clauses(extents);
        match extents.is_empty() {
            true => body,
            false => self.expr(ExprKind::Comprehension { body: Box::new(body), clauses }),
        }
    }

    /// `sum(body for %0 in 0..extents[0], …)`, or the body where there are no extents.
    pub(super) fn sum_of_each(self, body: Expr, extents: &[Expr]) -> Expr {
        let clauses = self.clauses(extents);
        match extents.is_empty() {
            true => body,
            false => self.expr(ExprKind::Reduction { name: self.name("sum"), body: Box::new(body), clauses }),
        }
    }

    /// Element `%0`, … of an array with these leading extents.
    pub(super) fn element(self, base: Expr, extents: &[Expr]) -> Expr {
        let indices: Vec<Index> = (0..extents.len()).map(|i| Index::At(self.var(&format!("%{i}")))).collect();
        if indices.is_empty() { base } else { self.index(base, indices) }
    }

    fn clauses(self, extents: &[Expr]) -> Vec<Clause> {
        let clause = |(i, end): (usize, &Expr)| Clause {
            var: self.name(&format!("%{i}")),
            start: self.int(0),
            end: end.clone(),
        };
        extents.iter().enumerate().map(clause).collect()
    }

    pub(super) fn bind(self, name: Name, ty: Option<TypeExpr>, value: Expr) -> Stmt {
        let pattern = Pattern { kind: PatternKind::Name { mutable: false, name }, span: self.0 };
        Stmt { kind: StmtKind::Let { pattern, ty, value }, span: self.0 }
    }

    pub(super) fn block(self, stmts: Vec<Stmt>, tail: Expr) -> Block {
        Block { stmts, tail: Some(Box::new(tail)), span: self.0 }
    }

    pub(super) fn real_type(self, dims: Vec<Expr>) -> TypeExpr {
        self.array_type("real", dims)
    }

    pub(super) fn array_type(self, element: &str, dims: Vec<Expr>) -> TypeExpr {
        let path = Path { module: None, name: self.name(element) };
        TypeExpr { kind: TypeKind::Named { path, dims }, span: self.0 }
    }

    /// A struct of the file with the dimensions of the function around as its arguments.
    pub(super) fn struct_type(self, name: &str, dims: &[Name]) -> TypeExpr {
        let dims = dims.iter().map(|dim| self.var(&dim.text)).collect();
        TypeExpr { kind: TypeKind::Named { path: self.path(HERE, name), dims }, span: self.0 }
    }
}

/// A parameter of a function.
pub(super) fn param(name: &Name, ty: &TypeExpr, shared: bool) -> Param {
    Param { shared, of_lanes: false, mutable: false, name: name.clone(), ty: ty.clone() }
}

/// The product of extents; 1 where there are none.
pub(super) fn product(at: At, extents: &[Expr]) -> Expr {
    let all = extents.iter().cloned();
    all.reduce(|a, b| at.binary(BinaryOp::Mul, a, b)).unwrap_or_else(|| at.int(1))
}

/// The sum of terms; 0 where there are none.
pub(super) fn sum(at: At, terms: impl IntoIterator<Item = Expr>) -> Expr {
    terms.into_iter().reduce(|a, b| at.binary(BinaryOp::Add, a, b)).unwrap_or_else(|| at.int(0))
}
