//! What is known of chains while they run: how far they are, and which of them hold up the others.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::DrawsUnderWay;

/// How often chains are looked at; more than so many are looked at less often, since each look takes their locks.
const EVERY: Duration = Duration::from_millis(250);
const FEW: usize = 1000;
const SELDOM: Duration = Duration::from_secs(1);
/// Groups of chains, at most.
pub const MOST_GROUPS: usize = 8;
/// Over so long the rate of gradients is taken.
const OF_RATE: Duration = Duration::from_secs(10);
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
    /// Some times a second, of many chains once: how far the chains are.
    fn moved(&self, _reached: &Reached) {}
    /// Who asks for the draws meanwhile.
    fn asks(&self) -> Option<&DrawsUnderWay> {
        None
    }
    /// A chain that holds up the others, once for each.
    fn slow(&self, _chain: &SlowChain) {}
    /// The run is over, and the chains are so far.
    fn finished(&self, _reached: &Reached) {}
}

impl<F: Fn() + Sync> Observer for F {
    fn draw(&self) {
        self();
    }
}

/// How far chains are. Iterations of warmup are those that the sampler has reported, some twenty times in all.
#[derive(Clone, PartialEq, Debug, Default)]
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
    /// Iterations of each chain, warmup included, when it will be done.
    pub all_iterations: usize,
    /// Gradients of all chains together, as far as the sampler tells.
    pub gradients: u64,
    /// Gradients a second, over the last ten seconds.
    pub gradients_per_second: Option<f64>,
    /// Seconds that the rest takes, by the gradients that it needs at the rates that there are: of all chains together, or of
    /// the slowest, whichever takes longer.
    pub seconds_left: Option<f64>,
    /// Seconds since the chains started.
    pub seconds: f64,
    /// The chains in groups that follow one another, at most [`MOST_GROUPS`].
    pub groups: Vec<ChainGroup>,
}

/// How far the chains of a group are.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct ChainGroup {
    /// Their places in the run, from 0.
    pub chains: Range<usize>,
    /// Those whose warmup is over.
    pub warm: usize,
    /// Those that have made all their draws.
    pub finished: usize,
    /// The fewest iterations of a chain, warmup included, those of the median one, and the most.
    pub iterations: (usize, usize, usize),
    /// Draws whose trajectory went astray.
    pub divergent: u64,
    /// The smallest step size of a chain, that of the median one, and the largest.
    pub stepsize: Option<(f64, f64, f64)>,
    /// Gradients of all of them.
    pub gradients: u64,
    /// Gradients of a transition, on average: of those that gave draws, or else of those of warmup.
    pub gradients_per_draw: Option<f64>,
}

/// What chains are to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Iterations {
    /// Iterations of warmup.
    pub(super) warmup: usize,
    /// Draws that are kept.
    pub(super) kept: usize,
    /// Of so many iterations after warmup one is kept.
    pub(super) thin: usize,
}

impl Iterations {
    fn all(&self) -> usize {
        self.warmup.saturating_add(self.kept.saturating_mul(self.thin))
    }

    fn done(&self, state: &State) -> usize {
        state.warmup.saturating_add(state.draws.saturating_mul(self.thin))
    }
}

/// The smallest, the upper one of the two in the middle, and the largest.
fn spread<T: Copy>(mut values: Vec<T>, by: impl Fn(&T, &T) -> std::cmp::Ordering) -> Option<(T, T, T)> {
    values.sort_unstable_by(by);
    Some((*values.first()?, values[values.len() / 2], *values.last()?))
}

impl ChainGroup {
    fn of(chains: Range<usize>, states: &[State], asked: &Iterations) -> Self {
        let states = &states[chains.clone()];
        let sum = |of: fn(&State) -> u64| states.iter().map(of).sum::<u64>();
        let stepsizes = states.iter().map(|s| s.stepsize).filter(|step| *step > 0.0).collect();
        Self {
            chains,
            warm: states.iter().filter(|s| s.warm).count(),
            finished: states.iter().filter(|s| s.finished.is_some()).count(),
            iterations: spread(states.iter().map(|s| asked.done(s)).collect(), usize::cmp).unwrap_or_default(),
            divergent: sum(|s| s.divergent),
            stepsize: spread(stepsizes, f64::total_cmp),
            gradients: sum(|s| s.gradients),
            gradients_per_draw: per_iteration(states),
        }
    }
}

