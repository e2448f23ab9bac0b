//! Whether a function returns on every way through its body.

use crate::stan::syntax::ast::{Expr, ExprKind, Stmt, StmtKind};

/// What a statement does about returning.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    /// It returns, or ends the run, on every way.
    Returns,
    /// It may go on.
    GoesOn,
    /// It may leave a loop.
    Leaves,
}

/// Whether every way through the statements returns.
pub(super) fn returns(stmts: &[Stmt]) -> bool {
    block(stmts) == Flow::Returns
}

fn block(stmts: &[Stmt]) -> Flow {
    let mut flow = Flow::GoesOn;
    for stmt in stmts {
        flow = match (flow, statement(stmt)) {
            (Flow::Returns | Flow::GoesOn, Flow::Returns) => Flow::Returns,
            (Flow::Leaves, _) | (_, Flow::Leaves) => Flow::Leaves,
            _ => Flow::GoesOn,
        };
        let ends = matches!(
            stmt.kind,
            StmtKind::Break | StmtKind::Continue | StmtKind::Reject(_) | StmtKind::FatalError(_) | StmtKind::Return(_)
        );
        if ends {
            break;
        }
    }
    flow
}

fn statement(stmt: &Stmt) -> Flow {
    match &stmt.kind {
        StmtKind::Return(_) | StmtKind::Reject(_) | StmtKind::FatalError(_) => Flow::Returns,
        StmtKind::Break => Flow::Leaves,
        StmtKind::Block(stmts) => block(stmts),
        StmtKind::Profile { body, .. } => block(body),
        StmtKind::If { then, otherwise, .. } => {
            let otherwise = otherwise.as_ref().map_or(Flow::GoesOn, |stmt| statement(stmt));
            match (statement(then), otherwise) {
                (Flow::Returns, Flow::Returns) => Flow::Returns,
                (Flow::Leaves, _) | (_, Flow::Leaves) => Flow::Leaves,
                _ => Flow::GoesOn,
            }
        }
        StmtKind::While { condition, body } => match statement(body) {
            Flow::Returns => Flow::Returns,
            Flow::GoesOn if is_true(condition) => Flow::Returns,
            Flow::GoesOn | Flow::Leaves => Flow::GoesOn,
        },
        StmtKind::For { body, .. } | StmtKind::ForEach { body, .. } => match statement(body) {
            Flow::Returns => Flow::Returns,
            Flow::GoesOn | Flow::Leaves => Flow::GoesOn,
        },
        // What did not parse may have been a return.
        StmtKind::Error => Flow::Returns,
        _ => Flow::GoesOn,
    }
}

/// Whether a condition is a number that is not zero: the loop is left only by `return`.
fn is_true(condition: &Expr) -> bool {
    matches!(&condition.kind, ExprKind::Int(text) if text.bytes().any(|b| (b'1'..=b'9').contains(&b)))
}
