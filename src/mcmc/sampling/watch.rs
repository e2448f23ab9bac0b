//! What is known of chains while they run: how far they are, and which of them hold up the others.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How often chains are looked at.
const EVERY: Duration = Duration::from_secs(1);
/// Seconds that a chain has run before it is called slow.
const PATIENCE: f64 = 10.0;
/// How many times slower than the median chain one is that holds up the others.
const SLOWER: f64 = 10.0;
/// How many times smaller than that of the median chain a step size is that has collapsed.
pub const COLLAPSED: f64 = 20.0;
/// A sampler reports some so many times in warmup.
const REPORTS: usize = 20;

/// Is told of chains while they run, by threads of the run.
pub trait Observer: Sync {
    /// A draw is kept.
    fn draw(&self);
    /// Whether the following are wanted.
    fn watches(&self) -> bool {
        false
    }
    /// Between iterations, on the thread of a chain, which waits for it: after each draw, and now and then in warmup.
    fn between(&self) {}
    /// About once a second: how far the chains are.
    fn moved(&self, _reached: &Reached) {}
    /// A chain that holds up the others, once for each.
    fn slow(&self, _chain: &SlowChain) {}
}

impl<F: Fn() + Sync> Observer for F {
    fn draw(&self) {
        self();
    }
}

/// How far chains are. Iterations of warmup are those that the sampler has reported, some twenty times in all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Reached {
    /// Chains that have a starting point.
    pub started: usize,
    /// Chains whose warmup is over.
    pub warm: usize,
    /// Chains that have made all their draws.
    pub finished: usize,
    /// The fewest and the most iterations of warmup of a chain.
    pub warmup: (usize, usize),
    /// The fewest and the most draws of a chain.
    pub draws: (usize, usize),
    /// Iterations of all chains together, draws included.
    pub iterations: usize,
}

impl Reached {
    pub(super) fn of(states: &[State]) -> Self {
        let range = |of: fn(&State) -> usize| {
            let values = || states.iter().map(of);
            (values().min().unwrap_or(0), values().max().unwrap_or(0))
        };
        Self {
            started: states.iter().filter(|s| s.started.is_some()).count(),
            warm: states.iter().filter(|s| s.warm).count(),
            finished: states.iter().filter(|s| s.finished.is_some()).count(),
            warmup: range(|s| s.warmup),
            draws: range(|s| s.draws),
            iterations: states.iter().map(State::iterations).sum(),
        }
    }
}

/// A chain that holds up the others.
#[derive(Clone, PartialEq, Debug)]
pub struct SlowChain {
    /// Its number.
    pub chain: usize,
    /// Iterations that it has made, warmup included.
    pub iterations: usize,
    /// Those of the median chain.
    pub median_iterations: usize,
    /// Its last step size.
    pub stepsize: f64,
    /// Its last log density.
    pub lp: f64,
    /// Its last tree depth.
    pub treedepth: i64,
}

/// What is known of a chain.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct State {
    pub(super) started: Option<Instant>,
    /// When the last of all its draws was made.
    pub(super) finished: Option<Instant>,
    /// Iterations of warmup, as far as they are reported.
    pub(super) warmup: usize,
    pub(super) warm: bool,
    pub(super) draws: usize,
    pub(super) stepsize: f64,
    pub(super) lp: f64,
    pub(super) treedepth: i64,
}

impl State {
    fn iterations(&self) -> usize {
        self.warmup + self.draws
    }
    /// Seconds that it has run.
    fn seconds(&self, now: Instant) -> Option<f64> {
        let end = self.finished.unwrap_or(now);
        Some(end.saturating_duration_since(self.started?).as_secs_f64())
    }
}

/// Looks at the chains until they are done, which the other end of the channel tells by its end.
pub(super) fn watch(states: &dyn Fn() -> Vec<State>, warmup: usize, observer: &dyn Observer, done: &Receiver<()>) {
    let mut named = BTreeSet::new();
    while done.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
        let states = states();
        observer.moved(&Reached::of(&states));
        for chain in slow(&states, warmup, Instant::now()) {
            if named.insert(chain.chain) {
                observer.slow(&chain);
            }
        }
    }
}

