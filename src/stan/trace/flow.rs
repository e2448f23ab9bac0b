//! Where statements leave: `break`, `continue` and `return`, also where only some values of parameters do. What comes after
//! then runs for the lanes that are still there, and what it leaves is chosen.

use super::{Result, Tracer};
use crate::base::Span;
use crate::stan::graph::Op;
use crate::stan::value::{Kind, Val};

/// Where a statement leaves.
pub(in crate::stan) enum Flow {
    Next,
    Break,
    Continue,
    Return(Option<Val>),
    /// Lanes differ.
    Mixed(Box<Mixed>),
}

/// For each way to leave whether a lane takes it, as an int: known where none or all do.
#[derive(Clone)]
pub(in crate::stan) struct Mixed {
    pub(super) next: Val,
    pub(super) broke: Val,
    pub(super) continued: Val,
    pub(super) returned: Val,
    /// What those give that return.
    pub(super) result: Option<Val>,
}

fn never(flag: &Val) -> bool {
    flag.as_int() == Some(0)
}

fn always(flag: &Val) -> bool {
    flag.as_int().is_some_and(|i| i != 0)
}

impl Mixed {
    pub(super) fn of(flow: Flow) -> Mixed {
        let no = || Val::int(0);
        let none = Mixed { next: no(), broke: no(), continued: no(), returned: no(), result: None };
        match flow {
            Flow::Next => Mixed { next: Val::int(1), ..none },
            Flow::Break => Mixed { broke: Val::int(1), ..none },
            Flow::Continue => Mixed { continued: Val::int(1), ..none },
            Flow::Return(result) => Mixed { returned: Val::int(1), result, ..none },
            Flow::Mixed(mixed) => *mixed,
        }
    }

    /// The plain way to leave, where all lanes take the same.
    pub(super) fn into_flow(self) -> Flow {
        let flags = [&self.next, &self.broke, &self.continued, &self.returned];
        match flags.map(|flag| !never(flag)) {
            [true, false, false, false] => Flow::Next,
            [false, true, false, false] => Flow::Break,
            [false, false, true, false] => Flow::Continue,
            [false, false, false, true] => Flow::Return(self.result),
            _ => Flow::Mixed(Box::new(self)),
        }
    }

    /// Whether nobody goes on.
    pub(super) fn is_over(&self) -> bool {
        never(&self.next)
    }

    /// Whether lanes may leave a loop.
    pub(super) fn leaves(&self) -> bool {
        !never(&self.broke) || !never(&self.returned)
    }

    /// Whether somebody reads variables of lanes that are not there any more.
    fn keeps(&self) -> bool {
        !never(&self.broke) || !never(&self.continued)
    }
}

impl Tracer<'_> {
    /// `a && b` of flags.
    pub(super) fn both(&mut self, span: Span, a: &Val, b: &Val) -> Result<Val> {
        match (a, b) {
            (a, _) if never(a) => Ok(a.clone()),
            (_, b) if never(b) => Ok(b.clone()),
            (a, b) if always(a) => Ok(b.clone()),
            (a, b) if always(b) => Ok(a.clone()),
            (a, b) => self.call_ab(span, "min", &[a.clone(), b.clone()], Kind::INT, vec![]),
        }
    }

    /// `a || b` of flags.
    pub(super) fn either(&mut self, span: Span, a: &Val, b: &Val) -> Result<Val> {
        match (a, b) {
            (a, b) if never(a) => Ok(b.clone()),
            (a, b) if never(b) => Ok(a.clone()),
            (a, _) if always(a) => Ok(a.clone()),
            (_, b) if always(b) => Ok(b.clone()),
            (a, b) => self.call_ab(span, "max", &[a.clone(), b.clone()], Kind::INT, vec![]),
        }
    }

    /// `!a` of a flag.
    pub(super) fn negated(&mut self, span: Span, a: &Val) -> Result<Val> {
        self.apply(span, Op::Compare("=="), &[a.clone(), Val::int(0)], Kind::INT, vec![])
    }

    /// `a` where a condition holds, else `b`; `off` is the opposite of the condition.
    fn flag(&mut self, span: Span, (c, off): (&Val, &Val), a: &Val, b: &Val) -> Result<Val> {
        match (a, b) {
            (a, b) if never(a) => self.both(span, off, b),
            (a, b) if never(b) => self.both(span, c, a),
            (a, b) if always(a) => self.either(span, c, b),
            (a, b) if always(b) => self.either(span, off, a),
            (a, b) => self.select(span, c, a, b),
        }
    }

    /// Whether all conditions hold under which the current statement runs; `None` where there are none.
    pub(super) fn on(&mut self, span: Span) -> Result<Option<Val>> {
        let mut on: Option<Val> = None;
        for guard in self.guards.clone() {
            on = Some(match on {
                None => guard,
                Some(on) => self.both(span, &on, &guard)?,
            });
        }
        Ok(on)
    }

    /// The way in which an `if` leaves whose arms leave so.
    pub(super) fn joined(&mut self, span: Span, conditions: (&Val, &Val), a: Flow, b: Flow) -> Result<Flow> {
        let (a, b) = (Mixed::of(a), Mixed::of(b));
        let result = match (a.result, b.result) {
            (Some(x), Some(y)) => Some(self.choose_result(span, conditions.0, x, y)?),
            (x, y) => x.or(y),
        };
        let mixed = Mixed {
            next: self.flag(span, conditions, &a.next, &b.next)?,
            broke: self.flag(span, conditions, &a.broke, &b.broke)?,
            continued: self.flag(span, conditions, &a.continued, &b.continued)?,
            returned: self.flag(span, conditions, &a.returned, &b.returned)?,
            result,
        };
        Ok(mixed.into_flow())
    }

    /// The way to leave of what comes first and then, for those who are still there, leaves as `rest` does.
    pub(super) fn then(&mut self, span: Span, first: Mixed, rest: Flow) -> Result<Mixed> {
        let rest = Mixed::of(rest);
        let go = first.next.clone();
        let joined = |t: &mut Self, before: &Val, now: &Val| {
            let now = t.both(span, &go, now)?;
            t.either(span, before, &now)
        };
        let broke = joined(self, &first.broke, &rest.broke)?;
        let continued = joined(self, &first.continued, &rest.continued)?;
        let returned = joined(self, &first.returned, &rest.returned)?;
        let result = match (first.result, rest.result) {
            (Some(x), Some(y)) => Some(self.choose_result(span, &first.returned, x, y)?),
            (x, y) => x.or(y),
        };
        Ok(Mixed { next: self.both(span, &go, &rest.next)?, broke, continued, returned, result })
    }

    /// Runs something for the lanes that are still there. Variables of the others stay what they are.
    pub(super) fn masked(
        &mut self,
        span: Span,
        left: &Mixed,
        run: impl FnOnce(&mut Self) -> Result<Flow>,
    ) -> Result<Flow> {
        let before = self.frame().clone();
        let flow = self.guarded(&left.next, run)?;
        // Who has returned reads nothing any more.
        if left.keeps() {
            let after = std::mem::replace(self.frame(), before);
            self.merge(span, &left.next, &after)?;
        }
        Ok(flow)
    }
}
