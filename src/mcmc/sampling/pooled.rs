//! Warmup in which all chains learn together: it runs in waves. A wave ends where a window of warmup does, and with warmup.
//! Each chain tells its state there, what all of them have learnt takes the place of its own in it, and the next wave starts.
//!
//! Moments of chains are put together block by block, and blocks in their order, so that the sum is the same whoever ran
//! which of them. Mean and sums of squares as in Chan, Golub and LeVeque (1983), *Algorithms for computing the sample
//! variance*, equation 2.1.

use indexmap::IndexMap;

use super::Sampling;
use super::records::Recorder;
use crate::mcmc::protocol::{AVERAGED, AVERAGING, ITERATION, MEAN, PRODUCTS, SEEN, WINDOW};
use crate::program::{Bound, Error, ErrorKind, Options, Results};
use crate::run::TrapKind;
use crate::store::{BLOCK, BlockStates, LaneProgress, RunStore, StoredTrap};

/// Where `log_stepsize_mean` is in `averaging`.
const LOG_STEPSIZE: usize = 3;

/// States of chains, and the chains that stay where they are, with their iterations.
pub(super) type TakenUp = (Vec<BlockStates>, Vec<(usize, usize)>);

/// What chains have learnt in a window.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Learnt {
    /// States that were seen, their mean, and the sums of products of their deviations.
    seen: u64,
    mean: Vec<f64>,
    products: Vec<f64>,
    /// Chains that have averaged step sizes, and the sum of the logarithms of these.
    averaged: u64,
    log_stepsizes: f64,
}

impl Learnt {
    /// Adds what others have learnt.
    fn add(&mut self, other: &Self) {
        self.averaged += other.averaged;
        self.log_stepsizes += other.log_stepsizes;
        if other.seen == 0 {
            return;
        }
        if self.seen == 0 {
            (self.seen, self.mean, self.products) = (other.seen, other.mean.clone(), other.products.clone());
            return;
        }
        let (own, others) = (self.seen as f64, other.seen as f64);
        let all = own + others;
        let deviation: Vec<f64> = other.mean.iter().zip(&self.mean).map(|(other, own)| other - own).collect();
        let weight = own * others / all;
        let d = deviation.len();
        for (at, sum) in self.products.iter_mut().enumerate() {
            // A row of variances, or all covariances.
            let row = if other.products.len() == d { at % d.max(1) } else { at / d.max(1) };
            *sum = *sum + other.products[at] + deviation[row] * deviation[at % d.max(1)] * weight;
        }
        self.mean.iter_mut().zip(&deviation).for_each(|(mean, deviation)| *mean += deviation * (others / all));
        self.seen += other.seen;
    }

    /// As words of a file.
    fn words(&self) -> Vec<u64> {
        let head = [self.seen, self.averaged, self.log_stepsizes.to_bits(), self.mean.len() as u64];
        let reals = self.mean.iter().chain(&self.products).map(|x| x.to_bits());
        head.into_iter().chain(reals).collect()
    }

    fn of_words(words: &[u64]) -> Option<Self> {
        let (&[seen, averaged, log_stepsizes, d], reals) = words.split_first_chunk::<4>()?;
        let (mean, products) = reals.split_at_checked(usize::try_from(d).ok()?)?;
        let reals = |words: &[u64]| words.iter().map(|word| f64::from_bits(*word)).collect();
        let log_stepsizes = f64::from_bits(log_stepsizes);
        Some(Self { seen, mean: reals(mean), products: reals(products), averaged, log_stepsizes })
    }
}

/// Runs the chains of a wave, and says whether one of them ended the run.
pub(super) type RunWave<'a> = &'a dyn Fn(&Bound) -> Result<(Results, bool), Error>;

impl Sampling {
    /// Whether warmup is pooled.
    pub fn pools(&self) -> bool {
        self.method.pools_warmup()
    }

    fn all_iterations(&self) -> u64 {
        (self.warmup + self.draws) as u64
    }

    /// Whether a chain waits for what all have learnt, before it goes on.
    pub(super) fn waits(&self, lane: &LaneProgress) -> bool {
        if !self.pools() || lane.trap.is_some() || lane.state.is_empty() || lane.iteration >= self.all_iterations() {
            return false;
        }
        let last = lane.state[self.state.place(WINDOW).start] as i64;
        lane.iteration == self.warmup as u64 || lane.iteration as i64 == last + 1
    }

