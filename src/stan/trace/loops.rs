//! Loops. Those whose turns are known turn here, also where parameters decide who leaves; any other is a
//! [routine](super::loop_routine).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::flow::{Flow, Mixed};
use super::index::At;
use super::loop_routine::Head;
use super::{Result, Tracer};
use crate::base::Span;
use crate::stan::syntax::ast::{Expr, ExprKind, Name, Stmt, StmtKind};
use crate::stan::syntax::walk::{self, Walk};
use crate::stan::value::{Counted, Kind, Val};

/// So many turns that lanes may leave early are run one by one; of more the text gets a loop.
const MAX_MASKED: i64 = 100;

/// Calls `see` with a statement and all that are in it.
fn each<'s>(stmt: &'s Stmt, see: &mut dyn FnMut(&'s Stmt)) {
    see(stmt);
    match &stmt.kind {
        StmtKind::If { then, otherwise, .. } => {
            each(then, see);
            otherwise.iter().for_each(|s| each(s, see));
        }
        StmtKind::While { body, .. } | StmtKind::For { body, .. } | StmtKind::ForEach { body, .. } => each(body, see),
        StmtKind::Profile { body, .. } | StmtKind::Block(body) => body.iter().for_each(|s| each(s, see)),
        _ => {}
    }
}

/// The variables that a statement assigns.
pub(super) fn assigned(stmt: &Stmt) -> BTreeSet<Arc<str>> {
    fn places(place: &Expr, names: &mut BTreeSet<Arc<str>>) {
        match &place.kind {
            ExprKind::Variable(name) => {
                names.insert(name.text.clone());
            }
            ExprKind::Index { base, .. } | ExprKind::TupleField { base, .. } | ExprKind::Paren(base) => {
                places(base, names);
            }
            ExprKind::Tuple(parts) => parts.iter().for_each(|part| places(part, names)),
            _ => {}
        }
    }
    let mut names = BTreeSet::new();
    each(stmt, &mut |s| {
        if let StmtKind::Assign { place, .. } = &s.kind {
            places(place, &mut names);
        }
    });
    names
}

/// The variables that a statement names.
pub(super) fn mentioned(stmt: &Stmt) -> BTreeSet<Arc<str>> {
    let mut names = Mentioned(BTreeSet::new());
    names.stmt(&mut stmt.clone());
    names.0
}

/// The variables that an expression names.
pub(super) fn mentioned_in(expr: &Expr) -> BTreeSet<Arc<str>> {
    let mut names = Mentioned(BTreeSet::new());
    names.expr(&mut expr.clone());
    names.0
}

struct Mentioned(BTreeSet<Arc<str>>);

impl Walk for Mentioned {
    fn expr(&mut self, expr: &mut Expr) {
        if let ExprKind::Variable(name) = &expr.kind {
            self.0.insert(name.text.clone());
        }
        walk::expr_parts(self, expr);
    }
}

/// Whether a statement says that a loop is left.
fn may_leave(stmt: &Stmt) -> bool {
    let mut found = false;
    each(stmt, &mut |s| found |= matches!(s.kind, StmtKind::Break | StmtKind::Return(_)));
    found
}

