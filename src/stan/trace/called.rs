//! Which functions of the program may call which, by the names that their bodies have.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Tracer;
use crate::stan::syntax::ast::{Expr, ExprKind, Function, Stmt, StmtKind};
use crate::stan::syntax::walk::{self, Walk};

/// What reads the log density so far, among the names that a function calls.
pub(super) const SO_FAR: &str = "target()";

/// Everything that the body of a function names that may be a function.
fn named(function: &Function) -> BTreeSet<Arc<str>> {
    struct Names(BTreeSet<Arc<str>>);
    impl Walk for Names {
        fn stmt(&mut self, stmt: &mut Stmt) {
            match &stmt.kind {
                StmtKind::Call { name, .. } => self.0.extend([name.text.clone()]),
                StmtKind::Tilde { distribution, .. } => {
                    self.0.extend(["_lpdf", "_lpmf"].map(|end| format!("{}{end}", distribution.text).into()));
                }
                _ => {}
            }
            walk::stmt_parts(self, stmt);
        }
        fn expr(&mut self, expr: &mut Expr) {
            match &expr.kind {
                ExprKind::Call { name, .. } => self.0.extend([super::call::without_u(&name.text).into()]),
                ExprKind::Target => self.0.extend([SO_FAR.into()]),
                ExprKind::Variable(name) => self.0.extend([name.text.clone()]),
                _ => {}
            }
            walk::expr_parts(self, expr);
        }
    }
    let mut names = Names(BTreeSet::new());
    function.body.clone().iter_mut().flatten().for_each(|stmt| names.stmt(stmt));
    names.0
}

impl Tracer<'_> {
    /// Whether a function may call another one or itself, by what it and those that it calls name.
    pub(super) fn may_call(&mut self, function: &Function, goal: &str) -> bool {
        if self.recursion.names.is_empty() {
            for f in &self.functions {
                self.recursion.names.entry(f.name.text.clone()).or_default().extend(named(f));
            }
        }
        let names = &self.recursion.names;
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut open: Vec<&str> = vec![&function.name.text];
        while let Some(name) = open.pop() {
            for next in names.get(name).into_iter().flatten() {
                if **next == *goal {
                    return true;
                }
                if names.contains_key(next) && seen.insert(next) {
                    open.push(next);
                }
            }
        }
        false
    }
}
