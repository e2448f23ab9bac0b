//! Sampling from a model with a sampler: both are programs of the language, joined by a small driver program, so that a
//! whole chain, warmup included, is one lane and no lane waits for another between draws.
//!
//! A *model* exports `log_density(q: real[D], shared …) -> real` over unconstrained parameters `q`, or with a gradient that
//! is written by hand `log_density_and_gradient(q: real[D], shared …) -> (real, real[D])`, and may export
//! `parameters(q: real[D], shared …)`, a struct of its constrained parameters. A *sampler* exports
//! `sample(density: fn(real[d]) -> (real, real[d]), origin: real[d], shared init_radius: real, shared num_warmup: int,
//! shared num_draws: int)`, and for a step size that stays `sample_fixed` with `shared stepsize: real` before `num_warmup`; it emits one record of the stream `draw` for each draw it keeps, with the field `q` among
//! others, may emit one record of `adapted` at the end of warmup, with the number of `gradients` so far, and from time
//! to time one of `progress`, with the `iteration` of warmup that it has reached, 0 at its start. What of it can be
//! tuned is in `tuning`.
//!
//! The density that a sampler gets is an attempt: where the model's traps, it gives NaN, and the sampler rejects the
//! point.

mod parameters;
mod tuning;
mod watch;

use std::path::Path;
use std::sync::{Mutex, mpsc};
use std::time::Instant;

use indexmap::IndexMap;

use crate::base::{Diagnostic, IdVec};
use crate::parts::{Stream, StreamId};
use crate::program::{
    Bound, Error, ErrorKind, Function, Inputs, MemoryEstimate, Options, Program, Results, budget, refuse,
};
use crate::run::{AllCaught, Caught, NoMemory, NoSink, Record, Sink, Stats, Trap, TrapKind};
use crate::types::{Array, ArrayData, DType, Scalar, Type};

pub use parameters::FailedDraws;
use tuning::Sampler;
pub use tuning::{DEFAULT_SAMPLER, SAMPLE_FIXED_TUNED, SAMPLE_TUNED, TUNING, Tuning};
use watch::State;
pub use watch::{COLLAPSED, Observer, Reached, SlowChain};

/// The function that a model must export, unless it exports [`DENSITY_AND_GRADIENT`].
pub const DENSITY: &str = "log_density";
/// The function that a model exports in the place of [`DENSITY`] when its gradient is written by hand.
pub const DENSITY_AND_GRADIENT: &str = "log_density_and_gradient";
/// The function that a model may export to name its constrained parameters.
pub const PARAMETERS: &str = "parameters";
/// The function that a sampler must export.
pub const SAMPLE: &str = "sample";
/// The function that a sampler must export to sample with a given step size, without adaptation.
pub const SAMPLE_FIXED: &str = "sample_fixed";
/// How many times as many draws must be left for chains to be left out of a run that was stopped.
const FAR_MORE: usize = 4;
/// Starts are uniform within this distance of 0 in every unconstrained coordinate, as in Stan.
const INIT_RADIUS: f64 = 2.0;

/// Parameters of the driver program.
const NUM_WARMUP: &str = "num_warmup";
const NUM_DRAWS: &str = "num_draws";
const STEPSIZE: &str = "stepsize";
const START: &str = "start";

/// What to sample.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The model.
    pub model: &'a Path,
    /// The sampler; the shipped NUTS where there is none.
    pub sampler: Option<&'a Path>,
    /// Chains.
    pub chains: usize,
    /// Warmup iterations of each chain.
    pub warmup: usize,
    /// Draws of each chain after warmup.
    pub draws: usize,
    /// A step size that stays, with the unit metric: warmup then adapts nothing. Without it both are learnt.
    pub stepsize: Option<f64>,
    /// Where the chains start, chain × dimension, unconstrained; with fewer rows, a number that divides that of the
    /// chains, as many chains one after the other start at each. Without it every coordinate is uniform in (-2, 2).
    pub starts: Option<Array>,
    /// How the sampler is tuned.
    pub tuning: Tuning,
}

impl<'a> Plan<'a> {
    /// 4 chains of 1000 warmup iterations and 1000 draws from a model.
    pub fn new(model: &'a Path) -> Self {
        let (chains, warmup, draws) = (4, 1000, 1000);
        Plan { model, sampler: None, chains, warmup, draws, stepsize: None, starts: None, tuning: Tuning::default() }
    }
}

