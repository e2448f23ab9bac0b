//! What is probably not meant, and what will not be Stan for long.

use crate::base::Diagnostic;
use crate::stan::lacking::lacks;
use crate::stan::syntax::ast::{Expr, ExprKind, Function, Index, Name, Stmt, StmtKind, UnsizedType};

use super::context::Checker;

impl Checker {
    /// Warns of a distribution that a later Stan will not have. `syntax` warns of the old functions.
    pub(super) fn warn_deprecated(&mut self, name: &Name) {
        if matches!(&*name.text, "lkj_cov" | "lkj_cov_lpdf" | "lkj_cov_lupdf") {
            let message = format!("`{}` is deprecated", name.text);
            let warning = Diagnostic::warning("W2108", message, name.span, "Stan 3.0 will not have it");
            self.report(warning.with_help("use `lkj_corr`, with a prior of their own for the scales"));
        }
    }

    /// Warns of a function of the library that is not there yet: a run that comes to it is refused.
    pub(super) fn warn_lacking(&mut self, name: &Name, stem: &str, params: &[UnsizedType]) {
        if lacks(stem, params) {
            // Of `~` the name is a density's, which the program does not say.
            let called = name.text.strip_suffix("_lupmf").unwrap_or(&name.text);
            let message = format!("`{called}`: known, not supported yet");
            self.report(Diagnostic::warning("W2110", message, name.span, "a run that comes to this is refused"));
        }
    }

    /// Warns of what stands behind a statement that goes elsewhere.
    pub(super) fn warn_unreachable(&mut self, stmts: &[Stmt]) {
        for pair in stmts.windows(2) {
            if let Some(word) = escapes(&pair[0]) {
                let message = format!("nothing gets here, after `{word}`");
                let warning = Diagnostic::warning("W2104", message, pair[1].span, "this is never run");
                self.report(warning.with_label(pair[0].span, "it goes elsewhere here"));
                return;
            }
        }
    }

    /// Warns of declarations ahead of a definition: all functions are known everywhere.
    pub(super) fn warn_unneeded_declarations(&mut self, items: &[Function]) {
        let same = |a: &Function, b: &Function| {
            a.name.text == b.name.text
                && a.params.iter().map(|p| (p.data_only, &p.ty)).eq(b.params.iter().map(|p| (p.data_only, &p.ty)))
        };
        for item in items.iter().filter(|item| item.body.is_none()) {
            if items.iter().any(|other| other.body.is_some() && same(item, other)) {
                let message = format!("`{}` need not be declared before it is defined", item.name.text);
                let warning =
                    Diagnostic::warning("W2109", message, item.name.span, "all functions are known everywhere");
                self.report(warning.with_help("take this line away"));
            }
        }
    }
}

/// The word of a statement that goes elsewhere.
fn escapes(stmt: &Stmt) -> Option<&'static str> {
    Some(match stmt.kind {
        StmtKind::Break => "break",
        StmtKind::Continue => "continue",
        StmtKind::Reject(_) => "reject",
        StmtKind::FatalError(_) => "fatal_error",
        StmtKind::Return(_) => "return",
        _ => return None,
    })
}

/// The names of variables in an expression.
pub(super) fn names_in<'e>(expr: &'e Expr, into: &mut Vec<&'e Name>) {
    if let ExprKind::Variable(name) = &expr.kind {
        into.push(name);
    }
    parts(expr).into_iter().for_each(|part| names_in(part, into));
}

/// The expressions in an expression.
pub(in crate::stan) fn parts(expr: &Expr) -> Vec<&Expr> {
    match &expr.kind {
        ExprKind::Unary(_, a) | ExprKind::Transpose(a) | ExprKind::Paren(a) => vec![a],
        ExprKind::Binary(_, a, b) => vec![a, b],
        ExprKind::Conditional(a, b, c) => vec![a, b, c],
        ExprKind::Call { args, .. } => args.iter().collect(),
        ExprKind::Array(all) | ExprKind::RowVector(all) | ExprKind::Tuple(all) => all.iter().collect(),
        ExprKind::TupleField { base, .. } => vec![base],
        ExprKind::Index { base, indices } => {
            let indices = indices.iter().flat_map(|index| match index {
                Index::All(_) => vec![],
                Index::Single(a) | Index::From(a) | Index::To(a) => vec![a],
                Index::Between(a, b) => vec![a, b],
            });
            std::iter::once(&**base).chain(indices).collect()
        }
        ExprKind::Int(_) | ExprKind::Real(_) | ExprKind::Imaginary(_) | ExprKind::Variable(_) => vec![],
        ExprKind::Target | ExprKind::Error => vec![],
    }
}

/// Whether both are surely the same value: the same variable, or the same part of it.
pub(super) fn is_same(a: &Expr, b: &Expr) -> bool {
    match (&a.kind, &b.kind) {
        (_, ExprKind::Paren(b)) => is_same(a, b),
        (ExprKind::Paren(a), _) => is_same(a, b),
        (ExprKind::Variable(a), ExprKind::Variable(b)) => a.text == b.text,
        (ExprKind::Int(a), ExprKind::Int(b)) => a == b,
        (ExprKind::TupleField { base: a, index: i, .. }, ExprKind::TupleField { base: b, index: j, .. }) => {
            i == j && is_same(a, b)
        }
        (ExprKind::Binary(op, a, b), ExprKind::Binary(other, c, d)) => op == other && is_same(a, c) && is_same(b, d),
        (ExprKind::Tuple(a), ExprKind::Tuple(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b)),
        (ExprKind::Index { base: a, indices: i }, ExprKind::Index { base: b, indices: j }) => {
            is_same(a, b) && i.len() == j.len() && i.iter().zip(j).all(|(i, j)| is_same_index(i, j))
        }
        _ => false,
    }
}

fn is_same_index(a: &Index, b: &Index) -> bool {
    match (a, b) {
        (Index::All(_), Index::All(_)) => true,
        (Index::Single(a), Index::Single(b)) | (Index::From(a), Index::From(b)) | (Index::To(a), Index::To(b)) => {
            is_same(a, b)
        }
        (Index::Between(a, b), Index::Between(c, d)) => is_same(a, c) && is_same(b, d),
        _ => false,
    }
}
