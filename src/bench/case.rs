//! A model with its data and starting points, for our engines and in the files that peers read.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use indexmap::IndexMap;

use super::Comparison;
use super::model::{DataSource, Kind, Model, correlated_precision};
use super::peer::Places;
use super::protocol::StanFiles;
use super::report::ModelSetup;
use super::stan::Adapted;
use crate::mcmc::protocol::Q;
use crate::mcmc::sampling::{DENSITY, Job, LEAF_STEPS, ModelSource, SamplerSettings, Sampling, dimension};
use crate::program::io::{ArrayType, Data, NamedValues, write_arrays};
use crate::program::{Codegen, Error, ErrorKind, Function, Inputs, MemoryEstimate, Options, Program, refuse};
use crate::types::{Array, Precision};

/// The program that makes the data of the logistic regression.
const LOGISTIC: &str = "nuts/models/synthetic_logistic_data.ab";
/// Chains whose states become starting points.
const STARTING_CHAINS: usize = 32;

/// A folder for the files of a comparison, removed at the end.
#[derive(Debug)]
pub(super) struct WorkFolder(PathBuf);

impl WorkFolder {
    pub(super) fn new() -> Result<Self, Error> {
        let path = std::env::temp_dir().join(format!("autobatch-bench-{}", std::process::id()));
        fs::create_dir_all(&path)
            .map_err(|e| Error::new(ErrorKind::Io, format!("cannot make the folder {}: {e}", path.display())))?;
        Ok(Self(path))
    }
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        // What stays is in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A model, ready to be measured.
#[derive(Debug)]
pub(super) struct Case<'a> {
    pub(super) model: &'a Model,
    /// The program.
    pub(super) program: PathBuf,
    /// The step size; 0 for a program of control flow.
    pub(super) stepsize: f64,
    /// Dimensions of the state; 0 without one.
    pub(super) dimension: usize,
    /// Shared inputs by name.
    pub(super) data: IndexMap<String, Array>,
    /// Starting points of the largest number of chains, chain × dimension; for a program of control flow the input of each
    /// lane.
    pub(super) starts: Array,
    pub(super) folder: &'a Path,
    /// Of a Stan program: what its warmup learnt.
    stan: Option<Adapted>,
}

impl<'a> Case<'a> {
    pub(super) fn prepare(
        model: &'a Model,
        comparison: &Comparison,
        places: &Places,
        folder: &'a WorkFolder,
    ) -> Result<Self, Error> {
        let most = comparison.most_chains();
        let checkout = places.checkout()?;
        let folder = folder.path();
        let stan = None;
        match &model.kind {
            &Kind::Control { file, input, .. } => {
                let program = checkout.join(file);
                // As they are made, as a run takes them, and what it gives.
                check_memory(most, 3 * size_of::<i64>())?;
                let starts = Array::int([most], (0..most).map(input).collect());
                Ok(Self { model, program, stepsize: 0.0, dimension: 0, data: IndexMap::new(), starts, folder, stan })
            }
            &Kind::Posterior { file, stepsize, dimension, data, burn_in } => {
                let program = checkout.join(file);
                let data = match &comparison.data {
                    Some(file) => arrays(&NamedValues::read(file)?)?,
                    None => data.arrays(dimension, checkout)?,
                };
                let stepsize = comparison.stepsize.unwrap_or(stepsize);
                let starts = Array::real([0, dimension], Vec::new());
                let mut case = Self { model, program, stepsize, dimension, data, starts, folder, stan };
                if comparison.data.is_some() {
                    case.dimension = case.told_dimension()?;
                }
                // As they are made, and as a run takes them.
                check_memory(most, 2 * case.dimension * size_of::<f64>())?;
                case.starts = case.starting_points(most, burn_in, comparison.stop.clone())?;
                Ok(case)
            }
            Kind::Stan { program, include } => {
                let data = comparison.data.as_deref();
                // Warmup takes longest, and is the same with generated code. Without a compiler the series say so.
                let codegen = if comparison.generates_code() { Codegen::Auto } else { Codegen::Off };
                let mut options = Options::default().codegen(codegen);
                options.settings.stop = comparison.stop.clone();
                let model_files = (program.as_path(), &include[..], data);
                let adapted = Adapted::new(model_files, folder, comparison.warmup, most, &options)?;
                let (starts, dimension) = (adapted.starts.clone(), adapted.starts.shape[1]);
                if dimension == 0 {
                    let message = format!("{} has no parameters: there is nothing to measure", model.name);
                    return Err(Error::new(ErrorKind::Input, message));
                }
                Ok(Self {
                    model,
                    program: program.clone(),
                    stepsize: comparison.stepsize.unwrap_or(adapted.stepsize),
                    dimension,
                    data: IndexMap::new(),
                    starts,
                    folder,
                    stan: Some(adapted),
                })
            }
        }
    }

