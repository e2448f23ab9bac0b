//! Diagnostics as data: every layer makes them, the command line renders them.

use std::fmt;

use crate::base::{Loc, SourceMap, Span};

/// The code of a diagnostic, such as `E0304`. `grammar/errors.md` has one section per code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiagnosticCode(pub &'static str);

impl fmt::Display for DiagnosticCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
impl fmt::Debug for DiagnosticCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Whether a diagnostic stops the compilation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// The program is not compiled.
    Error,
    /// The program is compiled; something in it is probably not meant.
    Warning,
}

/// A span with what there is to say about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What: lower case, no full stop. May be empty.
    pub message: String,
}

/// One finding about the user's program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// The code.
    pub code: DiagnosticCode,
    /// Error or warning.
    pub severity: Severity,
    /// One line, lower case, no full stop, in the user's own names.
    pub message: String,
    /// The first label is the primary one.
    pub labels: Vec<Label>,
    /// More to know, one line each: the chain that made a value vary, say.
    pub notes: Vec<String>,
    /// The obvious remedy, if there is one.
    pub help: Option<String>,
}

/// What a compilation to shapes found out about a place of the source, after spans were lost: it becomes a warning with the
/// line of its location.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The code of the warning.
    pub code: DiagnosticCode,
    /// Where.
    pub loc: Loc,
    /// One line, lower case, no full stop, in the user's own names.
    pub message: String,
    /// What the label at the line says. May be empty.
    pub label: String,
    /// More to know, one line each.
    pub notes: Vec<String>,
    /// The obvious remedy, if there is one.
    pub help: Option<String>,
}

impl Finding {
    /// The warning, at the span that `locate` finds for the location, or else with the location in a note.
    pub fn into_warning(self, locate: impl FnOnce(&Loc) -> Option<Span>) -> Diagnostic {
        let (labels, place) = match locate(&self.loc) {
            Some(span) => (vec![Label { span, message: self.label }], None),
            None if self.loc.line == 0 => (Vec::new(), None),
            None => (Vec::new(), Some(self.loc.told_within())),
        };
        Diagnostic {
            code: self.code,
            severity: Severity::Warning,
            message: self.message,
            labels,
            notes: place.into_iter().chain(self.notes).collect(),
            help: self.help,
        }
    }
}

impl Diagnostic {
    /// An error at `span`; `label` is what the label says.
    pub fn error(code: &'static str, message: impl Into<String>, span: Span, label: impl Into<String>) -> Self {
        Self {
            code: DiagnosticCode(code),
            severity: Severity::Error,
            message: message.into(),
            labels: vec![Label { span, message: label.into() }],
            notes: Vec::new(),
            help: None,
        }
    }
    /// A warning at `span`.
    pub fn warning(code: &'static str, message: impl Into<String>, span: Span, label: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, message, span, label) }
    }
    /// Adds a secondary label.
    #[must_use]
    pub fn with_label(mut self, span: Span, message: impl Into<String>) -> Self {
        self.labels.push(Label { span, message: message.into() });
        self
    }
    /// Adds a note.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
    /// Sets the help.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
    /// With its labels where somebody [wrote](SourceMap::written) what they are about.
    #[must_use]
    pub fn written(mut self, sources: &SourceMap) -> Self {
        self.labels.iter_mut().for_each(|label| label.span = sources.written(label.span));
        self
    }
    /// Whether this is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