/// Gradients of an iteration: of those after warmup where there are some.
fn per_iteration(states: &[State]) -> Option<f64> {
    let ratio = |gradients: u64, iterations: usize| (iterations > 0).then(|| gradients as f64 / iterations as f64);
    let sum = |of: fn(&State) -> u64| states.iter().map(of).sum::<u64>();
    let count = |of: fn(&State) -> usize| states.iter().map(of).sum::<usize>();
    ratio(sum(|s| s.gradients_of_draws), count(|s| s.draws))
        .or_else(|| ratio(sum(|s| s.gradients), count(|s| s.warmup)))
}

impl Reached {
    pub(super) fn of(states: &[State], asked: &Iterations) -> Self {
        let range = |of: fn(&State) -> usize| {
            let values = || states.iter().map(of);
            (values().min().unwrap_or(0), values().max().unwrap_or(0))
        };
        let (n, groups) = (states.len(), states.len().min(MOST_GROUPS));
        let group = |i: usize| i * n / groups..(i + 1) * n / groups;
        Self {
            started: states.iter().filter(|s| s.started.is_some()).count(),
            warm: states.iter().filter(|s| s.warm).count(),
            finished: states.iter().filter(|s| s.finished.is_some()).count(),
            warmup: range(|s| s.warmup),
            draws: range(|s| s.draws),
            iterations: states.iter().map(State::iterations).sum(),
            all_iterations: asked.all(),
            gradients: states.iter().map(|s| s.gradients).sum(),
            groups: (0..groups).map(|i| ChainGroup::of(group(i), states, asked)).collect(),
            ..Self::default()
        }
    }

    /// At the end of a run that took so many seconds.
    pub(super) fn after(self, seconds: f64) -> Self {
        let rate = (seconds > 0.0).then(|| self.gradients as f64 / seconds);
        Self { seconds, gradients_per_second: rate, seconds_left: None, ..self }
    }

    /// From 0 to 1: iterations that are done, of all.
    pub fn part(&self) -> f64 {
        let chains: usize = self.groups.iter().map(|group| group.chains.len()).sum();
        let all = chains.saturating_mul(self.all_iterations);
        let done: f64 = self.groups.iter().map(|group| group.chains.len() as f64 * group.iterations.1 as f64).sum();
        if self.finished == chains { 1.0 } else { (done / all.max(1) as f64).min(1.0) }
    }
}

/// Rates of the last seconds.
struct Pace {
    started: Instant,
    /// Moments, and gradients that were made then.
    past: VecDeque<(Instant, u64)>,
}

impl Pace {
    fn new(now: Instant) -> Self {
        Self { started: now, past: VecDeque::from([(now, 0)]) }
    }

    /// Adds what rates tell.
    fn complete(&mut self, reached: &mut Reached, states: &[State], asked: &Iterations, now: Instant) {
        self.past.push_back((now, reached.gradients));
        while self.past.len() > 2 && now.saturating_duration_since(self.past[1].0) >= OF_RATE {
            self.past.pop_front();
        }
        let (then, gradients) = self.past[0];
        let seconds = now.saturating_duration_since(then).as_secs_f64();
        let made = reached.gradients.saturating_sub(gradients);
        reached.seconds = now.saturating_duration_since(self.started).as_secs_f64();
        reached.gradients_per_second = (seconds > 0.0 && made > 0).then(|| made as f64 / seconds);
        reached.seconds_left = reached.gradients_per_second.and_then(|rate| left(states, asked, rate, now));
    }
}

/// Seconds that the rest takes at so many gradients a second of all chains.
fn left(states: &[State], asked: &Iterations, rate: f64, now: Instant) -> Option<f64> {
    let usual = per_iteration(states)?;
    let mut all = 0.0;
    let mut slowest: f64 = 0.0;
    for state in states.iter().filter(|state| state.finished.is_none()) {
        // What the chain tells of itself counts, as soon as it does.
        let own = per_iteration(std::slice::from_ref(state)).filter(|own| *own > 0.0).unwrap_or(usual);
        let gradients = own * asked.all().saturating_sub(asked.done(state)) as f64;
        all += gradients;
        if let Some(seconds) = state.seconds(now).filter(|_| state.gradients > 0) {
            slowest = slowest.max(gradients * seconds / state.gradients as f64);
        }
    }
    Some(slowest.max(all / rate)).filter(|left| left.is_finite())
}

