//! Programs and their functions.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use autobatch::program::{self, Gradient};
use autobatch::report::render;
use autobatch::types::{ArrayData, DType, Shape};
use autobatch::{Array, Inputs, NoSink, Results};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::raised;
use crate::options::Asked;
use crate::values::{array, to_numpy};
use crate::watched::{detached, tried, watched};

/// A program that was compiled.
#[pyclass(frozen)]
pub(crate) struct Program(Arc<program::Program>);

/// A function of a program, or the one that gives its value and gradient.
#[pyclass(frozen)]
pub(crate) struct Function {
    of: Of,
    name: String,
    /// What is known of calls like the last one.
    last: Mutex<Option<(Like, Lasts)>>,
}

/// How long a call lasts for which everything is compiled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lasts {
    /// A moment, whatever its values are.
    AMoment,
    /// A moment as far as is known.
    MostLikelyAMoment,
    Long,
}

/// A call that took longer than this was long.
const MOMENT: Duration = Duration::from_millis(2);

/// What calls have in common for which the same was compiled.
#[derive(PartialEq)]
struct Like {
    /// By input its name, whether lanes share it, its type, and the number that a shared int is: it may be a dimension.
    inputs: Vec<(String, bool, DType, Shape, Option<i64>)>,
    lanes: Option<usize>,
    how: [String; 4],
}

impl Function {
    fn new(of: Of, name: &str) -> Self {
        Self { of, name: name.to_owned(), last: Mutex::default() }
    }
}

enum Of {
    Program(Arc<program::Program>),
    Gradient(Box<Gradient>),
}

#[pymethods]
impl Program {
    /// Compiles a text that goes by a name.
    #[staticmethod]
    fn of_text(py: Python<'_>, name: &str, text: &str) -> PyResult<Self> {
        let compiled = detached(py, || program::Program::compile_named(name, text))?;
        compiled.map(|program| Self(Arc::new(program))).map_err(|e| raised(py, &e))
    }

    /// Compiles a file.
    #[staticmethod]
    fn of_file(py: Python<'_>, path: std::path::PathBuf) -> PyResult<Self> {
        let compiled = detached(py, || program::Program::load(path))?;
        compiled.map(|program| Self(Arc::new(program))).map_err(|e| raised(py, &e))
    }

    /// The names of its public functions.
    fn functions(&self) -> Vec<String> {
        self.0.functions().filter(|name| !name.contains('%')).map(str::to_owned).collect()
    }

    /// What was found that is probably not meant.
    fn warnings(&self) -> Vec<String> {
        let shown = |one| render(std::slice::from_ref(one), self.0.sources(), false).trim_end().to_owned();
        self.0.warnings().iter().map(shown).collect()
    }

    /// A function by its name.
    fn function(&self, py: Python<'_>, name: &str) -> PyResult<Function> {
        self.0.function(name).map_err(|e| raised(py, &e))?;
        Ok(Function::new(Of::Program(Arc::clone(&self.0)), name))
    }

    /// The function that gives the value of another and its gradient by some inputs: without names by all that it can.
    fn gradient(&self, py: Python<'_>, name: &str, wrt: Vec<String>) -> PyResult<(Function, Vec<String>)> {
        let gradient = detached(py, || self.0.gradient(name, &wrt))?.map_err(|e| raised(py, &e))?;
        let inputs = gradient.inputs().to_vec();
        Ok((Function::new(Of::Gradient(Box::new(gradient)), name), inputs))
    }
}

