//! Warnings that only a compilation to shapes can tell, and which of them are to be errors.

use std::collections::BTreeMap;
use std::fmt;

use crate::base::{Diagnostic, FileId, Finding, Loc, Severity, SourceMap};
use crate::hir;

/// Warnings of specialised programs that can be made errors, by the name that `--deny` has for them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Deny {
    /// W0101: an operation that has no kernel for these operands, and so goes lane by lane.
    Fallback,
    /// W0102: a comprehension or reduction that stays a loop.
    Loops,
}

impl Deny {
    /// All of them.
    pub const ALL: [Deny; 2] = [Deny::Fallback, Deny::Loops];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Deny::Fallback => "fallback",
            Deny::Loops => "loops",
        }
    }
    /// The code of the warning.
    pub fn code(self) -> &'static str {
        match self {
            Deny::Fallback => "W0101",
            Deny::Loops => "W0102",
        }
    }
    /// The one of this name.
    pub fn from_name(name: &str) -> Option<Deny> {
        Deny::ALL.into_iter().find(|d| d.name() == name)
    }

    /// Of these warnings those that are denied, as errors.
    pub fn errors(denied: &[Deny], warnings: &[Diagnostic]) -> Vec<Diagnostic> {
        let denied = |w: &&Diagnostic| denied.iter().find(|d| d.code() == w.code.0).copied();
        let error = |w: &Diagnostic, d: Deny| Diagnostic { severity: Severity::Error, ..w.clone() }.with_note(note(d));
        warnings.iter().filter_map(|w| denied(&w).map(|d| error(w, d))).collect()
    }
}

fn note(denied: Deny) -> String {
    format!("`--deny {}` makes this an error", denied.name())
}

impl fmt::Display for Deny {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Findings as warnings, each site once: at the lines of the functions that they name, where there is a source.
pub(super) fn from_findings(findings: Vec<Finding>, source: Option<(&hir::Program, &SourceMap)>) -> Vec<Diagnostic> {
    let places = source.map(|(program, sources)| Places::of(program, sources));
    let mut warnings: Vec<Diagnostic> = Vec::new();
    for finding in findings {
        let warning = finding.into_warning(|loc| places.as_ref()?.span(loc));
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    warnings
}

/// Where the functions of a program are declared.
struct Places<'a> {
    sources: &'a SourceMap,
    declared: BTreeMap<&'a str, Vec<(FileId, u32)>>,
}

impl<'a> Places<'a> {
    fn of(program: &'a hir::Program, sources: &'a SourceMap) -> Self {
        let mut declared: BTreeMap<&str, Vec<(FileId, u32)>> = BTreeMap::new();
        for function in program.fns.values().flatten() {
            let (line, _) = sources.line_column(function.span);
            declared.entry(&function.name).or_default().push((function.span.file, line));
        }
        Self { sources, declared }
    }

    /// The line of a location: of functions of one name the one that is declared nearest above it.
    fn span(&self, loc: &Loc) -> Option<crate::base::Span> {
        if let Some(place) = &loc.place {
            return Some(self.sources.written_at(place));
        }
        let declared = self.declared.get(&*loc.function)?.iter();
        let (file, _) = declared.filter(|(_, line)| *line <= loc.line).max_by_key(|(_, line)| *line)?;
        self.sources.line(*file, loc.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::DiagnosticCode;

    fn finding(line: u32) -> Finding {
        Finding {
            code: DiagnosticCode("W0101"),
            loc: Loc::new("f", line),
            message: "`irem` goes lane by lane".to_owned(),
            label: String::new(),
            notes: Vec::new(),
            help: None,
        }
    }

    #[test]
    fn a_site_is_told_once_and_names_its_place() {
        let warnings = from_findings(vec![finding(3), finding(3), finding(4)], None);
        assert_eq!(warnings.len(), 2);
        assert_eq!(warnings[0].notes, ["in `f`, line 3"]);
    }

    #[test]
    fn what_is_denied_is_an_error() {
        let warnings = from_findings(vec![finding(3)], None);
        assert!(Deny::errors(&[Deny::Loops], &warnings).is_empty());
        let errors = Deny::errors(&[Deny::Loops, Deny::Fallback], &warnings);
        assert!(errors[0].is_error());
        assert_eq!(errors[0].notes, ["in `f`, line 3", "`--deny fallback` makes this an error"]);
        assert_eq!(Deny::from_name("fallback"), Some(Deny::Fallback));
        assert_eq!(Deny::from_name("all"), None);
    }
}
