//! Chains whose draws go to a store while they run, and that go on where an earlier run ended.
//!
//! A thread takes what chains have told up to their last state, and writes it: `writer`. A chain waits for nobody but for a
//! disk that is slower than all of them, and, where warmup is pooled, for the others.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use indexmap::IndexMap;

use super::records::Recorder;
use super::writer::{StoredBlock, Writer};
use super::{Observer, Reached, Sampling, draws, driver, watch};
use crate::mcmc::protocol::POSITION;
use crate::program::{Bound, Error, ErrorKind, MemoryEstimate, Options, budget};
use crate::run::{Stats, TrapKind};
use crate::store::{BLOCK, BlockStates, ChainBlock, RunStore, StoredTrap};
use crate::types::{Array, ArrayData, DType};

/// Is told what was compiled.
pub type Warn<'a> = &'a dyn Fn(&Bound);

/// What came of a run whose draws are in a store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredRun {
    /// Whether it was stopped before its end.
    pub stopped: bool,
    /// What a chain said that ended the run, as `fatal_error` of Stan does.
    pub fatal: Option<Error>,
    /// Iterations, of all chains, that were there already.
    pub resumed: u64,
    /// Iterations, of all chains, that are there now.
    pub iterations: u64,
    /// Whether there is a next wave for some of the chains, where warmup is pooled.
    pub can_go_on: bool,
    /// What was not as it should be in the store, and what was done about it, one line each.
    pub notes: Vec<String>,
    /// How far the chains are.
    pub reached: Reached,
    /// Statistics of the machine.
    pub stats: Stats,
}

