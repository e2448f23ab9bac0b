//! Errors of the library as exceptions, which are classes of the Python half.

use autobatch::ErrorKind;
use autobatch::report::render;
use pyo3::prelude::*;

/// Where the exceptions are.
const MODULE: &str = "autobatch._errors";

/// The exception for an error: `made(kind, message)`, of diagnostics with the message as a terminal shows it.
pub(crate) fn raised(py: Python<'_>, error: &autobatch::Error) -> PyErr {
    let message = match error.diagnostics() {
        [] => error.to_string(),
        found => render(found, error.sources(), false),
    };
    let kind = match error.kind() {
        ErrorKind::Program | ErrorKind::Ir | ErrorKind::Shared => "program",
        ErrorKind::Entry => "entry",
        ErrorKind::Input => "input",
        ErrorKind::Io => "io",
        ErrorKind::Option => "option",
        ErrorKind::Memory => "memory",
        ErrorKind::Codegen => "codegen",
        ErrorKind::Fatal => "fatal",
        ErrorKind::Interrupted => "interrupted",
        _ => "other",
    };
    made(py, kind, message.trim_end())
}

/// The exception for a value that is not taken.
pub(crate) fn refused(py: Python<'_>, message: impl AsRef<str>) -> PyErr {
    made(py, "input", message.as_ref())
}

fn made(py: Python<'_>, kind: &str, message: &str) -> PyErr {
    match py.import(MODULE).and_then(|module| module.call_method1("made", (kind, message))) {
        Ok(exception) => PyErr::from_value(exception),
        Err(why) => why,
    }
}

/// The exception for what should not be.
pub(crate) fn failed(py: Python<'_>, message: &str) -> PyErr {
    made(py, "other", message)
}
