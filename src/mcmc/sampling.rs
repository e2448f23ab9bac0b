//! Sampling from a model with a sampler: both are programs of the language, joined by a small driver program, so that a
//! whole chain, warmup included, is one lane and no lane waits for another between draws.
//!
//! A *model* exports `log_density(q: real[D], shared …) -> real` over unconstrained parameters `q`, or with a gradient that
//! is written by hand `log_density_and_gradient(q: real[D], shared …) -> (real, real[D])`, and may export
//! `parameters(q: real[D], shared …)`, a struct of its constrained parameters. A *sampler* exports
//! `sample(density: fn(real[d]) -> (real, real[d]), origin: real[d], shared init_radius: real, shared num_warmup: int,
//! shared num_draws: int)`, and for a step size that stays `sample_fixed` with `shared stepsize: real` before `num_warmup`; it emits one record of the stream `draw` for each draw it keeps, with the field `q` among
//! others, and may emit one record of `adapted` at the end of warmup, with the number of `gradients` so far.

use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use indexmap::IndexMap;

use crate::base::{Diagnostic, IdVec};
use crate::parts::{Stream, StreamId};
use crate::program::{
    Bound, Error, ErrorKind, Function, Inputs, MemoryEstimate, Options, Program, Results, budget, refuse,
};
use crate::run::{NoMemory, NoSink, Record, Sink, Stats, Trap};
use crate::types::{Array, ArrayData, DType, Type};

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
/// The sampler that ships with autobatch.
pub const DEFAULT_SAMPLER: &str = "nuts.ab";
/// Starts are uniform within this distance of 0 in every unconstrained coordinate, as in Stan.
const INIT_RADIUS: f64 = 2.0;
/// Draws whose constrained parameters are computed in one run.
const TRANSFORMED_AT_ONCE: usize = 1 << 16;

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
    /// Where the chains start, chain × dimension, unconstrained; one row serves all chains. Without it every coordinate is uniform in (-2, 2).
    pub starts: Option<Array>,
}

