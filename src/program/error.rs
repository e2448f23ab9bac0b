//! The error of the library.

use std::fmt;

use crate::base::{Diagnostic, SourceMap};
use crate::program::io::IoError;

/// What went wrong before lanes ran. What goes wrong in a lane is a [`Trap`](crate::run::Trap) of that lane.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    diagnostics: Vec<Diagnostic>,
    sources: SourceMap,
}

/// The kinds of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The program has errors: see [`Error::diagnostics`].
    Program,
    /// A text of an IR does not read or verify.
    Ir,
    /// There is no such function, or it is no entry point.
    Entry,
    /// An input is missing, unknown, or has a wrong type or shape.
    Input,
    /// A file cannot be read or written.
    Io,
    /// An option has no such value, or options exclude one another.
    Option,
    /// The batch does not fit in memory.
    Memory,
    /// A value that lanes share traps or takes too long to compute before they start: without the pass `shared-code` the lanes
    /// that need it compute it. Only for programs of IR text; others are compiled again.
    Shared,
    /// Code cannot be generated: there is no C compiler, or it failed.
    Codegen,
    /// The code was compiled, and nothing ran: the device is a kind of GPU, and none that is there.
    Compiled,
    /// A lane said that nothing can go on: an assertion failed whose message begins with `fatal_error: `, as Stan's
    /// `fatal_error` becomes. The run of all lanes ends.
    Fatal,
    /// It was stopped from outside before lanes ran: see [`Settings::stop`](crate::run::Settings::stop) and
    /// [`stoppable`](crate::program::stoppable).
    Interrupted,
}

impl Error {
    /// An error of this kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), diagnostics: Vec::new(), sources: SourceMap::default() }
    }
    /// An error that is made of diagnostics. What is found in a text that nobody wrote, the translation of a Stan program, is
    /// told of what it was made of.
    pub fn from_diagnostics(diagnostics: Vec<Diagnostic>, sources: SourceMap) -> Self {
        let mut told: Vec<Diagnostic> = Vec::with_capacity(diagnostics.len());
        for found in diagnostics {
            let found = of_translated(found, &sources);
            // Turns of a loop may have become lines of their own.
            if !told.contains(&found) {
                told.push(found);
            }
        }
        let diagnostics = told;
        Self { kind: ErrorKind::Program, message: String::new(), diagnostics, sources }
    }
    /// What kind it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
    /// The diagnostics of an [`ErrorKind::Program`].
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }
    /// The texts that the diagnostics point into.
    pub fn sources(&self) -> &SourceMap {
        &self.sources
    }
}

/// A finding at the place that somebody wrote; one in a translation speaks no other language than the program.
fn of_translated(found: Diagnostic, sources: &SourceMap) -> Diagnostic {
    let Some(span) = found.labels.iter().map(|label| label.span).find(|span| sources.is_made(*span)) else {
        return found;
    };
    // A warning that is denied stays what it is.
    if !found.code.0.starts_with('E') {
        return found.written(sources);
    }
    let span = sources.written(span);
    let lacking = found.message.strip_prefix("there is no function ").and_then(|m| m.strip_suffix(" here"));
    match lacking {
        Some(name) => Diagnostic::error("E2501", format!("{name}: known, not supported yet"), span, "what needs it"),
        None => Diagnostic::error("E2501", found.message, span, "the translation of this is refused"),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for (i, d) in self.diagnostics.iter().enumerate() {
            let newline = if i > 0 { "\n" } else { "" };
            write!(f, "{newline}error[{}]: {}", d.code, d.message)?;
            if let Some(label) = d.labels.first() {
                let (line, column) = self.sources.line_column(label.span);
                write!(f, " ({}:{line}:{column})", self.sources.file(label.span.file).name)?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

impl From<IoError> for Error {
    fn from(error: IoError) -> Self {
        let kind = if matches!(error, IoError::File { .. }) { ErrorKind::Io } else { ErrorKind::Input };
        Error::new(kind, error.to_string())
    }
}
