//! Programs of Stan on the command line: what is wrong with them, and where stanc would say that it is.

use std::path::{Path, PathBuf};

use crate::base::{Diagnostic, SourceMap};
use crate::program::Error;
use crate::stan::check::check;
use crate::stan::place::place;
use crate::stan::syntax::{Canonical, IncludeFolders, canonicalize, format, parse};

use super::args::{Canonicalization, FmtArgs};

/// Whether a file is called like a program, or a library of functions, of Stan.
pub(super) fn is_stan_text(file: &Path) -> bool {
    file.extension().is_some_and(|e| e == "stan" || e == "stanfunctions")
}

/// What there is to say about a program: its texts, and the findings with their places as stanc writes them.
///
/// # Errors
/// When the file cannot be read, or is not UTF-8.
pub(super) fn findings(file: &Path, folders: &[PathBuf]) -> Result<(SourceMap, Vec<Diagnostic>), Error> {
    let mut sources = SourceMap::default();
    let main = sources.add(file.display().to_string(), super::texts::read(file)?);
    let mut includes = IncludeFolders { folders: folders.to_vec() };
    let (program, mut diagnostics) = parse(main, &mut sources, &mut includes);
    add_places(&mut diagnostics, &sources);
    if diagnostics.iter().all(|d| !d.is_error()) {
        let (_, checked) = check(&program, &sources);
        diagnostics.extend(checked);
    }
    Ok((sources, diagnostics))
}

/// The place of each finding as stanc writes it: tools look for it.
fn add_places(diagnostics: &mut [Diagnostic], sources: &SourceMap) {
    for diagnostic in diagnostics {
        if let Some(label) = diagnostic.labels.first() {
            diagnostic.notes.push(place(sources, label.span));
        }
    }
}

/// A program in canonical form, and rewritten where that is asked for; or why not.
pub(super) fn formatted(file: &Path, text: &str, args: &FmtArgs) -> Result<String, Error> {
    let mut sources = SourceMap::default();
    let main = sources.add(file.display().to_string(), text);
    let mut includes = IncludeFolders { folders: args.includes.include_path.clone() };
    let has = |what| args.canonicalize.contains(&what);
    let what = Canonical {
        deprecations: has(Canonicalization::Deprecations),
        parentheses: has(Canonicalization::Parentheses),
        braces: has(Canonicalization::Braces),
        includes: has(Canonicalization::Includes),
    };
    let formatted = if what == Canonical::default() {
        format(main, &mut sources, &mut includes)
    } else {
        canonicalize(main, &mut sources, &mut includes, what)
    };
    formatted.map_err(|mut diagnostics| {
        add_places(&mut diagnostics, &sources);
        Error::from_diagnostics(diagnostics, sources)
    })
}
