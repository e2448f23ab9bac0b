//! Programs and their functions.

use std::sync::Arc;

use autobatch::program::{self, Gradient};
use autobatch::report::render;
use autobatch::{Inputs, Results};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::raised;
use crate::options::Asked;
use crate::values::{array, to_numpy};
use crate::watched::{detached, watched};

/// A program that was compiled.
#[pyclass(frozen)]
pub(crate) struct Program(Arc<program::Program>);

/// A function of a program, or the one that gives its value and gradient.
#[pyclass(frozen)]
pub(crate) struct Function {
    of: Of,
    name: String,
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
        Ok(Function { of: Of::Program(Arc::clone(&self.0)), name: name.to_owned() })
    }

    /// The function that gives the value of another and its gradient by some inputs: without names by all that it can.
    fn gradient(&self, py: Python<'_>, name: &str, wrt: Vec<String>) -> PyResult<(Function, Vec<String>)> {
        let gradient = detached(py, || self.0.gradient(name, &wrt))?.map_err(|e| raised(py, &e))?;
        let inputs = gradient.inputs().to_vec();
        Ok((Function { of: Of::Gradient(Box::new(gradient)), name: name.to_owned() }, inputs))
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
        for (name, value) in lanes.iter() {
            let name: String = name.extract()?;
            let value = array(&name, &value)?;
            inputs = inputs.lane(name, value);
        }
        for (name, value) in shared.iter() {
            let name: String = name.extract()?;
            let value = array(&name, &value)?;
            inputs = inputs.shared(name, value);
        }
        if let Some(count) = count {
            inputs = inputs.lanes(count);
        }
        let (options, stop) = asked.options(py)?;
        let results = watched(py, &stop, || self.with(|function| function.run(&inputs, &options)))?;
        let results: Results = results.map_err(|e| raised(py, &e))?;
        let told = |trap: &autobatch::Trap| (trap.position, results.lanes()[trap.position], trap.told());
        let traps = results.traps().iter().map(told).collect();
        let outputs = PyDict::new(py);
        for (name, value) in results.into_outputs() {
            outputs.set_item(name, to_numpy(py, value)?)?;
        }
        Ok((outputs, traps))
    }
}
