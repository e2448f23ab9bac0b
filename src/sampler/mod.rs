//! Layer 8: sampling from a posterior, from Rust: a model, its data, and [`Sampler::run`].

mod calibrated;
mod samples;
mod stored;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indexmap::IndexMap;

use crate::mcmc::inits::starts;
use crate::mcmc::log_prob::LogProb;
use crate::mcmc::sampling::{DataSets, Job, ModelSource, Observer, SamplerSettings, Sampling};
use crate::program::io::{Data, NamedValues};
use crate::program::{
    Codegen, Engine, Error, ErrorKind, Function, Inputs, Options, StanData, StanModel, StanSets, Terms,
};
use crate::store::Coordinates;
use crate::types::Array;

pub use crate::mcmc::sampling::{
    Axes, ChainGroup, Draws, DrawsUnderWay, FailedDraws, Metric, Number, Reached, Setting,
};
pub use crate::program::Arrays;
pub use crate::report::{Advice, CalibratedQuantity, Calibration, DataSetsRow, DataSetsSummary, Diagnosis, RankPoint};
pub use crate::report::{SamplerStatistics, StuckChain, Summary, SummaryRow, Suspect, Warning};
pub use crate::store::Coordinate;
pub use calibrated::Simulator;
pub use samples::Samples;

/// A model that is to be sampled, and how. Without more it is 4 chains of 1000 iterations of warmup and 1000 draws by
/// the NUTS that ships, as `autobatch sample` has them; draws are the same bits as those of the command.
///
/// ```
/// use autobatch::Sampler;
///
/// // A normal with unknown mean: the posterior is normal with mean 6 / (3 + 1) and variance 1 / (3 + 1).
/// let samples = Sampler::of_source(
///     "pub fn log_density[n](q: real[1], shared y: real[n]) -> real {
///          let residual = y - q[0];
///          -0.5 * (q[0] * q[0] + dot(residual, residual))
///      }
///      pub struct Parameters { mu: real }
///      pub fn parameters(q: real[1]) -> Parameters { Parameters { mu: q[0] } }",
/// )
/// .data("y", vec![1.0, 2.0, 3.0])
/// .chains(8)
/// .warmup(200)
/// .draws(200)
/// .seed(1)
/// .set("target_accept", 0.9)
/// .run()?;
///
/// let mu = samples.real("mu")?;
/// assert_eq!(mu.shape(), [8, 200]);
/// assert!((mu.mean().unwrap() - 1.5).abs() < 0.1);
/// assert!(samples.summary().rows[0].rhat < 1.05);
/// # Ok::<(), autobatch::program::Error>(())
/// ```
#[derive(Clone)]
pub struct Sampler {
    model: Model,
    data_file: Option<PathBuf>,
    data: IndexMap<String, Array>,
    values: Option<NamedValues>,
    lane_values: Option<NamedValues>,
    include: Vec<PathBuf>,
    sampler: Option<PathBuf>,
    chains: usize,
    warmup: usize,
    draws: usize,
    stepsize: Option<f64>,
    metric: Metric,
    inv_metric: Option<Array>,
    starts: Option<Array>,
    inits: Vec<NamedValues>,
    settings: SamplerSettings,
    options: Options,
    progress: Option<Callback>,
    dims: IndexMap<String, Vec<String>>,
    coords: Coordinates,
    pause: Option<Arc<AtomicBool>>,
    under_way: Option<DrawsUnderWay>,
    store: Option<PathBuf>,
    keep: Option<Vec<String>>,
    lanes: Option<std::ops::Range<usize>>,
    more_draws: usize,
}

type Callback = Arc<dyn Fn(&Progress) + Send + Sync>;

#[derive(Clone, Debug)]
enum Model {
    File(PathBuf),
    Source(String),
    StanSource(String),
    /// What its plan says.
    Store(PathBuf),
}

