//! Which generated functions a run finds, and when its shards go over to them.
//!
//! A function stands for steps of the plan: it leaves lane buffers, stacks, tapes and masks as these would. So between
//! two supersteps nothing tells in which way the last ones ran, and a change-over is no more than choosing anew what
//! runs each unit.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::choice::Run;
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
    /// The same of both forms, and what takes the lanes that no shard has taken is chosen.
    Either(&'a Choice),
    /// Shards of both forms take turns: what tests ask for.
    InTurns(&'a Turns<'a>),
}

impl<'a> Generated<'a> {
    /// Those that are there when the run starts.
    pub(in crate::backend::cpu) fn at_start(self) -> Option<&'a Native> {
        match self {
            Generated::Now(native) => Some(native),
            Generated::InTurns(turns) => Some(turns.groups),
            Generated::Nothing | Generated::At(..) => None,
            Generated::Beside(_) | Generated::Either(_) => self.beside()?.native(),
        }
    }

    /// The functions of groups, or of few lanes, that may come while it runs.
    fn beside(self) -> Option<&'a Beside> {
        match self {
            Generated::Beside(beside) => Some(beside),
            Generated::Either(choice) => Some(choice.groups()),
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
        if let Some(beside) = generated.beside() {
            // Runs may be many and short, each of too few supersteps for a look at the clock.
            beside.passed(Duration::ZERO, busy);
        }
        Self { generated, native, start: Instant::now(), busy, came: AtomicU64::new(u64::MAX) }
    }

    /// What was there when it started.
    pub(in crate::backend::cpu) fn native(&self) -> Option<&'a Native> {
        self.native
    }

    /// A shard begins; those of groups have so many lanes.
    pub(in crate::backend::cpu) fn course(&self, width: usize) -> Course<'a> {
        match self.generated {
            Generated::Either(choice) => {
                let run = Run { began: self.start, busy: self.busy, width };
                Course::measured(choice, run, self.native.is_some())
            }
            Generated::InTurns(turns) => Course::in_turns(turns),
            _ => Course::without(),
        }
    }

    /// It ends: what became of functions that may have come beside it.
    pub(in crate::backend::cpu) fn stop(self, stopped: bool) -> Option<CodeStats> {
        let beside = self.generated.beside()?;
        match self.generated {
            Generated::Either(choice) => choice.add(self.start.elapsed(), stopped),
            _ => beside.add(self.start.elapsed(), stopped),
        }
        let came = self.came.into_inner();
        Some(beside.told(self.native.is_some(), (came != u64::MAX).then_some(came)))
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
    Beside(&'a Beside),
}

/// A look at the clock follows the one before by about this much: it costs some ten nanoseconds.
pub(super) const LOOKS: std::ops::Range<Duration> = Duration::from_micros(100)..Duration::from_millis(1);
const STRIDE: u32 = 16;
const LONGEST_STRIDE: u32 = 1 << 12;

impl<'a> Lookout<'a> {
    pub(in crate::backend::cpu) fn new(clock: &'a RunClock<'a>) -> Self {
        let awaited = match clock.generated {
            Generated::At(native, superstep) => Awaited::Superstep(native, superstep),
            generated if clock.native.is_none() => match generated.beside() {
                Some(beside) if beside.may_come() => Awaited::Beside(beside),
                _ => Awaited::Nothing,
            },
            _ => Awaited::Nothing,
        };
        Self::of(awaited, clock)
    }

    /// A shard to which none will come.
    pub(in crate::backend::cpu) fn idle(clock: &'a RunClock<'a>) -> Self {
        Self::of(Awaited::Nothing, clock)
    }

    fn of(awaited: Awaited<'a>, clock: &'a RunClock<'a>) -> Self {
        Self { awaited, stride: STRIDE, left: 1, looked: clock.start, clock }
    }

    /// The functions, when they have come, once. `supersteps`: how many the shard has run.
    #[inline]
    pub(in crate::backend::cpu) fn arrived(&mut self, supersteps: u64) -> Option<&'a Native> {
        let native = match self.awaited {
            Awaited::Nothing => return None,
            Awaited::Superstep(native, at) => (supersteps >= at).then_some(native)?,
            Awaited::Beside(beside) => match beside.native() {
                Some(native) => native,
                None => {
                    self.left -= 1;
                    if self.left == 0 {
                        self.look_at_clock(beside);
                    }
                    return None;
                }
            },
        };
        self.awaited = Awaited::Nothing;
        self.clock.came.fetch_min(supersteps, Ordering::Relaxed);
        Some(native)
    }

    #[cold]
    fn look_at_clock(&mut self, beside: &'a Beside) {
        let now = Instant::now();
        beside.passed(now - self.clock.start, self.clock.busy);
        let since = now - self.looked;
        if since < LOOKS.start {
            self.stride = (self.stride * 2).min(LONGEST_STRIDE);
        } else if since > LOOKS.end {
            self.stride = (self.stride / 2).max(1);
        }
        (self.left, self.looked) = (self.stride, now);
    }
}
