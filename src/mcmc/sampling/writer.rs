//! The thread that stores what chains tell: it takes the rows of each up to its last state, computes the constrained
//! parameters of them, and writes them before the state.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::Sampling;
use super::layout::{Layout, PARAMETERS_FAILED, REACHED_DEPTH, of_phase, stored_name};
use super::parameters::{Phase, QuantitiesOfDraws};
use super::records::{Recorder, Stored};
use crate::mcmc::protocol::{INV_METRIC, ITERATION, Q, STEPSIZE, TREEDEPTH};
use crate::program::{Error, Options};
use crate::run::Trap;
use crate::store::{BLOCK, BlockStates, ChainBlock, Piece, RunStatus, RunStore, StoredArray, StoredTrap};
use crate::types::{Array, ArrayData, DType};

/// A block that has rows to store waits no longer than this for more.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked whether there is something to store.
const LOOKS: Duration = Duration::from_millis(20);
/// Readers see what was stored after that time.
const SHOWN: Duration = Duration::from_secs(1);
/// Words of rows that wait before blocks are stored that lack some chains, 32 MiB.
const MANY: usize = 1 << 22;
/// Words of rows of which arrays are made at once, 2 MiB, or the rows of a chunk where these are more.
const WORDS_AT_ONCE: usize = 1 << 18;

/// A block with what is on disk of it.
pub(super) struct StoredBlock {
    pub(super) block: ChainBlock,
    pub(super) states: BlockStates,
    /// Seconds that earlier processes have taken, by chain.
    before: Vec<(f64, f64)>,
    /// When something of it was stored last.
    since: Instant,
}

impl StoredBlock {
    pub(super) fn new(block: ChainBlock, states: BlockStates) -> Self {
        let before = states.lanes.iter().map(|lane| lane.seconds).collect();
        Self { block, states, before, since: Instant::now() }
    }
}

/// Takes what chains tell, and stores it.
pub(super) struct Writer<'a> {
    pub(super) sampling: &'a Sampling,
    pub(super) store: &'a RunStore,
    pub(super) layout: Layout,
    /// The first chain of the run, in the store.
    pub(super) first: usize,
    pub(super) blocks: Vec<StoredBlock>,
    pub(super) recorder: &'a Recorder<'a>,
    pub(super) options: &'a Options,
    /// Ends the run.
    pub(super) stop: &'a AtomicBool,
    /// What was said of a draw that ends the command when all are stored.
    pub(super) fatal: &'a OnceLock<Error>,
}

