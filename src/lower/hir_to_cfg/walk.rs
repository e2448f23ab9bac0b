//! What must be known of an expression before it is lowered: does it assign, which locals does it use, is it short.

use indexmap::IndexSet;

use crate::hir::{Callee, Clause, Expr, ExprKind, LocalId, Projection, Stmt, StmtKind};

/// Visits the expressions directly inside another one, those in its statements included.
fn children<'a>(expr: &'a Expr, visit: &mut dyn FnMut(&'a Expr)) {
    match &expr.kind {
        ExprKind::Literal(_)
        | ExprKind::Dim(_)
        | ExprKind::Local(_)
        | ExprKind::Function(..)
        | ExprKind::FunctionLocal(_)
        | ExprKind::Break
        | ExprKind::Continue => {}
        ExprKind::Tuple(parts) | ExprKind::Struct(_, parts) | ExprKind::Prim(_, parts) | ExprKind::Call(_, parts) => {
            parts.iter().for_each(visit)
        }
        ExprKind::Derivative(call) => call.parts().for_each(visit),
        ExprKind::Field(inner, _) | ExprKind::Lambda { body: inner, .. } | ExprKind::StopGradient(inner) => {
            visit(inner)
        }
        ExprKind::And(a, b) | ExprKind::Or(a, b) | ExprKind::While(a, b) => {
            visit(a);
            visit(b);
        }
        ExprKind::If(condition, then, otherwise) => {
            visit(condition);
            visit(then);
            otherwise.iter().for_each(|e| visit(e));
        }
        ExprKind::Block(stmts, tail) => {
            stmts.iter().for_each(|s| in_stmt(s, visit));
            tail.iter().for_each(|e| visit(e));
        }
        ExprKind::Comprehension { clauses, body } | ExprKind::Reduction { clauses, body, .. } => {
            for Clause { start, end, .. } in clauses {
                visit(start);
                visit(end);
            }
            visit(body);
        }
        ExprKind::Print(message) => message.args.iter().for_each(visit),
        ExprKind::Assert(condition, message) => {
            visit(condition);
            message.args.iter().for_each(visit);
        }
        ExprKind::For(_, start, end, body) => {
            visit(start);
            visit(end);
            visit(body);
        }
        ExprKind::Return(value) => value.iter().for_each(|e| visit(e)),
    }
}

fn in_stmt<'a>(stmt: &'a Stmt, visit: &mut dyn FnMut(&'a Expr)) {
    match &stmt.kind {
        StmtKind::Let(_, value) | StmtKind::Expr(value) => visit(value),
        StmtKind::Assign { place, value, .. } => {
            for step in &place.path {
                match step {
                    Projection::Field(_) => {}
                    Projection::Index(indices) => indices.iter().for_each(&mut *visit),
                    Projection::Slice(start) => visit(start),
                }
            }
            visit(value);
        }
        StmtKind::Emit { fields, .. } => fields.iter().for_each(|(_, value)| visit(value)),
    }
}

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
