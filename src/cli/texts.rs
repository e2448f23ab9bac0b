//! The commands on source texts: check, fmt, explain.

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;

use crate::base::{Diagnostic, SourceMap};
use crate::program::io::write_atomically;
use crate::program::{Error, ErrorKind, Program};
use crate::syntax;

use super::args::{CheckArgs, FmtArgs};
use super::stan_texts::{findings, formatted, is_stan_text};
use super::{print, report, show_warnings};

/// Checks programs: prints every finding, fails when one is an error.
pub(super) fn check(args: &CheckArgs) -> Result<ExitCode, Error> {
    let mut failed = false;
    for file in &args.files {
        if is_stan_text(file) {
            failed |= !check_stan(file, args)?;
            continue;
        }
        match Program::load(file) {
            Ok(program) => {
                show_warnings(program.warnings(), program.sources());
                failed |= args.deny_warnings && !program.warnings().is_empty();
                print(&format!("{}: ok\n", file.display()));
            }
            Err(error) => {
                report(&error);
                failed = true;
            }
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Checks a program of Stan. Says whether it has no errors, and no warnings where they count as such.
fn check_stan(file: &Path, args: &CheckArgs) -> Result<bool, Error> {
    let (sources, diagnostics) = findings(file, &args.includes.include_path)?;
    let failed = diagnostics.iter().any(|d| d.is_error() || args.deny_warnings);
    if diagnostics.iter().any(Diagnostic::is_error) {
        report(&Error::from_diagnostics(diagnostics, sources));
    } else {
        show_warnings(&diagnostics, &sources);
        print(&format!("{}: ok\n", file.display()));
    }
    Ok(!failed)
}

/// Formats programs in place.
pub(super) fn fmt(args: &FmtArgs) -> Result<ExitCode, Error> {
    let mut failed = false;
    if let Some(name) = args.stdin_name.as_ref().filter(|_| !args.files.iter().any(|file| file == Path::new("-"))) {
        let message = format!("--stdin-name {}: `-` is not among the files", name.display());
        return Err(Error::new(ErrorKind::Option, message));
    }
    for file in &args.files {
        let text = read(file)?;
        let name = args.stdin_name.as_ref().filter(|_| file == Path::new("-")).unwrap_or(file);
        let formatted =
            if is_stan_text(name) { formatted(name, &text, args) } else { formatted_ab(name, &text, args)? };
        let formatted = match formatted {
            Ok(formatted) => formatted,
            Err(error) => {
                report(&error);
                failed = true;
                continue;
            }
        };
        if file == Path::new("-") && !args.check {
            print(&formatted);
        } else if args.check && formatted != text {
            print(&format!("{}: not formatted\n", name.display()));
            failed = true;
        } else if formatted != text {
            use std::io::Write as _;
            write_atomically(file, |out| out.write_all(formatted.as_bytes()))?;
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A program of our own language in canonical form, or why not.
fn formatted_ab(file: &Path, text: &str, args: &FmtArgs) -> Result<Result<String, Error>, Error> {
    if !args.canonicalize.is_empty() {
        let message = format!("--canonicalize rewrites programs of Stan, and {} is none", file.display());
        return Err(Error::new(ErrorKind::Option, message));
    }
    Ok(syntax::format(text).map_err(|diagnostics| {
        let mut sources = SourceMap::default();
        sources.add(file.display().to_string(), text);
        Error::from_diagnostics(diagnostics, sources)
    }))
}

/// The text of a file, or of standard input.
pub(super) fn read(file: &Path) -> Result<String, Error> {
    let name = file.display();
    let bytes = if file == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(file)
    };
    let bytes = bytes.map_err(|e| Error::new(ErrorKind::Io, format!("cannot read {name}: {e}")))?;
    String::from_utf8(bytes).map_err(|_| Error::new(ErrorKind::Io, format!("{name} is not UTF-8")))
}

/// The index of diagnostics, one section a code.
pub(super) const ERRORS: &str = concat!(
    include_str!("../../grammar/errors.d/syntax.md"),
    "\n",
    include_str!("../../grammar/errors.d/check.md"),
    "\n",
    include_str!("../../grammar/errors.d/models.md"),
    "\n",
    include_str!("../../grammar/errors.d/lower.md"),
    "\n",
    include_str!("../../grammar/errors.d/stan_syntax.md"),
    "\n",
    include_str!("../../grammar/errors.d/stan_check.md"),
    "\n",
    include_str!("../../grammar/errors.d/stan_translate.md"),
);

/// Prints the section of a code.
pub(super) fn explain(code: &str) -> Result<ExitCode, Error> {
    let code = code.trim().to_uppercase();
    let sections = || ERRORS.split("\n## ").map(|s| s.trim_start_matches("## "));
    if let Some(section) = sections().find(|s| s.starts_with(&format!("{code}:"))) {
        print(&format!("{}\n", section.trim_end()));
        return Ok(ExitCode::SUCCESS);
    }
    let codes: Vec<&str> =
        sections().filter_map(|s| s.split_once(':').map(|(c, _)| c)).filter(|c| c.len() == 5).collect();
    let message = format!("no diagnostic has the code `{code}`; there is {}", codes.join(", "));
    Err(Error::new(ErrorKind::Option, message))
}