impl Plan<'_> {
    fn check(&self) -> Result<(), Error> {
        let refused = |message: String| Err(Error::new(ErrorKind::Option, message));
        self.tuning.check(self.stepsize.is_some())?;
        match self.stepsize {
            Some(eps) if !(eps > 0.0 && eps.is_finite()) => {
                return refused(format!("the step size must be a positive number, not {eps}"));
            }
            _ => {}
        }
        match &self.starts {
            Some(starts)
                if starts.shape.len() != 2
                    || starts.as_real().is_none()
                    || starts.shape[0] == 0
                    || !self.chains.is_multiple_of(starts.shape[0]) =>
            {
                refused(format!(
                    "{} chains need starts of the type real[{}, _], one row for all of them, or a number of rows that divides {}, not {}",
                    self.chains,
                    self.chains,
                    self.chains,
                    starts.ty()
                ))
            }
            _ => Ok(()),
        }
    }

    /// Names of the driver's own parameters.
    fn reserved(&self) -> Vec<&'static str> {
        let fixed = self.stepsize.map(|_| STEPSIZE);
        let start = self.starts.as_ref().map(|_| START);
        [NUM_WARMUP, NUM_DRAWS].into_iter().chain(fixed).chain(start).collect()
    }
}

/// A model with its data and a sampler, compiled and ready to run.
#[derive(Debug)]
pub struct Sampling {
    driver: Program,
    model: Program,
    data: Inputs,
    warmup: usize,
    draws: usize,
    chains: usize,
    stepsize: Option<f64>,
    starts: Option<Array>,
    sampler: Sampler,
    init_radius: Option<f64>,
    superchains: Option<usize>,
}

/// What came out.
#[derive(Clone, Debug)]
pub struct Draws {
    /// Constrained parameters, chain × draw × event shape, under the model's names; the unconstrained `q` where the model
    /// does not export `parameters`.
    pub parameters: IndexMap<String, Array>,
    /// The other fields of the sampler's records, chain × draw: `lp`, `accept_stat`, `stepsize`, …
    pub statistics: IndexMap<String, Array>,
    /// The numbers of the chains that the arrays hold: all but those that trapped before the others were done, and,
    /// when the run was stopped, those that had made so few draws that more are kept without them.
    pub chains: Vec<usize>,
    /// Draws of each chain that the arrays hold: fewer than asked for when the run was stopped.
    pub draws: usize,
    /// How far the chains came: less than all the way when the run was stopped.
    pub reached: Reached,
    /// Draws for which the model's `parameters` trapped.
    pub failed: Option<FailedDraws>,
    /// Chains that trapped.
    pub traps: Vec<Trap>,
    /// By chain, where the density failed: it counts as NaN there, so that the point is rejected. Warmup included.
    pub rejected: Vec<Caught>,
    /// Of these, by chain, those after warmup, as far as the sampler tells its end: the draws are of a chain that met
    /// them.
    pub rejected_after_warmup: Vec<Caught>,
    /// Gradients that were evaluated, warmup included, as far as the sampler tells.
    pub gradients: u64,
    /// Largest tree depth that the sampler allows, if it tells.
    pub max_treedepth: Option<i64>,
    /// What of the sampler can be tuned, with the values that it had.
    pub tuning: Tuning,
    /// The step size that was given, if one was.
    pub stepsize: Option<f64>,
    /// The step sizes that the chains of the arrays had at the end of warmup, as far as the sampler tells.
    pub adapted: Vec<f64>,
    /// The number of groups of chains, one after the other and equally many in each, that started at one point each.
    pub superchains: Option<usize>,
    /// Seconds of the sampling run.
    pub seconds: f64,
    /// Statistics of the machine.
    pub stats: Stats,
}

