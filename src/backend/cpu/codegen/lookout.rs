//! Which generated functions a run finds, and when its shards go over to them.
//!
//! A function stands for steps of the plan: it leaves lane buffers, stacks, tapes and masks as these would. So between
//! two supersteps nothing tells in which way the last ones ran, and a change-over is no more than choosing anew what
//! runs each unit.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::choice::{LATER, Run};
use super::{Beside, Choice, Course, Native, Turns};
use crate::run::{CodeStats, Settings, workers};

/// The generated functions of a plan, as a run finds them.
#[derive(Clone, Copy, Debug)]
pub enum Generated<'a> {
    /// There are none, and there will be none.
    Nothing,
    /// They are there.
    Now(&'a Native),
    /// Each shard goes over to them at this superstep: what tests ask for.
    At(&'a Native, u64),
    /// They may come while it runs.
    Beside(&'a Beside),
    /// The same of both forms, and who runs the lanes is chosen.
    Either {
        /// By this.
        choice: &'a Choice,
        /// Whether shards have few of them, for which straight code is taken to be quicker.
        few: bool,
    },
    /// Both forms take turns: what tests ask for.
    InTurns(&'a Turns<'a>),
}

impl<'a> Generated<'a> {
    /// Those that are there when the run starts.
    pub(in crate::backend::cpu) fn at_start(self) -> Option<&'a Native> {
        match self {
            Generated::Now(native) => Some(native),
            Generated::InTurns(turns) => turns.groups,
            Generated::Nothing | Generated::At(..) => None,
            Generated::Beside(beside) => beside.native(),
            Generated::Either { choice, .. } => choice.groups().native(),
        }
    }

    /// The functions that it waits for.
    fn awaited(self) -> Option<&'a Beside> {
        match self {
            Generated::Beside(beside) => Some(beside),
            Generated::Either { choice, few } => Some(choice.awaited(few)),
            Generated::Nothing | Generated::Now(_) | Generated::At(..) | Generated::InTurns(_) => None,
        }
    }
}

/// A run that generated functions may come to.
#[derive(Debug)]
pub(in crate::backend::cpu) struct RunClock<'a> {
    generated: Generated<'a>,
    /// What was there when it started.
    native: Option<&'a Native>,
    /// Whether it was what the run waits for.
    is_there: bool,
    start: Instant,
    /// Whether it leaves no core to others.
    busy: bool,
    /// The first superstep of any shard before which functions came; [`u64::MAX`] where none did.
    came: AtomicU64,
}

impl<'a> RunClock<'a> {
    /// A run on so many threads starts, with what was [there](Generated::at_start).
    pub(in crate::backend::cpu) fn start(generated: Generated<'a>, native: Option<&'a Native>, threads: usize) -> Self {
        let busy = threads >= workers(&Settings::default());
        let awaited = generated.awaited();
        if let Some(beside) = awaited {
            // Runs may be many and short, each of too few supersteps for a look at the clock.
            beside.passed(Duration::ZERO, busy);
        }
        let is_there = awaited.is_some_and(|beside| beside.native().is_some());
        Self { generated, native, is_there, start: Instant::now(), busy, came: AtomicU64::new(u64::MAX) }
    }

    /// What was there when it started.
    pub(in crate::backend::cpu) fn native(&self) -> Option<&'a Native> {
        self.native
    }

    /// A shard of so many lanes begins.
    pub(in crate::backend::cpu) fn course(&self, width: usize) -> Course<'a> {
        match self.generated {
            Generated::Either { choice, few } => {
                let run = Run { began: self.start, busy: self.busy, few };
                Course::measured(choice, run, (self.native.is_some(), width))
            }
            Generated::InTurns(turns) => Course::in_turns(turns),
            _ => Course::without(),
        }
    }

    /// It ends: what became of functions that may have come beside it.
    pub(in crate::backend::cpu) fn stop(self, stopped: bool) -> Option<CodeStats> {
        let beside = self.generated.awaited()?;
        match self.generated {
            Generated::Either { choice, .. } => choice.add(self.start.elapsed(), stopped),
            _ => beside.add(self.start.elapsed(), stopped),
        }
        let came = self.came.into_inner();
        Some(beside.told(self.is_there, (came != u64::MAX).then_some(came)))
    }
}

