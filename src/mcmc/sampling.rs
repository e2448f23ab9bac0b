//! Sampling from a model with a sampler: both are programs of the language, joined with the chain that they share by a
//! small driver program, so that a whole chain, warmup included, is one lane and no lane waits for another between
//! draws.
//!
//! | file | what |
//! |---|---|
//! | `job`, `data_sets` | what to sample |
//! | `model`, `axes` | the density of a model, what its data must tell, and what axes are called |
//! | `method`, `settings` | a sampler with its chain, and what can be set of them |
//! | `driver` | the program that joins them |
//! | `records`, `watch` | what chains tell while they run: the names are those of [`protocol`](super::protocol) |
//! | `draws`, `parameters`, `failed`, `under_way` | what came out, and what there is while they run |
//! | `state`, `pooled` | all that a chain goes on with; warmup in which all chains learn together |
//! | `planned`, `resumed`, `stored`, `layout`, `writer`, `stored_draws` | runs whose draws go to a store, and that go on |
//!
//! A *model* exports `log_density(q: real[D], shared …) -> real` over unconstrained parameters `q`, or with a gradient
//! that is written by hand `log_density_and_gradient(q: real[D], shared …) -> (real, real[D])`, and may export
//! `parameters(q: real[D], shared …)`, a struct of its constrained parameters. A *sampler* exports one transition and
//! what can be set of it; `nuts/README.md` has the form.
//!
//! The density that a sampler gets is an attempt: where the model's traps, it gives NaN, and the sampler rejects the
//! point.

mod axes;
mod data_sets;
mod draws;
mod driver;
mod failed;
mod job;
mod layout;
mod method;
mod model;
mod parameters;
mod planned;
mod pooled;
mod records;
mod resumed;
mod settings;
mod state;
mod stored;
mod stored_draws;
mod under_way;
mod watch;
mod writer;

use std::cell::OnceCell;
use std::sync::mpsc;
use std::time::Instant;

use indexmap::IndexMap;

use crate::mcmc::protocol::{DRAW, Q, STEPSIZE};
use crate::program::io::Data;
use crate::program::{Bound, Error, ErrorKind, Function, Inputs, MemoryEstimate, Options, Prints, Program, Results};
use crate::program::{budget, refuse};
use crate::run::{Caught, Stats, Trap, TrapKind};
use crate::store::{BlockStates, Coordinates};
use crate::types::{Array, Type};

pub use axes::{Axes, axis_names};
pub use data_sets::DataSets;
use draws::Recorded;
pub use draws::{ChainDraws, Draws, WarmupStates};
use driver::Driver;
pub use failed::FailedDraws;
pub(in crate::mcmc) use failed::Lesser;
pub use job::{Job, Metric, ModelSource};
pub use layout::ARVIZ_STATISTICS;
use method::Method;
pub use method::{DEFAULT_SAMPLER, TRANSITION, settings_of};
pub use model::{DENSITY, DENSITY_AND_GRADIENT, DENSITY_WITHOUT_JACOBIAN, PARAMETERS, dimension};
pub(in crate::mcmc) use model::{density, density_of_terms, refuse_missing};
pub use parameters::QuantitiesOfDraws;
pub(in crate::mcmc) use parameters::{AT_ONCE, each_draw, options_of_draws, rows_of};
pub use planned::{PlanFiles, PlannedJob};
use records::{Recorder, number};
pub use resumed::{ObserverOf, Resumed, ask_for_more, end, resume};
pub(in crate::mcmc) use settings::Tuning;
pub use settings::{
    CHECKPOINT_EVERY, INIT_RADIUS, LEAF_STEPS, MAX_TREEDEPTH, Number, POOLED_WARMUP, SAVE_WARMUP, SamplerSettings,
    Setting, TARGET_ACCEPT, THIN,
};
use state::StateForm;
pub use stored::{StoredRun, Warn};
pub use stored_draws::{StoredDraws, StoredPart, StoredProgress};
pub use under_way::DrawsUnderWay;
use watch::Iterations;
pub use watch::{COLLAPSED, ChainGroup, MOST_GROUPS, Observer, Reached, SlowChain};

