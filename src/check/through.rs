//! What derivatives and `@recompute` cannot go through: random draws, and effects that would happen twice. Calls of
//! function parameters are followed when a program is specialised.

use std::collections::BTreeSet;

use crate::base::{Diagnostic, Span};
use crate::hir::{Callee, Expr, ExprKind, FnId, Stmt, StmtKind, walk};

use super::context::Checker;

/// A function and where it is called from, back to the start.
struct Step {
    function: FnId,
    called_at: Span,
    from: Option<usize>,
}

/// Something that stands in the way.
struct Found {
    /// In the user's words.
    what: String,
    span: Span,
}

/// What is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Search {
    /// Random draws, but for those inside of `stop_gradient`.
    Draws,
    /// Random draws, `print` and `emit`.
    Effects,
}

impl Checker<'_> {
    /// Reports derivatives through random draws.
    pub(super) fn check_derivatives(&mut self) {
        let mut errors = Vec::new();
        for (_, def) in self.fns.iter() {
            let Some(function) = &def.checked else {
                continue;
            };
            walk::all(&function.body, &mut |expr| {
                if let ExprKind::Derivative(call) = &expr.kind
                    && let Some((path, found)) = self.search(&call.function, Search::Draws)
                {
                    let message = format!("`{}` goes through a random draw: {path}", call.op.name());
                    let error = Diagnostic::error("E0908", message, expr.span, "this derivative");
                    errors.push(
                        error.with_label(found, "drawn here").with_help(
                            "draw before and pass the value, or mark the draw a constant: `stop_gradient(…)`",
                        ),
                    );
                }
            });
        }
        self.diagnostics.extend(errors);
    }

    /// Reports `@recompute` functions whose second run would be seen.
    pub(super) fn check_recompute(&mut self) {
        let mut errors = Vec::new();
        for (_, def) in self.fns.iter().filter(|(_, def)| def.recompute) {
            let Some(function) = &def.checked else {
                continue;
            };
            if let Some((path, found)) = self.search(&function.body, Search::Effects) {
                let path = if path.contains("→") { format!(": {path}") } else { String::new() };
                let message = format!("`{}` is `@recompute`: it must neither draw, print nor emit{path}", def.name);
                let error = Diagnostic::error("E0913", message, def.span, "it would happen twice");
                errors.push(error.with_label(found, "here").with_help("remove `@recompute`"));
            }
        }
        self.diagnostics.extend(errors);
    }

    /// The shortest way from an expression to what is looked for, and where that stands.
    fn search(&self, start: &Expr, search: Search) -> Option<(String, Span)> {
        let mut steps: Vec<Step> = Vec::new();
        let mut seen: BTreeSet<FnId> = BTreeSet::new();
        let mut add = |calls: Vec<(FnId, Span)>, from: Option<usize>, steps: &mut Vec<Step>| {
            for (function, called_at) in calls {
                // a derivative by hand stands in the place of the body
                let replaced = search == Search::Draws && self.rules.contains_key(&function);
                if !replaced && seen.insert(function) {
                    steps.push(Step { function, called_at, from });
                }
            }
        };
        let (found, calls) = look(start, search);
        if let Some(found) = found {
            let line = self.line(found.span);
            return Some((format!("{} (line {line})", found.what), found.span));
        }
        add(calls, None, &mut steps);
        let mut next = 0;
        while next < steps.len() {
            if let Some(function) = &self.fns[steps[next].function].checked {
                let (found, calls) = look(&function.body, search);
                if let Some(found) = found {
                    return Some(self.told(&steps, next, &found));
                }
                add(calls, Some(next), &mut steps);
            }
            next += 1;
        }
        None
    }

    /// `` `f` → `g` → `normal_rng` (line 7)``: functions of the library are told by their call.
    fn told(&self, steps: &[Step], last: usize, found: &Found) -> (String, Span) {
        let mut path = Vec::new();
        let mut at = Some(last);
        while let Some(i) = at {
            path.push(i);
            at = steps[i].from;
        }
        path.reverse();
        let mut names = Vec::new();
        for i in path {
            let def = &self.fns[steps[i].function];
            names.push(format!("`{}`", def.name));
            if self.modules[def.module].std {
                let span = steps[i].called_at;
                return (format!("{} (line {})", names.join(" → "), self.line(span)), span);
            }
        }
        names.push(format!("{} (line {})", found.what, self.line(found.span)));
        (names.join(" → "), found.span)
    }
}

/// What an expression does itself of what is looked for, and what it calls or passes on.
fn look(expr: &Expr, search: Search) -> (Option<Found>, Vec<(FnId, Span)>) {
    let mut found = None;
    let mut calls = Vec::new();
    visit(expr, search, &mut |expr| {
        let what = match &expr.kind {
            ExprKind::Call(Callee::Fn(id, _), _) | ExprKind::Function(id, _) => {
                calls.push((*id, expr.span));
                None
            }
            ExprKind::Prim(op, _) if op.is_draw() => Some(op.name()),
            ExprKind::Print(_) if search == Search::Effects => Some("print"),
            ExprKind::Block(stmts, _) if search == Search::Effects && stmts.iter().any(emits) => Some("emit"),
            _ => None,
        };
        if let (Some(what), None) = (what, &found) {
            found = Some(Found { what: format!("`{what}`"), span: expr.span });
        }
    });
    (found, calls)
}

fn visit<'e>(expr: &'e Expr, search: Search, see: &mut dyn FnMut(&'e Expr)) {
    if search == Search::Draws && matches!(expr.kind, ExprKind::StopGradient(_)) {
        return;
    }
    see(expr);
    walk::children(expr, &mut |inner| visit(inner, search, see));
}

fn emits(stmt: &Stmt) -> bool {
    matches!(stmt.kind, StmtKind::Emit { .. })
}