    /// What a chain has learnt.
    fn learnt(&self, lane: &LaneProgress) -> Learnt {
        let words = |name: &str| &lane.state[self.state.place(name)];
        let reals = |name: &str| words(name).iter().map(|word| f64::from_bits(*word)).collect();
        let has_averaged = words(AVERAGED)[0] > 0;
        let log_stepsize = f64::from_bits(words(AVERAGING)[LOG_STEPSIZE]);
        Learnt {
            seen: words(SEEN)[0],
            mean: reals(MEAN),
            products: reals(PRODUCTS),
            averaged: u64::from(has_averaged),
            log_stepsizes: if has_averaged { log_stepsize } else { 0.0 },
        }
    }

    /// What the chains of a block have learnt, and after how many iterations; nothing where some are not so far.
    fn learnt_by(&self, states: &BlockStates) -> Option<(u64, Learnt)> {
        let mut all = states.lanes.iter().filter(|lane| lane.trap.is_none());
        let iteration = all.clone().next()?.iteration;
        if !all.all(|lane| lane.iteration == iteration && self.waits(lane)) {
            return None;
        }
        let mut sum = Learnt::default();
        states.lanes.iter().filter(|lane| lane.trap.is_none()).for_each(|lane| sum.add(&self.learnt(lane)));
        Some((iteration, sum))
    }

    /// Puts what all have learnt in the place of what a chain has.
    fn take_up(&self, lane: &mut LaneProgress, learnt: &Learnt) {
        if learnt.seen > 0 {
            lane.state[self.state.place(SEEN).start] = learnt.seen;
            for (name, values) in [(MEAN, &learnt.mean), (PRODUCTS, &learnt.products)] {
                lane.state[self.state.place(name)].iter_mut().zip(values).for_each(|(word, x)| *word = x.to_bits());
            }
        }
        if learnt.averaged > 0 {
            let mean = learnt.log_stepsizes / learnt.averaged as f64;
            lane.state[self.state.place(AVERAGING).start + LOG_STEPSIZE] = mean.to_bits();
        }
    }

    /// The state of a chain that runs no iteration.
    fn stay(&self, lane: &mut LaneProgress) {
        lane.state = vec![0; self.state.words()];
        lane.state[self.state.place(ITERATION).start] = self.all_iterations();
        lane.state[self.state.place(WINDOW).start] = -1_i64 as u64;
    }

    /// Tells the other processes that run chains of a store what those of these blocks have learnt.
    pub(super) fn tell_learnt(&self, store: &RunStore, first: usize, states: &[BlockStates]) -> Result<(), Error> {
        for (number, states) in states.iter().enumerate() {
            if let Some((iteration, learnt)) = self.learnt_by(states)
                && store.learnt(iteration, first + number)?.is_none()
            {
                store.set_learnt(iteration, first + number, &learnt.words())?;
            }
        }
        Ok(())
    }

    /// What all chains of a store have learnt after so many iterations; nothing where some are not so far.
    fn learnt_in(&self, store: &RunStore, iteration: u64) -> Result<Option<Learnt>, Error> {
        let mut sum = Learnt::default();
        for block in store.blocks(&(0..store.plan().chains))? {
            if let Some(words) = store.learnt(iteration, block.number)? {
                sum.add(&Learnt::of_words(&words).ok_or_else(|| lost(store, iteration, block.number, "is damaged"))?);
                continue;
            }
            let Ok(states) = store.states(&block) else { return Ok(None) };
            let mut running = states.lanes.iter().filter(|lane| lane.trap.is_none()).peekable();
            if running.peek().is_none() {
                continue;
            }
            if running.any(|lane| lane.iteration > iteration) {
                return Err(lost(store, iteration, block.number, "is missing"));
            }
            return Ok(None);
        }
        Ok(Some(sum))
    }

    /// Whether chains of these blocks can go on that wait for nobody, or for what is known by now.
    pub(super) fn can_go_on(&self, store: &RunStore, states: &[BlockStates]) -> Result<bool, Error> {
        let lanes = states.iter().flat_map(|block| &block.lanes);
        let mut known: IndexMap<u64, bool> = IndexMap::new();
        for lane in lanes.filter(|lane| lane.trap.is_none() && lane.iteration < self.all_iterations()) {
            if !self.waits(lane) {
                return Ok(true);
            }
            if !known.contains_key(&lane.iteration) {
                known.insert(lane.iteration, self.learnt_in(store, lane.iteration)?.is_some());
            }
        }
        Ok(known.values().any(|known| *known))
    }

