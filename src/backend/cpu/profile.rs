//! Attributes the time of a shard to activities, blocks and lines. A reading of the clock takes about as long as a small
//! kernel, so what measuring takes is kept apart.

use std::time::Instant;

use indexmap::IndexMap;

use crate::base::Loc;
use crate::plan::{Compute, SideEffect, StepKind};
use crate::prim::BatchRule;
use crate::run::{Activity, Profile, Times};

/// The profile of a shard while it runs.
#[derive(Debug)]
pub(super) struct Profiler {
    last: Instant,
    /// What one reading of the clock takes, in nanoseconds.
    clock: u64,
    unit: usize,
    units: Vec<Times>,
    lines: IndexMap<Loc, Times>,
    measuring: u64,
}

impl Profiler {
    /// Begins now; `units` is how many there are.
    pub(super) fn new(units: usize) -> Self {
        let begin = Instant::now();
        let readings = 64;
        for _ in 1..readings {
            std::hint::black_box(Instant::now());
        }
        let clock = begin.elapsed().as_nanos() as u64 / readings;
        let (units, lines) = (vec![Times::default(); units], IndexMap::new());
        Self { last: Instant::now(), clock, unit: 0, units, lines, measuring: 0 }
    }
    /// What comes from here on belongs to a unit.
    pub(super) fn enter(&mut self, unit: usize) {
        self.unit = unit;
    }
    /// The time since the last mark went to an activity.
    pub(super) fn mark(&mut self, activity: Activity, loc: &Loc) {
        let now = Instant::now();
        let since = (now - self.last).as_nanos() as u64;
        let spent = since.saturating_sub(self.clock);
        self.units[self.unit].add(activity, spent);
        match self.lines.get_mut(loc) {
            Some(times) => times.add(activity, spent),
            None => self.lines.entry(loc.clone()).or_default().add(activity, spent),
        }
        self.last = Instant::now();
        self.measuring += since - spent + (self.last - now).as_nanos() as u64;
    }
    /// What it found; names and locations of the units are given.
    pub(super) fn report(self, units: impl Iterator<Item = (String, Loc)>) -> Profile {
        let blocks = units.zip(self.units).map(|((name, loc), times)| (name, loc, times));
        Profile { blocks: blocks.collect(), lines: self.lines.into_iter().collect(), measuring: self.measuring }
    }
}

/// What a step is about.
pub(super) fn activity(step: &StepKind) -> Activity {
    match step {
        StepKind::Compute(c) => activity_of(c),
        StepKind::Tiled(_) | StepKind::Effect(SideEffect::Assert { .. }) => Activity::Kernels,
        StepKind::Pop { .. } | StepKind::Effect(SideEffect::TapePush { .. } | SideEffect::TapePop { .. }) => {
            Activity::Stacks
        }
        StepKind::Effect(SideEffect::Print(_) | SideEffect::Emit { .. }) => Activity::Records,
    }
}

/// What running a primitive is about.
pub(super) fn activity_of(c: &Compute) -> Activity {
    match c.prim.row().batch {
        BatchRule::Contraction => Activity::Contractions,
        BatchRule::Random => Activity::Random,
        _ => Activity::Kernels,
    }
}