/// The chains that are far slower than the median one, or whose adapted step size is far below that of the median one.
fn slow(states: &[State], warmup: usize, now: Instant) -> Vec<SlowChain> {
    let pace = |s: &State| s.seconds(now).filter(|t| *t > 0.0).map(|t| s.iterations() as f64 / t);
    let (Some(usual), Some(iterations)) =
        (median(states.iter().filter_map(pace)), median_of(states, State::iterations))
    else {
        return vec![];
    };
    let usual_step = median(states.iter().filter(|s| s.warm).map(|s| s.stepsize));
    // What a chain in warmup may have made since its last report.
    let unreported = (warmup / REPORTS).max(1);
    let is_slow = |s: &State| {
        let most = s.iterations() + if s.warm { 1 } else { unreported };
        let seconds = s.seconds(now).filter(|t| s.finished.is_none() && *t >= PATIENCE);
        seconds.is_some_and(|t| most as f64 / t * SLOWER < usual)
    };
    let collapsed = |s: &State| s.warm && usual_step.is_some_and(|usual| s.stepsize * COLLAPSED < usual);
    let named = states.iter().enumerate().filter(|(_, s)| is_slow(s) || collapsed(s));
    named
        .map(|(chain, s)| SlowChain {
            chain,
            iterations: s.iterations(),
            median_iterations: iterations,
            stepsize: s.stepsize,
            lp: s.lp,
            treedepth: s.treedepth,
        })
        .collect()
}

/// The upper one of the two in the middle; none of fewer than two.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    if values.len() < 2 { None } else { values.get(values.len() / 2).copied() }
}

fn median_of(states: &[State], of: fn(&State) -> usize) -> Option<usize> {
    let mut values: Vec<usize> = states.iter().filter(|s| s.started.is_some()).map(of).collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain that has run for so many seconds.
    fn chain(now: Instant, seconds: u64, warmup: usize, draws: usize, stepsize: f64) -> State {
        let started = now.checked_sub(Duration::from_secs(seconds));
        State { started, warmup, warm: draws > 0, draws, stepsize, lp: -1.0, ..State::default() }
    }

    fn named(states: &[State], now: Instant) -> Vec<usize> {
        slow(states, 1000, now).iter().map(|s| s.chain).collect()
    }

    #[test]
    fn a_chain_far_behind_is_slow_when_it_has_run_for_a_while() {
        let now = Instant::now() + Duration::from_secs(1000);
        let with = |seconds, last| {
            let mut states = vec![chain(now, seconds, 800, 0, 0.1); 5];
            states.push(last);
            named(&states, now)
        };
        assert_eq!(with(20, chain(now, 20, 0, 0, 1e-5)), [5]);
        // One that may have made the 50 iterations up to its next report is not yet known to be slow.
        assert_eq!(with(20, chain(now, 20, 50, 0, 1e-5)), [0; 0]);
        assert_eq!(with(5, chain(now, 5, 0, 0, 1e-5)), [0; 0], "too early to tell");
        // One that started later is not behind, nor is one that has not started.
        assert_eq!(with(200, chain(now, 12, 50, 0, 0.1)), [0; 0]);
        assert_eq!(with(200, State::default()), [0; 0]);
    }

    #[test]
    fn a_step_size_that_collapsed_is_named_when_it_is_adapted() {
        let now = Instant::now() + Duration::from_secs(1000);
        let mut states = vec![chain(now, 2, 1000, 10, 0.1); 4];
        states.push(chain(now, 2, 1000, 10, 0.004));
        states.push(chain(now, 2, 1000, 0, 0.004));
        assert_eq!(named(&states, now), [4]);
    }

    #[test]
    fn how_far_chains_are_is_the_least_and_the_most() {
        let now = Instant::now() + Duration::from_secs(1000);
        let done = State { finished: Some(now), ..chain(now, 2, 1000, 7, 0.1) };
        let states = [chain(now, 2, 400, 0, 0.1), done, State::default()];
        let wanted = Reached { started: 2, warm: 1, finished: 1, warmup: (0, 1000), draws: (0, 7), iterations: 1407 };
        assert_eq!(Reached::of(&states), wanted);
        assert!(slow(&states[2..], 1000, now).is_empty(), "one chain has nothing to be compared with");
    }
}
