//! How a function is compiled and run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::backend::{self, Backend, cuda};
use crate::pipeline::{Deny, Passes, all_passes};
use crate::program::{Codegen, Engine, Error, ErrorKind, Prints};
use crate::run::{Costs, Execution, Schedule, Settings};
use crate::types::Precision;

/// How a function is compiled and run; built up from `Options::default()`. What makes no sense is refused by
/// [`Function::bind`](super::Function::bind) and [`Bound::run`](super::Bound::run).
///
/// ```
/// use autobatch::{Engine, Options};
///
/// let options = Options::default().engine(Engine::Local).seed(7).threads(2).without_pass("inline")?;
/// assert_eq!((options.get_engine(), options.get_settings().get_seed()), (Engine::Local, 7));
/// # Ok::<(), autobatch::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) engine: Engine,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) settings: Settings,
    pub(crate) passes: Passes,
    pub(crate) first_lane: u64,
    pub(crate) memory_limit: Option<u64>,
    pub(crate) deny: Vec<Deny>,
    pub(crate) codegen: Codegen,
    pub(crate) prints: Prints,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            engine: Engine::default(),
            backend: backend::usual(),
            settings: Settings::default(),
            passes: Passes::default(),
            first_lane: 0,
            memory_limit: None,
            deny: Vec::new(),
            codegen: Codegen::default(),
            prints: Prints::default(),
        }
    }
}

impl Options {
    /// The engine that runs it; [`Engine::Pc`] if nothing is said.
    #[must_use]
    pub fn engine(self, engine: Engine) -> Self {
        Self { engine, ..self }
    }
    /// What the batching engines run on; the CPU if nothing is said. [`device`] finds one by its name.
    #[must_use]
    pub fn backend(self, backend: Arc<dyn Backend>) -> Self {
        Self { backend, ..self }
    }
    /// Whether blocks run as generated code; [`Codegen::Auto`] if nothing is said.
    #[must_use]
    pub fn codegen(self, codegen: Codegen) -> Self {
        Self { codegen, ..self }
    }
    /// All settings of the run at once, in the place of those so far.
    #[must_use]
    pub fn settings(self, settings: Settings) -> Self {
        Self { settings, ..self }
    }
    /// Which compiler passes run; all if nothing is said.
    #[must_use]
    pub fn passes(self, passes: Passes) -> Self {
        Self { passes, ..self }
    }
    /// Switches a compiler pass off.
    ///
    /// # Errors
    /// [`ErrorKind::Option`] for a name that no pass has, with those that there are.
    pub fn without_pass(mut self, name: &str) -> Result<Self, Error> {
        match self.passes.switch_off(name) {
            true => Ok(self),
            false => Err(no_pass(name)),
        }
    }
    /// Switches a compiler pass on again.
    ///
    /// # Errors
    /// As [`without_pass`](Self::without_pass).
    pub fn with_pass(mut self, name: &str) -> Result<Self, Error> {
        if !all_passes().any(|(pass, _)| pass == name) {
            return Err(no_pass(name));
        }
        self.passes.switch_on(name);
        Ok(self)
    }
    /// Number of the first lane, 0 if nothing is said: lane `i` of the batch draws from the random stream
    /// `first_lane + i`.
    #[must_use]
    pub fn first_lane(self, first_lane: u64) -> Self {
        Self { first_lane, ..self }
    }
    /// Bytes that a run may take: a batch that needs more is refused, and where stacks, tapes, activations or records
    /// grow beyond it, lanes trap. If nothing is said it takes what can be had, by what the machine has available, the
    /// control groups that the process is in and its own limits, and looks again as the run grows.
    #[must_use]
    pub fn memory_limit(self, bytes: u64) -> Self {
        Self { memory_limit: Some(bytes), ..self }
    }
    /// Who hears the lines of `print` of programs that are sampled, optimized or the like; nobody if nothing is said. A run of
    /// a function has a [`Sink`](crate::Sink).
    #[must_use]
    pub fn prints(self, prints: Prints) -> Self {
        Self { prints, ..self }
    }
    /// Warnings of the compilation to shapes that are errors; none if nothing is said.
    #[must_use]
    pub fn deny(self, deny: Vec<Deny>) -> Self {
        Self { deny, ..self }
    }

