//! Running what was compiled, and what comes back, by name.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use indexmap::IndexMap;
use ndarray::{ArrayD, ArrayViewD, IxDyn};

use crate::interp;
use crate::pipeline::Compiled;
use crate::plan::MemoryEstimate;
use crate::program::codegen::Executables;
use crate::program::ragged::{self, BoundedAxes, Lengths};
use crate::program::{Arrays, Error, ErrorKind, Options, inputs};
use crate::run::{self, BETWEEN_LOOKS, Caught, MemoryBudget, Outcome, Sink, Stats, Trap, TrapKind};
use crate::types::Array;

/// What runs a program. All give every lane the same bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Engine {
    /// The reference interpreter, one lane at a time: the meaning of a program. With [`Codegen::Cc`](super::Codegen::Cc) one C
    /// function takes its place.
    Scalar,
    /// Local static autobatching: masks inside a function, calls one after the other.
    Local,
    /// Program-counter autobatching.
    #[default]
    Pc,
}

/// Refuses a run that does not fit in memory.
///
/// # Errors
/// [`ErrorKind::Memory`], with the largest batch that would fit.
pub fn refuse(estimate: &MemoryEstimate, options: &Options) -> Result<(), Error> {
    // What is taken without a look while a run grows is taken so at its start: looking takes longer than many a run.
    if options.memory_limit.is_none() && estimate.total() <= BETWEEN_LOOKS {
        return Ok(());
    }
    let limit = memory_limit(options);
    if estimate.total() <= limit {
        return Ok(());
    }
    let need = if estimate.lanes == 1 { "needs" } else { "need" };
    let fits = match estimate.largest_batch(limit) {
        0 => "not even one lane fits".to_owned(),
        n => format!("the largest batch that fits is {}", count(n, "lane")),
    };
    let lanes = count(estimate.lanes, "lane");
    let message = format!("{lanes} {need} {}, but {} may be used: {fits}", bytes(estimate.total()), bytes(limit));
    Err(Error::new(ErrorKind::Memory, message))
}

/// Refuses results that are kept besides what runs, until all are there, and do not fit in memory.
///
/// # Errors
/// [`ErrorKind::Memory`]; `what` are they, and what to do.
pub fn refuse_kept(needed: usize, (what, instead): (&str, &str), options: &Options) -> Result<(), Error> {
    let limit = memory_limit(options);
    if needed <= limit {
        return Ok(());
    }
    let message = format!("{what} need {}, but {} may be used: {instead}", bytes(needed), bytes(limit));
    Err(Error::new(ErrorKind::Memory, message))
}

/// What a run may take that grows while it goes on: stacks, tapes, activations, records. No estimate knows how far. Without
/// a limit of the options the system is asked again as it grows.
///
/// # Errors
/// As [`refuse`].
pub fn budget(estimate: &MemoryEstimate, options: &Options) -> Result<Arc<MemoryBudget>, Error> {
    refuse(estimate, options)?;
    Ok(Arc::new(match options.memory_limit {
        Some(_) => {
            MemoryBudget::new(memory_limit(options).saturating_sub(estimate.fixed(options.engine == Engine::Pc)))
        }
        None => MemoryBudget::watched(Here::default()),
    }))
}

/// The machine, its control groups, and this process.
#[derive(Default)]
struct Here {
    /// What stays free, by what there was at the first look: it does not vanish with what is left.
    margin: OnceLock<usize>,
}

impl run::System for Here {
    fn available(&self) -> Option<usize> {
        let available = run::available_memory()?;
        Some(available.saturating_sub(*self.margin.get_or_init(|| margin(available))))
    }
    fn resident(&self) -> Option<usize> {
        run::resident_memory()
    }
}