/// A chain that holds up the others.
#[derive(Clone, PartialEq, Debug)]
pub struct SlowChain {
    /// Its place in the run, from 0.
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
    /// Draws whose trajectory went astray.
    pub(super) divergent: u64,
    /// Gradients that it has told of, and those of them that draws took.
    pub(super) gradients: u64,
    pub(super) gradients_of_draws: u64,
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
pub(super) fn watch(states: &dyn Fn() -> Vec<State>, asked: Iterations, observer: &dyn Observer, done: &Receiver<()>) {
    let mut named = BTreeSet::new();
    let mut pace = Pace::new(Instant::now());
    let every = if states().len() > FEW { SELDOM } else { EVERY };
    while done.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
        let (states, now) = (states(), Instant::now());
        let mut reached = Reached::of(&states, &asked);
        pace.complete(&mut reached, &states, &asked, now);
        observer.moved(&reached);
        for chain in slow(&states, asked.warmup, now) {
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

    const ASKED: Iterations = Iterations { warmup: 1000, kept: 10, thin: 3 };

    #[test]
    fn how_far_chains_are_is_the_least_and_the_most() {
        let now = Instant::now() + Duration::from_secs(1000);
        let done = State { finished: Some(now), gradients: 90, ..chain(now, 2, 1000, 7, 0.1) };
        let states = [chain(now, 2, 400, 0, 0.1), done, State::default()];
        let reached = Reached::of(&states, &ASKED);
        let wanted = Reached {
            started: 2,
            warm: 1,
            finished: 1,
            warmup: (0, 1000),
            draws: (0, 7),
            iterations: 1407,
            all_iterations: 1030,
            gradients: 90,
            groups: reached.groups.clone(),
            ..Reached::default()
        };
        assert_eq!(reached, wanted);
        assert!(slow(&states[2..], 1000, now).is_empty(), "one chain has nothing to be compared with");
    }

    #[test]
    fn many_chains_are_a_few_groups() {
        let now = Instant::now() + Duration::from_secs(1000);
        let state = |i: usize| State { divergent: 1, ..chain(now, 2, i, 0, 0.1 * (1 + i % 3) as f64) };
        let states: Vec<State> = (0..100).map(state).collect();
        let groups = Reached::of(&states, &ASKED).groups;
        assert_eq!(groups.len(), MOST_GROUPS);
        assert_eq!((groups[0].chains.clone(), groups[7].chains.clone()), (0..12, 87..100));
        assert_eq!((groups[0].iterations, groups[0].divergent), ((0, 6, 11), 12));
        assert_eq!(groups[0].stepsize, Some((0.1, 0.2, 0.1 * 3.0)));
        assert_eq!(Reached::of(&states[..3], &ASKED).groups.len(), 3);
        assert_eq!(Reached::of(&[], &ASKED).part(), 1.0);
    }

    #[test]
    fn what_is_left_is_counted_in_gradients() {
        let now = Instant::now() + Duration::from_secs(1000);
        // 30 iterations after warmup, 9 of which are done, with 4 gradients each.
        let quick = State { gradients: 1000, gradients_of_draws: 12, ..chain(now, 10, 1000, 3, 0.1) };
        let states = [quick; 2];
        let rest = 2.0 * 21.0 * 4.0;
        assert_eq!(left(&states, &ASKED, 200.0, now), Some(rest / 200.0));
        // One that makes long trajectories holds up all, however quick the others are.
        let long = State { gradients: 100, gradients_of_draws: 300, ..quick };
        assert_eq!(left(&[quick, long], &ASKED, 1e9, now), Some(21.0 * 100.0 * 10.0 / 100.0));
        // One that has told nothing yet is as the others.
        let waits = State::default();
        assert_eq!(left(&[quick, waits], &ASKED, 1.0, now), Some(21.0 * 4.0 + 1030.0 * 4.0));
        assert_eq!(left(&[waits], &ASKED, 1.0, now), None);
        let mut pace = Pace::new(now);
        let mut reached = Reached::of(&states, &ASKED);
        pace.complete(&mut reached, &states, &ASKED, now + Duration::from_secs(4));
        assert_eq!((reached.gradients_per_second, reached.seconds), (Some(500.0), 4.0));
        assert!(reached.seconds_left.is_some_and(|left| left > 0.0));
    }
}
