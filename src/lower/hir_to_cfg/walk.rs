//! What must be known of an expression before it is lowered: does it assign, which locals does it use, is it short.

use indexmap::IndexSet;

use crate::hir::walk::children;
use crate::hir::{Callee, Expr, ExprKind, LocalId, Stmt, StmtKind};

/// Whether evaluating the expression may assign a local: then operands before it must be kept as they were.
pub(super) fn assigns(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Lambda { .. } => return false,
        ExprKind::Block(stmts, _) => {
            let assign = |s: &Stmt| matches!(s.kind, StmtKind::Assign { .. });
            if stmts.iter().any(assign) {
                return true;
            }
        }
        _ => {}
    }
    let mut found = false;
    children(expr, &mut |child| found = found || assigns(child));
    found
}

/// All locals that are mentioned in an expression, in the order of their first mention.
pub(super) fn locals(expr: &Expr, into: &mut IndexSet<LocalId>) {
    match &expr.kind {
        ExprKind::Local(local) | ExprKind::FunctionLocal(local) | ExprKind::Call(Callee::Local(local), _) => {
            into.insert(*local);
        }
        ExprKind::Block(stmts, _) => {
            for stmt in stmts {
                if let StmtKind::Assign { place, .. } = &stmt.kind {
                    into.insert(place.local);
                }
            }
        }
        _ => {}
    }
    children(expr, &mut |child| locals(child, into));
}

/// Whether an expression is a few primitives of locals and constants: then it may be written twice.
pub(super) fn is_short(expr: &Expr) -> bool {
    fn size(expr: &Expr) -> usize {
        match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Dim(_) | ExprKind::Local(_) => 0,
            ExprKind::Field(inner, _) => size(inner),
            ExprKind::Prim(_, args) => args.iter().map(size).fold(1, usize::saturating_add),
            ExprKind::And(a, b) | ExprKind::Or(a, b) => size(a).saturating_add(size(b)).saturating_add(1),
            _ => usize::MAX,
        }
    }
    size(expr) <= 12
}