/// Bytes that a run with these options may take: what they say, or what can be had now.
pub fn memory_limit(options: &Options) -> usize {
    match options.memory_limit {
        Some(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
        // A cautious 4 GiB where the system does not tell.
        None => run::available_memory().map_or(4 << 30, without_margin),
    }
}

/// What a run may take of what can be had: not all, for there are others, and things that nobody counts.
fn without_margin(bytes: usize) -> usize {
    bytes - margin(bytes)
}

fn margin(bytes: usize) -> usize {
    (bytes / 16).min(512 << 20)
}

impl std::fmt::Display for MemoryEstimate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} × {} inputs and outputs + {} × {} state + {} shared = {}; each further level of the stacks takes more",
            count(self.lanes, "lane"),
            bytes(self.host_bytes_per_lane),
            count(self.running_lanes, "running lane"),
            bytes(self.state_bytes_per_lane),
            bytes(self.shared_bytes),
            bytes(self.total())
        )?;
        match self.tape_level_bytes {
            0 => Ok(()),
            level => write!(f, ", and each value on every tape {} a lane", bytes(level)),
        }
    }
}

fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// A number of bytes as people read it.
fn bytes(n: usize) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{n} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

pub(super) fn execute(
    compiled: &Compiled,
    executables: &Executables,
    inputs: &run::RunInputs,
    options: &Options,
    budget: &Arc<MemoryBudget>,
    sink: &dyn Sink,
) -> Result<Outcome, Error> {
    options.check()?;
    let settings = &options.settings.clone().memory(Arc::clone(budget));
    let executable = executables.of(compiled, options)?;
    let start = Instant::now();
    let mut outcome = match executable {
        Some(executable) => executable.run(inputs, settings, sink)?,
        None => interp::run(compiled.cfg.as_ref().ok_or_else(stack_only)?, inputs, settings, sink),
    };
    outcome.stats.seconds = start.elapsed().as_secs_f64();
    Ok(outcome)
}

pub(super) fn stack_only() -> Error {
    Error::new(ErrorKind::Option, "a stack program runs on the engine `pc`, and on `scalar` with --codegen cc")
}

/// What came out of a run, by name.
#[derive(Clone, Debug)]
pub struct Results {
    outputs: IndexMap<String, Array>,
    /// Outputs with a bounded axis.
    lengths: IndexMap<String, Lengths>,
    dims: IndexMap<String, Vec<i64>>,
    lanes: Vec<u64>,
    traps: Vec<Trap>,
    caught: Vec<Caught>,
    stats: Stats,
    memory: MemoryEstimate,
}

