//! Sampling: a run that can be watched, paused and ended from another thread of Python.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use autobatch::program::Terms;
use autobatch::report::progress::group_row;
use autobatch::sampler::{
    Advice, CalibratedQuantity, Coordinate, Draws, DrawsUnderWay, Metric, Number, Progress, Samples, Simulator,
};
use autobatch::{Array, Options, Sampler, TrapKind};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{raised, refused};
use crate::model::{Given, named, warnings};
use crate::options::Asked;
use crate::values::{array, to_numpy};
use crate::watched::{detached, watched};

/// A run of a sampler.
#[pyclass(frozen)]
pub(crate) struct Run {
    sampler: Mutex<Option<Sampler>>,
    stop: Arc<AtomicBool>,
    pause: Arc<AtomicBool>,
    progress: Arc<Mutex<Option<Progress>>>,
    draws: DrawsUnderWay,
    keep: Option<Vec<String>>,
    /// The number of the first chain.
    first: u64,
}

/// Draws and all draws, iterations, chains that are warm and that are done, the least and the most iterations of warmup.
type Reached = (usize, usize, usize, usize, usize, (usize, usize));

/// Gradients, those of a second, seconds that are left, and for each group of chains its name, how far it is and the rest.
type Rates = (u64, Option<f64>, Option<f64>, Vec<(String, f64, String)>);

/// What a run is asked for.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Job {
    sampler: Option<PathBuf>,
    chains: usize,
    warmup: usize,
    draws: usize,
    stepsize: Option<f64>,
    metric: String,
    keep: Option<Vec<String>>,
    store: Option<PathBuf>,
    lanes: Option<(usize, usize)>,
    /// Names of axes, by variables.
    dims: Vec<(String, Vec<String>)>,
    /// What stands along axes.
    coords: Vec<(String, Along)>,
}

/// What stands along an axis.
#[derive(FromPyObject)]
pub(crate) enum Along {
    Ints(Vec<i64>),
    Texts(Vec<String>),
}

impl From<Along> for Coordinate {
    fn from(along: Along) -> Self {
        match along {
            Along::Ints(numbers) => Coordinate::Ints(numbers),
            Along::Texts(texts) => Coordinate::Texts(texts),
        }
    }
}

#[pymethods]
impl Run {
    #[new]
    #[allow(clippy::too_many_arguments, reason = "they are those of one call in Python")]
    fn new(
        py: Python<'_>,
        given: Given<'_>,
        mut job: Job,
        inits: Vec<Bound<'_, PyDict>>,
        starts: Option<Bound<'_, PyAny>>,
        inv_metric: Option<Bound<'_, PyAny>>,
        lane_data: Option<Bound<'_, PyDict>>,
        settings: &Bound<'_, PyDict>,
        asked: Asked,
    ) -> PyResult<Self> {
        let (options, stop) = asked.options(py)?;
        let first = options.get_first_lane();
        let metric = match job.metric.as_str() {
            "diag" => Metric::Diagonal,
            "dense" => Metric::Dense,
            "unit" => Metric::Unit,
            given => {
                let message = format!("metric={given:?}: there is 'diag', 'dense' and 'unit'");
                return Err(refused(py, message));
            }
        };
        let pause = Arc::new(AtomicBool::new(false));
        let progress: Arc<Mutex<Option<Progress>>> = Arc::default();
        let told = Arc::clone(&progress);
        let draws = DrawsUnderWay::new();
        let mut sampler = given
            .sampler(options)?
            .chains(job.chains)
            .warmup(job.warmup)
            .draws(job.draws)
            .metric(metric)
            .pause(Arc::clone(&pause))
            .draws_under_way(&draws)
            .on_progress(move |now| *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(now.clone()));
        if let Some(path) = job.sampler {
            sampler = sampler.sampler(path);
        }
        if let Some(stepsize) = job.stepsize {
            sampler = sampler.stepsize(stepsize);
        }
        for (i, init) in inits.iter().enumerate() {
            let origin = if inits.len() == 1 { "init".to_owned() } else { format!("init[{i}]") };
            sampler = sampler.init(named(&origin, init)?);
        }
        if let Some(starts) = starts {
            sampler = sampler.starts(array("starts", &starts)?);
        }
        if let Some(metric) = inv_metric {
            sampler = sampler.inv_metric(array("inv_metric", &metric)?);
        }
        if let Some(own) = lane_data {
            sampler = sampler.lane_data(named("lane_data", &own)?);
        }
        for (name, value) in settings.iter() {
            let name: String = name.extract()?;
            sampler = sampler.set(name, number(&value)?);
        }
        for (variable, names) in job.dims {
            sampler = sampler.dims(variable, names);
        }
        for (axis, along) in job.coords {
            sampler = sampler.coords(axis, along.into());
        }
        if let Some(path) = job.store {
            sampler = sampler.store(path);
            if let Some(names) = job.keep.take() {
                sampler = sampler.keep(names);
            }
        }
        if let Some((first, end)) = job.lanes {
            sampler = sampler.lanes(first..end);
        }
        Ok(Self { sampler: Mutex::new(Some(sampler)), stop, pause, progress, draws, keep: job.keep, first })
    }