impl Sampling {
    /// Reads the model and the sampler and joins them. `read_data` gets the model's density and gives its shared inputs.
    ///
    /// # Errors
    /// For programs that cannot be read or have errors, for a model without a density of the right form, a step size that is
    /// not positive and finite, and starts that are not one row of reals a chain.
    pub fn new(
        plan: &Plan<'_>,
        read_data: impl FnOnce(&Function<'_>) -> Result<Inputs, Error>,
    ) -> Result<Sampling, Error> {
        plan.check()?;
        let model = Program::load(plan.model)?;
        let by_hand = model.functions().any(|name| name == DENSITY_AND_GRADIENT);
        let name = if by_hand { DENSITY_AND_GRADIENT } else { DENSITY };
        let density = model.function(name).map_err(|error| wrong_model(plan.model, &error.to_string()))?;
        let data = read_data(&density)?;
        let sampler = Sampler::new(plan)?;
        let source = driver(plan, &sampler, &density, &data)?;
        check_inputs(plan, &density, &data)?;
        let driver = Program::compile_named(DRIVER, &source)?;
        let &Plan { warmup, draws, chains, stepsize, tuning: Tuning { init_radius, .. }, .. } = plan;
        let points = plan.starts.as_ref().map(|starts| starts.shape[0]);
        let superchains = points.filter(|n| (2..chains).contains(n) && init_radius.unwrap_or(0.0) == 0.0);
        let starts = plan.starts.as_ref().map(|starts| repeated(starts, chains / starts.shape[0].max(1)));
        Ok(Sampling { driver, model, data, warmup, draws, chains, stepsize, starts, sampler, init_radius, superchains })
    }

    /// What holds values that are no numbers, of which no density is finite: the names of such data, and `starts`.
    pub fn not_numbers(&self) -> Vec<&str> {
        let is_nan = |array: &Array| array.as_real().is_some_and(|values| values.iter().any(|x| x.is_nan()));
        let data = self.data.values.iter().filter(|(_, given)| is_nan(&given.array)).map(|(name, _)| name.as_str());
        let starts = self.starts.as_ref().filter(|starts| is_nan(starts)).map(|_| "starts");
        data.chain(starts).collect()
    }

    /// Other numbers of warmup iterations and draws of each chain; what was compiled is kept.
    pub fn set_schedule(&mut self, warmup: usize, draws: usize) {
        (self.warmup, self.draws) = (warmup, draws);
    }

    fn inputs(&self) -> Inputs {
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let counts = [(NUM_WARMUP, self.warmup), (NUM_DRAWS, self.draws)];
        let mut inputs = self.data.clone().lanes(self.chains);
        for (name, n) in counts {
            inputs = inputs.shared(name, count(n));
        }
        if let Some(stepsize) = self.stepsize {
            inputs = inputs.shared(STEPSIZE, stepsize);
        }
        match &self.starts {
            Some(starts) => inputs.lane(START, starts.clone()),
            None => inputs,
        }
    }

    /// What the run will need.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn memory(&self, options: &Options) -> Result<MemoryEstimate, Error> {
        let bound = self.bound(options)?;
        let estimate = self.estimate(&bound, self.bytes_of_parameters(&bound, options)?, options);
        refuse(&estimate, options)?;
        Ok(estimate)
    }