impl Results {
    pub(super) fn new(
        compiled: &Compiled,
        inputs: &run::RunInputs,
        axes: &BoundedAxes,
        outcome: Outcome,
        memory: MemoryEstimate,
    ) -> Self {
        let names = compiled.units.outputs.iter().map(|port| port.name.clone());
        let mut outputs: IndexMap<String, Array> = names.zip(outcome.outputs).collect();
        let mut lengths = IndexMap::new();
        for (i, (name, array)) in outputs.iter_mut().enumerate() {
            if let Some(of) = axes.of_output(i, inputs) {
                *array = ragged::padded(array, &inputs::event_type(array), &of);
                lengths.insert(name.clone(), of);
            }
        }
        let (traps, caught, stats) = (outcome.traps, outcome.caught, outcome.stats);
        Self { outputs, lengths, dims: axes.dims(inputs), lanes: inputs.lanes.clone(), traps, caught, stats, memory }
    }
    /// All outputs by name, lanes along the leading axis: `result`, or the fields of a struct. Rows of trapped lanes are
    /// zero and mean nothing. An axis of a bounded dimension is as long as its bound; beyond the length of a lane stands NaN,
    /// 0 or `false`.
    pub fn outputs(&self) -> &IndexMap<String, Array> {
        &self.outputs
    }
    /// All outputs, as [`outputs`](Self::outputs) has them, to be taken apart.
    pub fn into_outputs(self) -> IndexMap<String, Array> {
        self.outputs
    }
    /// One output.
    pub fn output(&self, name: &str) -> Option<&Array> {
        self.outputs.get(name)
    }
    /// All outputs by name and type.
    pub fn arrays(&self) -> Arrays<'_> {
        Arrays::new("output", &self.outputs)
    }
    /// An output of reals, lane × event shape, as [`outputs`](Self::outputs) has it.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a name that there is not, or that has other elements.
    pub fn real(&self, name: &str) -> Result<ArrayViewD<'_, f64>, Error> {
        self.arrays().real(name)
    }
    /// An output of ints, as [`real`](Self::real).
    ///
    /// # Errors
    /// As [`real`](Self::real).
    pub fn int(&self, name: &str) -> Result<ArrayViewD<'_, i64>, Error> {
        self.arrays().int(name)
    }
    /// An output of bools, as [`real`](Self::real).
    ///
    /// # Errors
    /// As [`real`](Self::real).
    pub fn bool(&self, name: &str) -> Result<ArrayViewD<'_, bool>, Error> {
        self.arrays().bool(name)
    }
    /// One output of the lane at a position of the batch, without padding. `None` when there is no such output or lane.
    pub fn lane(&self, name: &str, position: usize) -> Option<Array> {
        let array = self.outputs.get(name).filter(|array| position < array.shape[0])?;
        let whole = Lengths::new();
        Some(ragged::cut(array, self.lengths.get(name).unwrap_or(&whole), position))
    }
    /// Whether an output has a bounded dimension, so that its lanes may have different lengths.
    pub fn is_ragged(&self, name: &str) -> bool {
        self.lengths.contains_key(name)
    }
    /// The bounded dimensions of the function by name, each with its length in every lane.
    pub fn dims(&self) -> &IndexMap<String, Vec<i64>> {
        &self.dims
    }
    /// With what an earlier run of the same lanes, of which this goes on, has told: traps, what was caught, and statistics.
    pub(crate) fn after(mut self, earlier: &Results) -> Results {
        let traps = earlier.traps.iter().filter(|trap| trap.kind != TrapKind::Interrupted);
        let is_new = |trap: &&Trap| self.traps.binary_search_by_key(&trap.position, |own| own.position).is_err();
        let traps: Vec<Trap> = traps.filter(is_new).cloned().collect();
        self.traps.extend(traps);
        self.traps.sort_by_key(|trap| trap.position);
        for caught in &earlier.caught {
            match self.caught.binary_search_by_key(&caught.first.position, |own| own.first.position) {
                Ok(at) => {
                    let count = self.caught[at].count + caught.count;
                    self.caught[at] = Caught { count, ..caught.clone() };
                }
                Err(at) => self.caught.insert(at, caught.clone()),
            }
        }
        // The clock of each begins with it.
        if let Some(timeline) = &mut self.stats.timeline {
            timeline.shift((1e9 * earlier.stats.seconds) as u64);
        }
        let mut stats = earlier.stats.clone();
        stats.add(self.stats);
        self.stats = stats;
        self
    }
    /// The lanes that trapped, ascending by position.
    pub fn traps(&self) -> &[Trap] {
        &self.traps
    }
    /// The lanes in which attempts caught traps, ascending by position.
    pub fn caught(&self) -> &[Caught] {
        &self.caught
    }
    /// The number of each lane.
    pub fn lanes(&self) -> &[u64] {
        &self.lanes
    }
    /// Statistics.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
    /// What the run was expected to take.
    pub fn memory(&self) -> &MemoryEstimate {
        &self.memory
    }
}

impl Array {
    /// As an `ndarray` array of reals, if it holds reals.
    pub fn to_ndarray(&self) -> Option<ArrayD<f64>> {
        let data = self.as_real()?.to_vec();
        ArrayD::from_shape_vec(IxDyn(&self.shape), data).ok()
    }
    /// As an `ndarray` array of ints, if it holds ints.
    pub fn to_ndarray_int(&self) -> Option<ArrayD<i64>> {
        let data = self.as_int()?.to_vec();
        ArrayD::from_shape_vec(IxDyn(&self.shape), data).ok()
    }
    /// As an `ndarray` array of bools, if it holds bools.
    pub fn to_ndarray_bool(&self) -> Option<ArrayD<bool>> {
        let data = self.as_bool()?.to_vec();
        ArrayD::from_shape_vec(IxDyn(&self.shape), data).ok()
    }
}