    /// A run that goes on with a store.
    #[staticmethod]
    fn resume(
        py: Python<'_>,
        store: PathBuf,
        more_draws: usize,
        lanes: Option<(usize, usize)>,
        asked: Asked,
    ) -> PyResult<Self> {
        let (options, stop) = asked.options(py)?;
        let pause = Arc::new(AtomicBool::new(false));
        let progress: Arc<Mutex<Option<Progress>>> = Arc::default();
        let told = Arc::clone(&progress);
        let draws = DrawsUnderWay::new();
        let mut sampler = Sampler::of_store(store)
            .options(options)
            .cancel(Arc::clone(&stop))
            .more_draws(more_draws)
            .pause(Arc::clone(&pause))
            .draws_under_way(&draws)
            .on_progress(move |now| *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(now.clone()));
        if let Some((first, end)) = lanes {
            sampler = sampler.lanes(first..end);
        }
        Ok(Self { sampler: Mutex::new(Some(sampler)), stop, pause, progress, draws, keep: None, first: 0 })
    }

    /// Runs the chains, once. Gives what came out as a dictionary.
    fn run<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let sampler = self.sampler.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(sampler) = sampler else { return Err(PyRuntimeError::new_err("this run was made")) };
        let made = watched(py, &self.stop, || {
            if sampler.is_stored() {
                return Ok((sampler.run()?, Vec::new()));
            }
            let model = sampler.load(Terms::default())?;
            let warnings = warnings(&model);
            Ok((model.sample()?, warnings))
        })?;
        let (mut samples, warnings) = made.map_err(|e| raised(py, &e))?;
        samples.advise(in_python);
        let unknown = self.keep.as_ref().map_or_else(Vec::new, |names| samples.keep(names));
        let out = of_samples(py, samples)?;
        out.set_item("unknown", unknown)?;
        out.set_item("model_warnings", warnings)?;
        Ok(out)
    }

    /// The draws that all chains have at this moment, as [`run`](Self::run) gives them, with what tells what they are worth in
    /// the place of that; nothing where no chain runs.
    fn draws<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let now = detached(py, || self.draws.now())?.map_err(|e| raised(py, &e))?;
        let Some(mut draws) = now else { return Ok(None) };
        if let Some(names) = &self.keep
            && names.iter().any(|name| draws.parameters.contains_key(name))
        {
            draws.parameters.retain(|name, _| names.contains(name));
            if let Some(states) = &mut draws.warmup_states {
                states.parameters.retain(|name, _| names.contains(name));
            }
        }
        let out = PyDict::new(py);
        out.set_item("worth", Worth(draws.clone()))?;
        of_draws(py, &out, draws)?;
        out.set_item("complete", false)?;
        Ok(Some(out))
    }

    /// Checks model and sampler by simulation, once: with the model's own simulator or another one, so many times, or with what
    /// was drawn. Gives for each quantity its name, p-value, mean rank, spread, the part of its draws that is independent, its
    /// ranks, and the points of their distribution function with the band; and the text, the page and the sizes.
    #[pyo3(signature = (simulations, simulator, drawn))]
    fn calibrate<'py>(
        &self,
        py: Python<'py>,
        simulations: usize,
        simulator: Option<Given<'_>>,
        drawn: Option<Bound<'_, PyDict>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let sampler = self.sampler.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(sampler) = sampler else { return Err(PyRuntimeError::new_err("this run was made")) };
        let simulator = match (simulator, drawn) {
            (Some(given), _) => Simulator::Program(Box::new(given.sampler(Options::default())?), simulations),
            (None, Some(drawn)) => Simulator::Drawn(named("simulator", &drawn)?),
            (None, None) => Simulator::Own(simulations),
        };
        let made = watched(py, &self.stop, || sampler.calibrate(&simulator))?;
        let calibration = made.map_err(|e| raised(py, &e))?;
        let out = PyDict::new(py);
        let quantities: Vec<_> = calibration.quantities.iter().map(quantity).collect();
        out.set_item("quantities", quantities)?;
        out.set_item("p_value", calibration.p_value())?;
        out.set_item("draws", calibration.draws)?;
        out.set_item("simulations", calibration.simulations)?;
        out.set_item("failed", calibration.failed)?;
        out.set_item("text", calibration.to_string())?;
        out.set_item("page", calibration.page("Calibration"))?;
        Ok(out)
    }

    /// Makes the store of the run, and runs nothing.
    fn make_store(&self, py: Python<'_>) -> PyResult<()> {
        let sampler = self.sampler.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(sampler) = sampler else { return Err(PyRuntimeError::new_err("this run was made")) };
        watched(py, &self.stop, || sampler.make_store())?.map_err(|e| raised(py, &e))
    }

    /// Runs the chains into the store, once, and reads nothing. Gives whether chains wait for what others learn.
    fn fill(&self, py: Python<'_>) -> PyResult<bool> {
        let sampler = self.sampler.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(sampler) = sampler else { return Err(PyRuntimeError::new_err("this run was made")) };
        watched(py, &self.stop, || sampler.fill())?.map_err(|e| raised(py, &e))
    }

    /// Ends the run in order, with the draws that there are.
    fn abort(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Lets chains wait, or go on.
    fn pause(&self, pause: bool) {
        self.pause.store(pause, Ordering::Relaxed);
    }

    /// How far the run is; nothing before it tells.
    fn progress(&self) -> Option<(Reached, Rates)> {
        let now = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let Progress { draws, all_draws, reached, .. } = now.as_ref()?;
        let rows = reached.groups.iter().map(|group| group_row(group, reached, self.first));
        let rows = rows.map(|row| (row.name, row.part, row.text)).collect();
        let rates = (reached.gradients, reached.gradients_per_second, reached.seconds_left, rows);
        let far = (*draws, *all_draws, reached.iterations, reached.warm, reached.finished, reached.warmup);
        Some((far, rates))
    }
}