/// What a Stan program is called that is a text.
const STAN_TEXT: &str = "<model>";
/// How often chains that wait look whether they go on.
const LOOKS: Duration = Duration::from_millis(10);
/// How far from 0 what starts leave out is drawn, as Stan has it.
const RADIUS: f64 = 2.0;

/// How far a run is.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// Draws that are kept, of all chains together.
    pub draws: usize,
    /// Draws that there will be.
    pub all_draws: usize,
    /// How far the chains are, as of the last look, some times a second; nothing yet in a run that takes less.
    pub reached: Reached,
}

impl fmt::Debug for Sampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, data, chains, warmup, draws, settings, .. } = self;
        let data: Vec<&String> = data.keys().collect();
        f.debug_struct("Sampler")
            .field("model", model)
            .field("data_file", &self.data_file)
            .field("data", &data)
            .field("chains", chains)
            .field("warmup", warmup)
            .field("draws", draws)
            .field("settings", settings)
            .finish_non_exhaustive()
    }
}

impl Sampler {
    /// Of the model in a file, a Stan program if its name ends in `.stan`; nothing is read before [`run`](Self::run).
    pub fn of_file(model: impl Into<PathBuf>) -> Self {
        Self::of(Model::File(model.into()))
    }

    /// Of a model that is this text. It may `use` the library that ships, and files relative to the current folder.
    pub fn of_source(model: impl Into<String>) -> Self {
        Self::of(Model::Source(model.into()))
    }

    /// Of a Stan program that is this text. What it includes is relative to the current folder.
    pub fn of_stan_source(program: impl Into<String>) -> Self {
        Self::of(Model::StanSource(program.into()))
    }

    fn of(model: Model) -> Self {
        let (chains, warmup, draws) = (4, 1000, 1000);
        Self {
            model,
            data_file: None,
            data: IndexMap::new(),
            values: None,
            lane_values: None,
            include: Vec::new(),
            sampler: None,
            chains,
            warmup,
            draws,
            stepsize: None,
            metric: Metric::default(),
            inv_metric: None,
            starts: None,
            inits: Vec::new(),
            settings: SamplerSettings::new(),
            options: Options::default(),
            progress: None,
            dims: IndexMap::new(),
            coords: Coordinates::new(),
            pause: None,
            under_way: None,
            store: None,
            keep: None,
            lanes: None,
            more_draws: 0,
        }
    }