impl Tracer<'_> {
    /// `for (i in from:to) …`
    pub(super) fn for_loop(&mut self, span: Span, var: &Name, from: Val, to: Val, body: &Stmt) -> Result<Flow> {
        let (Some(first), Some(last)) = (from.as_int(), to.as_int()) else {
            return self.loop_routine(span, Head::For { var, from, to }, body);
        };
        if last.saturating_sub(first) < MAX_MASKED || !may_leave(body) {
            return self.turns(span, var, (first..=last).map(Val::int), None, body);
        }
        for i in first..=last {
            let mark = self.mark();
            let flow = self.turned(|t| {
                t.bind(&var.text, Val::int(i));
                t.stmt(body)
            })?;
            match flow {
                Flow::Next | Flow::Continue => {}
                Flow::Break => break,
                flow @ Flow::Return(_) => return Ok(flow),
                Flow::Mixed(mixed) if !mixed.leaves() => {}
                Flow::Mixed(_) => {
                    self.back_to(mark);
                    return self.loop_routine(span, Head::For { var, from: Val::int(i), to }, body);
                }
            }
        }
        Ok(Flow::Next)
    }

    /// `for (x in over) …`
    pub(super) fn for_each(&mut self, span: Span, var: &Name, over: &Val, body: &Stmt) -> Result<Flow> {
        let kind = over.kind.element();
        if let Some(Counted { whole, count }) = over.counted() {
            if over.kind == Kind::MATRIX {
                let count = self.infix(span, "*", count, &Val::int(whole.shape[1] as i64))?;
                let items = (0..whole.len()).map(|at| whole.pick(Kind::REAL, vec![], std::iter::once(at)));
                return self.turns(span, var, items, Some(&count), body);
            }
            let one = |i: usize| [At::One(i as i64 + 1, span)];
            let items = (0..whole.shape[0]).map(|i| self.indexed(span, whole, &one(i))).collect::<Result<Vec<_>>>()?;
            return self.turns(span, var, items.into_iter(), Some(count), body);
        }
        // A matrix is walked element by element, row after row.
        let items: Vec<Val> = if over.is_tuple() {
            let one = |i: usize| [At::One(i as i64 + 1, span)];
            (0..over.shape[0]).map(|i| self.indexed(span, over, &one(i))).collect::<Result<_>>()?
        } else if over.kind.real() == Kind::MATRIX {
            let scalar = kind.element();
            (0..over.len()).map(|at| over.pick(scalar, vec![], std::iter::once(at))).collect()
        } else {
            let shape = over.shape[1..].to_vec();
            let size: usize = shape.iter().product();
            (0..over.shape[0]).map(|i| over.pick(kind, shape.clone(), i * size..(i + 1) * size)).collect()
        };
        self.turns(span, var, items.into_iter(), None, body)
    }

    /// Turns that are known, of which lanes may take the first `count` only. What is still to be done runs for those who
    /// have not left.
    fn turns(
        &mut self,
        span: Span,
        var: &Name,
        items: impl Iterator<Item = Val>,
        count: Option<&Val>,
        body: &Stmt,
    ) -> Result<Flow> {
        let mut left: Option<Mixed> = None;
        for (i, item) in items.enumerate() {
            let before = left.take();
            let flow = self.turned(|t| {
                let before = match count {
                    None => before,
                    Some(count) => Some(t.comes_to(span, i, count, before)?),
                };
                t.bind(&var.text, item);
                let flow = match before {
                    None => t.stmt(body)?,
                    Some(left) => {
                        let flow = t.masked(span, &left, |t| t.stmt(body))?;
                        Flow::Mixed(Box::new(t.then(span, left, flow)?))
                    }
                };
                t.next_turn(span, flow)
            })?;
            match flow {
                Flow::Next => {}
                Flow::Mixed(mixed) if mixed.is_over() => return self.after_loop(span, *mixed),
                Flow::Mixed(mixed) => left = Some(*mixed),
                Flow::Break => return Ok(Flow::Next),
                flow => return Ok(flow),
            }
        }
        match left {
            None => Ok(Flow::Next),
            Some(left) => self.after_loop(span, left),
        }
    }

    /// Who comes to the next turn: those who went through this one, or went on with it early.
    fn next_turn(&mut self, span: Span, flow: Flow) -> Result<Flow> {
        match flow {
            Flow::Next | Flow::Continue => Ok(Flow::Next),
            Flow::Mixed(mixed) if !mixed.leaves() => Ok(Flow::Next),
            Flow::Mixed(mixed) => {
                let next = if mixed.continued.as_int() == Some(0) {
                    mixed.next.clone()
                } else {
                    let gone = self.either(span, &mixed.broke, &mixed.returned)?;
                    self.negated(span, &gone)?
                };
                Ok(Mixed { next, continued: Val::int(0), ..*mixed }.into_flow())
            }
            flow => Ok(flow),
        }
    }

    /// Where a loop leaves that lanes have left so.
    fn after_loop(&mut self, span: Span, left: Mixed) -> Result<Flow> {
        if left.returned.as_int() == Some(0) {
            return Ok(Flow::Next);
        }
        let next = self.negated(span, &left.returned)?;
        Ok(Mixed { next, broke: Val::int(0), ..left }.into_flow())
    }

    /// `while (condition) …`: turn by turn as long as that is known.
    pub(super) fn while_loop(&mut self, span: Span, condition: &Expr, body: &Stmt) -> Result<Flow> {
        let may_leave = may_leave(body);
        loop {
            let mark = may_leave.then(|| self.mark());
            let c = self.eval(condition)?;
            let c = self.truth(condition.span, &c)?;
            match c.as_int() {
                Some(0) => return Ok(Flow::Next),
                Some(_) => {}
                None => return self.loop_routine(span, Head::While(condition), body),
            }
            match self.turned(|t| t.stmt(body))? {
                Flow::Next | Flow::Continue => {}
                Flow::Break => return Ok(Flow::Next),
                flow @ Flow::Return(_) => return Ok(flow),
                Flow::Mixed(mixed) if !mixed.leaves() => {}
                Flow::Mixed(_) => {
                    mark.into_iter().for_each(|mark| self.back_to(mark));
                    return self.loop_routine(span, Head::While(condition), body);
                }
            }
        }
    }
}
