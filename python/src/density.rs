//! The log density of a model, bound to its data: a call costs little more than the work.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use autobatch::mcmc::log_prob::{BoundDensity, LogProb};
use autobatch::program::{StanModel, Terms};
use autobatch::{Array, Error, ErrorKind, Options};
use numpy::{PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::errors::{raised, refused};
use crate::model::{Given, warnings};
use crate::options::Asked;
use crate::values::to_numpy;
use crate::watched::{detached, watched};

/// More lanes than these run on a thread of their own, so that signals are looked for.
const FEW: usize = 256;

/// The log density of a model with its data.
#[pyclass(frozen)]
pub(crate) struct Density {
    density: LogProb,
    dimension: usize,
    variables: Vec<String>,
    warnings: Vec<String>,
    options: Options,
    /// The last that was bound: for so many points.
    bound: Mutex<Option<BoundDensity>>,
}

/// Points that were rejected, and why.
type Rejected = Vec<(usize, String)>;

#[pymethods]
impl Density {
    #[new]
    fn new(py: Python<'_>, given: Given<'_>, full: bool, jacobian: bool, asked: Asked) -> PyResult<Self> {
        let (options, _) = asked.options(py)?;
        let sampler = given.sampler(options.clone())?;
        let terms = Terms { constants: full, jacobian };
        let made = detached(py, || {
            let model = sampler.load(terms)?;
            let density = model.log_prob()?;
            let Some(dimension) = density.dimension()? else {
                let message = "the data do not tell how many parameters the model has";
                return Err(Error::new(ErrorKind::Input, message));
            };
            let variables = model.stan().map_or_else(Vec::new, StanModel::variables);
            Ok((density, dimension, variables, warnings(&model)))
        })?;
        let (density, dimension, variables, warnings) = made.map_err(|e| raised(py, &e))?;
        Ok(Self { density, dimension, variables, warnings, options, bound: Mutex::default() })
    }

    /// The number of unconstrained coordinates.
    #[getter]
    fn dimension(&self) -> usize {
        self.dimension
    }

    /// The names of the variables of draws, where the model tells them before it runs.
    #[getter]
    fn variables(&self) -> Vec<String> {
        self.variables.clone()
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
        let work = |options: &Options| {
            let mut held = self.bound.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let mut bound = match held.take().filter(|bound| bound.points() == count) {
                Some(bound) => bound,
                None => self.density.bind(count, width, options)?,
            };
            let values = bound.at(numbers, options);
            *held = Some(bound);
            values
        };
        let values = if count <= FEW {
            detached(py, || work(&self.options))?
        } else {
            // What ends a call does not end the next one.
            let stop = Arc::new(AtomicBool::new(false));
            let settings = self.options.get_settings().clone().stop(Arc::clone(&stop));
            let options = self.options.clone().settings(settings);
            watched(py, &stop, || work(&options))?
        };
        let values = values.map_err(|e| raised(py, &e))?;
        let lp = to_numpy(py, Array::real([count], values.lp))?;
        let gradient = to_numpy(py, Array::real([count, width], values.gradient))?;
        Ok((lp, gradient, values.rejected))
    }
}