impl Function {
    fn with<T>(
        &self,
        run: impl FnOnce(program::Function<'_>) -> Result<T, autobatch::Error>,
    ) -> Result<T, autobatch::Error> {
        match &self.of {
            Of::Program(program) => run(program.function(&self.name)?),
            Of::Gradient(gradient) => run(gradient.function()?),
        }
    }
}

/// The number that an int is.
fn int(value: &Array) -> Option<i64> {
    match &value.data {
        ArrayData::Int(v) if value.shape.is_empty() => v.first().copied(),
        _ => None,
    }
}

/// An input of a function: name, element type, axes, its type in the words of the language, whether all lanes share it.
type Taken = (String, String, usize, String, bool);

/// A lane that trapped: its place in the batch, its number, and why.
type Trapped = (usize, u64, String);

#[pymethods]
impl Function {
    /// What it takes: name, element type, axes, the type in the words of the language, whether all lanes share it.
    fn ports(&self, py: Python<'_>) -> PyResult<Vec<Taken>> {
        let ports = self.with(|function| {
            let signature = function.signature();
            let ports = signature.ports.iter().filter(|port| port.length_of.is_none());
            let told = |port: &autobatch::program::SignaturePort| {
                let ty = port.describe(&signature.dims);
                (port.name.clone(), port.dtype.to_string(), port.extents.len(), ty, port.shared)
            };
            Ok(ports.map(told).collect())
        });
        ports.map_err(|e| raised(py, &e))
    }

    /// What is written above it.
    fn doc(&self, py: Python<'_>) -> PyResult<String> {
        self.with(|function| Ok(function.doc())).map_err(|e| raised(py, &e))
    }

    /// Runs it: arrays with the lanes along the first axis, arrays that all lanes share, and how many lanes there are where no
    /// array tells. Gives the outputs by name and the lanes that trapped.
    fn run<'py>(
        &self,
        py: Python<'py>,
        lanes: &Bound<'py, PyDict>,
        shared: &Bound<'py, PyDict>,
        count: Option<usize>,
        asked: Asked,
    ) -> PyResult<(Bound<'py, PyDict>, Vec<Trapped>)> {
        let mut inputs = Inputs::new();
        let mut like = Like { inputs: Vec::new(), lanes: count, how: asked.compiled_for() };
        for (given, is_shared) in [(lanes, false), (shared, true)] {
            for (name, value) in given.iter() {
                let name: String = name.extract()?;
                let value = array(&name, &value)?;
                let number = if is_shared { int(&value) } else { None };
                like.inputs.push((name.clone(), is_shared, value.dtype(), value.shape.clone(), number));
                inputs = if is_shared { inputs.shared(name, value) } else { inputs.lane(name, value) };
            }
        }
        if let Some(count) = count {
            inputs = inputs.lanes(count);
        }
        let (options, stop) = asked.options(py)?;
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last().as_ref().filter(|(last, _)| *last == like).map(|(_, lasts)| *lasts);
        let work = || {
            self.with(|function| {
                let bound = function.bind(&inputs, &options)?;
                Ok((bound.is_brief(&options), bound.run(&options, &NoSink)?))
            })
        };
        let done = match known {
            Some(Lasts::AMoment) => Some(detached(py, work)?),
            Some(Lasts::MostLikelyAMoment) => tried(py, &stop, work)?,
            Some(Lasts::Long) | None => None,
        };
        let (done, lasts) = match (done, known) {
            (Some(done), _) => (done, known),
            (None, _) => {
                let start = Instant::now();
                let done = watched(py, &stop, work)?;
                let long = known.is_some() && start.elapsed() > MOMENT;
                let brief = done.as_ref().is_ok_and(|(is_brief, _)| *is_brief);
                let lasts = if long { Lasts::Long } else { Lasts::MostLikelyAMoment };
                (done, Some(if brief { Lasts::AMoment } else { lasts }))
            }
        };
        let (_, results): (bool, Results) = done.map_err(|e| raised(py, &e))?;
        if lasts != known {
            *last() = lasts.map(|lasts| (like, lasts));
        }
        let told = |trap: &autobatch::Trap| (trap.position, results.lanes()[trap.position], trap.told());
        let traps = results.traps().iter().map(told).collect();
        let outputs = PyDict::new(py);
        for (name, value) in results.into_outputs() {
            outputs.set_item(name, to_numpy(py, value)?)?;
        }
        Ok((outputs, traps))
    }
}