/// A model with its data and a sampler, compiled and ready to run.
#[derive(Debug)]
pub struct Sampling {
    driver: Driver,
    model: Program,
    data: Inputs,
    data_sets: Option<DataSets>,
    /// What `parameters` takes, where the model has it.
    of_parameters: Option<Inputs>,
    warmup: usize,
    draws: usize,
    chains: usize,
    stepsize: Option<f64>,
    metric: Metric,
    inv_metric: Option<Array>,
    /// The form of what a chain goes on with.
    state: StateForm,
    /// Coordinates of the state.
    dimension: usize,
    /// Whether that is one for each chain.
    has_metrics: bool,
    starts: Option<Array>,
    method: Method,
    superchains: Option<usize>,
    /// Whether chains can start from states.
    resumes: bool,
    /// Of a Stan program: fields of its parameters, and what the program calls them where that is another word.
    renamed: Option<Vec<(String, String)>>,
    /// What there is of draws whose `parameters` fail.
    lesser: Lesser,
    /// What the axes of parameters and data are called.
    axes: IndexMap<String, Axes>,
    /// What of that was asked for.
    dims: IndexMap<String, Vec<String>>,
    /// What stands along axes.
    coords: Coordinates,
    /// The shapes of the data, where names or coordinates of axes were asked for.
    data_shapes: IndexMap<String, Vec<usize>>,
}

