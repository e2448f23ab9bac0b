//! The native half of the Python package: what it takes and gives are arrays, numbers and texts. What users call is written in
//! Python around it, in `python/autobatch`.

mod density;
mod errors;
mod model;
mod options;
mod page;
mod program;
mod sampling;
mod sentry;
mod values;
mod watched;

use std::ffi::OsString;
use std::process::ExitCode;

use pyo3::prelude::*;

/// Runs a command of `autobatch`, once in a process; gives its exit code.
#[pyfunction]
fn run_command(py: Python<'_>, words: Vec<OsString>) -> u8 {
    let code = py.detach(|| autobatch::cli::main_of(words));
    // The number in a code can only be compared.
    (0..=u8::MAX).find(|number| ExitCode::from(*number) == code).unwrap_or(1)
}

#[pymodule]
fn _autobatch(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<program::Program>()?;
    module.add_class::<program::Function>()?;
    module.add_class::<density::Density>()?;
    module.add_class::<sampling::Run>()?;
    module.add_class::<sampling::Worth>()?;
    module.add_function(wrap_pyfunction!(run_command, module)?)?;
    module.add_function(wrap_pyfunction!(sampling::open_store, module)?)?;
    module.add_function(wrap_pyfunction!(page::page, module)?)?;
    Ok(())
}