/// The draws of a store, as a run gives them.
#[pyfunction]
pub(crate) fn open_store(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let mut samples = py.detach(|| Samples::open(path)).map_err(|e| raised(py, &e))?;
    samples.advise(in_python);
    let out = of_samples(py, samples)?;
    out.set_item("unknown", Vec::<String>::new())?;
    out.set_item("model_warnings", Vec::<String>::new())?;
    Ok(out)
}

/// What a warning advises, as arguments of `sample`.
pub(crate) fn in_python(advice: &Advice) -> String {
    let arguments = advice.flags().into_iter().map(|(flag, value)| match (flag, value.split_once('=')) {
        ("--set", Some((name @ ("target_accept" | "max_treedepth"), value))) => format!("{name}={value}"),
        ("--set", Some((name, value))) => format!("settings={{\"{name}\": {value}}}"),
        ("--diagnose", _) => "print(fit.diagnose())".to_owned(),
        (flag, _) => format!("{}={value}", flag.trim_start_matches('-').replace('-', "_")),
    });
    arguments.collect::<Vec<_>>().join(", ")
}

fn number(value: &Bound<'_, PyAny>) -> PyResult<Number> {
    if let Ok(flag) = value.extract::<bool>() {
        return Ok(Number::from(flag));
    }
    if let Ok(int) = value.extract::<i64>() {
        return Ok(Number::from(int));
    }
    value.extract::<f64>().map(Number::from)
}