impl Sampling {
    /// Reads the model and the sampler and joins them. `read_data` gets the model's density, and then its `parameters`, and
    /// gives the shared inputs of each.
    ///
    /// # Errors
    /// For programs that cannot be read or have errors, for a model without a density of the right form, a step size that is
    /// not positive and finite, and starts that are not one row of reals a chain.
    pub fn new(job: &Job<'_>, read_data: impl Fn(&Function<'_>) -> Result<Inputs, Error>) -> Result<Sampling, Error> {
        job.check()?;
        let own = job.data_sets.as_ref().map(DataSets::names).unwrap_or_default();
        let model = job.model.program_varying(&own)?;
        let density = model::density_varying(&model, &job.model.name(), &own)?;
        let functions = [density.name(), PARAMETERS];
        let mut axes = axes::of(&job.model, &model, &density)?;
        for (variable, names) in &job.dims {
            axes.insert(variable.clone(), names.iter().cloned().map(Some).collect());
        }
        let data_sets = job.data_sets.as_ref().map(|sets| sets.fitted(job.chains, &model, &functions)).transpose()?;
        let data = read_data(&density)?;
        let has_parameters = model.functions().any(|name| name == PARAMETERS);
        let of_parameters = has_parameters.then(|| read_data(&model.function(PARAMETERS)?)).transpose()?;
        let data_shapes = match job.dims.is_empty() && job.coords.is_empty() {
            true => IndexMap::new(),
            false => shapes_of(job, [&data].into_iter().chain(&of_parameters)),
        };
        let method = Method::new(job.sampler, &job.settings, job.starts.is_some())?;
        if method.pools_warmup() && job.data_sets.is_some() {
            let message = format!("{POOLED_WARMUP}: chains of many data sets have nothing to learn from one another");
            return Err(Error::new(ErrorKind::Option, message));
        }
        let pooled = (method.pools_warmup() && !job.resumes).then(|| Job { resumes: true, ..job.clone() });
        let job = pooled.as_ref().unwrap_or(job);
        // All data sets are of the types of the first.
        let of_one = data_sets.as_ref().map(|sets| sets.as_shared(&data));
        let of_one = of_one.as_ref().unwrap_or(&data);
        let driver = Driver::new(job, &method, &density, of_one)?;
        let &Job { warmup, draws, chains, stepsize, metric, .. } = job;
        let inv_metric = job.inv_metric.clone();
        let points = job.starts.as_ref().map(|starts| starts.shape[0]);
        let superchains = points
            .filter(|_| job.data_sets.is_none())
            .filter(|n| (2..chains).contains(n) && method.init_radius() == 0.0);
        let told = model::dimension(&density, of_one).or(job.starts.as_ref().map(|starts| starts.shape[1]));
        let dimension = told.expect("the driver looked that it is told");
        let starts = job.starts.as_ref().map(|starts| repeated(starts, chains / starts.shape[0].max(1)));
        let owned = |(field, name): (&str, &str)| (field.to_owned(), name.to_owned());
        let renamed = match job.model {
            ModelSource::Stan(model) => Some(model.renamed().map(owned).collect()),
            _ => None,
        };
        Ok(Sampling {
            driver,
            model,
            data,
            data_sets,
            of_parameters,
            warmup,
            draws,
            chains,
            stepsize,
            metric,
            inv_metric,
            state: StateForm::new(dimension, metric),
            dimension,
            has_metrics: job.has_metrics(),
            starts,
            method,
            superchains,
            resumes: job.resumes,
            renamed,
            axes,
            dims: job.dims.clone(),
            coords: job.coords.clone(),
            data_shapes,
            lesser: if job.data_sets.is_some() { Lesser::of_program(false) } else { Lesser::new(&job.model, false) },
        })
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

    /// Warmup iterations of each chain.
    pub fn warmup(&self) -> usize {
        self.warmup
    }

    /// Data sets, where each has chains of its own.
    pub fn data_sets(&self) -> Option<usize> {
        self.data_sets.as_ref().map(DataSets::count)
    }

    /// Chains.
    pub fn chains(&self) -> usize {
        self.chains
    }

    /// Draws of each chain that are kept.
    pub fn kept(&self) -> usize {
        self.draws.div_ceil(self.method.thin())
    }

    fn has_parameters(&self) -> bool {
        self.model.functions().any(|name| name == PARAMETERS)
    }

    fn iterations(&self) -> Iterations {
        Iterations { warmup: self.warmup, kept: self.kept(), thin: self.method.thin() }
    }

    fn inputs(&self) -> Inputs {
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let names = &self.driver.names;
        let counts = [(&names.num_warmup, self.warmup), (&names.num_draws, self.draws)];
        let mut data = self.data.clone();
        if let Some(sets) = &self.data_sets {
            let of: Vec<usize> = (0..self.chains).map(|chain| sets.of_chain(chain, self.chains)).collect();
            data = sets.as_lanes(data, &of);
        }
        let more = self.renamed.is_some() || self.data_sets.is_some();
        if let (true, Ok(main)) = (more, self.driver.program.function("main")) {
            // What only the parameters of draws are made of is none of the chains' business.
            data.values.retain(|name, _| main.signature().ports.iter().any(|port| port.name == *name));
        }
        let mut inputs = data.lanes(self.chains);
        for (name, n) in counts {
            inputs = inputs.shared(name, count(n));
        }
        if let Some(stepsize) = self.stepsize {
            inputs = inputs.shared(&names.stepsize, stepsize);
        }
        if let Some(inv_metric) = &self.inv_metric {
            inputs = match self.has_metrics {
                true => inputs.lane(&names.inv_metric, inv_metric.clone()),
                false => inputs.shared(&names.inv_metric, inv_metric.clone()),
            };
        }
        match &self.starts {
            Some(starts) => inputs.lane(&names.start, starts.clone()),
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
        refuse(&estimate, options).map_err(|error| self.with_remedy(&error, &estimate))?;
        Ok(estimate)
    }

    /// The chains, ready to run: they tell the warnings of the compilation to the shapes of the data.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn bound(&self, options: &Options) -> Result<Bound, Error> {
        if self.resumes {
            return self.bound_to(&[BlockStates::start(self.chains)], options);
        }
        self.driver.program.function("main")?.bind(&self.inputs(), options).map_err(driver::without_driver)
    }

    /// The memory of the run, the records of all draws included: as they are kept, and once more as arrays; then, in
    /// the place of the former, the constrained parameters, of so many bytes a draw.
    fn estimate(&self, bound: &Bound, parameters: usize, options: &Options) -> MemoryEstimate {
        let mut estimate = bound.memory(options);
        let streams = bound.compiled().units.globals.streams.values();
        let draw = streams.filter(|s| s.name == DRAW.name).flat_map(|s| &s.fields);
        let field = |ty: &Type| ty.elements().saturating_mul(size_of::<f64>());
        let record = draw.fold(0, |sum: usize, (_, ty)| sum.saturating_add(field(ty)));
        let states = if self.method.saves_warmup() { self.warmup.div_ceil(self.method.thin()) } else { 0 };
        let rows = self.kept().saturating_add(states);
        let records = rows.saturating_mul(record.saturating_add(record.max(parameters)));
        estimate.host_bytes_per_lane = estimate.host_bytes_per_lane.saturating_add(records);
        estimate
    }

    /// What is too large, with what may be done about it: where draws take most of the memory, fewer of them.
    fn with_remedy(&self, error: &Error, estimate: &MemoryEstimate) -> Error {
        let rows = self.kept().saturating_mul(self.chains).max(1);
        let draws = estimate.host_bytes_per_lane.saturating_mul(self.chains);
        let remedy = if 2 * (draws as u128) > estimate.total() as u128 {
            format!(
                "; the draws take most of it, {:.2} MiB each with all that is computed of them: fewer --draws or --chains, \
                 --thin N, which keeps one of N, or fewer generated quantities",
                draws as f64 / rows as f64 / f64::from(1 << 20)
            )
        } else {
            "; fewer --chains take less".to_owned()
        };
        Error::new(error.kind(), format!("{error}{remedy}"))
    }

    /// Runs all chains. `observer` is told of every kept draw of any chain, by worker threads, and of more if it asks
    /// for it; a closure is told of the draws.
    ///
    /// # Errors
    /// For data that do not fit, a sampler that emits no `draw`, and a batch that does not fit in memory. Chains that trap
    /// are no error: see [`Draws::traps`]. [`ErrorKind::Fatal`] where the program ends the run.
    pub fn run(&self, options: &Options, observer: &dyn Observer) -> Result<Draws, Error> {
        or_fatal(self.run_keeping(options, observer)?)
    }

    /// Like [`run`](Self::run), but where the program ends the run the draws that there are stay: see [`Draws::fatal`].
    ///
    /// # Errors
    /// As [`run`](Self::run), but for that.
    pub fn run_keeping(&self, options: &Options, observer: &dyn Observer) -> Result<Draws, Error> {
        let bound = self.bound(options)?;
        let parameters = self.bytes_of_parameters(&bound, options)?;
        let mut draws = self.run_bound(&bound, parameters, options, observer)?;
        // Its copies of the data are not needed beside those of what follows.
        drop(bound);
        if self.model.functions().any(|name| name == PARAMETERS) {
            if draws.each_chain.is_empty() {
                self.constrain(&mut draws, options)?;
            } else {
                self.constrain_each(&mut draws, options)?;
            }
        }
        Ok(draws)
    }

    /// Like [`run`](Self::run), but the parameters of the draws are the unconstrained state alone, as `q`.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_unconstrained(&self, options: &Options, observer: &dyn Observer) -> Result<Draws, Error> {
        or_fatal(self.run_bound(&self.bound(options)?, 0, options, observer)?)
    }

    fn run_bound(
        &self,
        bound: &Bound,
        parameters: usize,
        options: &Options,
        observer: &dyn Observer,
    ) -> Result<Draws, Error> {
        self.check_axes(options)?;
        let estimate = self.estimate(bound, parameters, options);
        let budget = budget(&estimate, options).map_err(|error| self.with_remedy(&error, &estimate))?;
        let counts = (self.chains, self.warmup, self.kept());
        let recorder = Recorder::new(&bound.compiled().units.globals.streams, counts, observer, &options.prints)?;
        let recorder = if self.pools() { recorder.with_states(self.chains)? } else { recorder };
        bound.prepare(options)?;
        let fatal: OnceCell<Error> = OnceCell::new();
        let start = Instant::now();
        let results = std::thread::scope(|scope| {
            let (running, done) = mpsc::channel();
            if observer.watches() {
                scope.spawn(|| watch::watch(&|| recorder.states(), self.iterations(), observer, &{ done }));
            }
            let _answered = observer.asks().map(|asks| {
                let (answered, questions) = asks.of_chains();
                let now = || self.so_far(&recorder, start.elapsed().as_secs_f64(), options);
                // Who has asked and went away wants no answer.
                scope.spawn(move || questions.iter().for_each(|question| drop(question.send(now()))));
                answered
            });
            let run = |bound: &Bound| {
                let (results, ended) = bound.run_keeping(&budget, options, &recorder)?;
                let is_ended = ended.is_some();
                if let Some(error) = ended {
                    fatal.get_or_init(|| error);
                }
                Ok((results, is_ended))
            };
            let results = if self.pools() {
                self.run_waves(bound, &recorder, &run, options)
            } else {
                run(bound).map(|(results, _)| results)
            };
            drop(running);
            results
        })?;
        let seconds = start.elapsed().as_secs_f64();
        let draws = self.collect(recorder, &results, seconds)?;
        Ok(Draws { fatal: fatal.into_inner(), ..draws })
    }

    fn collect(&self, recorder: Recorder<'_>, results: &Results, seconds: f64) -> Result<Draws, Error> {
        let reached = Reached::of(&recorder.states(), &self.iterations()).after(seconds);
        let rejected_after_warmup = recorder.rejected_after_warmup();
        let recorded = recorder.finish();
        let stopped = results.traps().iter().any(|t| t.kind == TrapKind::Interrupted);
        let failed = |c: &usize| results.traps().iter().any(|t| t.position == *c && t.kind != TrapKind::Interrupted);
        let chains: Vec<usize> = (0..self.chains).filter(|c| !failed(c)).collect();
        let how = (self.warmup, self.method.thin(), self.method.saves_warmup());
        let each_chain = chains.iter().filter(|_| stopped).map(|c| recorded.all_of(*c, how)).collect();
        let each = self.data_sets().map_or(1, |sets| self.chains / sets);
        let (chains, draws) = if stopped { recorded.most_draws(chains, each) } else { recorded.all_draws(chains) };
        if let Some(chain) = chains.iter().find(|c| !stopped && recorded.chains[**c].draws != self.kept()) {
            let (found, wanted) = (recorded.chains[*chain].draws, self.kept());
            let message = format!("the sampler emitted {found} draws in chain {chain}, where {wanted} were asked for");
            return Err(Error::new(ErrorKind::Program, message));
        }
        let (traps, rejected, stats) =
            (draws::with_failures(results), results.caught().to_vec(), results.stats().clone());
        let told = RunFacts { reached, traps, rejected, rejected_after_warmup, each_chain, seconds, stats };
        Ok(self.drawn(&recorded, (chains, draws), told))
    }

    /// What all chains have that go on, but those that trapped.
    fn so_far(&self, recorder: &Recorder<'_>, seconds: f64, options: &Options) -> Result<Draws, Error> {
        let reached = Reached::of(&recorder.states(), &self.iterations()).after(seconds);
        let rejected_after_warmup = recorder.rejected_after_warmup();
        let (recorded, chains, draws) = recorder.so_far();
        let told = RunFacts {
            reached,
            traps: recorded.chains.iter().filter_map(|chain| chain.trap.clone()).collect(),
            rejected: rejected_after_warmup.clone(),
            rejected_after_warmup,
            each_chain: vec![],
            seconds,
            stats: Stats::default(),
        };
        let mut draws = self.drawn(&recorded, (chains, draws), told);
        drop(recorded);
        if self.has_parameters() {
            // What these print is printed at the end, and they leave the cores to the chains.
            let mut options = options.clone().threads(1);
            options.prints = Prints::default();
            self.constrain(&mut draws, &options)?;
        }
        Ok(draws)
    }

    /// So many draws of these chains, their states unconstrained, as `q`.
    fn drawn(&self, recorded: &Recorded, (chains, draws): (Vec<usize>, usize), told: RunFacts) -> Draws {
        let RunFacts { reached, traps, rejected, rejected_after_warmup, each_chain, seconds, stats } = told;
        let adapted = chains.iter().filter_map(|c| {
            let chain = &recorded.chains[*c];
            number(&recorded.adapted, chain.adapted.as_ref()?, STEPSIZE)
        });
        let adapted = adapted.collect();
        let mut statistics = recorded.fields(&chains, draws);
        let q = statistics.shift_remove(Q).expect("the recorder checked it");
        let warmup_states = self.method.saves_warmup().then(|| {
            let states = recorded.warmup_states(&chains);
            let mut statistics = recorded.fields_of_warmup(&chains, states);
            let q = statistics.shift_remove(Q).expect("it has the fields of a draw");
            WarmupStates { parameters: IndexMap::from([(Q.to_owned(), q)]), statistics, states }
        });
        Draws {
            parameters: IndexMap::from([(Q.to_owned(), q)]),
            warmup_states,
            each_chain,
            axes: self.axes.clone(),
            coords: self.coords.clone(),
            metric: self.metric,
            inv_metrics: chains.iter().filter_map(|c| recorded.inv_metric(*c)).collect(),
            chain_seconds: chains.iter().map(|c| recorded.chains[*c].seconds()).collect(),
            thin: self.method.thin(),
            statistics,
            chains,
            draws,
            asked: self.kept(),
            reached,
            fatal: None,
            failed: None,
            traps,
            rejected,
            rejected_after_warmup,
            gradients: recorded.gradients(),
            max_treedepth: self.method.max_treedepth(),
            target_accept: self.method.target_accept().filter(|_| self.stepsize.is_none()),
            warmup: self.warmup,
            settings: self.method.settings().into_iter().cloned().collect(),
            stepsize: self.stepsize,
            adapted,
            superchains: self.superchains,
            data_sets: self.data_sets().map(|sets| (sets, self.chains / sets)),
            seconds,
            stats,
        }
    }
}

