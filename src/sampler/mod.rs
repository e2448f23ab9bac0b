//! Layer 8: sampling from a posterior, from Rust: a model, its data, and [`Sampler::run`].

mod samples;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use indexmap::IndexMap;

use crate::mcmc::sampling::{Job, ModelSource, Observer, SamplerSettings, Sampling};
use crate::program::io::{Data, NamedValues};
use crate::program::{Codegen, Engine, Error, ErrorKind, Function, Inputs, Options};
use crate::types::Array;

pub use crate::mcmc::sampling::{Draws, FailedDraws, Number, Reached, Setting};
pub use crate::program::Arrays;
pub use crate::report::{Advice, Diagnosis, SamplerStatistics, StuckChain, Summary, SummaryRow, Suspect, Warning};
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
    sampler: Option<PathBuf>,
    chains: usize,
    warmup: usize,
    draws: usize,
    stepsize: Option<f64>,
    starts: Option<Array>,
    settings: SamplerSettings,
    options: Options,
    progress: Option<Callback>,
}

type Callback = Arc<dyn Fn(&Progress) + Send + Sync>;

#[derive(Clone, Debug)]
enum Model {
    File(PathBuf),
    Source(String),
}

/// How far a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// Draws that are kept, of all chains together.
    pub draws: usize,
    /// Draws that there will be.
    pub all_draws: usize,
    /// How far the chains are, as of the last second; nothing yet in a run that takes less.
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
    /// Of the model in a file; nothing is read before [`run`](Self::run).
    pub fn of_file(model: impl Into<PathBuf>) -> Self {
        Self::of(Model::File(model.into()))
    }

    /// Of a model that is this text. It may `use` the library that ships, and files relative to the current folder.
    pub fn of_source(model: impl Into<String>) -> Self {
        Self::of(Model::Source(model.into()))
    }

    fn of(model: Model) -> Self {
        let (chains, warmup, draws) = (4, 1000, 1000);
        Self {
            model,
            data_file: None,
            data: IndexMap::new(),
            sampler: None,
            chains,
            warmup,
            draws,
            stepsize: None,
            starts: None,
            settings: SamplerSettings::new(),
            options: Options::default(),
            progress: None,
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

    /// Whether blocks run as code that the system's C compiler makes.
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

    /// Where chains start, chain × dimension, unconstrained; or fewer rows, each for as many chains one after the
    /// other.
    #[must_use]
    pub fn starts(mut self, starts: impl Into<Array>) -> Self {
        self.starts = Some(starts.into());
        self
    }

    /// Is called while chains run, by their threads: once for every hundredth of the draws, and about once a second. A
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

    /// Compiles model and sampler, and runs the chains.
    ///
    /// # Errors
    /// For a model, data or a sampler that cannot be read or do not fit ([`ErrorKind::Program`], [`ErrorKind::Entry`],
    /// [`ErrorKind::Input`], [`ErrorKind::Io`]), for settings that there are not or that make no sense
    /// ([`ErrorKind::Option`]), for what does not fit in memory ([`ErrorKind::Memory`]), where no chain is left, and
    /// where the run was cancelled before every chain had a draw ([`ErrorKind::Interrupted`]).
    pub fn run(&self) -> Result<Samples, Error> {
        if self.chains == 0 {
            return Err(Error::new(ErrorKind::Option, "0 chains: there is nothing to sample"));
        }
        let model = match &self.model {
            Model::File(path) => ModelSource::File(path),
            Model::Source(text) => ModelSource::Text(text),
        };
        let job = Job {
            sampler: self.sampler.as_deref(),
            chains: self.chains,
            warmup: self.warmup,
            draws: self.draws,
            stepsize: self.stepsize,
            starts: self.starts.clone(),
            settings: self.settings.clone(),
            ..Job::new(model)
        };
        let sampling = Sampling::new(&job, |density| self.inputs(density))?;
        let draws = sampling.run(&self.options, &Told::new(self))?;
        let cancelled = self.options.settings.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        if draws.chains.is_empty() {
            let why = draws.traps.first().map(|trap| format!(": chain {}: {trap}", trap.position)).unwrap_or_default();
            return Err(Error::new(ErrorKind::Input, format!("no chain is left{why}")));
        }
        if cancelled && draws.draws == 0 {
            return Err(Error::new(ErrorKind::Interrupted, "cancelled in warmup: there are no draws"));
        }
        let summary = Summary::of_draws(&draws);
        Ok(Samples::new(draws, summary, self.chains))
    }

    /// The data for the shared parameters of a density.
    fn inputs(&self, density: &Function<'_>) -> Result<Inputs, Error> {
        let signature = density.signature();
        let mut inputs = Inputs::new();
        if let Some(path) = &self.data_file {
            inputs.add_values(signature, &NamedValues::read(path)?, |name| !self.data.contains_key(name))?;
        }
        for (name, array) in &self.data {
            inputs.add_data(signature, name, &Data::Array(array.clone()), true)?;
        }
        Ok(inputs)
    }
}

/// Tells a callback how far a run is.
struct Told<'a> {
    callback: Option<&'a Callback>,
    draws: AtomicUsize,
    all_draws: usize,
    reached: Mutex<Reached>,
}

impl<'a> Told<'a> {
    fn new(sampler: &'a Sampler) -> Self {
        let all_draws = sampler.chains.saturating_mul(sampler.draws);
        let callback = sampler.progress.as_ref();
        Self { callback, draws: AtomicUsize::new(0), all_draws, reached: Mutex::default() }
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
            let reached = *self.reached.lock().unwrap_or_else(PoisonError::into_inner);
            self.tell(draws, reached);
        }
    }

    fn watches(&self) -> bool {
        self.callback.is_some()
    }

    fn moved(&self, reached: &Reached) {
        *self.reached.lock().unwrap_or_else(PoisonError::into_inner) = *reached;
        self.tell(self.draws.load(Ordering::Relaxed), *reached);
    }
}