    /// Takes the data from a file: Stan's JSON, or `.npz`. What the model does not take is left alone.
    #[must_use]
    pub fn data_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.data_file = Some(path.into());
        self
    }

    /// A value of the data, under the name of a shared parameter of the model: a number, a vector, an `ndarray` array.
    /// Ints serve where reals are wanted; an int under the name of a dimension tells it. It goes before one of the
    /// file.
    #[must_use]
    pub fn data(mut self, name: impl Into<String>, value: impl Into<Array>) -> Self {
        self.data.insert(name.into(), value.into());
        self
    }

    /// Takes the data from values that are there, as from a file: what the model does not take is left alone.
    #[must_use]
    pub fn data_values(mut self, values: NamedValues) -> Self {
        self.values = Some(values);
        self
    }

    /// Takes data of which each data set has its own, with an axis over the data sets before their own; what the model
    /// does not take is left alone. The number of chains is then that of each data set: those of one stand one after
    /// the other, chain i of data set k has the number k · chains + i, and the draws are those of a run with these data
    /// alone whose first chain has that number.
    #[must_use]
    pub fn lane_data(mut self, values: NamedValues) -> Self {
        self.lane_values = Some(values);
        self
    }

    /// Looks for what a Stan program includes in this folder, too.
    #[must_use]
    pub fn include_path(mut self, folder: impl Into<PathBuf>) -> Self {
        self.include.push(folder.into());
        self
    }

    /// Another sampler than the NUTS that ships: a file, or `std/slice_nuts.ab`, `std/hmc.ab`.
    #[must_use]
    pub fn sampler(mut self, path: impl Into<PathBuf>) -> Self {
        self.sampler = Some(path.into());
        self
    }

    /// The number of chains: 4 unless said.
    #[must_use]
    pub fn chains(mut self, chains: usize) -> Self {
        self.chains = chains;
        self
    }

    /// Iterations of warmup of each chain: 1000 unless said.
    #[must_use]
    pub fn warmup(mut self, warmup: usize) -> Self {
        self.warmup = warmup;
        self
    }

    /// Draws of each chain after warmup: 1000 unless said.
    #[must_use]
    pub fn draws(mut self, draws: usize) -> Self {
        self.draws = draws;
        self
    }

    /// The seed: 0 unless said. A chain has its own random stream, whatever the number of chains or threads.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.settings.seed = seed;
        self
    }

    /// The number of threads; 0, or nothing said, is one for each core.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.options.settings.threads = threads;
        self
    }

    /// The engine; all give the same bits.
    #[must_use]
    pub fn engine(mut self, engine: Engine) -> Self {
        self.options.engine = engine;
        self
    }

    /// Whether blocks run as code that the system's C compiler makes. The constrained parameters of draws, which each
    /// draw computes once, take [`Codegen::Cc`] as [`Codegen::Auto`]: no compiler is waited for.
    #[must_use]
    pub fn codegen(mut self, codegen: Codegen) -> Self {
        self.options.codegen = codegen;
        self
    }

    /// All settings of the machine, in the place of those so far: the seed, the threads and a flag that cancels are
    /// among them.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Sets something of the sampler or of its chain: `target_accept`, `max_treedepth`, `stepsize_jitter`,
    /// `init_radius`, …; `autobatch sample --list-settings` lists them.
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: impl Into<Number>) -> Self {
        self.settings = self.settings.with(name, value);
        self
    }

    /// A step size that stays, with the unit metric: warmup adapts nothing.
    #[must_use]
    pub fn stepsize(mut self, stepsize: f64) -> Self {
        self.stepsize = Some(stepsize);
        self
    }

    /// What is learnt of the metric: the variances unless said.
    #[must_use]
    pub fn metric(mut self, metric: Metric) -> Self {
        self.metric = metric;
        self
    }

    /// The inverse metric to start with: dimension, or dimension × dimension of a dense one; with an axis over the
    /// chains before its own, each chain has one.
    #[must_use]
    pub fn inv_metric(mut self, inv_metric: impl Into<Array>) -> Self {
        self.inv_metric = Some(inv_metric.into());
        self
    }

    /// What the axes of a variable are called, of the model or of its data, one name for each: `school` of `theta`.
    /// Without it they are called as the text of the model has it, `J` of `theta: real[J]`.
    #[must_use]
    pub fn dims(mut self, variable: impl Into<String>, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.dims.insert(variable.into(), names.into_iter().map(Into::into).collect());
        self
    }

    /// What stands along an axis, one for each place: elements are then called `theta[Deerfield]`, and a store has it
    /// as coordinates.
    #[must_use]
    pub fn coords(mut self, axis: impl Into<String>, along: Coordinate) -> Self {
        self.coords.insert(axis.into(), along);
        self
    }

    /// Where chains start, by the values of parameters: of all chains, or as often as there are chains. What is left
    /// out is drawn.
    #[must_use]
    pub fn init(mut self, values: NamedValues) -> Self {
        self.inits.push(values);
        self
    }

    /// Where chains start, chain × dimension, unconstrained; or fewer rows, each for as many chains one after the
    /// other.
    #[must_use]
    pub fn starts(mut self, starts: impl Into<Array>) -> Self {
        self.starts = Some(starts.into());
        self
    }

    /// Is called while chains run, by their threads: once for every hundredth of the draws, and some times a second. A
    /// run waits for it.
    #[must_use]
    pub fn on_progress(mut self, callback: impl Fn(&Progress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(callback));
        self
    }

    /// Ends the run when the flag is set, with the draws that are made: see [`Samples::is_complete`].
    #[must_use]
    pub fn cancel(mut self, flag: Arc<AtomicBool>) -> Self {
        self.options.settings.stop = Some(flag);
        self
    }

    /// Chains wait while the flag is set, each as soon as its next draw is made, or in warmup its next report.
    #[must_use]
    pub fn pause(mut self, flag: Arc<AtomicBool>) -> Self {
        self.pause = Some(flag);
        self
    }

    /// Gives the draws to who asks for them while chains run.
    #[must_use]
    pub fn draws_under_way(mut self, asks: &DrawsUnderWay) -> Self {
        self.under_way = Some(asks.clone());
        self
    }

    /// Compiles model and sampler, and runs the chains.
    ///
    /// # Errors
    /// For a model, data or a sampler that cannot be read or do not fit ([`ErrorKind::Program`], [`ErrorKind::Entry`],
    /// [`ErrorKind::Input`], [`ErrorKind::Io`]), for settings that there are not or that make no sense
    /// ([`ErrorKind::Option`]), for what does not fit in memory ([`ErrorKind::Memory`]), where no chain is left, and
    /// where the run was cancelled before every chain had a draw ([`ErrorKind::Interrupted`]).
    pub fn run(&self) -> Result<Samples, Error> {
        match &self.model {
            Model::Store(path) => self.resume(path),
            _ => self.load(Terms::default())?.sample(),
        }
    }

    /// Reads the model; a Stan program is translated with its data. A sampler's density has the default terms.
    ///
    /// # Errors
    /// For a Stan program or data that cannot be read or do not fit; other models are read later.
    pub fn load(&self, terms: Terms) -> Result<LoadedModel<'_>, Error> {
        let with = (&self.include[..], self.options.settings.seed);
        let own = self.lane_values.as_ref();
        let is_stan = |path: &Path| path.extension().is_some_and(|e| e == "stan");
        let (stan, sets) = match &self.model {
            Model::File(path) if is_stan(path) => {
                let data = self.stan_data()?;
                match own {
                    None => (Some(StanModel::load_with(path, &data, terms, with)?), None),
                    Some(own) => of_sets(StanModel::load_sets(path, (&data, own), terms, with)?)?,
                }
            }
            Model::StanSource(text) => {
                let data = self.stan_data()?;
                match own {
                    None => (Some(StanModel::of_text(STAN_TEXT, text, &data, terms, with)?), None),
                    Some(own) => of_sets(StanModel::of_text_sets(STAN_TEXT, text, (&data, own), terms, with)?)?,
                }
            }
            Model::File(path) => (None, own.map(|own| DataSets::of_values(own, &ModelSource::File(path))).transpose()?),
            Model::Source(text) => {
                (None, own.map(|own| DataSets::of_values(own, &ModelSource::Text(text))).transpose()?)
            }
            Model::Store(path) => {
                let message = format!("{} is the store of a run: it can be run on only", path.display());
                return Err(Error::new(ErrorKind::Option, message));
            }
        };
        Ok(LoadedModel { sampler: self, stan, sets, terms })
    }

    /// The data of a Stan program.
    fn stan_data(&self) -> Result<StanData, Error> {
        let mut all = StanModel::read_data(self.data_file.as_deref())?;
        for (name, value) in self.values.iter().flat_map(NamedValues::iter) {
            all.insert(name.to_owned(), value.into());
        }
        for (name, value) in &self.data {
            all.insert(name.clone(), value.into());
        }
        Ok(all)
    }

    /// Where chains start, if that is said.
    fn starting_points(
        &self,
        model: &ModelSource<'_>,
        inputs: &dyn Fn(&Function<'_>) -> Result<Inputs, Error>,
    ) -> Result<Option<Array>, Error> {
        if self.inits.is_empty() {
            return Ok(self.starts.clone());
        }
        if self.starts.is_some() {
            return Err(Error::new(ErrorKind::Option, "starting points and starting values are both given"));
        }
        if self.inits.len() > 1 && self.inits.len() != self.chains {
            let message =
                format!("there are starting values of {} chains, where there are {}", self.inits.len(), self.chains);
            return Err(Error::new(ErrorKind::Option, message));
        }
        // A function of a Stan program takes some of its tables.
        let restricted = |function: &Function<'_>| Ok(inputs(function)?.restricted_to(function.signature()));
        starts(model, &self.inits, self.chains, Some(RADIUS), &restricted, &self.options).map(Some)
    }

    /// The data for the shared parameters of a density of the language.
    fn inputs(&self, density: &Function<'_>) -> Result<Inputs, Error> {
        let signature = density.signature();
        let mut inputs = Inputs::new();
        let file = self.data_file.as_ref().map(|path| NamedValues::read(path)).transpose()?;
        let given = |name: &str| self.data.contains_key(name);
        let by_value = |name: &str| self.values.as_ref().is_some_and(|values| values.get(name).is_some());
        if let Some(file) = &file {
            inputs.add_values(signature, file, |name| !given(name) && !by_value(name))?;
        }
        if let Some(values) = &self.values {
            inputs.add_values(signature, values, |name| !given(name))?;
        }
        for (name, value) in &self.data {
            inputs.add_data(signature, name, &Data::Array(value.clone()), true)?;
        }
        Ok(inputs)
    }
}