    /// The chains, ready to run: they tell the warnings of the compilation to the shapes of the data.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn bound(&self, options: &Options) -> Result<Bound, Error> {
        self.driver.function("main")?.bind(&self.inputs(), options).map_err(without_driver)
    }

    /// The memory of the run, the records of all draws included: as they are kept, and once more as arrays; then, in
    /// the place of the former, the constrained parameters, of so many bytes a draw.
    fn estimate(&self, bound: &Bound, parameters: usize, options: &Options) -> MemoryEstimate {
        let mut estimate = bound.memory(options);
        let streams = bound.compiled().stack.streams.values();
        let draw = streams.filter(|s| s.name == "draw").flat_map(|s| &s.fields);
        let field = |ty: &Type| ty.elements().saturating_mul(size_of::<f64>());
        let record = draw.fold(0, |sum: usize, (_, ty)| sum.saturating_add(field(ty)));
        let records = self.draws.saturating_mul(record.saturating_add(record.max(parameters)));
        estimate.host_bytes_per_lane = estimate.host_bytes_per_lane.saturating_add(records);
        estimate
    }

    /// Runs all chains. `observer` is told of every kept draw of any chain, by worker threads, and of more if it asks
    /// for it; a closure is told of the draws.
    ///
    /// # Errors
    /// For data that do not fit, a sampler that emits no `draw`, and a batch that does not fit in memory. Chains that trap
    /// are no error: see [`Draws::traps`].
    pub fn run(&self, options: &Options, observer: &dyn Observer) -> Result<Draws, Error> {
        let bound = self.bound(options)?;
        let parameters = self.bytes_of_parameters(&bound, options)?;
        let mut draws = self.run_bound(&bound, parameters, options, observer)?;
        if self.model.functions().any(|name| name == PARAMETERS) {
            let q = draws.parameters.shift_remove("q").expect("the state is there");
            (draws.parameters, draws.failed) = self.parameters(&q, &draws, options)?;
        }
        Ok(draws)
    }

    /// Like [`run`](Self::run), but the parameters of the draws are the unconstrained state alone, as `q`.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_unconstrained(&self, options: &Options, observer: &dyn Observer) -> Result<Draws, Error> {
        self.run_bound(&self.bound(options)?, 0, options, observer)
    }

    fn run_bound(
        &self,
        bound: &Bound,
        parameters: usize,
        options: &Options,
        observer: &dyn Observer,
    ) -> Result<Draws, Error> {
        let budget = budget(&self.estimate(bound, parameters, options), options)?;
        let counts = (self.chains, self.warmup, self.draws);
        let recorder = Recorder::new(&bound.compiled().stack.streams, counts, observer)?;
        bound.prepare(options)?;
        let start = Instant::now();
        let results = std::thread::scope(|scope| {
            let (running, done) = mpsc::channel();
            if observer.watches() {
                scope.spawn(|| watch::watch(&|| recorder.states(), self.warmup, observer, &{ done }));
            }
            let results = bound.run_within(&budget, options, &recorder);
            drop(running);
            results
        })?;
        let seconds = start.elapsed().as_secs_f64();
        self.collect(recorder, &results, seconds)
    }

    fn collect(&self, recorder: Recorder<'_>, results: &Results, seconds: f64) -> Result<Draws, Error> {
        let reached = Reached::of(&recorder.states());
        let rejected_after_warmup = recorder.rejected_after_warmup();
        let recorded = recorder.finish();
        let stopped = results.traps().iter().any(|t| t.kind == TrapKind::Interrupted);
        let failed = |c: &usize| results.traps().iter().any(|t| t.position == *c && t.kind != TrapKind::Interrupted);
        let chains: Vec<usize> = (0..self.chains).filter(|c| !failed(c)).collect();
        let (chains, draws) = if stopped { recorded.most_draws(chains) } else { recorded.all_draws(chains) };
        if let Some(chain) = chains.iter().find(|c| !stopped && recorded.chains[**c].draws != self.draws) {
            let (found, wanted) = (recorded.chains[*chain].draws, self.draws);
            let message = format!("the sampler emitted {found} draws in chain {chain}, where {wanted} were asked for");
            return Err(Error::new(ErrorKind::Program, message));
        }
        let adapted = chains.iter().filter_map(|c| {
            let chain = &recorded.chains[*c];
            number(recorded.adapted.as_ref()?, chain.adapted.as_ref()?, "stepsize")
        });
        let adapted = adapted.collect();
        let mut statistics = recorded.fields(&chains, draws);
        let q = statistics.shift_remove("q").expect("the recorder checked it");
        Ok(Draws {
            parameters: IndexMap::from([("q".to_owned(), q)]),
            statistics,
            chains,
            draws,
            reached,
            failed: None,
            traps: with_failures(results),
            rejected: results.caught().to_vec(),
            rejected_after_warmup,
            gradients: recorded.gradients(),
            max_treedepth: self.sampler.max_treedepth().or(recorded.max_treedepth()),
            tuning: Tuning {
                target_accept: self.sampler.target_accept().filter(|_| self.stepsize.is_none()),
                max_treedepth: self.sampler.max_treedepth(),
                init_radius: self.init_radius,
            },
            stepsize: self.stepsize,
            adapted,
            superchains: self.superchains,
            seconds,
            stats: results.stats().clone(),
        })
    }
}

/// Each row so many times, one after the other.
fn repeated(rows: &Array, times: usize) -> Array {
    let values = rows.as_real().expect("starting points are real");
    let row = values.chunks(rows.shape[1].max(1));
    let data = row.flat_map(|row| row.iter().copied().cycle().take(row.len() * times)).collect();
    Array::real([rows.shape[0] * times, rows.shape[1]], data)
}

/// The traps of a run. A sampler that gave up tells that no point would do; why the density failed is added.
fn with_failures(results: &Results) -> Vec<Trap> {
    let mut traps = results.traps().to_vec();
    for trap in traps.iter_mut().filter(|t| t.kind == TrapKind::AssertFailed) {
        if let Some(caught) = results.caught().iter().find(|c| c.first.position == trap.position) {
            let failures = if caught.count == 1 { "once" } else { &format!("{} times", caught.count) };
            trap.message += &format!("; the density failed {failures}, first: {}", caught.first);
        }
    }
    traps
}