/// What is told of a run beside its records.
struct RunFacts {
    reached: Reached,
    traps: Vec<Trap>,
    rejected: Vec<Caught>,
    rejected_after_warmup: Vec<Caught>,
    each_chain: Vec<ChainDraws>,
    seconds: f64,
    stats: Stats,
}

/// The draws of a run that no chain ended.
fn or_fatal(mut draws: Draws) -> Result<Draws, Error> {
    draws.fatal.take().map_or(Ok(draws), Err)
}

/// The shapes of the data of a job, those of each data set without the axis over these.
fn shapes_of<'a>(job: &Job<'_>, inputs: impl Iterator<Item = &'a Inputs>) -> IndexMap<String, Vec<usize>> {
    let of_one = |(name, shape): (String, Vec<usize>)| Some((name, shape.get(1..)?.to_vec()));
    if let ModelSource::Stan(model) = job.model {
        let shape = |(name, data): (&str, Data)| {
            Some((name.to_owned(), data.to_array(name, data.guess_type()).ok()?.shape.to_vec()))
        };
        let shared = model.data().iter().filter_map(|(name, datum)| shape((name, datum.clone().into())));
        let own = model.lane_data().iter().filter_map(|(name, datum)| shape((name, datum.clone().into())));
        return shared.chain(own.filter_map(of_one)).collect();
    }
    let values = inputs.flat_map(|inputs| &inputs.values);
    let shared = values.map(|(name, given)| (name.clone(), given.array.shape.to_vec()));
    let own = job.data_sets.iter().flat_map(DataSets::arrays);
    shared.chain(own.filter_map(|(name, array)| of_one((name.clone(), array.shape.to_vec())))).collect()
}

/// Each row so many times, one after the other.
fn repeated(rows: &Array, times: usize) -> Array {
    let values = rows.as_real().expect("starting points are real");
    let row = values.chunks(rows.shape[1].max(1));
    let data = row.flat_map(|row| row.iter().copied().cycle().take(row.len() * times)).collect();
    Array::real([rows.shape[0] * times, rows.shape[1]], data)
}