    /// The engine that runs it.
    pub fn get_engine(&self) -> Engine {
        self.engine
    }
    /// What the batching engines run on.
    pub fn get_backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }
    /// Whether blocks run as generated code.
    pub fn get_codegen(&self) -> Codegen {
        self.codegen
    }
    /// The settings of the run.
    pub fn get_settings(&self) -> &Settings {
        &self.settings
    }
    /// Which compiler passes run.
    pub fn get_passes(&self) -> &Passes {
        &self.passes
    }
    /// Number of the first lane.
    pub fn get_first_lane(&self) -> u64 {
        self.first_lane
    }
    /// What [`memory_limit`](Self::memory_limit) has set.
    pub fn get_memory_limit(&self) -> Option<u64> {
        self.memory_limit
    }
    /// Warnings that are errors.
    pub fn get_deny(&self) -> &[Deny] {
        &self.deny
    }

    /// Refuses what makes no sense.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.settings.check().map_err(|message| Error::new(ErrorKind::Option, message))
    }
}

/// Settings of the run, which are set through the options as well.
macro_rules! settings_of_the_run {
    ($($name:ident: $ty:ty),* $(,)?) => {
        /// Settings of the run.
        impl Options {
            $(
                #[doc = concat!("Sets [`Settings::", stringify!($name), "`].")]
                #[must_use]
                pub fn $name(mut self, $name: $ty) -> Self {
                    self.settings = self.settings.$name($name);
                    self
                }
            )*
        }
    };
}

settings_of_the_run! {
    schedule: Schedule,
    execution: Execution,
    costs: Costs,
    precision: Precision,
    threads: usize,
    shard_lanes: usize,
    seed: u64,
    max_stack_depth: usize,
    max_tape_depth: usize,
    max_supersteps: u64,
    device_memory: usize,
    check_nan: bool,
    stats: bool,
    profile: bool,
    stop: Arc<AtomicBool>,
}

/// The error for a name that no compiler pass has.
pub(crate) fn no_pass(name: &str) -> Error {
    let names: Vec<&str> = all_passes().map(|(name, _)| name).collect();
    Error::new(ErrorKind::Option, format!("no compiler pass `{name}`: there is {}", names.join(", ")))
}

/// What programs can run on, by the names for [`device`], each with what it is, or why it is not there.
pub fn devices() -> Vec<(String, String)> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let named = |name: &str, what: String| (name.to_owned(), what);
    let mut all = vec![named("cpu", format!("this processor, {cores} threads"))];
    match cuda::gpus() {
        Ok(gpus) if gpus.is_empty() => all.push(named("cuda", "none: the NVIDIA driver shows no GPU".to_owned())),
        Ok(gpus) => all.extend(gpus.iter().map(|gpu| (format!("cuda:{}", gpu.number()), gpu.to_string()))),
        Err(why) => all.push(named("cuda", format!("none: {why}"))),
    }
    let host = "this processor, with the text for a GPU: to try that without one";
    all.push(named("cuda-host", host.to_owned()));
    all
}

/// The back end of this name, for [`Options::backend`].
///
/// # Errors
/// [`ErrorKind::Option`], with the names that there are.
pub fn device(name: &str) -> Result<Arc<dyn Backend>, Error> {
    backend::named(name).ok_or_else(|| {
        let names: Vec<&str> = backend::all().iter().map(|b| b.name()).collect();
        Error::new(ErrorKind::Option, format!("there is no device `{name}`: there is {}", names.join(", ")))
    })
}