fn wrong_model(path: &Path, why: &str) -> Error {
    let form = format!("pub fn {DENSITY}(q: real[d], shared …) -> real");
    Error::new(ErrorKind::Entry, format!("{}: a model exports `{form}`: {why}", path.display()))
}

/// What the driver program is called: nobody has written it.
const DRIVER: &str = "<driver>";

/// An error of the driver program in words that need no look at it.
fn without_driver(error: Error) -> Error {
    let in_driver = |d: &Diagnostic| d.labels.first().is_some_and(|l| error.sources().file(l.span.file).name == DRIVER);
    if !error.diagnostics().iter().any(in_driver) {
        return error;
    }
    let told = |d: &Diagnostic| [&[d.message.clone()][..], &d.notes].concat().join("; ");
    let lines: Vec<String> = error.diagnostics().iter().map(told).collect();
    Error::new(ErrorKind::Input, lines.join("\n"))
}

/// The number of coordinates of the state of a density, its first parameter, where its shared inputs tell it, or ints
/// under the names of dimensions.
pub fn dimension(density: &Function<'_>, data: &Inputs) -> Option<usize> {
    let signature = density.signature();
    let mut dims = data.told_by_arrays(signature);
    dims.extend(data.told(signature));
    signature.extents_at(0, &dims)?.first().copied()
}

/// Refuses data that are not all there, and starting points of another width than the model's state.
fn check_inputs(plan: &Plan<'_>, density: &Function<'_>, data: &Inputs) -> Result<(), Error> {
    let signature = density.signature();
    let missing = signature.ports.iter().filter(|p| p.shared && !data.values.contains_key(&p.name));
    let missing: Vec<String> = missing.map(|p| format!("`{}: {}`", p.name, p.describe(&signature.dims))).collect();
    let refused = |message: String| Err(Error::new(ErrorKind::Input, message));
    if !missing.is_empty() {
        return refused(format!("the model needs {}: give it by --data or --shared", missing.join(", ")));
    }
    match (dimension(density, data), &plan.starts) {
        (Some(d), Some(starts)) if starts.shape[1] != d => {
            refused(format!("--starts: rows of {}, but the state of the model has {d} coordinates", starts.shape[1]))
        }
        (None, None) => {
            let state = &signature.ports[0];
            let (name, ty) = (&state.name, state.describe(&signature.dims));
            let dims = data.told_by_arrays(signature);
            let told = data.told(signature);
            let open = state.extents[0].ids().filter(|id| !dims.contains_key(id) && !told.contains_key(id));
            let open: Vec<String> = open.map(|id| format!("`{}`", signature.dims[id])).collect();
            refused(format!(
                "no data tell the dimension of the state `{name}: {ty}` of the model: say what {} is in the data or by \
                 --shared, or give --starts",
                open.join(" and ")
            ))
        }
        _ => Ok(()),
    }
}