/// A shard that looks out for generated functions, before each superstep.
#[derive(Debug)]
pub(in crate::backend::cpu) struct Lookout<'a> {
    awaited: Awaited<'a>,
    /// Supersteps from one look at the clock to the next, and those that are left to it.
    stride: u32,
    left: u32,
    looked: Instant,
    clock: &'a RunClock<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Awaited<'a> {
    Nothing,
    Superstep(&'a Native, u64),
    /// What is compiled so many times as late as what runs wait for.
    Beside(&'a Beside, f64),
    /// Straight code, or groups where that does not come.
    Straight(&'a Choice),
}

impl<'a> Awaited<'a> {
    /// The functions of groups, where they may come.
    fn groups(choice: &'a Choice, later: f64) -> Self {
        let groups = choice.groups();
        if groups.may_come() { Awaited::Beside(groups, later) } else { Awaited::Nothing }
    }
}

/// What comes to a shard.
#[derive(Clone, Copy, Debug)]
pub(in crate::backend::cpu) enum Arrived<'a> {
    /// Functions in the place of its steps.
    Native(&'a Native),
    /// Straight code for its lanes, one after the other.
    Straight,
}

/// A look at the clock follows the one before by about this much: it costs some ten nanoseconds.
pub(super) const LOOKS: std::ops::Range<Duration> = Duration::from_micros(100)..Duration::from_millis(1);
const STRIDE: u32 = 16;
const LONGEST_STRIDE: u32 = 1 << 12;

impl<'a> Lookout<'a> {
    pub(in crate::backend::cpu) fn new(clock: &'a RunClock<'a>) -> Self {
        let awaited = match clock.generated {
            Generated::At(native, superstep) => Awaited::Superstep(native, superstep),
            Generated::Either { choice, few: true } if !clock.is_there => Awaited::Straight(choice),
            Generated::Either { choice, few } => Awaited::groups(choice, if few { LATER } else { 1.0 }),
            Generated::Beside(beside) if beside.native().is_none() && beside.may_come() => Awaited::Beside(beside, 1.0),
            _ => Awaited::Nothing,
        };
        let awaited = if clock.native.is_some() { Awaited::Nothing } else { awaited };
        Self { awaited, ..Self::idle(clock) }
    }

    fn idle(clock: &'a RunClock<'a>) -> Self {
        Self { awaited: Awaited::Nothing, stride: STRIDE, left: 1, looked: clock.start, clock }
    }

    /// A shard of the same run to which nothing will come.
    pub(in crate::backend::cpu) fn idle_too(&self) -> Self {
        Self::idle(self.clock)
    }

    /// What has come, once. `supersteps`: how many the shard has run.
    #[inline]
    pub(in crate::backend::cpu) fn arrived(&mut self, supersteps: u64) -> Option<Arrived<'a>> {
        let (beside, arrived) = match self.awaited {
            Awaited::Nothing => return None,
            Awaited::Superstep(native, at) => (None, (supersteps >= at).then_some(Arrived::Native(native))),
            Awaited::Beside(beside, later) => (Some((beside, later)), beside.native().map(Arrived::Native)),
            Awaited::Straight(choice) => {
                let straight = choice.straight().map(|_| Arrived::Straight);
                (Some((choice.one_lane(), 1.0)), straight)
            }
        };
        if arrived.is_some() {
            self.awaited = match self.awaited {
                Awaited::Straight(choice) => Awaited::groups(choice, LATER),
                _ => Awaited::Nothing,
            };
            self.clock.came.fetch_min(supersteps, Ordering::Relaxed);
        } else if let Some((beside, later)) = beside {
            self.left -= 1;
            if self.left == 0 {
                self.look_at_clock(beside, later);
            }
        }
        arrived
    }

    #[cold]
    fn look_at_clock(&mut self, beside: &'a Beside, later: f64) {
        let now = Instant::now();
        beside.passed_after(later, now - self.clock.start, self.clock.busy);
        if let Awaited::Straight(choice) = self.awaited
            && !std::ptr::eq(choice.awaited(true), choice.one_lane())
        {
            self.awaited = Awaited::groups(choice, 1.0);
        }
        let since = now - self.looked;
        if since < LOOKS.start {
            self.stride = (self.stride * 2).min(LONGEST_STRIDE);
        } else if since > LOOKS.end {
            self.stride = (self.stride / 2).max(1);
        }
        (self.left, self.looked) = (self.stride, now);
    }
}