    /// The dimension of the state that the data tell.
    fn told_dimension(&self) -> Result<usize, Error> {
        let program = Program::load(&self.program)?;
        let density = program.function(DENSITY)?;
        let dimension = dimension(&density, &self.inputs(&density)?);
        dimension.filter(|d| *d > 0).ok_or_else(|| {
            let message = format!("the data do not tell the dimension of {}", self.model.name);
            Error::new(ErrorKind::Input, message)
        })
    }

    /// States of a few chains after their burn-in, so that no system is measured on its way to the posterior.
    fn starting_points(&self, most: usize, burn_in: usize, stop: Option<Arc<AtomicBool>>) -> Result<Array, Error> {
        let chains = STARTING_CHAINS.min(most);
        let zeros = Array::real([chains, self.dimension], vec![0.0; chains * self.dimension]);
        let mut sampling = self.sampling(chains, zeros, 1)?;
        sampling.set_schedule(burn_in, most.div_ceil(chains));
        let mut options = Options::default();
        options.settings.stop = stop;
        let draws = sampling.run_unconstrained(&options, &|| ())?;
        if let Some(trap) = draws.traps.first() {
            return Err(Error::new(ErrorKind::Input, format!("{}: no starting point: {}", self.model.name, trap.kind)));
        }
        let states = draws.parameters[Q].as_real().expect("a state is real");
        Ok(Array::real([most, self.dimension], states[..most * self.dimension].to_vec()))
    }

    /// What the report says of it.
    pub(super) fn setup(&self, comparison: &Comparison) -> ModelSetup {
        let source = match self.model.kind {
            Kind::Control { .. } => return ModelSetup::default(),
            Kind::Posterior { data, .. } => data,
            Kind::Stan { .. } => DataSource::Nothing,
        };
        let given = comparison.data.as_ref().map(|file| file.display().to_string());
        ModelSetup {
            stepsize: Some(self.stepsize),
            dimension: Some(self.dimension),
            data: Some(given.unwrap_or_else(|| source.describe())),
        }
    }

    /// The chains of a number of starting points, with so many leapfrog steps between the states that NUTS considers.
    pub(super) fn sampling(&self, chains: usize, starts: Array, leaf_steps: usize) -> Result<Sampling, Error> {
        let model = self.stan.as_ref().map_or(ModelSource::from(&self.program), |stan| (&stan.model).into());
        let job = Job {
            chains,
            warmup: 0,
            draws: 1,
            stepsize: Some(self.stepsize),
            inv_metric: self.stan.as_ref().map(Adapted::inv_metric),
            starts: Some(starts),
            settings: SamplerSettings::new().with(LEAF_STEPS, i64::try_from(leaf_steps).unwrap_or(i64::MAX)),
            ..Job::new(model)
        };
        Sampling::new(&job, |density| self.inputs(density))
    }