/// A model with its data, read. Made by [`Sampler::load`].
#[derive(Debug)]
pub struct LoadedModel<'a> {
    sampler: &'a Sampler,
    stan: Option<StanModel>,
    sets: Option<DataSets>,
    terms: Terms,
}

/// A Stan program with what each data set has of its own.
fn of_sets(made: StanSets) -> Result<(Option<StanModel>, Option<DataSets>), Error> {
    Ok((Some(made.model), Some(DataSets::of(made.count, made.own)?)))
}

impl LoadedModel<'_> {
    /// The Stan program, if it is one: what was found that is probably not meant, and what it prints of its data.
    pub fn stan(&self) -> Option<&StanModel> {
        self.stan.as_ref()
    }

    /// Its log density, compiled.
    ///
    /// # Errors
    /// As [`LogProb::new`].
    pub fn log_prob(&self) -> Result<LogProb, Error> {
        LogProb::new(&self.source(), self.terms, |density| Ok(self.inputs(density)?.restricted_to(density.signature())))
    }

    /// Compiles the sampler, and runs the chains.
    ///
    /// # Errors
    /// As [`Sampler::run`].
    pub fn sample(&self) -> Result<Samples, Error> {
        self.with_sampling(&|sampling, job| self.sample_job(sampling, job))
    }

    /// What is made of the job of these chains, compiled.
    fn with_sampling<T>(&self, make: &dyn Fn(&Sampling, &Job<'_>) -> Result<T, Error>) -> Result<T, Error> {
        let sampler = self.sampler;
        if sampler.chains == 0 {
            return Err(Error::new(ErrorKind::Option, "0 chains: there is nothing to sample"));
        }
        let inputs = |density: &Function<'_>| self.inputs(density);
        if self.sets.is_some() && !sampler.inits.is_empty() {
            let message =
                "with data of many data sets starting values of parameters would differ: give starting points";
            return Err(Error::new(ErrorKind::Option, message));
        }
        let sets = self.sets.as_ref().map_or(1, DataSets::count);
        let Some(chains) = sampler.chains.checked_mul(sets) else {
            let message = format!("{sets} data sets of {} chains are too many", sampler.chains);
            return Err(Error::new(ErrorKind::Option, message));
        };
        let job = Job {
            sampler: sampler.sampler.as_deref(),
            chains,
            data_sets: self.sets.clone(),
            warmup: sampler.warmup,
            draws: sampler.draws,
            stepsize: sampler.stepsize,
            metric: sampler.metric,
            inv_metric: sampler.inv_metric.clone(),
            starts: sampler.starting_points(&self.source(), &inputs)?,
            settings: sampler.settings.clone(),
            dims: sampler.dims.clone(),
            coords: sampler.coords.clone(),
            ..Job::new(self.source())
        };
        make(&Sampling::new(&job, inputs)?, &job)
    }

    fn sample_job(&self, sampling: &Sampling, job: &Job<'_>) -> Result<Samples, Error> {
        let sampler = self.sampler;
        if let Some(path) = &sampler.store {
            return self.sample_to(path, sampling, job);
        }
        if sampler.lanes.is_some() || sampler.keep.is_some() || sampler.more_draws > 0 {
            let message = "lanes, variables to keep and more draws are those of a store, and there is none";
            return Err(Error::new(ErrorKind::Option, message));
        }
        let told = Told::new(sampler, (sampling.chains(), sampling.kept()), 0);
        let draws = sampling.run(&sampler.options, &told)?;
        let cancelled = sampler.options.settings.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        if draws.chains.is_empty() {
            let why = draws.traps.first().map(|trap| format!(": chain {}: {trap}", trap.position)).unwrap_or_default();
            return Err(Error::new(ErrorKind::Input, format!("no chain is left{why}")));
        }
        if cancelled && draws.draws == 0 {
            return Err(Error::new(ErrorKind::Interrupted, "cancelled in warmup: there are no draws"));
        }
        let summary = Summary::of_draws(&draws);
        Ok(Samples::new(draws, summary, sampling.chains()))
    }

    fn source(&self) -> ModelSource<'_> {
        match (&self.stan, &self.sampler.model) {
            (Some(model), _) => ModelSource::Stan(model),
            (None, Model::File(path) | Model::Store(path)) => ModelSource::File(path),
            (None, Model::Source(text) | Model::StanSource(text)) => ModelSource::Text(text),
        }
    }

    fn inputs(&self, density: &Function<'_>) -> Result<Inputs, Error> {
        self.stan.as_ref().map_or_else(|| self.sampler.inputs(density), |model| Ok(model.inputs()))
    }
}