/// The program that joins a model and a sampler.
fn driver(plan: &Plan<'_>, sampler: &Sampler, density: &Function<'_>, given: &Inputs) -> Result<String, Error> {
    let signature = density.signature();
    let [state, data @ ..] = &signature.ports[..] else {
        return Err(wrong_model(plan.model, "it has no parameters"));
    };
    if state.shared || state.dtype != DType::Real || state.extents.len() != 1 {
        return Err(wrong_model(plan.model, &format!("its first parameter is `{}`", state.name)));
    }
    if let Some(port) = data.iter().find(|p| !p.shared || p.name.contains('.')) {
        let why = format!("`{}` must be a shared scalar or array", port.name);
        return Err(wrong_model(plan.model, &why));
    }
    if let Some(port) = data.iter().find(|p| plan.reserved().contains(&p.name.as_str())) {
        return Err(wrong_model(plan.model, &format!("`{}` is a name of the sampler's", port.name)));
    }
    // Dimensions that no array has alone are numbers in the driver.
    let (by_arrays, told) = (given.told_by_arrays(signature), given.told(signature));
    let number = |id: &_| told.get(id).filter(|_| !by_arrays.contains_key(id));
    let names: IdVec<_, String> = (signature.dims.iter())
        .map(|(id, name)| number(&id).map_or_else(|| name.clone(), |number| number.to_string()))
        .collect();
    let dims: Vec<&str> =
        (signature.dims.iter()).filter(|(id, _)| number(id).is_none()).map(|(_, name)| name.as_str()).collect();
    let dims = if dims.is_empty() { String::new() } else { format!("[{}]", dims.join(", ")) };
    let params: Vec<String> = data.iter().map(|p| format!("shared {}: {}, ", p.name, p.describe(&names))).collect();
    let args: Vec<String> = data.iter().map(|p| format!(", {}", p.name)).collect();
    let state_type = state.describe(&names);
    let density = match density.name() {
        DENSITY => format!("attempt(value_and_grad(model::{DENSITY}))"),
        name => format!("attempt(model::{name})"),
    };
    let (start, origin, radius) = match plan.starts {
        Some(_) => (format!("{START}: {state_type}, "), START.to_owned(), 0.0),
        None => (String::new(), format!("[0.0 for i in 0..{}]", state.extents[0].display(&names)), INIT_RADIUS),
    };
    let radius = plan.tuning.init_radius.unwrap_or(radius);
    let (fixed, stepsize) = match plan.stepsize {
        Some(_) => (format!("shared {STEPSIZE}: real, "), format!("{STEPSIZE}, ")),
        None => (String::new(), String::new()),
    };
    let Sampler { module, function, .. } = sampler;
    let tuning = sampler.argument();
    Ok(format!(
        "use \"{}\" as model;\nuse \"{module}\" as sampler;\n\n\
         pub fn main{dims}({start}{}{fixed}shared {NUM_WARMUP}: int, shared {NUM_DRAWS}: int) {{\n    \
         let origin = {origin};\n    \
         sampler::{function}(|position: {state_type}| {density}(position{}), {tuning}origin, {radius:?}, {stepsize}{NUM_WARMUP}, {NUM_DRAWS});\n}}\n",
        quoted(plan.model),
        params.concat(),
        args.concat()
    ))
}

/// A path as it stands in a `use`: absolute, so that it does not look for it in the library.
fn quoted(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.display().to_string().replace('\\', "\\\\").replace('"', "\\\"").replace('{', "{{").replace('}', "}}")
}

/// Keeps the records of all chains.
struct Recorder<'a> {
    streams: IdVec<StreamId, Stream>,
    draw: StreamId,
    adapted: Option<StreamId>,
    progress: Option<StreamId>,
    chains: Vec<Mutex<Chain>>,
    /// Where the density failed after warmup.
    rejected: Mutex<AllCaught>,
    /// Iterations of warmup of each chain.
    warmup: usize,
    /// Draws of each chain that are expected.
    draws: usize,
    observer: &'a dyn Observer,
}

/// The records of a chain. Draws are words, one record after the other: an array for each field would take an allocation each,
/// and more time than many a draw takes.
#[derive(Default)]
struct Chain {
    draws: usize,
    words: Vec<u64>,
    adapted: Option<Vec<Array>>,
    /// The last report from warmup.
    progress: Option<Vec<Array>>,
    started: Option<Instant>,
    finished: Option<Instant>,
}

impl Chain {
    /// Adds a draw, one of at most so many.
    fn add(&mut self, record: &dyn Record, most: usize) {
        record.append_words(&mut self.words);
        if self.draws == 0 {
            self.words.reserve_exact(self.words.len().saturating_mul(most.saturating_sub(1)));
        }
        self.draws += 1;
        if self.draws == most {
            self.finished = Some(Instant::now());
        }
    }
}

/// All records of a run.
struct Recorded {
    draw: Stream,
    adapted: Option<Stream>,
    progress: Option<Stream>,
    chains: Vec<Chain>,
}

impl<'a> Recorder<'a> {
    fn new(
        streams: &IdVec<StreamId, Stream>,
        (chains, warmup, draws): (usize, usize, usize),
        observer: &'a dyn Observer,
    ) -> Result<Self, Error> {
        let find = |name: &str| streams.iter().find(|(_, s)| s.name == name).map(|(id, _)| id);
        let is_state = |(name, ty): &(String, Type)| name == "q" && ty.dtype == DType::Real && ty.shape.len() == 1;
        let Some(draw) = find("draw").filter(|id| streams[*id].fields.iter().any(is_state)) else {
            let message = "the sampler emits no `draw(q, …)` with the state `q: real[d]`";
            return Err(Error::new(ErrorKind::Entry, message));
        };
        let (adapted, progress) = (find("adapted"), find("progress"));
        let chains = (0..chains).map(|_| Mutex::default()).collect();
        let rejected = Mutex::default();
        Ok(Self { streams: streams.clone(), draw, adapted, progress, chains, rejected, warmup, draws, observer })
    }