    /// The states from which chains of a store go on: with what all have learnt, or, where that is not known yet, such that
    /// they stay where they are. Also the iterations of these, by chain.
    pub(super) fn taken_up(&self, store: &RunStore, states: &[BlockStates]) -> Result<TakenUp, Error> {
        let mut known: IndexMap<u64, Option<Learnt>> = IndexMap::new();
        let mut states = states.to_vec();
        let mut staying = Vec::new();
        let lanes = states.iter_mut().flat_map(|block| &mut block.lanes).enumerate();
        for (chain, lane) in lanes.filter(|(_, lane)| self.waits(lane)) {
            if !known.contains_key(&lane.iteration) {
                known.insert(lane.iteration, self.learnt_in(store, lane.iteration)?);
            }
            match &known[&lane.iteration] {
                Some(learnt) => self.take_up(lane, learnt),
                None => {
                    staying.push((chain, lane.iteration as usize));
                    self.stay(lane);
                }
            }
        }
        Ok((states, staying))
    }

    /// Runs all chains in memory, wave after wave.
    pub(super) fn run_waves(
        &self,
        bound: &Bound,
        recorder: &Recorder<'_>,
        run: RunWave<'_>,
        options: &Options,
    ) -> Result<Results, Error> {
        let blocks = (0..self.chains).step_by(BLOCK).map(|first| BLOCK.min(self.chains - first));
        let mut states: Vec<BlockStates> = blocks.map(BlockStates::start).collect();
        let (mut results, mut ended) = run(bound)?;
        loop {
            let lanes = states.iter_mut().flat_map(|block| &mut block.lanes).enumerate();
            for (chain, lane) in lanes {
                if let Some(state) = recorder.last_state(chain) {
                    (lane.iteration, lane.state) = (state[self.state.place(ITERATION).start], state);
                }
            }
            let mut stopped = ended;
            for trap in results.traps() {
                stopped |= trap.kind == TrapKind::Interrupted;
                let lane = &mut states[trap.position / BLOCK].lanes[trap.position % BLOCK];
                lane.trap = Some(StoredTrap::of(trap));
            }
            let waits = |lane: &LaneProgress| self.waits(lane);
            if stopped || !states.iter().flat_map(|block| &block.lanes).any(waits) {
                return Ok(results);
            }
            let mut learnt = Learnt::default();
            states.iter().filter_map(|block| self.learnt_by(block)).for_each(|(_, block)| learnt.add(&block));
            let mut next = states.clone();
            for lane in next.iter_mut().flat_map(|block| &mut block.lanes) {
                if self.waits(lane) {
                    self.take_up(lane, &learnt);
                } else {
                    self.stay(lane);
                }
            }
            let mut wave = self.bound_to(&next, options)?;
            // They are the same, and large.
            wave.inputs_mut().shared = bound.inputs().shared.clone();
            let (next, ends) = run(&wave)?;
            (results, ended) = (next.after(&results), ends);
        }
    }
}

/// What chains have learnt that went on is told nowhere else: they begin anew.
fn lost(store: &RunStore, iteration: u64, block: usize, why: &str) -> Error {
    let name = store.root().display();
    let message = format!(
        "{name}: what the chains from {} on have learnt in {iteration} iterations {why}: remove \
         {name}/_autobatch/learnt/{iteration}/{block} and {name}/_autobatch/state/{block}, and run them again",
        block * BLOCK
    );
    Error::new(ErrorKind::Io, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: &[[f64; 2]], is_dense: bool) -> Learnt {
        let mut all = Learnt { averaged: 1, log_stepsizes: rows[0][0], ..Learnt::default() };
        for row in rows {
            let products = vec![0.0; if is_dense { 4 } else { 2 }];
            let one = Learnt { seen: 1, mean: row.to_vec(), products, averaged: 0, log_stepsizes: 0.0 };
            all.add(&one);
        }
        all
    }

    /// Of four numbers with the means 2.5 and 1, by hand.
    #[test]
    fn moments_of_parts_are_those_of_the_whole() {
        let rows = [[1.0, 4.0], [2.0, -2.0], [3.0, 0.0], [4.0, 2.0]];
        for (is_dense, products) in [(false, vec![5.0, 20.0]), (true, vec![5.0, -2.0, -2.0, 20.0])] {
            for cut in 1..4 {
                let mut all = of(&rows[..cut], is_dense);
                all.add(&of(&rows[cut..], is_dense));
                assert_eq!((all.seen, all.averaged), (4, 2));
                assert_eq!(all.log_stepsizes, rows[0][0] + rows[cut][0]);
                let near =
                    |a: &[f64], b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-14);
                assert!(near(&all.mean, &[2.5, 1.0]) && near(&all.products, &products), "{all:?}");
                assert_eq!(Learnt::of_words(&all.words()), Some(all));
            }
        }
        assert_eq!(Learnt::of_words(&[1, 2, 3]), None);
    }
}
