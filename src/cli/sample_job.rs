//! What `sample` is asked for: the arguments as a job.

use std::path::{Path, PathBuf};

use crate::mcmc::sampling::{DataSets, Job, Metric};
use crate::program::io::{ArrayType, Data, NamedValues, read_argument};
use crate::program::{Error, ErrorKind, Options};
use crate::types::{Array, DType};

use super::args::SampleArgs;
use super::coords;
use super::inits::{inits, of_chains};
use super::model::Model;
use super::sample_args::AlgorithmName;

/// The key of the metric in its file.
const INV_METRIC: &str = "inv_metric";

/// The job.
///
/// # Errors
/// For what makes no sense together, and files that cannot be read.
pub(super) fn job<'a>(args: &'a SampleArgs, model: &'a Model<'a>, options: &Options) -> Result<Job<'a>, Error> {
    let chain = &args.chain;
    let chains = all_chains(args.chains, model.sets.as_ref())?;
    let refused = |message: &str| Err(Error::new(ErrorKind::Option, message));
    if args.chains == 0 {
        return refused("--chains 0: there is nothing to sample");
    }
    let stays = chain.algorithm == Some(AlgorithmName::FixedParam);
    let starts = match (&chain.starts, chain.init_files()) {
        (Some(_), Some(_)) => return refused("--init and --starts both name a file of starting points"),
        (Some(path), None) => Some(read_starts(path)?),
        (None, Some(_)) if model.sets.is_some() => {
            return refused(
                "--init names values of parameters, whose data would differ: with --lane-data give --starts",
            );
        }
        (None, Some(files)) => Some(inits(&files, model, (chains, chain.id), options)?),
        (None, None) => None,
    };
    let stepsize = match (chain.stepsize, chain.adapt_engaged) {
        (Some(_), Some(true)) => {
            return refused("--stepsize is a step size that stays: with --adapt-engaged 1 give --initial-stepsize");
        }
        (None, Some(false)) => Some(initial_stepsize(chain.initial_stepsize.as_deref())?),
        (None, _) if stays => Some(1.0),
        (given, _) => given,
    };
    let metric = chain.metric.map_or_else(Metric::default, Metric::from);
    let inv_metric = read_metrics(&chain.metric_file, metric, (chains, chain.id))?;
    let (dims, coords) = args.coords.as_deref().map(coords::read).transpose()?.unwrap_or_default();
    Ok(Job {
        sampler: chain.algorithm.map(|a| Path::new(a.sampler())).or(args.sampler.as_deref()),
        chains,
        data_sets: model.sets.clone(),
        // Nothing would be learnt.
        warmup: if stays { 0 } else { args.warmup },
        draws: args.draws,
        stepsize,
        metric,
        inv_metric,
        starts,
        settings: chain.settings(&args.set)?,
        dims,
        coords,
        ..Job::new(model.source())
    })
}

/// Chains of all data sets together.
pub(super) fn all_chains(each: usize, sets: Option<&DataSets>) -> Result<usize, Error> {
    let count = sets.map_or(1, DataSets::count);
    each.checked_mul(count)
        .ok_or_else(|| Error::new(ErrorKind::Option, format!("{count} data sets of {each} chains are too many")))
}

/// The files that a run reads.
pub(super) fn files_read(args: &SampleArgs, model: &Path) -> Vec<PathBuf> {
    let chain = &args.chain;
    let given = of_chains(&chain.init_files().unwrap_or_default(), args.chains, chain.id);
    let given = given.into_iter().chain(of_chains(&chain.metric_file, args.chains, chain.id));
    let others = [&chain.starts, &args.sampler, &args.lane_data, &args.coords].into_iter().flatten().cloned();
    args.data.files().chain([model.to_owned()]).chain(given).chain(others).collect()
}

/// The step size of chains that do not adapt: Stan's is 1.
fn initial_stepsize(given: Option<&str>) -> Result<f64, Error> {
    let Some(text) = given else { return Ok(1.0) };
    let message = || Error::new(ErrorKind::Option, format!("initial_stepsize must be a number, not `{text}`"));
    text.trim().parse().map_err(|_| message())
}

/// The starting points: chain × dimension, or one for all chains. An object has them under its only key.
pub(super) fn read_starts(path: &Path) -> Result<Array, Error> {
    let reals = |rank| ArrayType { dtype: DType::Real, rank };
    let named = NamedValues::read(path).ok().filter(|values| values.names().len() != 1);
    if let Some(values) = named {
        let names: Vec<&str> = values.names().collect();
        let message = format!(
            "{} has {}: starting points are unconstrained, one row for each chain, under a single name",
            values.origin(),
            names.join(", ")
        );
        return Err(Error::new(ErrorKind::Input, message));
    }
    let (_, data) = read_argument(&format!("starts=@{}", path.display()))?;
    let is_row = match &data {
        Data::Numbers(numbers) => numbers.array().shape.len() == 1,
        Data::Json(value) => value.as_array().is_some_and(|all| all.iter().any(serde_json::Value::is_number)),
        _ => false,
    };
    if is_row {
        let row = data.to_array("--starts", reals(1))?;
        let values = row.as_real().expect("it was read as reals").to_vec();
        return Ok(Array::real([1, values.len()], values));
    }
    Ok(data.to_array("--starts", reals(2))?)
}

/// The inverse metric of files: of one file that of all chains, else one for each.
fn read_metrics(files: &[PathBuf], metric: Metric, (chains, id): (usize, u64)) -> Result<Option<Array>, Error> {
    let files = of_chains(files, chains, id);
    if files.len() > 1 && files.len() != chains {
        let message =
            format!("--metric-file names {} files for {chains} chains: one for all, or one for each", files.len());
        return Err(Error::new(ErrorKind::Option, message));
    }
    let all: Vec<Array> = files.iter().map(|path| read_metric(path, metric)).collect::<Result<_, _>>()?;
    let Some(first) = all.first() else { return Ok(None) };
    if all.len() == 1 {
        return Ok(Some(first.clone()));
    }
    if let Some(at) = all.iter().position(|other| other.shape != first.shape) {
        let (file, other) = (files[at].display(), files[0].display());
        let message = format!("{file} has {}, where {other} has {}", all[at].ty(), first.ty());
        return Err(Error::new(ErrorKind::Input, message));
    }
    let numbers = all.iter().flat_map(|metric| metric.as_real().expect("it was read as reals")).copied().collect();
    let shape = [all.len()].into_iter().chain(first.shape.iter().copied());
    Ok(Some(Array::real(shape, numbers)))
}

/// The inverse metric of a file: that of CmdStan's, or an array.
fn read_metric(path: &Path, metric: Metric) -> Result<Array, Error> {
    let rank = if metric == Metric::Dense { 2 } else { 1 };
    let expected = ArrayType { dtype: DType::Real, rank };
    if path.extension().is_some_and(|e| e == "json")
        && let Ok(values) = NamedValues::read(path)
    {
        return Ok(values.array(INV_METRIC, expected)?);
    }
    let (_, data) = read_argument(&format!("{INV_METRIC}=@{}", path.display()))?;
    Ok(data.to_array("--metric-file", expected)?)
}