impl Drop for Writer<'_> {
    /// Nobody waits for a store that takes nothing more, and no chain runs on for it, also where this ends by a panic.
    fn drop(&mut self) {
        self.recorder.close();
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Writer<'_> {
    /// Stores until the run is over, and then the rest; gives the blocks. The run ends when `asked` says so.
    pub(super) fn write(mut self, over: &AtomicBool, asked: Option<&AtomicBool>) -> Result<Vec<StoredBlock>, Error> {
        self.write_all(over, asked)?;
        Ok(std::mem::take(&mut self.blocks))
    }

    fn write_all(&mut self, over: &AtomicBool, asked: Option<&AtomicBool>) -> Result<(), Error> {
        let mut published = Instant::now();
        let mut unpublished = false;
        loop {
            let last = over.load(Ordering::Relaxed);
            if asked.is_some_and(|asked| asked.load(Ordering::Relaxed)) {
                self.stop.store(true, Ordering::Relaxed);
            }
            let many = self.recorder.waiting() > MANY;
            let mut looked = Duration::ZERO;
            for at in 0..self.blocks.len() {
                let began = Instant::now();
                let is_due = last || self.is_due(at, many);
                looked += began.elapsed();
                if is_due {
                    unpublished |= self.store_block(at, last)?;
                }
            }
            if last {
                return Ok(());
            }
            if unpublished && published.elapsed() > SHOWN {
                self.publish()?;
                (published, unpublished) = (Instant::now(), false);
            }
            // To look at many chains takes a while, too.
            std::thread::sleep(LOOKS.max(10 * looked.min(SHOWN)));
        }
    }

    /// Whether a block should be stored: all of its chains have filled its chunks, or it has waited long enough.
    fn is_due(&self, at: usize, many: bool) -> bool {
        let StoredBlock { block, since, .. } = &self.blocks[at];
        let ready: Vec<_> = block.chains.clone().map(|chain| self.recorder.ready(chain - self.first)).collect();
        if ready.iter().all(|chain| !chain.has_state) {
            return false;
        }
        let (rows, kept) = (self.store.plan().rows, self.sampling.kept());
        let fills = ready
            .iter()
            .filter(|chain| !chain.trapped)
            .all(|chain| chain.draws / rows > chain.stored / rows || chain.draws >= kept && chain.draws > chain.stored);
        many || since.elapsed() > PATIENCE || fills
    }

    /// Stores what there is of a block; gives whether there was something.
    fn store_block(&mut self, at: usize, last: bool) -> Result<bool, Error> {
        let block = self.blocks[at].block.clone();
        let chains = || block.chains.clone().enumerate();
        let taken: Vec<(usize, Stored)> =
            chains().filter_map(|(i, chain)| Some((i, self.recorder.take(chain - self.first)?))).collect();
        let traps: Vec<(usize, Trap)> =
            chains().filter_map(|(i, chain)| Some((i, self.recorder.trap(chain - self.first)?))).collect();
        if taken.is_empty() && (!last || traps.is_empty()) {
            return Ok(false);
        }
        let mut states = self.blocks[at].states.clone();
        // While they run, the chains have the other cores.
        let threads = if last { self.options.settings.get_threads() } else { 1 };
        self.store_rows(&block, (&taken, threads), Phase::Warmup, &mut states)?;
        self.store_rows(&block, (&taken, threads), Phase::Sampling, &mut states)?;
        let adapted = |name: &str| -> Vec<(usize, Array)> {
            let of =
                |(i, stored): &(usize, Stored)| Some((*i, self.recorder.of_adapted(stored.adapted.as_ref()?, name)?));
            taken.iter().filter_map(of).collect()
        };
        self.store.put_chains(&self.layout.stepsize, block.number, &adapted(STEPSIZE))?;
        self.store.put_chains(&self.layout.inv_metric, block.number, &adapted(INV_METRIC))?;
        let words = self.recorder.row_words().max(1);
        let iteration = self.sampling.state.place(ITERATION).start;
        for (i, stored) in taken {
            let lane = &mut states.lanes[i];
            lane.iteration = stored.state[iteration];
            lane.draws = (stored.first.0 + stored.words.len() / words) as u64;
            lane.states = (stored.first.1 + stored.of_warmup.len() / words) as u64;
            let before = self.blocks[at].before[i];
            lane.seconds = (before.0 + stored.seconds.0, before.1 + stored.seconds.1);
            lane.gradients = stored.gradients;
            lane.state = stored.state;
        }
        for (i, trap) in traps {
            states.lanes[i].trap = Some(StoredTrap::of(&trap));
        }
        self.store.set_states(block.number, &states)?;
        let stored = &mut self.blocks[at];
        (stored.states, stored.since) = (states, Instant::now());
        Ok(true)
    }

    /// Stores draws, or states of warmup, of chains of a block, so many rows at a time that what is made of them is small
    /// beside them.
    fn store_rows(
        &self,
        block: &ChainBlock,
        (taken, threads): (&[(usize, Stored)], usize),
        phase: Phase,
        states: &mut BlockStates,
    ) -> Result<(), Error> {
        let words = self.recorder.row_words().max(1);
        let chunk = self.store.plan().rows;
        let step = (WORDS_AT_ONCE / (words * taken.len().max(1)) / chunk).max(1) * chunk;
        let rows = || taken.iter().map(|(_, stored)| stored.rows(phase));
        let first = rows().map(|(first, _)| first).min().unwrap_or(0);
        let last = rows().map(|(first, all)| first + all.len() / words).max().unwrap_or(0);
        // From chunk to chunk, whose files are written once then.
        for from in (first / chunk * chunk..last).step_by(step) {
            let mut pieces = Vec::new();
            let mut records = Vec::new();
            for (chain, stored) in taken {
                let (row, all) = stored.rows(phase);
                let own = row.max(from)..(row + all.len() / words).min(from + step);
                if !own.is_empty() {
                    pieces.push(Piece { chain: *chain, row: own.start, count: own.len(), from: records.len() / words });
                    records.extend_from_slice(&all[(own.start - row) * words..(own.end - row) * words]);
                }
            }
            if !records.is_empty() {
                self.store_records(block, (&pieces, &records), (phase, threads), states)?;
            }
        }
        Ok(())
    }

    /// Stores rows, of which `pieces` say where they belong.
    fn store_records(
        &self,
        block: &ChainBlock,
        (pieces, records): (&[Piece], &[u64]),
        (phase, threads): (Phase, usize),
        states: &mut BlockStates,
    ) -> Result<(), Error> {
        let words = self.recorder.row_words().max(1);
        let count = records.len() / words;
        let mut first = 0;
        let mut depths = None;
        let (layout, store) = (&self.layout, self.store);
        let put =
            |array: &StoredArray, values: &Array| store.put_rows(&of_phase(array, phase), block.number, pieces, values);
        let mut q = None;
        for (name, ty) in self.recorder.draw_fields() {
            let place = first..first + ty.elements();
            let elements = records.chunks_exact(words).flat_map(|record| &record[place.clone()]);
            let data = match ty.dtype {
                DType::Bool => ArrayData::Bool(elements.map(|w| *w != 0).collect()),
                DType::Int => ArrayData::Int(elements.map(|w| *w as i64).collect()),
                DType::Real => ArrayData::Real(elements.map(|w| f64::from_bits(*w)).collect()),
            };
            let array = Array::new([count].into_iter().chain(ty.shape.iter().copied()), data);
            first = place.end;
            if name == TREEDEPTH {
                depths = array.as_int().map(<[i64]>::to_vec);
            }
            match name == Q {
                true => q = Some(array),
                false => {
                    let of = layout.statistic(stored_name(name)).expect("it was made of the same fields");
                    put(of, &array)?;
                }
            }
        }
        if let (Some(most), Some(depths)) = (self.sampling.method.max_treedepth(), depths) {
            let of = layout.statistic(REACHED_DEPTH).expect("it is there where there is a largest depth");
            let reached = depths.iter().map(|depth| *depth >= most).collect();
            put(of, &Array::new([count], ArrayData::Bool(reached)))?;
        }
        let mut q = q.expect("draws have a state");
        if let Some(of) = &layout.q {
            put(of, &q)?;
        }
        if !self.sampling.has_parameters() {
            return layout.posterior.iter().try_for_each(|of| put(of, &q));
        }
        q.shape.insert(0, 1);
        let places: Vec<(usize, usize)> = (pieces.iter())
            .flat_map(|piece| {
                let chain = block.chains.start + piece.chain - self.first;
                (piece.row..piece.row + piece.count).map(move |row| (chain, row))
            })
            .collect();
        let mut options = self.options.clone();
        options.settings = options.settings.clone().threads(threads);
        let QuantitiesOfDraws { arrays: made, failed, fatal } =
            self.sampling.parameters(&q, &|at| places[at], phase, &options)?;
        if let Some(fatal) = fatal {
            self.fatal.get_or_init(|| fatal);
        }
        let mut flags = vec![false; count];
        if let Some(failed) = failed {
            failed.positions.iter().for_each(|at| flags[*at] = true);
            let (chain, row) = places[failed.positions[0]];
            let place = (self.first + chain, row as u64);
            if phase == Phase::Sampling && states.first_failed.is_none_or(|first| place < first) {
                (states.first_failed, states.first_failure) = (Some(place), Some(StoredTrap::of(&failed.first)));
            }
        }
        let of = layout.statistic(PARAMETERS_FAILED).expect("it is there where there are parameters");
        put(of, &Array::new([count], ArrayData::Bool(flags)))?;
        for of in &layout.posterior {
            let name = of.path.split_once('/').expect("it is in a group").1;
            let mut array = made.get(name).expect("it gives the same for every draw").clone();
            array.shape.remove(0);
            put(of, &array)?;
        }
        Ok(())
    }

    /// Lets readers see what all chains have.
    fn publish(&self) -> Result<(), Error> {
        if self.blocks.len() < self.store.plan().chains.div_ceil(BLOCK) {
            // Others run the rest: who merges looks at all.
            return Ok(());
        }
        let extents = RunStore::extents(self.blocks.iter().map(|stored| &stored.states));
        self.store.publish(extents, RunStatus::Running)
    }
}