/// Sets a flag at its end, however it comes.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Sampling {
    /// Runs all chains, those with a state in the store from there on, and stores what they tell. `chains` are their numbers
    /// in the store; `data` are shown beside the draws; `warn` is told what was compiled.
    ///
    /// # Errors
    /// As [`run`](Self::run), and where the store cannot be read or written.
    pub fn run_into(
        &self,
        (store, chains): (&mut RunStore, Range<usize>),
        data: &IndexMap<String, (Array, bool)>,
        options: &Options,
        (observer, warn): (&dyn Observer, Warn<'_>),
    ) -> Result<StoredRun, Error> {
        let blocks = store.blocks(&chains)?;
        let mut notes = Vec::new();
        let mut states = self.states_of(store, &blocks, options, &mut notes)?;
        self.tell_learnt(store, blocks[0].number, &states)?;
        // Whether a chain traps shows again: one for which there was no memory may not.
        states.iter_mut().flat_map(|block| &mut block.lanes).for_each(|lane| lane.trap = None);
        let resumed = states.iter().flat_map(|block| &block.lanes).map(|lane| lane.iteration).sum();
        let (from, staying) = self.taken_up(store, &states)?;
        let bound = self.bound_to(&from, options)?;
        warn(&bound);
        let layout = self.layout(store, &bound, options)?;
        self.declare(store, &layout, data)?;
        // Now that all arrays are known.
        blocks.iter().zip(&states).try_for_each(|(block, states)| store.trim(block, states))?;

        let parameters = self.bytes_of_parameters(&bound, options)?;
        let estimate = self.estimate_stored(&bound, parameters, options);
        let budget = budget(&estimate, options).map_err(|error| self.with_remedy(&error, &estimate))?;
        let counts = (self.chains, self.warmup, self.kept());
        let recorder = Recorder::new(&bound.compiled().units.globals.streams, counts, observer, &options.prints)?;
        let there: Vec<(usize, usize)> = (states.iter().flat_map(|block| &block.lanes))
            .map(|lane| (lane.draws as usize, lane.states as usize))
            .collect();
        let recorder = recorder.storing(&there)?.staying(&staying);
        bound.prepare(options)?;

        // The run ends when its user says so, and when there is no place for its draws.
        let (asked, stop) = (options.settings.stop.clone(), Arc::new(AtomicBool::new(false)));
        let mut options = options.clone();
        options.settings.stop = Some(Arc::clone(&stop));
        let start = Instant::now();
        let (over, said) = (AtomicBool::new(false), OnceLock::new());
        let blocks = blocks.into_iter().zip(states).map(|(block, states)| StoredBlock::new(block, states)).collect();
        let (sampling, store, recorder, first) = (self, &*store, &recorder, chains.start);
        let writer =
            Writer { sampling, store, layout, first, blocks, recorder, options: &options, stop: &stop, fatal: &said };
        let _answered = observer.asks().map(|asks| asks.of_store(store));
        let (results, written) = std::thread::scope(|scope| {
            let (running, done) = mpsc::channel();
            if observer.watches() {
                scope.spawn(|| watch::watch(&|| recorder.states(), self.iterations(), observer, &{ done }));
            }
            let writer = scope.spawn(|| writer.write(&over, asked.as_deref()));
            let results = {
                let _over = Ending(&over);
                bound.run_keeping(&budget, &options, recorder)
            };
            drop(running);
            (results, writer.join())
        });
        let written = written.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let (results, fatal) = results?;
        // Why a chain found no start is known only now.
        let mut at_end = Vec::new();
        for mut stored in written? {
            let traps = draws::with_failures(&results);
            let own = |trap: &&crate::run::Trap| stored.block.chains.contains(&(first + trap.position));
            let own: Vec<_> = traps.iter().filter(own).filter(|trap| trap.kind != TrapKind::Interrupted).collect();
            for trap in &own {
                stored.states.lanes[first + trap.position - stored.block.chains.start].trap =
                    Some(StoredTrap::of(trap));
            }
            if !own.is_empty() {
                store.set_states(stored.block.number, &stored.states)?;
            }
            at_end.push(stored.states);
        }
        self.tell_learnt(store, chains.start / BLOCK, &at_end)?;
        Ok(StoredRun {
            reached: Reached::of(&recorder.states(), &self.iterations()).after(start.elapsed().as_secs_f64()),
            stopped: fatal.is_some() || results.traps().iter().any(|trap| trap.kind == TrapKind::Interrupted),
            fatal: fatal.or(said.into_inner()),
            resumed,
            iterations: at_end.iter().flat_map(|block| &block.lanes).map(|lane| lane.iteration).sum(),
            can_go_on: self.pools() && self.can_go_on(store, &at_end)?,
            notes,
            stats: results.stats().clone(),
        })
    }

    /// How far the chains of these blocks are, as far as what is on disk of them is whole; a block of which something is
    /// damaged begins anew.
    fn states_of(
        &self,
        store: &mut RunStore,
        blocks: &[ChainBlock],
        options: &Options,
        notes: &mut Vec<String>,
    ) -> Result<Vec<BlockStates>, Error> {
        let there: Vec<Result<BlockStates, Error>> = blocks.iter().map(|block| store.states(block)).collect();
        let begun = there.iter().any(|there| there.as_ref().map_or(true, BlockStates::has_begun));
        if begun && store.read_arrays().is_err() {
            // The metadata say nothing that is not known: they are written anew.
            let fresh = self.bound_to(&[BlockStates::start(self.chains)], options)?;
            let layout = self.layout(store, &fresh, options)?;
            store.assume(self.of_draws(&layout), layout.along_chains());
        }
        let whole = |(block, there): (&ChainBlock, Result<BlockStates, Error>)| {
            let there = there.map_err(|error| error.to_string());
            match there.and_then(|there| store.damage(block, &there).map_or(Ok(there), Err)) {
                Ok(states) => Ok(states),
                Err(why) => {
                    let (first, last) = (block.chains.start, block.chains.end - 1);
                    notes.push(format!("{why}: the chains {first} to {last} are run again from their start"));
                    store.clear(block)?;
                    Ok(BlockStates::start(block.chains.len()))
                }
            }
        };
        blocks.iter().zip(there).map(whole).collect()
    }

    /// The chains, ready to run on from these states.
    pub(super) fn bound_to(&self, states: &[BlockStates], options: &Options) -> Result<Bound, Error> {
        let lanes: Vec<_> = states.iter().flat_map(|block| &block.lanes).collect();
        let names = &self.driver.names;
        let mut inputs = self.inputs();
        let words = self.state.words();
        if let Some(lane) = lanes.iter().find(|lane| !lane.state.is_empty() && lane.state.len() != words) {
            let message = format!("a state in the store has {} numbers, where the chain has {words}", lane.state.len());
            return Err(Error::new(ErrorKind::Input, message));
        }
        let resumed = lanes.iter().map(|lane| !lane.state.is_empty()).collect();
        inputs = inputs.lane(&names.resumed, Array::new([lanes.len()], ArrayData::Bool(resumed)));
        let mut first = 0;
        for (name, ty) in names.state.iter().zip(self.state.types()) {
            let place = first..first + ty.elements();
            let word = |lane: usize, at: usize| lanes[lane].state.get(at).copied().unwrap_or(0);
            let all = (0..lanes.len()).flat_map(|lane| place.clone().map(move |at| (lane, at)));
            let data = match ty.dtype {
                DType::Bool => ArrayData::Bool(all.map(|(lane, at)| word(lane, at) != 0).collect()),
                DType::Int => ArrayData::Int(all.map(|(lane, at)| word(lane, at) as i64).collect()),
                DType::Real => ArrayData::Real(all.map(|(lane, at)| f64::from_bits(word(lane, at))).collect()),
            };
            let shape = [lanes.len()].into_iter().chain(ty.shape.iter().copied());
            inputs = inputs.lane(name, Array::new(shape, data));
            first = place.end;
        }
        let mut bound = self.driver.program.function("main")?.bind(&inputs, options).map_err(driver::without_driver)?;
        let at = self.state.place(POSITION).start;
        bound.inputs_mut().drawn = lanes.iter().map(|lane| lane.state.get(at).copied().unwrap_or(0)).collect();
        Ok(bound)
    }

    /// What the run needs: what waits for the store, and the draws of a block as arrays.
    fn estimate_stored(&self, bound: &Bound, parameters: usize, options: &Options) -> MemoryEstimate {
        let mut estimate = bound.memory(options);
        let words = self.state.words();
        // A state, a few rows behind it, and these rows once more with their parameters.
        let rows =
            self.method.checkpoint_every().saturating_mul(2 * (self.dimension + 16) * size_of::<u64>() + parameters);
        estimate.host_bytes_per_lane =
            estimate.host_bytes_per_lane.saturating_add(words * size_of::<u64>()).saturating_add(rows);
        estimate
    }
}
