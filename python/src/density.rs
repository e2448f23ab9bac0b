//! The log density of a model, bound to its data: a call costs little more than the work.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use autobatch::mcmc::log_prob::{BoundDensity, LogProb};
use autobatch::mcmc::sampling::ModelSource;
use autobatch::program::io::Data;
use autobatch::program::{StanModel, Terms};
use autobatch::{Array, Inputs, Options};
use numpy::{PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{raised, refused};
use crate::options::Asked;
use crate::program::texts;
use crate::values::{data, to_numpy};
use crate::watched::{detached, watched};

/// More lanes than these run on a thread of their own, so that signals are looked for.
const FEW: usize = 256;

/// The log density of a model with its data.
#[pyclass(frozen)]
pub(crate) struct Density {
    density: LogProb,
    dimension: usize,
    parameters: Vec<String>,
    warnings: Vec<String>,
    options: Options,
    /// The last that was bound: for so many points.
    bound: Mutex<Option<BoundDensity>>,
}

/// Points that were rejected, and why.
type Rejected = Vec<(usize, String)>;

#[pymethods]
impl Density {
    /// A model in a file (`kind` "file"), or a text of the language ("text") or of Stan ("stan"), with its data.
    #[new]
    #[allow(clippy::too_many_arguments, reason = "they are those of one call in Python")]
    fn new(
        py: Python<'_>,
        kind: &str,
        model: String,
        given: &Bound<'_, PyDict>,
        include: Vec<PathBuf>,
        full: bool,
        jacobian: bool,
        asked: Asked,
    ) -> PyResult<Self> {
        let mut values: Vec<(String, Data)> = Vec::new();
        for (name, value) in given.iter() {
            let name: String = name.extract()?;
            let value = data(&name, &value)?;
            values.push((name, value));
        }
        let (options, _) = asked.options(py)?;
        let seed = asked.seed();
        let terms = Terms { constants: full, jacobian };
        let made = detached(py, || made(kind, &model, &values, (&include, seed), terms))?;
        let (density, dimension, parameters, warnings) = made.map_err(|e| raised(py, &e))?;
        Ok(Self { density, dimension, parameters, warnings, options, bound: Mutex::default() })
    }

    /// The number of unconstrained coordinates.
    #[getter]
    fn dimension(&self) -> usize {
        self.dimension
    }

    /// The names of the variables of draws, where the model tells them before it runs.
    #[getter]
    fn parameters(&self) -> Vec<String> {
        self.parameters.clone()
    }

    /// What was found that is probably not meant.
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// The log density and its gradient at points, point × dimension, and the points that were rejected.
    fn at<'py>(
        &self,
        py: Python<'py>,
        points: PyReadonlyArrayDyn<'py, f64>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>, Rejected)> {
        let shape = points.shape().to_vec();
        let [count, width] = shape[..] else { return Err(refused(py, "points are rows of an array")) };
        if width != self.dimension {
            let message = format!(
                "points of {width} coordinates, where the model has {} unconstrained parameters",
                self.dimension
            );
            return Err(refused(py, message));
        }
        if count == 0 {
            let none = |shape: Vec<usize>| to_numpy(py, Array::real(shape, vec![]));
            return Ok((none(vec![0])?, none(vec![0, width])?, vec![]));
        }
        let numbers = points.as_slice().map_err(|e| refused(py, e.to_string()))?;
        // What ends a call does not end the next one.
        let stop = Arc::new(AtomicBool::new(false));
        let options = self.options.clone().settings(self.options.get_settings().clone().stop(Arc::clone(&stop)));
        let work = || {
            let mut held = self.bound.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let mut bound = match held.take().filter(|bound| bound.points() == count) {
                Some(bound) => bound,
                None => self.density.bind(count, width, &options)?,
            };
            let values = bound.at(numbers, &options);
            *held = Some(bound);
            values
        };
        let values = if count <= FEW { detached(py, work)? } else { watched(py, &stop, work)? };
        let values = values.map_err(|e| raised(py, &e))?;
        let lp = to_numpy(py, Array::real([count], values.lp))?;
        let gradient = to_numpy(py, Array::real([count, width], values.gradient))?;
        Ok((lp, gradient, values.rejected))
    }
}

type Made = (LogProb, usize, Vec<String>, Vec<String>);

fn made(
    kind: &str,
    model: &str,
    values: &[(String, Data)],
    (include, seed): (&[PathBuf], u64),
    terms: Terms,
) -> Result<Made, autobatch::Error> {
    let path = std::path::Path::new(model);
    let is_stan = kind == "stan" || kind == "file" && path.extension().is_some_and(|e| e == "stan");
    let refused = |message: String| autobatch::Error::new(autobatch::ErrorKind::Input, message);
    if is_stan {
        let mut all = serde_json::Map::new();
        for (name, value) in values {
            StanModel::add_data(&mut all, name.clone(), value)?;
        }
        let model = match kind {
            "stan" => StanModel::of_text("<model>", model, &all, terms, (include, seed))?,
            _ => StanModel::load_with(path, &all, terms, (include, seed))?,
        };
        let inputs = model.inputs();
        let density = LogProb::new(&ModelSource::Stan(&model), terms, |f| Ok(inputs.restricted_to(f.signature())))?;
        let (warnings, sources) = model.warnings();
        return Ok((density, model.dimension(), model.variables(), texts(warnings, sources)));
    }
    let source = if kind == "file" { ModelSource::File(path) } else { ModelSource::Text(model) };
    let density = LogProb::new(&source, terms, |function| {
        let mut inputs = Inputs::new();
        for (name, value) in values {
            inputs.add_data(function.signature(), name, value, true)?;
        }
        Ok(inputs)
    })?;
    let Some(dimension) = density.dimension()? else {
        return Err(refused("the data do not tell how many parameters the model has".to_owned()));
    };
    Ok((density, dimension, vec![], vec![]))
}
