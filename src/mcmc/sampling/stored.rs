//! Chains whose draws go to a store while they run, and that go on where an earlier run ended.
//!
//! A thread takes what chains have told up to their last state, computes the constrained parameters of it, and writes it. A
//! chain waits for nobody but for a disk that is slower than all of them.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use indexmap::IndexMap;

use super::method::Method;
use super::parameters::Phase;
use super::records::{Recorder, Stored};
use super::{Draws, Job, Observer, Reached, Sampling, driver, watch};
use crate::mcmc::protocol::{
    ACCEPT_STAT, DIVERGENT, ENERGY, INV_METRIC, ITERATION, LP, N_LEAPFROG, POSITION, Q, STATE, STEPSIZE, TREEDEPTH,
};
use crate::program::{Bound, Error, ErrorKind, Options, budget};
use crate::run::{Stats, Trap, TrapKind};
use crate::store::{
    BlockStates, ChainBlock, LaneProgress, Piece, RunPlan, RunStatus, RunStore, StoredArray, StoredElement, coordinate,
};
use crate::types::{Array, ArrayData, DType, Type};

/// A block that has rows to store waits no longer than this for more.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked whether there is something to store.
const LOOKS: Duration = Duration::from_millis(20);
/// Readers see what was stored after that time.
const SHOWN: Duration = Duration::from_secs(1);
/// Words of rows that wait before blocks are stored that lack some chains, 32 MiB.
const MANY: usize = 1 << 22;

/// Statistics of a sampler, by the names that `ArviZ` has for them, and by ours.
pub const ARVIZ_STATISTICS: [(&str, &str); 7] = [
    (LP, LP),
    ("acceptance_rate", ACCEPT_STAT),
    ("step_size", STEPSIZE),
    ("tree_depth", TREEDEPTH),
    ("n_steps", N_LEAPFROG),
    ("diverging", DIVERGENT),
    (ENERGY, ENERGY),
];
/// A statistic that is computed.
const REACHED_DEPTH: &str = "reached_max_treedepth";

/// What `ArviZ` calls a statistic.
fn stored_name(name: &str) -> &str {
    ARVIZ_STATISTICS.iter().find(|(_, own)| *own == name).map_or(name, |(stored, _)| stored)
}

/// What this project calls a statistic of `ArviZ`.
fn own_name(stored: &str) -> &str {
    ARVIZ_STATISTICS.iter().find(|(name, _)| *name == stored).map_or(stored, |(_, own)| own)
}

/// Is told what was compiled.
pub type Warn<'a> = &'a dyn Fn(&Bound);

/// What came of a run whose draws are in a store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredRun {
    /// Whether it was stopped before its end.
    pub stopped: bool,
    /// How far its chains came.
    pub reached: Reached,
    /// Its chains that trapped.
    pub traps: Vec<Trap>,
    /// Iterations, of all chains, that were there already.
    pub resumed: u64,
    /// What was not as it should be in the store, and what was done about it, one line each.
    pub notes: Vec<String>,
    /// Seconds of the run.
    pub seconds: f64,
    /// Statistics of the machine.
    pub stats: Stats,
}

/// The arrays of a store: those along chains and draws, and those along chains.
struct Layout {
    posterior: Vec<StoredArray>,
    statistics: Vec<StoredArray>,
    q: Option<StoredArray>,
    stepsize: StoredArray,
    inv_metric: StoredArray,
}