    /// The shared inputs that a density takes.
    fn inputs(&self, density: &Function<'_>) -> Result<Inputs, Error> {
        if let Some(stan) = &self.stan {
            return Ok(stan.model.inputs().restricted_to(density.signature()));
        }
        let mut inputs = Inputs::new();
        for port in density.signature().ports.iter().filter(|p| p.shared) {
            let Some(array) = self.data.get(&port.name) else {
                let message = format!("the data of {} have no `{}`", self.model.name, port.name);
                return Err(Error::new(ErrorKind::Input, message));
            };
            let ty = ArrayType { dtype: port.dtype, rank: port.extents.len() };
            inputs = inputs.shared(port.name.clone(), Data::Array(array.clone()).to_array(&port.name, ty)?);
        }
        Ok(inputs)
    }

    /// Useful work of one run over so many lanes, where the inputs tell it.
    pub(super) fn work(&self, lanes: usize) -> Option<u64> {
        let Kind::Control { work, .. } = self.model.kind else { return None };
        Some(self.starts.as_int()?.iter().take(lanes).map(|n| work(*n)).sum())
    }

    /// The starting points of the first chains.
    pub(super) fn first_starts(&self, chains: usize) -> Array {
        self.starts_of(0..chains)
    }

    /// The starting points of these chains.
    pub(super) fn starts_of(&self, chains: Range<usize>) -> Array {
        self.starts.rows(chains)
    }

    /// What peers are told of a Stan program.
    pub(super) fn stan_files(&self) -> Option<StanFiles> {
        self.stan.as_ref().map(Adapted::files)
    }

    /// The file that peers read: the data and the starting points of so many chains.
    pub(super) fn file(&self, chains: usize) -> Result<PathBuf, Error> {
        let path = self.folder.join(format!("{}-{chains}.json", self.model.name));
        if path.exists() {
            return Ok(path);
        }
        let mut arrays = self.data.clone();
        let name = if self.dimension == 0 { "n" } else { "starts" };
        arrays.insert(name.to_owned(), self.first_starts(chains));
        write_arrays(&path, &arrays, &IndexMap::new(), Precision::F64)?;
        Ok(path)
    }
}

/// Refuses so many inputs or starting points where the memory for them is not there.
fn check_memory(lanes: usize, bytes_per_lane: usize) -> Result<(), Error> {
    let estimate = MemoryEstimate {
        lanes,
        host_bytes_per_lane: bytes_per_lane,
        state_bytes_per_lane: 0,
        tape_level_bytes: 0,
        level_bytes: 0,
        running_lanes: 0,
        shared_bytes: 0,
    };
    refuse(&estimate, &Options::default())
}

/// All values of a file, each of the type that it looks like.
fn arrays(values: &NamedValues) -> Result<IndexMap<String, Array>, Error> {
    let array = |(name, data): (&str, &Data)| Ok((name.to_owned(), data.to_array(name, data.guess_type())?));
    values.iter().map(array).collect()
}

impl DataSource {
    /// What it is, in a word.
    pub(super) fn describe(self) -> String {
        match self {
            DataSource::File(file) => file.to_owned(),
            DataSource::Logistic(rows) => format!("{LOGISTIC}, seed 1, {rows} rows"),
            DataSource::Correlated => "mean 0, covariance 0.9^|i - j|".to_owned(),
            DataSource::Nothing => "none".to_owned(),
        }
    }

    fn arrays(self, dimension: usize, checkout: &Path) -> Result<IndexMap<String, Array>, Error> {
        match self {
            DataSource::File(file) => arrays(&NamedValues::read(&checkout.join(file))?),
            DataSource::Nothing => Ok(IndexMap::new()),
            DataSource::Correlated => {
                let d = dimension;
                let precision = Array::real([d, d], correlated_precision(d));
                Ok(IndexMap::from([
                    ("mean".to_owned(), Array::real([d], vec![0.0; d])),
                    ("precision".to_owned(), precision),
                ]))
            }
            DataSource::Logistic(rows) => {
                // Every lane of the generator is a row.
                let generator = Program::load(checkout.join(LOGISTIC))?;
                let mut options = Options::default();
                options.settings.seed = 1;
                let results = generator.function("observation")?.run(&Inputs::new().lanes(rows), &options)?;
                Ok(results.outputs().clone())
            }
        }
    }
}