/// What draws are worth that were had while a run went on: it is found when it is asked for.
#[pyclass(frozen)]
pub(crate) struct Worth(Draws);

#[pymethods]
impl Worth {
    /// The rows of the summary, the table, the warnings and the diagnosis.
    fn told<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let chains = self.0.chains.len();
        let mut samples = detached(py, || Samples::of_draws(self.0.clone(), chains))?;
        samples.advise(in_python);
        let out = PyDict::new(py);
        tell(&out, &samples)?;
        Ok(out)
    }
}

/// What draws are worth.
fn tell(out: &Bound<'_, PyDict>, samples: &Samples) -> PyResult<()> {
    let rows: Vec<_> = samples.summary().rows.iter().map(row).collect();
    out.set_item("rows", rows)?;
    let table = samples.data_sets().map_or_else(|| samples.summary().to_string(), |table| table.to_string());
    out.set_item("table", table)?;
    out.set_item("warnings", samples.warnings().iter().map(ToString::to_string).collect::<Vec<_>>())?;
    out.set_item("diagnosis", samples.diagnosis().to_string())
}

fn of_samples(py: Python<'_>, samples: Samples) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    tell(&out, &samples)?;
    out.set_item("complete", samples.is_complete())?;
    of_draws(py, &out, samples.into_draws())?;
    Ok(out)
}

fn of_draws(py: Python<'_>, out: &Bound<'_, PyDict>, draws: Draws) -> PyResult<()> {
    out.set_item("data_sets", draws.data_sets)?;
    let axes = PyDict::new(py);
    draws.axes.into_iter().try_for_each(|(name, of)| axes.set_item(name, of))?;
    out.set_item("axes", axes)?;
    let coords = PyDict::new(py);
    draws.coords.into_iter().try_for_each(|(axis, along)| match along {
        Coordinate::Ints(numbers) => coords.set_item(axis, numbers),
        Coordinate::Texts(texts) => coords.set_item(axis, texts),
    })?;
    out.set_item("coords", coords)?;
    let failed = draws.traps.iter().filter(|trap| trap.kind != TrapKind::Interrupted);
    out.set_item("failed", failed.map(|t| (t.position, t.told())).collect::<Vec<_>>())?;
    out.set_item("posterior", arrays(py, draws.parameters)?)?;
    out.set_item("sample_stats", arrays(py, draws.statistics)?)?;
    if let Some(states) = draws.warmup_states {
        out.set_item("warmup_posterior", arrays(py, states.parameters)?)?;
        out.set_item("warmup_sample_stats", arrays(py, states.statistics)?)?;
    }
    let metrics = draws.inv_metrics.into_iter().map(|metric| to_numpy(py, metric)).collect::<PyResult<Vec<_>>>()?;
    out.set_item("inv_metric", metrics)?;
    out.set_item("stepsize", draws.adapted)?;
    out.set_item("chains", draws.chains)?;
    out.set_item("draws", draws.draws)?;
    out.set_item("gradients", draws.gradients)?;
    out.set_item("seconds", draws.seconds)
}

/// The place, the part of the ranks below it, and the ends of the band.
type Point = (f64, f64, f64, f64);

/// A quantity: name, p-value, mean rank, spread, the independent part of its draws, ranks, and distribution function.
type Quantity = (String, (f64, f64, f64, f64), Vec<usize>, Vec<Point>);

fn quantity(of: &CalibratedQuantity) -> Quantity {
    let function = of.function.iter().map(|p| (p.place, p.part, p.least, p.most)).collect();
    (of.name.clone(), (of.p_value, of.mean, of.spread, of.independent), of.ranks.clone(), function)
}

fn arrays(py: Python<'_>, all: impl IntoIterator<Item = (String, Array)>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in all {
        dict.set_item(name, to_numpy(py, value)?)?;
    }
    Ok(dict)
}

/// A row of the summary.
type Row = (String, f64, f64, f64, f64, f64, f64, f64, f64, f64);

fn row(row: &autobatch::sampler::SummaryRow) -> Row {
    let [q05, q50, q95] = [row.q05, row.q50, row.q95];
    (row.name.clone(), row.mean, row.sd, row.mcse, q05, q50, q95, row.ess_bulk, row.ess_tail, row.rhat)
}