impl Layout {
    fn group(&self, of: &StoredArray, phase: Phase) -> StoredArray {
        let path = if phase == Phase::Warmup { format!("warmup_{}", of.path) } else { of.path.clone() };
        StoredArray { path, ..of.clone() }
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
        data: &IndexMap<String, Array>,
        options: &Options,
        (observer, warn): (&dyn Observer, Warn<'_>),
    ) -> Result<StoredRun, Error> {
        let blocks = store.blocks(&chains)?;
        let mut notes = Vec::new();
        let there: Vec<Result<BlockStates, Error>> = blocks.iter().map(|block| store.states(block)).collect();
        let begun = there.iter().any(|there| there.as_ref().map_or(true, |states| states.lanes.iter().any(has_begun)));
        if begun && store.read_arrays().is_err() {
            // The metadata say nothing that is not known: they are written anew.
            let fresh = self.bound_to(&[BlockStates::start(self.chains)], options)?;
            let layout = self.layout(store, &fresh, options)?;
            store.assume(self.of_draws(&layout));
        }
        let mut states = Vec::with_capacity(blocks.len());
        for (block, there) in blocks.iter().zip(there) {
            let there = there.map_err(|error| error.to_string());
            let whole = there.and_then(|there| store.damage(block, &there).map_or(Ok(there.clone()), Err));
            states.push(match whole {
                Ok(states) => states,
                Err(why) => {
                    let (first, last) = (block.chains.start, block.chains.end - 1);
                    notes.push(format!("{why}: the chains {first} to {last} are run again from their start"));
                    store.clear(block)?;
                    BlockStates::start(block.chains.len())
                }
            });
            if begun {
                store.trim(block, &states[states.len() - 1])?;
            }
        }
        // Whether a chain traps shows again: one for which there was no memory may not.
        states.iter_mut().flat_map(|block| &mut block.lanes).for_each(|lane| lane.trap = None);
        let resumed = states.iter().flat_map(|block| &block.lanes).map(|lane| lane.iteration).sum();
        let bound = self.bound_to(&states, options)?;
        warn(&bound);
        let layout = self.layout(store, &bound, options)?;
        self.declare(store, &layout, data)?;

        let parameters = self.bytes_of_parameters(&bound, options)?;
        let estimate = self.estimate_stored(&bound, parameters, options);
        let budget = budget(&estimate, options).map_err(|error| self.with_remedy(&error, &estimate))?;
        let counts = (self.chains, self.warmup, self.kept());
        let recorder = Recorder::new(&bound.compiled().units.globals.streams, counts, observer, &options.prints)?;
        let there: Vec<(usize, usize)> = (states.iter().flat_map(|block| &block.lanes))
            .map(|lane| (lane.draws as usize, lane.states as usize))
            .collect();
        let recorder = recorder.storing(&there)?;
        bound.prepare(options)?;

        // The run ends when its user says so, and when there is no place for its draws.
        let (asked, stop) = (options.settings.stop.clone(), Arc::new(AtomicBool::new(false)));
        let mut options = options.clone();
        options.settings.stop = Some(Arc::clone(&stop));
        let start = Instant::now();
        let writer = Writer {
            sampling: self,
            store,
            layout,
            first: chains.start,
            blocks: blocks
                .into_iter()
                .zip(states)
                .map(|(block, states)| {
                    let before = states.lanes.iter().map(|lane| lane.seconds).collect();
                    Waiting { block, states, before, since: start }
                })
                .collect(),
            recorder: &recorder,
            options: &options,
        };
        let over = AtomicBool::new(false);
        let (results, written) = std::thread::scope(|scope| {
            let (running, done) = mpsc::channel();
            if observer.watches() {
                scope.spawn(|| watch::watch(&|| recorder.states(), self.iterations(), observer, &{ done }));
            }
            let writer = scope.spawn(|| writer.write(&over, asked.as_deref(), &stop));
            let results = {
                let _over = Ending(&over);
                bound.run_within(&budget, &options, &recorder)
            };
            drop(running);
            (results, writer.join())
        });
        let written = written.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let results = results?;
        written?;
        let seconds = start.elapsed().as_secs_f64();
        let reached = Reached::of(&recorder.states(), &self.iterations()).after(seconds);
        observer.finished(&reached);
        Ok(StoredRun {
            stopped: results.traps().iter().any(|trap| trap.kind == TrapKind::Interrupted),
            reached,
            traps: results.traps().iter().filter(|trap| trap.kind != TrapKind::Interrupted).cloned().collect(),
            resumed,
            notes,
            seconds,
            stats: results.stats().clone(),
        })
    }

    /// The chains, ready to run on from these states.
    fn bound_to(&self, states: &[BlockStates], options: &Options) -> Result<Bound, Error> {
        let lanes: Vec<_> = states.iter().flat_map(|block| &block.lanes).collect();
        let names = &self.driver.names;
        let types = self.state_types();
        let mut inputs = self.inputs();
        let words: usize = types.iter().map(Type::elements).sum();
        if let Some(lane) = lanes.iter().find(|lane| !lane.state.is_empty() && lane.state.len() != words) {
            let message = format!("a state in the store has {} numbers, where the chain has {words}", lane.state.len());
            return Err(Error::new(ErrorKind::Input, message));
        }
        let resumed = lanes.iter().map(|lane| !lane.state.is_empty()).collect();
        inputs = inputs.lane(&names.resumed, Array::new([lanes.len()], ArrayData::Bool(resumed)));
        let mut first = 0;
        for (name, ty) in names.state.iter().zip(&types) {
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
        let position = STATE.fields.iter().position(|(name, ..)| *name == POSITION).expect("it is a field");
        let at: usize = types[..position].iter().map(Type::elements).sum();
        bound.inputs_mut().drawn = lanes.iter().map(|lane| lane.state.get(at).copied().unwrap_or(0)).collect();
        Ok(bound)
    }

    /// The types of the fields of a state.
    fn state_types(&self) -> Vec<Type> {
        let d = self.dimension;
        let rows = if self.metric == super::Metric::Dense { d } else { 1 };
        let shape = |name: &str, rank: usize| match (name, rank) {
            (_, 0) => vec![],
            ("averaging", _) => vec![4],
            ("window", _) => vec![2],
            (_, 1) => vec![d],
            _ => vec![rows, d],
        };
        STATE.fields.iter().map(|(name, dtype, rank)| Type::new(*dtype, shape(name, *rank))).collect()
    }

    /// What the run needs: what waits for the store, and the draws of a block as arrays.
    fn estimate_stored(&self, bound: &Bound, parameters: usize, options: &Options) -> crate::program::MemoryEstimate {
        let mut estimate = bound.memory(options);
        let words: usize = self.state_types().iter().map(Type::elements).sum();
        // A state, a few rows behind it, and these rows once more with their parameters.
        let rows = self.checkpoint_every().saturating_mul(2 * (self.dimension + 16) * size_of::<u64>() + parameters);
        estimate.host_bytes_per_lane =
            estimate.host_bytes_per_lane.saturating_add(words * size_of::<u64>()).saturating_add(rows);
        estimate
    }

    fn checkpoint_every(&self) -> usize {
        self.method.checkpoint_every()
    }

    /// The variables of the model, of no draws.
    fn variables(&self, options: &Options) -> Result<IndexMap<String, Array>, Error> {
        let none = Array::zeros(&Type::new(DType::Real, [1, 0, self.dimension]));
        match self.has_parameters() {
            true => Ok(self.parameters(&none, &|_| (0, 0), Phase::Sampling, options)?.0),
            false => Ok(IndexMap::from([(Q.to_owned(), none)])),
        }
    }

    /// Refuses variables that the model does not have.
    ///
    /// # Errors
    /// For these, and as [`run`](Self::run).
    pub(super) fn check_kept(&self, keep: &[String], options: &Options) -> Result<(), Error> {
        let made = self.variables(options)?;
        let Some(name) = keep.iter().find(|name| *name != Q && !made.contains_key(*name)) else { return Ok(()) };
        let there: Vec<String> = made.keys().map(|name| format!("`{name}`")).collect();
        let message = format!("--keep: the model has no `{name}`, but {}, and `{Q}`, its state", there.join(", "));
        Err(Error::new(ErrorKind::Option, message))
    }

    fn layout(&self, store: &RunStore, bound: &Bound, options: &Options) -> Result<Layout, Error> {
        let plan = store.plan();
        let sizes = (plan.chains, self.kept());
        let block = (store.chains_of_block(), plan.rows);
        let has_parameters = self.has_parameters();
        let made = self.variables(options)?;
        let stored = |group: &str, name: &str, ty: DType, event: &[usize]| {
            StoredArray::of_draws((group, name), StoredElement::of(ty, plan.single), sizes, event, block)
        };
        if let Some(name) = ["chain", "draw"].iter().find(|name| made.contains_key(**name) && keeps(plan, name)) {
            let message = format!(
                "a variable `{name}` has no place in a store, where the axis of that name is: rename it, or --keep the others"
            );
            return Err(Error::new(ErrorKind::Option, message));
        }
        let kept = made.iter().filter(|(name, _)| keeps(plan, name) || !has_parameters);
        let posterior =
            kept.map(|(name, array)| stored("posterior", name, array.ty().dtype, &array.shape[2..])).collect();
        let streams = &bound.compiled().units.globals.streams;
        let draw = streams.values().find(|stream| stream.name == crate::mcmc::protocol::DRAW.name);
        let fields = draw.map(|draw| &draw.fields[..]).unwrap_or_default();
        let mut statistics: Vec<StoredArray> = (fields.iter().filter(|(name, _)| name != Q))
            .map(|(name, ty)| stored("sample_stats", stored_name(name), ty.dtype, &ty.shape))
            .collect();
        if self.method.max_treedepth().is_some() {
            statistics.push(stored("sample_stats", REACHED_DEPTH, DType::Bool, &[]));
        }
        let wants_q = has_parameters && plan.keep.as_ref().is_some_and(|keep| keep.iter().any(|name| name == Q));
        let q = wants_q.then(|| stored("unconstrained_posterior", Q, DType::Real, &[self.dimension]));
        let d = self.dimension;
        let rows = if self.metric == super::Metric::Dense { vec![d, d] } else { vec![d] };
        let along_chains = |name: &str, event: &[usize]| StoredArray {
            path: format!("adaptation/{name}"),
            element: StoredElement::Float64,
            shape: [plan.chains].into_iter().chain(event.iter().copied()).collect(),
            chunk: [block.0].into_iter().chain(event.iter().map(|n| (*n).max(1))).collect(),
            axes: ["chain".to_owned()].into_iter().chain((0..event.len()).map(|i| format!("{name}_dim_{i}"))).collect(),
        };
        Ok(Layout {
            posterior,
            statistics,
            q,
            stepsize: along_chains("step_size", &[]),
            inv_metric: along_chains("inv_metric", &rows),
        })
    }

    /// The arrays along chains and draws.
    fn of_draws(&self, layout: &Layout) -> Vec<StoredArray> {
        let phases: &[Phase] =
            if self.method.saves_warmup() { &[Phase::Sampling, Phase::Warmup] } else { &[Phase::Sampling] };
        let arrays = || layout.posterior.iter().chain(&layout.statistics).chain(&layout.q);
        phases.iter().flat_map(|phase| arrays().map(|array| layout.group(array, *phase))).collect()
    }

    /// Tells the store its arrays, and writes those that do not change.
    fn declare(&self, store: &mut RunStore, layout: &Layout, data: &IndexMap<String, Array>) -> Result<(), Error> {
        let of_draws = self.of_draws(layout);
        let plan = store.plan();
        let number = |lane: usize| i64::try_from(plan.first_lane.saturating_add(lane as u64)).unwrap_or(i64::MAX);
        let chains: Vec<i64> = (0..plan.chains).map(number).collect();
        let states = self.warmup.div_ceil(self.method.thin());
        let mut whole: Vec<(StoredArray, Array)> = Vec::new();
        let mut groups: Vec<&str> = of_draws.iter().filter_map(|array| array.path.split('/').next()).collect();
        groups.dedup();
        groups.sort_unstable();
        groups.dedup();
        for group in groups {
            let rows = if group.starts_with("warmup") { states } else { self.kept() };
            whole.push(coordinate(group, "chain", chains.clone()));
            whole.push(coordinate(group, "draw", (0..rows as i64).collect()));
        }
        whole.push(coordinate("adaptation", "chain", chains));
        for (name, array) in data {
            let axes = (0..array.shape.len()).map(|axis| format!("{name}_dim_{axis}")).collect();
            let element = StoredElement::of(array.ty().dtype, false);
            whole.push((StoredArray::whole(format!("observed_data/{name}"), array, element, axes), array.clone()));
        }
        whole.iter().try_for_each(|(of, values)| store.put_whole(of, values))?;
        let others = whole.into_iter().map(|(of, _)| of).chain([layout.stepsize.clone(), layout.inv_metric.clone()]);
        store.declare(of_draws, others.collect())
    }
}

/// What a store has of a run.
#[derive(Clone, Debug)]
pub struct StoredDraws {
    /// The draws, without the parameters: these are read one by one from the arrays of `posterior`.
    pub draws: Draws,
    /// Why chains trapped, by their numbers in the store.
    pub traps: Vec<(usize, String)>,
    /// Draws for which the model's `parameters` failed, and why the first did.
    pub failed: Option<(u64, String)>,
    /// The chains that have not made all their draws.
    pub open: Vec<usize>,
}

/// What a store has of its run, whose job this is, as far as all chains have it; the arrays of the store are known.
/// Statistics are read where `reads` says so.
///
/// # Errors
/// Where the store cannot be read.
pub fn stored_draws(store: &RunStore, job: &Job<'_>, reads: bool) -> Result<StoredDraws, Error> {
    let method = Method::new(job.sampler, &job.settings, job.starts.is_some())?;
    let all = store.all_states()?;
    let lanes: Vec<_> = all.iter().flat_map(|block| &block.lanes).collect();
    let chains: Vec<usize> = (0..lanes.len()).filter(|chain| lanes[*chain].trap.is_none()).collect();
    let traps: Vec<(usize, String)> =
        lanes.iter().enumerate().filter_map(|(chain, lane)| Some((chain, lane.trap.clone()?))).collect();
    let (draws, _) = RunStore::extents(all.iter());
    let iterations = (job.warmup + job.draws) as u64;
    let open = chains.iter().copied().filter(|chain| lanes[*chain].iteration < iterations).collect::<Vec<_>>();
    let mut statistics = IndexMap::new();
    for array in store.of_draws().iter().filter(|_| reads) {
        let Some(name) = array.path.strip_prefix("sample_stats/").filter(|name| *name != REACHED_DEPTH) else {
            continue;
        };
        statistics.insert(own_name(name).to_owned(), store.read(array, &chains, draws)?);
    }
    let steps = statistics.get(N_LEAPFROG).and_then(Array::as_int).unwrap_or_default().iter();
    let gradients = steps.map(|n| *n as u64).sum::<u64>() + lanes.iter().map(|lane| lane.gradients).sum::<u64>();
    let range = |of: fn(&LaneProgress) -> usize| {
        let values = || chains.iter().map(|chain| of(lanes[*chain]));
        (values().min().unwrap_or(0), values().max().unwrap_or(0))
    };
    let failed: u64 = all.iter().map(|block| block.failed).sum();
    let first = all.iter().find_map(|block| block.first_failure.clone());
    let points = job.starts.as_ref().map(distinct_rows);
    let superchains = points.filter(|n| (2..job.chains).contains(n) && method.init_radius() == 0.0);
    let warmup = job.warmup;
    let draws = Draws {
        parameters: IndexMap::new(),
        statistics,
        warmup_states: None,
        each_chain: vec![],
        draws,
        asked: job.draws.div_ceil(method.thin()),
        reached: Reached {
            started: chains.iter().filter(|chain| lanes[**chain].iteration > 0).count(),
            warm: chains.iter().filter(|chain| lanes[**chain].iteration >= warmup as u64).count(),
            finished: chains.len() - open.len(),
            warmup: {
                let (least, most) = range(|lane| lane.iteration as usize);
                (least.min(warmup), most.min(warmup))
            },
            draws: range(|lane| lane.draws as usize),
            iterations: chains.iter().map(|chain| lanes[*chain].iteration as usize).sum(),
            ..Reached::default()
        },
        metric: job.metric,
        inv_metrics: vec![],
        chain_seconds: chains.iter().map(|chain| lanes[*chain].seconds).collect(),
        thin: method.thin(),
        failed: None,
        traps: vec![],
        rejected: vec![],
        rejected_after_warmup: vec![],
        gradients,
        max_treedepth: method.max_treedepth(),
        target_accept: method.target_accept().filter(|_| job.stepsize.is_none()),
        warmup,
        settings: method.settings().into_iter().cloned().collect(),
        stepsize: job.stepsize,
        adapted: store.read_chains("adaptation/step_size", &chains)?.iter().filter_map(scalar).collect(),
        superchains,
        seconds: lanes.iter().map(|lane| lane.seconds.0 + lane.seconds.1).fold(0.0, f64::max),
        stats: Stats::default(),
        chains,
    };
    Ok(StoredDraws { draws, traps, failed: first.map(|first| (failed, first)), open })
}

fn scalar(array: &Array) -> Option<f64> {
    array.as_real()?.first().copied().filter(|value| !value.is_nan())
}

/// How many different rows stand one after the other.
fn distinct_rows(rows: &Array) -> usize {
    let width = rows.shape[1].max(1);
    let rows: Vec<&[f64]> = rows.as_real().unwrap_or_default().chunks(width).collect();
    1 + rows.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

fn keeps(plan: &RunPlan, name: &str) -> bool {
    plan.keep.as_ref().is_none_or(|keep| keep.iter().any(|kept| kept == name))
}

fn has_begun(lane: &LaneProgress) -> bool {
    lane.iteration > 0
}

/// The chains of a store that have not made all their draws, but for those that trapped.
///
/// # Errors
/// Where the store cannot be read.
pub fn open_chains(store: &RunStore, job: &Job<'_>) -> Result<Vec<usize>, Error> {
    let iterations = (job.warmup + job.draws) as u64;
    let all = store.all_states()?;
    let lanes = all.iter().flat_map(|block| &block.lanes).enumerate();
    Ok(lanes.filter(|(_, lane)| lane.trap.is_none() && lane.iteration < iterations).map(|(chain, _)| chain).collect())
}

/// A block with what is on disk of it.
struct Waiting {
    block: ChainBlock,
    states: BlockStates,
    /// Seconds that earlier processes have taken, by chain.
    before: Vec<(f64, f64)>,
    /// When something of it was stored last.
    since: Instant,
}

/// Sets a flag at its end, however it comes.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Closes the records at its end.
struct Closing<'a>(&'a Recorder<'a>);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Takes what chains tell, and stores it.
struct Writer<'a> {
    sampling: &'a Sampling,
    store: &'a RunStore,
    layout: Layout,
    /// The first chain of the run, in the store.
    first: usize,
    blocks: Vec<Waiting>,
    recorder: &'a Recorder<'a>,
    options: &'a Options,
}

impl Writer<'_> {
    /// Stores until the run is over, and then the rest.
    fn write(mut self, over: &AtomicBool, asked: Option<&AtomicBool>, stop: &AtomicBool) -> Result<(), Error> {
        // Nobody waits for a store that takes nothing more, also where this ends by a panic.
        let _closed = Closing(self.recorder);
        let written = self.write_all(over, asked, stop);
        if written.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
        written
    }

    fn write_all(&mut self, over: &AtomicBool, asked: Option<&AtomicBool>, stop: &AtomicBool) -> Result<(), Error> {
        let mut published = Instant::now();
        let mut unpublished = false;
        loop {
            let began = Instant::now();
            let last = over.load(Ordering::Relaxed);
            if asked.is_some_and(|asked| asked.load(Ordering::Relaxed)) {
                stop.store(true, Ordering::Relaxed);
            }
            let many = self.recorder.waiting() > MANY;
            for at in 0..self.blocks.len() {
                if last || self.is_due(at, many) {
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
            std::thread::sleep(LOOKS.max(10 * began.elapsed().min(SHOWN)));
        }
    }

    /// Whether a block should be stored: all of its chains have filled its chunks, or it has waited long enough.
    fn is_due(&self, at: usize, many: bool) -> bool {
        let Waiting { block, since, .. } = &self.blocks[at];
        let ready: Vec<_> = block.chains.clone().map(|chain| self.recorder.ready(chain - self.first)).collect();
        if ready.iter().all(|chain| !chain.has_state) {
            return false;
        }
        let rows = self.store.plan().rows;
        let ends = |of: fn((usize, usize)) -> usize, all: usize| {
            ready.iter().filter(|chain| !chain.trapped).all(|chain| {
                let (ready, stored) = (of(chain.rows), of(chain.stored));
                ready / rows > stored / rows || ready >= all && ready > stored
            })
        };
        many || since.elapsed() > PATIENCE || ends(|(draws, _)| draws, self.sampling.kept())
    }

    /// Stores what there is of a block; gives whether there was something.
    fn store_block(&mut self, at: usize, last: bool) -> Result<bool, Error> {
        let block = self.blocks[at].block.clone();
        let chains = || block.chains.clone().enumerate();
        let taken: Vec<(usize, Stored)> =
            chains().filter_map(|(i, chain)| Some((i, self.recorder.take(chain - self.first)?))).collect();
        let traps: Vec<(usize, String)> =
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
        let iteration = STATE.fields.iter().take_while(|(name, ..)| *name != ITERATION).count();
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
            states.lanes[i].trap = Some(trap);
        }
        self.store.set_states(block.number, &states)?;
        let waiting = &mut self.blocks[at];
        (waiting.states, waiting.since) = (states, Instant::now());
        Ok(true)
    }

    /// Stores draws, or states of warmup, of chains of a block.
    fn store_rows(
        &self,
        block: &ChainBlock,
        (taken, threads): (&[(usize, Stored)], usize),
        phase: Phase,
        states: &mut BlockStates,
    ) -> Result<(), Error> {
        let words = self.recorder.row_words().max(1);
        let of = |stored: &'_ Stored| match phase {
            Phase::Sampling => (stored.first.0, stored.words.len() / words),
            Phase::Warmup => (stored.first.1, stored.of_warmup.len() / words),
        };
        let mut pieces = Vec::new();
        let mut from = 0;
        for (chain, stored) in taken {
            let (row, count) = of(stored);
            if count > 0 {
                pieces.push(Piece { chain: *chain, row, count, from });
                from += count;
            }
        }
        if from == 0 {
            return Ok(());
        }
        let records = taken.iter().flat_map(|(_, stored)| match phase {
            Phase::Sampling => &stored.words,
            Phase::Warmup => &stored.of_warmup,
        });
        let records: Vec<u64> = records.copied().collect();
        let mut first = 0;
        let mut depths = None;
        let (layout, store) = (&self.layout, self.store);
        let put = |array: &StoredArray, values: &Array| {
            store.put_rows(&layout.group(array, phase), block.number, &pieces, values)
        };
        let mut q = None;
        for (name, ty) in self.recorder.draw_fields() {
            let place = first..first + ty.elements();
            let elements = records.chunks_exact(words).flat_map(|record| &record[place.clone()]);
            let data = match ty.dtype {
                DType::Bool => ArrayData::Bool(elements.map(|w| *w != 0).collect()),
                DType::Int => ArrayData::Int(elements.map(|w| *w as i64).collect()),
                DType::Real => ArrayData::Real(elements.map(|w| f64::from_bits(*w)).collect()),
            };
            let array = Array::new([from].into_iter().chain(ty.shape.iter().copied()), data);
            first = place.end;
            if name == TREEDEPTH {
                depths = array.as_int().map(<[i64]>::to_vec);
            }
            match name == Q {
                true => q = Some(array),
                false => {
                    let path = format!("sample_stats/{}", stored_name(name));
                    let of =
                        layout.statistics.iter().find(|of| of.path == path).expect("it was made of the same fields");
                    put(of, &array)?;
                }
            }
        }
        if let (Some(most), Some(depths)) = (self.sampling.method.max_treedepth(), depths) {
            let of = layout.statistics.last().expect("it is the last");
            let reached = depths.iter().map(|depth| *depth >= most).collect();
            put(of, &Array::new([from], ArrayData::Bool(reached)))?;
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
        let (made, failed) = self.sampling.parameters(&q, &|at| places[at], phase, &options)?;
        if let Some(failed) = failed.filter(|_| phase == Phase::Sampling) {
            states.failed += failed.positions.len() as u64;
            states.first_failure.get_or_insert_with(|| failed.first.to_string());
        }
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
        if self.blocks.len() < self.store.plan().chains.div_ceil(crate::store::BLOCK) {
            // Others run the rest: who merges looks at all.
            return Ok(());
        }
        let extents = RunStore::extents(self.blocks.iter().map(|waiting| &waiting.states));
        self.store.publish(extents, RunStatus::Running)
    }
}
