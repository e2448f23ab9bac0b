//! What comprehensions may call: functions that neither print nor emit, however deep.

use crate::base::{Diagnostic, IdVec, Span};
use crate::hir::{Callee, Expr, ExprKind, FnId, Stmt, StmtKind, walk};

use super::context::Checker;

impl Checker<'_> {
    /// Reports calls, in comprehensions, of functions that print or emit.
    pub(super) fn check_comprehension_calls(&mut self) {
        let impure = self.impure_fns();
        let mut found: Vec<(FnId, Span)> = Vec::new();
        for def in self.fns.values() {
            let Some(function) = &def.checked else {
                continue;
            };
            walk::all(&function.body, &mut |expr| match &expr.kind {
                ExprKind::Comprehension { body, .. } | ExprKind::Reduction { body, .. } => {
                    walk::all(body, &mut |inner| {
                        let called = callee(inner).filter(|id| impure[*id]);
                        found.extend(called.map(|id| (id, inner.span)));
                    });
                }
                _ => {}
            });
        }
        found.sort_by_key(|(_, span)| (span.file.0, span.start, span.end));
        found.dedup();
        for (id, span) in found {
            let error = Diagnostic::error(
                "E0610",
                format!("`{}` prints or emits: a comprehension cannot call it", self.fns[id].name),
                span,
                "the elements of a comprehension have no order",
            );
            self.report(error.with_help("use a `for` loop"));
        }
    }

    /// Functions that print or emit, themselves or by what they call.
    fn impure_fns(&self) -> IdVec<FnId, bool> {
        let mut impure = IdVec::filled(false, self.fns.len());
        let mut callers: IdVec<FnId, Vec<FnId>> = IdVec::filled(Vec::new(), self.fns.len());
        let mut work = Vec::new();
        for (id, def) in self.fns.iter() {
            let Some(function) = &def.checked else {
                continue;
            };
            walk::all(&function.body, &mut |expr| {
                if let Some(called) = callee(expr) {
                    callers[called].push(id);
                }
                if has_effect(expr) && !impure[id] {
                    impure[id] = true;
                    work.push(id);
                }
            });
        }
        while let Some(id) = work.pop() {
            for caller in std::mem::take(&mut callers[id]) {
                if !std::mem::replace(&mut impure[caller], true) {
                    work.push(caller);
                }
            }
        }
        impure
    }
}

fn callee(expr: &Expr) -> Option<FnId> {
    match &expr.kind {
        ExprKind::Call(Callee::Fn(id, _), _) | ExprKind::Function(id, _) => Some(*id),
        _ => None,
    }
}

fn has_effect(expr: &Expr) -> bool {
    let emits = |stmt: &Stmt| matches!(stmt.kind, StmtKind::Emit { .. });
    match &expr.kind {
        ExprKind::Print(_) => true,
        ExprKind::Block(stmts, _) => stmts.iter().any(emits),
        _ => false,
    }
}
