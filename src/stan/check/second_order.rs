//! The Laplace approximation differentiates its likelihood more than once: what such a function calls must allow that.

use std::collections::HashSet;
use std::sync::Arc;

use crate::base::Diagnostic;
use crate::stan::syntax::ast::{Expr, ExprKind, Function, Name, Printable, Stmt, StmtKind};

use super::context::Checker;
use super::variadic::is_special;
use super::warnings::parts;

/// Functions of the library that are differentiated once at most, besides those that take any function.
const ONCE: [&str; 10] = [
    "algebra_solver",
    "algebra_solver_newton",
    "integrate_1d",
    "integrate_ode",
    "integrate_ode_adams",
    "integrate_ode_bdf",
    "integrate_ode_rk45",
    "map_rect",
    "hmm_marginal",
    "hmm_hidden_state_prob",
];

impl Checker {
    /// Reports likelihoods that call, in whatever way, what can be differentiated only once.
    pub(super) fn check_second_order(&mut self, items: &[Function]) {
        for name in std::mem::take(&mut self.second_order) {
            let mut seen = HashSet::new();
            if let Some(call) = blocking(&name.text, items, &mut seen) {
                let message = format!("`{}` calls `{}`, which has no second derivatives", name.text, call.text);
                let error = Diagnostic::error("E2412", message, name.span, "the Laplace approximation needs them");
                self.report(error.with_label(call.span, "it is called here"));
            }
        }
    }
}

/// The first call, in functions of this name or what they call, of what is differentiated once at most.
fn blocking<'t>(name: &str, items: &'t [Function], seen: &mut HashSet<Arc<str>>) -> Option<&'t Name> {
    if !seen.insert(name.into()) {
        return None;
    }
    let bodies = items.iter().filter(|item| &*item.name.text == name).filter_map(|item| item.body.as_deref());
    let mut names = Vec::new();
    bodies.flatten().for_each(|stmt| called(stmt, &mut names));
    for name in names {
        if ONCE.contains(&&*name.text) || is_special(&name.text) {
            return Some(name);
        }
        if let Some(found) = blocking(&name.text, items, seen) {
            return Some(found);
        }
    }
    None
}

fn in_expr<'t>(expr: &'t Expr, into: &mut Vec<&'t Name>) {
    match &expr.kind {
        ExprKind::Call { name, .. } | ExprKind::Variable(name) => into.push(name),
        _ => {}
    }
    parts(expr).into_iter().for_each(|part| in_expr(part, into));
}

/// The names of functions that a statement calls, and of variables.
fn called<'t>(stmt: &'t Stmt, into: &mut Vec<&'t Name>) {
    let mut exprs: Vec<&Expr> = Vec::new();
    match &stmt.kind {
        StmtKind::Declare { variables, .. } => exprs.extend(variables.iter().filter_map(|v| v.value.as_ref())),
        StmtKind::Assign { place, value, .. } => exprs.extend([place, value]),
        StmtKind::Call { name, args } => {
            into.push(name);
            exprs.extend(args);
        }
        StmtKind::Target(expr) | StmtKind::Jacobian(expr) => exprs.push(expr),
        StmtKind::Tilde { value, args, .. } => exprs.extend(std::iter::once(value).chain(args)),
        StmtKind::Return(expr) => exprs.extend(expr),
        StmtKind::Print(all) | StmtKind::Reject(all) | StmtKind::FatalError(all) => {
            exprs.extend(all.iter().filter_map(|part| match part {
                Printable::Value(expr) => Some(expr),
                Printable::Text(..) => None,
            }));
        }
        StmtKind::If { condition, then, otherwise } => {
            exprs.push(condition);
            called(then, into);
            otherwise.iter().for_each(|stmt| called(stmt, into));
        }
        StmtKind::While { condition, body } => {
            exprs.push(condition);
            called(body, into);
        }
        StmtKind::For { from, to, body, .. } => {
            exprs.extend([from, to]);
            called(body, into);
        }
        StmtKind::ForEach { over, body, .. } => {
            exprs.push(over);
            called(body, into);
        }
        StmtKind::Profile { body, .. } | StmtKind::Block(body) => body.iter().for_each(|stmt| called(stmt, into)),
        StmtKind::Break | StmtKind::Continue | StmtKind::Skip | StmtKind::Error => {}
    }
    exprs.into_iter().for_each(|expr| in_expr(expr, into));
}