/// Tells a callback how far a run is.
struct Told<'a> {
    callback: Option<&'a Callback>,
    pause: Option<&'a AtomicBool>,
    stop: Option<&'a AtomicBool>,
    under_way: Option<&'a DrawsUnderWay>,
    draws: AtomicUsize,
    all_draws: usize,
    reached: Mutex<Reached>,
}

impl<'a> Told<'a> {
    /// Of so many chains that keep so many draws each, some of which are there already.
    fn new(sampler: &'a Sampler, (chains, kept): (usize, usize), draws: usize) -> Self {
        let all_draws = chains.saturating_mul(kept);
        let callback = sampler.progress.as_ref();
        let (pause, stop) = (sampler.pause.as_deref(), sampler.options.settings.stop.as_deref());
        let (under_way, draws, reached) = (sampler.under_way.as_ref(), AtomicUsize::new(draws), Mutex::default());
        Self { callback, pause, stop, under_way, draws, all_draws, reached }
    }

    fn tell(&self, draws: usize, reached: Reached) {
        if let Some(callback) = self.callback {
            callback(&Progress { draws, all_draws: self.all_draws, reached });
        }
    }
}

impl Observer for Told<'_> {
    fn draw(&self) {
        let draws = self.draws.fetch_add(1, Ordering::Relaxed) + 1;
        let percent = |draws: usize| draws.saturating_mul(100) / self.all_draws.max(1);
        if percent(draws) > percent(draws - 1) {
            let reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner).clone();
            self.tell(draws, reached);
        }
    }

    fn watches(&self) -> bool {
        self.callback.is_some()
    }

    fn asks(&self) -> Option<&DrawsUnderWay> {
        self.under_way
    }

    fn between(&self) {
        let is_set = |flag: Option<&AtomicBool>| flag.is_some_and(|flag| flag.load(Ordering::Relaxed));
        while is_set(self.pause) && !is_set(self.stop) {
            std::thread::sleep(LOOKS);
        }
    }

    fn moved(&self, reached: &Reached) {
        *self.reached.lock().unwrap_or_else(PoisonError::into_inner) = reached.clone();
        self.tell(self.draws.load(Ordering::Relaxed), reached.clone());
    }
}
