//! What specialisation gives: a program, what is still to be filled in, and where that stands in the source.

use crate::base::{Diagnostic, DiagnosticCode, FileId, Finding, Id as _, SourceMap, Span};
use crate::cfg;
use crate::transform::derivative::DerivativeError;
use crate::transform::expansion::Requests;
use crate::transform::vectorize::Refusal;

/// A CFG program and what it still needs.
#[derive(Clone, Debug)]
pub struct Specialised {
    /// The program. Functions that are derivatives have no blocks.
    pub program: cfg::Program,
    /// What these functions are, and which functions whole-array code may take the place of.
    pub requests: Requests,
    /// Where each derivative is asked for in the source: one for each request.
    pub(super) derivatives: Vec<Span>,
}

impl Specialised {
    /// The diagnostic for a derivative that cannot be made.
    pub fn diagnostic(&self, error: &DerivativeError, sources: &SourceMap) -> Diagnostic {
        let requests = self.requests.derivatives.requests.iter();
        let here = requests.zip(&self.derivatives).find(|(request, _)| request.loc == error.loc);
        // A text that nobody wrote asks for no derivative that anybody knows of: what has none is told.
        let of_made = error.loc.place.as_ref().map(|place| sources.written_at(place));
        let here = here.map(|(_, span)| *span);
        let (span, note) = match (of_made.or(here), self.derivatives.first()) {
            (Some(span), _) => (span, None),
            (None, Some(span)) => (*span, Some(error.loc.told_within())),
            (None, None) => (Span::new(FileId::new(0), 0, 0), None),
        };
        let mut diagnostic = Diagnostic::error("E0914", error.message.clone(), span, "this derivative");
        if let Some(note) = note {
            diagnostic = diagnostic.with_note(note);
        }
        match &error.help {
            Some(help) => diagnostic.with_help(help.clone()),
            None => diagnostic,
        }
    }

    /// The warning for a comprehension that stays a loop.
    pub fn finding(&self, refusal: &Refusal) -> Finding {
        let loc = self.requests.comprehensions[refusal.request].loc.clone();
        let elsewhere = (refusal.loc.line != 0 && refusal.loc != loc).then(|| refusal.loc.told_within());
        Finding {
            code: DiagnosticCode("W0102"),
            loc,
            message: format!("this comprehension runs as a loop: {}", refusal.reason),
            label: "one element after the other".to_owned(),
            notes: elsewhere.into_iter().collect(),
            help: None,
        }
    }
}