    /// What is known of every chain now.
    fn states(&self) -> Vec<State> {
        let states = self.chains.iter().map(|c| self.state(&c.lock().expect("no emit panics while it holds the lock")));
        states.collect()
    }

    fn is_warm(&self, chain: &Chain) -> bool {
        self.warmup == 0 || chain.adapted.is_some() || chain.draws > 0
    }

    fn rejected_after_warmup(&self) -> Vec<Caught> {
        self.rejected.lock().expect("nothing panics while it holds the lock").clone().into_vec()
    }

    fn state(&self, chain: &Chain) -> State {
        let warm = chain.adapted.is_some() || chain.draws > 0;
        let (adapted, progress) = (self.adapted.map(|id| &self.streams[id]), self.progress.map(|id| &self.streams[id]));
        let records = [(adapted, &chain.adapted), (progress, &chain.progress)];
        let told = |name: &str| {
            let of = |(stream, record): (Option<&Stream>, &Option<Vec<Array>>)| number(stream?, record.as_ref()?, name);
            self.last_of(chain, name).or_else(|| records.into_iter().find_map(of))
        };
        let iteration = progress.zip(chain.progress.as_ref()).and_then(|(s, r)| number(s, r, "iteration"));
        State {
            started: chain.started,
            finished: chain.finished,
            warmup: if warm { self.warmup } else { iteration.map_or(0, |n| n as usize) },
            warm,
            draws: chain.draws,
            stepsize: told("stepsize").unwrap_or(f64::NAN),
            lp: told("lp").unwrap_or(f64::NAN),
            treedepth: told("treedepth").map_or(0, |n| n as i64),
        }
    }

    /// A scalar of the last draw of a chain.
    fn last_of(&self, chain: &Chain, name: &str) -> Option<f64> {
        let fields = &self.streams[self.draw].fields;
        let f = fields.iter().position(|(n, ty)| n == name && ty.shape.is_empty())?;
        let behind: usize = fields[f..].iter().map(|(_, ty)| ty.elements()).sum();
        let word = chain.words.len().checked_sub(behind).map(|at| chain.words[at])?;
        Some(if fields[f].1.dtype == DType::Real { f64::from_bits(word) } else { word as i64 as f64 })
    }

    fn finish(self) -> Recorded {
        let chains = self.chains.into_iter().map(|c| c.into_inner().expect("no emit panics while it holds the lock"));
        let stream = |id: StreamId| self.streams[id].clone();
        Recorded {
            draw: stream(self.draw),
            adapted: self.adapted.map(stream),
            progress: self.progress.map(stream),
            chains: chains.collect(),
        }
    }
}

impl Sink for Recorder<'_> {
    fn emit(&self, position: usize, stream: StreamId, record: &dyn Record) -> Result<(), NoMemory> {
        let mut chain = self.chains[position].lock().expect("no emit panics while it holds the lock");
        if stream == self.draw {
            chain.add(record, self.draws);
            drop(chain);
            self.observer.draw();
        } else if Some(stream) == self.adapted {
            chain.adapted = Some(record.arrays());
        } else if Some(stream) == self.progress {
            chain.started.get_or_insert_with(Instant::now);
            chain.progress = Some(record.arrays());
        }
        Ok(())
    }
    fn print(&self, position: usize, line: String) {
        NoSink.print(position, line);
    }
    fn caught(&self, trap: &Trap) {
        let chain = self.chains[trap.position].lock().expect("no emit panics while it holds the lock");
        if self.is_warm(&chain) {
            drop(chain);
            self.rejected.lock().expect("nothing panics while it holds the lock").note(trap.clone());
        }
    }
}

/// A scalar of a record.
fn number(stream: &Stream, record: &[Array], name: &str) -> Option<f64> {
    let f = stream.fields.iter().position(|(n, ty)| n == name && ty.shape.is_empty())?;
    match record[f].get(0) {
        Scalar::Real(r) => Some(r),
        Scalar::Int(i) => Some(i as f64),
        Scalar::Bool(_) => None,
    }
}

