//! Walking over the expressions of a body.

use super::{Callee, Expr, ExprKind, LocalId, Place, Projection, Stmt, StmtKind};

/// Calls `visit` on each expression directly inside `expr`.
pub fn children<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Expr)) {
    match &expr.kind {
        ExprKind::Literal(_)
        | ExprKind::Dim(_)
        | ExprKind::Local(_)
        | ExprKind::Function(..)
        | ExprKind::FunctionLocal(_)
        | ExprKind::Break
        | ExprKind::Continue
        | ExprKind::Return(None) => {}
        ExprKind::Tuple(parts) | ExprKind::Struct(_, parts) | ExprKind::Prim(_, parts) => {
            parts.iter().for_each(visit);
        }
        ExprKind::Call(_, args) => args.iter().for_each(visit),
        ExprKind::Derivative(call) => call.parts().for_each(visit),
        ExprKind::Attempt(function, args) => {
            visit(function);
            args.iter().for_each(visit);
        }
        ExprKind::Field(base, _) | ExprKind::StopGradient(base) => visit(base),
        ExprKind::And(a, b) | ExprKind::Or(a, b) | ExprKind::While(a, b) => {
            visit(a);
            visit(b);
        }
        ExprKind::If(condition, then, other) => {
            visit(condition);
            visit(then);
            other.iter().for_each(|e| visit(e));
        }
        ExprKind::Block(stmts, tail) => {
            stmts.iter().for_each(|s| stmt_children(s, visit));
            tail.iter().for_each(|e| visit(e));
        }
        ExprKind::Comprehension { clauses, body } | ExprKind::Reduction { clauses, body, .. } => {
            for clause in clauses {
                visit(&clause.start);
                visit(&clause.end);
            }
            visit(body);
        }
        ExprKind::Lambda { body, .. } => visit(body),
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
        ExprKind::Return(Some(value)) => visit(value),
    }
}

/// Calls `visit` on each expression directly inside a statement.
pub fn stmt_children<'e>(stmt: &'e Stmt, visit: &mut dyn FnMut(&'e Expr)) {
    match &stmt.kind {
        StmtKind::Let(_, value) | StmtKind::Expr(value) => visit(value),
        StmtKind::Assign { place, value, .. } => {
            place_children(place, visit);
            visit(value);
        }
        StmtKind::Emit { fields, .. } => fields.iter().for_each(|(_, value)| visit(value)),
    }
}

fn place_children<'e>(place: &'e Place, visit: &mut dyn FnMut(&'e Expr)) {
    for step in &place.path {
        match step {
            Projection::Field(_) => {}
            Projection::Index(indices) => indices.iter().for_each(&mut *visit),
            Projection::Slice(start) => visit(start),
        }
    }
}

/// Calls `visit` on `expr` and on each expression inside it, from the outside in.
pub fn all<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Expr)) {
    visit(expr);
    children(expr, &mut |inner| all(inner, visit));
}

/// Whether the local is read in the expression.
pub fn mentions(expr: &Expr, local: LocalId) -> bool {
    let mut found = false;
    all(expr, &mut |e| {
        found |= match &e.kind {
            ExprKind::Local(l) | ExprKind::FunctionLocal(l) => *l == local,
            ExprKind::Call(Callee::Local(l), _) => *l == local,
            _ => false,
        };
    });
    found
}