impl Plan<'_> {
    fn check(&self) -> Result<(), Error> {
        let refused = |message: String| Err(Error::new(ErrorKind::Option, message));
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
                    || (starts.shape[0] != self.chains && starts.shape[0] != 1) =>
            {
                refused(format!(
                    "{} chains need starts of the type real[{}, _], or one row for all of them, not {}",
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
}

/// What came out.
#[derive(Clone, Debug)]
pub struct Draws {
    /// Constrained parameters, chain × draw × event shape, under the model's names; the unconstrained `q` where the model
    /// does not export `parameters`.
    pub parameters: IndexMap<String, Array>,
    /// The other fields of the sampler's records, chain × draw: `lp`, `accept_stat`, `stepsize`, …
    pub statistics: IndexMap<String, Array>,
    /// The numbers of the chains that the arrays hold: all but those that trapped before the others were done.
    pub chains: Vec<usize>,
    /// Draws of each chain that the arrays hold: fewer than asked for when the run was stopped.
    pub draws: usize,
    /// Chains that trapped.
    pub traps: Vec<Trap>,
    /// Gradients that were evaluated, warmup included, as far as the sampler tells.
    pub gradients: u64,
    /// Largest tree depth that the sampler allows, if it tells.
    pub max_treedepth: Option<i64>,
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
        let source = driver(plan, &density, &data)?;
        check_inputs(plan, &density, &data)?;
        let driver = Program::compile_named(DRIVER, &source)?;
        let &Plan { warmup, draws, chains, stepsize, .. } = plan;
        Ok(Sampling { driver, data, warmup, draws, chains, stepsize, starts: plan.starts.clone(), model })
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
        let estimate = self.estimate(&self.bound(options)?, options);
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

    /// The memory of the run, the records of all draws included: as they are kept, and once more as arrays.
    fn estimate(&self, bound: &Bound, options: &Options) -> MemoryEstimate {
        let mut estimate = bound.memory(options);
        let streams = bound.compiled().stack.streams.values();
        let draw = streams.filter(|s| s.name == "draw").flat_map(|s| &s.fields);
        let field = |ty: &Type| ty.elements().saturating_mul(2 * size_of::<f64>());
        let record = draw.fold(0, |sum: usize, (_, ty)| sum.saturating_add(field(ty)));
        let records = self.draws.saturating_mul(record);
        estimate.host_bytes_per_lane = estimate.host_bytes_per_lane.saturating_add(records);
        estimate
    }

    /// Runs all chains. `progress` is called after every kept draw of any chain, from worker threads.
    ///
    /// # Errors
    /// For data that do not fit, a sampler that emits no `draw`, and a batch that does not fit in memory. Chains that trap
    /// are no error: see [`Draws::traps`].
    pub fn run(&self, options: &Options, progress: &(dyn Fn() + Sync)) -> Result<Draws, Error> {
        let mut draws = self.run_unconstrained(options, progress)?;
        if self.model.functions().any(|name| name == PARAMETERS) {
            let q = draws.parameters.shift_remove("q").expect("the state is there");
            draws.parameters = self.parameters(&q, &draws, options)?;
        }
        Ok(draws)
    }

    /// Like [`run`](Self::run), but the parameters of the draws are the unconstrained state alone, as `q`.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_unconstrained(&self, options: &Options, progress: &(dyn Fn() + Sync)) -> Result<Draws, Error> {
        let bound = self.bound(options)?;
        let budget = budget(&self.estimate(&bound, options), options)?;
        let recorder = Recorder::new(&bound.compiled().stack.streams, (self.chains, self.draws), progress)?;
        bound.prepare(options)?;
        let start = Instant::now();
        let results = bound.run_within(&budget, options, &recorder)?;
        let seconds = start.elapsed().as_secs_f64();
        self.collect(recorder, &results, seconds)
    }

    fn collect(&self, recorder: Recorder<'_>, results: &Results, seconds: f64) -> Result<Draws, Error> {
        use crate::run::TrapKind;
        let recorded = recorder.finish();
        let stopped = results.traps().iter().any(|t| t.kind == TrapKind::Interrupted);
        let failed = |c: &usize| results.traps().iter().any(|t| t.position == *c && t.kind != TrapKind::Interrupted);
        let chains: Vec<usize> = (0..self.chains).filter(|c| !failed(c)).collect();
        let draws = chains.iter().map(|c| recorded.chains[*c].draws).min().unwrap_or(0);
        if let Some(chain) = chains.iter().find(|c| !stopped && recorded.chains[**c].draws != self.draws) {
            let (found, wanted) = (recorded.chains[*chain].draws, self.draws);
            let message = format!("the sampler emitted {found} draws in chain {chain}, where {wanted} were asked for");
            return Err(Error::new(ErrorKind::Program, message));
        }
        let mut statistics = recorded.fields(&chains, draws);
        let q = statistics.shift_remove("q").expect("the recorder checked it");
        Ok(Draws {
            parameters: IndexMap::from([("q".to_owned(), q)]),
            statistics,
            chains,
            draws,
            traps: results.traps().to_vec(),
            gradients: recorded.gradients(),
            max_treedepth: recorded.max_treedepth(),
            seconds,
            stats: results.stats().clone(),
        })
    }

    /// The constrained parameters of all draws: one run of the model's `parameters` in which every draw is a lane.
    fn parameters(&self, q: &Array, made: &Draws, options: &Options) -> Result<IndexMap<String, Array>, Error> {
        let function = self.model.function(PARAMETERS)?;
        let (chains, draws) = (made.chains.len(), made.draws);
        let lanes = chains * draws;
        let dimension = q.shape[2];
        let values = q.as_real().expect("a state is real");
        let mut options = options.clone();
        options.settings.stop = None;
        (options.settings.stats, options.settings.profile) = (false, false);
        let mut parameters: IndexMap<String, Array> = IndexMap::new();
        for first in (0..lanes.max(1)).step_by(TRANSFORMED_AT_ONCE) {
            let n = TRANSFORMED_AT_ONCE.min(lanes - first);
            let part = Array::real([n, dimension], values[first * dimension..(first + n) * dimension].to_vec());
            let name = function.signature().ports[0].name.clone();
            let inputs = self.data.clone().lane(name, part).lanes(n);
            let results = function.run(&inputs.restricted_to(function.signature()), &options)?;
            if let Some(trap) = results.traps().first() {
                let message = format!("`{PARAMETERS}` failed for a draw: {} ({})", trap.kind, trap.loc);
                return Err(Error::new(ErrorKind::Program, message));
            }
            for (name, array) in results.outputs() {
                append(&mut parameters, name, array);
            }
        }
        for array in parameters.values_mut() {
            array.shape.remove(0);
            array.shape.insert_from_slice(0, &[chains, draws]);
        }
        Ok(parameters)
    }
}

/// Appends rows along the leading axis.
fn append(all: &mut IndexMap<String, Array>, name: &str, rows: &Array) {
    let Some(array) = all.get_mut(name) else {
        all.insert(name.to_owned(), rows.clone());
        return;
    };
    array.shape[0] += rows.shape[0];
    array.data.extend(&rows.data);
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

/// The number of coordinates of the state of a density, its first parameter, where its shared inputs tell it, or ints under the
/// names of dimensions.
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
fn driver(plan: &Plan<'_>, density: &Function<'_>, given: &Inputs) -> Result<String, Error> {
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
        DENSITY => format!("value_and_grad(model::{DENSITY})"),
        name => format!("model::{name}"),
    };
    let sampler = plan.sampler.map_or_else(|| DEFAULT_SAMPLER.into(), quoted);
    let (start, origin, radius) = match plan.starts {
        Some(_) => (format!("{START}: {state_type}, "), START.to_owned(), 0.0),
        None => (String::new(), format!("[0.0 for i in 0..{}]", state.extents[0].display(&names)), INIT_RADIUS),
    };
    let (fixed, sample, stepsize) = match plan.stepsize {
        Some(_) => (format!("shared {STEPSIZE}: real, "), SAMPLE_FIXED, format!("{STEPSIZE}, ")),
        None => (String::new(), SAMPLE, String::new()),
    };
    Ok(format!(
        "use \"{}\" as model;\nuse \"{sampler}\" as sampler;\n\n\
         pub fn main{dims}({start}{}{fixed}shared {NUM_WARMUP}: int, shared {NUM_DRAWS}: int) {{\n    \
         let origin = {origin};\n    \
         sampler::{sample}(|position: {state_type}| {density}(position{}), origin, {radius:?}, {stepsize}{NUM_WARMUP}, {NUM_DRAWS});\n}}\n",
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
    chains: Vec<Mutex<Chain>>,
    /// Draws of each chain that are expected.
    draws: usize,
    progress: &'a (dyn Fn() + Sync),
}

/// The records of a chain. Draws are words, one record after the other: an array for each field would take an allocation each,
/// and more time than many a draw takes.
#[derive(Default)]
struct Chain {
    draws: usize,
    words: Vec<u64>,
    adapted: Option<Vec<Array>>,
}

impl Chain {
    /// Adds a draw, one of at most so many.
    fn add(&mut self, record: &dyn Record, most: usize) {
        record.append_words(&mut self.words);
        if self.draws == 0 {
            self.words.reserve_exact(self.words.len().saturating_mul(most.saturating_sub(1)));
        }
        self.draws += 1;
    }
}

/// All records of a run.
struct Recorded {
    draw: Stream,
    adapted: Option<Stream>,
    chains: Vec<Chain>,
}

impl<'a> Recorder<'a> {
    fn new(
        streams: &IdVec<StreamId, Stream>,
        (chains, draws): (usize, usize),
        progress: &'a (dyn Fn() + Sync),
    ) -> Result<Self, Error> {
        let find = |name: &str| streams.iter().find(|(_, s)| s.name == name).map(|(id, _)| id);
        let is_state = |(name, ty): &(String, Type)| name == "q" && ty.dtype == DType::Real && ty.shape.len() == 1;
        let Some(draw) = find("draw").filter(|id| streams[*id].fields.iter().any(is_state)) else {
            let message = "the sampler emits no `draw(q, …)` with the state `q: real[d]`";
            return Err(Error::new(ErrorKind::Entry, message));
        };
        let adapted = find("adapted");
        let chains = (0..chains).map(|_| Mutex::default()).collect();
        Ok(Self { streams: streams.clone(), draw, adapted, chains, draws, progress })
    }

    fn finish(self) -> Recorded {
        let chains = self.chains.into_iter().map(|c| c.into_inner().expect("no emit panics while it holds the lock"));
        let stream = |id: StreamId| self.streams[id].clone();
        Recorded { draw: stream(self.draw), adapted: self.adapted.map(stream), chains: chains.collect() }
    }
}

impl Sink for Recorder<'_> {
    fn emit(&self, position: usize, stream: StreamId, record: &dyn Record) -> Result<(), NoMemory> {
        let mut chain = self.chains[position].lock().expect("no emit panics while it holds the lock");
        if stream == self.draw {
            chain.add(record, self.draws);
            drop(chain);
            (self.progress)();
        } else if Some(stream) == self.adapted {
            chain.adapted = Some(record.arrays());
        }
        Ok(())
    }
    fn print(&self, position: usize, line: String) {
        NoSink.print(position, line);
    }
}

impl Recorded {
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
        let warmup: u64 = self.ends_of_warmup("gradients").into_iter().flatten().map(count).sum();
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

impl ArrayData {
    /// Appends elements of the same type.
    fn extend(&mut self, part: &ArrayData) {
        match (self, part) {
            (ArrayData::Bool(a), ArrayData::Bool(p)) => a.extend_from_slice(p),
            (ArrayData::Int(a), ArrayData::Int(p)) => a.extend_from_slice(p),
            (ArrayData::Real(a), ArrayData::Real(p)) => a.extend_from_slice(p),
            _ => unreachable!("the parts of an array have one element type"),
        }
    }
}