impl Recorded {
    /// As many draws of each chain as all have.
    fn all_draws(&self, chains: Vec<usize>) -> (Vec<usize>, usize) {
        let draws = chains.iter().map(|c| self.chains[*c].draws).min().unwrap_or(0);
        (chains, draws)
    }

    /// All chains, or, where four times as many draws are left without those that had the fewest when the run was
    /// stopped, those of which most draws are left; and as many draws of each as all of these have.
    fn most_draws(&self, chains: Vec<usize>) -> (Vec<usize>, usize) {
        let mut counts: Vec<usize> = chains.iter().map(|c| self.chains[*c].draws).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        // Chains on different threads are seldom equally far: only much more is worth a chain.
        let least = counts.last().copied().unwrap_or(0) * FAR_MORE;
        let kept = |&(k, draws): &(usize, &usize)| {
            let all = if k + 1 == counts.len() { least } else { *draws };
            ((k + 1) * all, k)
        };
        match counts.iter().enumerate().max_by_key(kept) {
            Some((_, draws)) if *draws > 0 => {
                (chains.into_iter().filter(|c| self.chains[*c].draws >= *draws).collect(), *draws)
            }
            _ => (chains, 0),
        }
    }

    /// The words of a record of a draw.
    fn words(&self) -> usize {
        self.draw.fields.iter().map(|(_, ty)| ty.elements()).sum()
    }

    /// Each field of the draws as an array chain × draw × event shape.
    fn fields(&self, chains: &[usize], draws: usize) -> IndexMap<String, Array> {
        let (words, mut first) = (self.words(), 0);
        let mut fields = IndexMap::new();
        for (name, ty) in &self.draw.fields {
            let place = first..first + ty.elements();
            let records = chains.iter().flat_map(|c| self.chains[*c].words.chunks_exact(words.max(1)).take(draws));
            let elements = records.flat_map(|record| &record[place.clone()]);
            // As large as it will be: the estimate of memory has room for one copy.
            let most = chains.len() * draws * ty.elements();
            let data = match ty.dtype {
                DType::Bool => ArrayData::Bool(sized(most, elements.map(|w| *w != 0))),
                DType::Int => ArrayData::Int(sized(most, elements.map(|w| *w as i64))),
                DType::Real => ArrayData::Real(sized(most, elements.map(|w| f64::from_bits(*w)))),
            };
            let shape = [chains.len(), draws].iter().chain(&ty.shape).copied().collect();
            fields.insert(name.clone(), Array { shape, data });
            first = place.end;
        }
        fields
    }

    /// The place of a field of ints in a stream.
    fn place(stream: &Stream, name: &str) -> Option<usize> {
        stream.fields.iter().position(|(n, ty)| n == name && *ty == Type::int())
    }

    /// A field of ints of the records at the end of warmup.
    fn ends_of_warmup(&self, name: &str) -> Option<impl Iterator<Item = i64>> {
        let f = Self::place(self.adapted.as_ref()?, name)?;
        let records = self.chains.iter().filter_map(|c| c.adapted.as_ref());
        Some(records.filter_map(move |record| record[f].as_int().map(|v| v[0])))
    }

    fn gradients(&self) -> u64 {
        let count = |n: i64| u64::try_from(n).unwrap_or(0);
        // Of a chain that was stopped in warmup, as many as it has reported.
        let told = |stream: &Option<Stream>, record: &Option<Vec<Array>>| {
            number(stream.as_ref()?, record.as_ref()?, "gradients").map(|n| count(n as i64))
        };
        let of_warmup = |c: &Chain| told(&self.adapted, &c.adapted).or_else(|| told(&self.progress, &c.progress));
        let warmup: u64 = self.chains.iter().filter_map(of_warmup).sum();
        let kept = Self::place(&self.draw, "n_leapfrog").into_iter().flat_map(|f| {
            let at: usize = self.draw.fields[..f].iter().map(|(_, ty)| ty.elements()).sum();
            self.chains.iter().flat_map(move |c| c.words.chunks_exact(self.words()).map(move |record| record[at]))
        });
        warmup + kept.map(|n| count(n as i64)).sum::<u64>()
    }

    fn max_treedepth(&self) -> Option<i64> {
        self.ends_of_warmup("max_treedepth")?.max()
    }
}

/// The elements, in memory for so many.
fn sized<T>(most: usize, elements: impl Iterator<Item = T>) -> Vec<T> {
    let mut all = Vec::with_capacity(most);
    all.extend(elements);
    all
}
