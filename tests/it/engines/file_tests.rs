//! Programs in files that say what they do (see [`crate::tools::cases`]), on every engine: `tests/filetests/run` by
//! feature, `conformance` by the items of another system's tests, `differential` random programs that failed once,
//! `examples`, and the programs of `benches/ordinary`.
//!
//! A file whose program must not compile says so by `// error: E0305` lines instead.

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use autobatch::program::Program;

use crate::tools::cases::{self, cases};
use crate::tools::run_line::RunLine;

fn programs(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = entries.map(|e| e.expect("an entry").path());
    let only = std::env::var("FILE_ONLY").unwrap_or_default();
    let mut paths: Vec<PathBuf> =
        paths.filter(|p| p.extension().is_some_and(|e| e == "ab") && p.to_string_lossy().contains(&only)).collect();
    paths.sort();
    assert!(!paths.is_empty() || !only.is_empty(), "no programs in {}", folder.display());
    paths
}

/// What is not as the file says.
fn check_file(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("a text");
    let wanted: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("// error: ")).collect();
    let program = match Program::load(path) {
        Ok(program) => program,
        Err(error) => {
            let codes: Vec<&str> = error.diagnostics().iter().map(|d| d.code.0).collect();
            let all = !wanted.is_empty() && wanted.iter().all(|code| codes.contains(code));
            return if all { Vec::new() } else { vec![error.to_string()] };
        }
    };
    if !wanted.is_empty() {
        return vec![format!("{wanted:?} is not found")];
    }
    match cases(&text) {
        Ok(all) if all.is_empty() => vec!["runs nothing".to_owned()],
        Ok(all) => all.iter().filter_map(|case| check_case(&program, case, path)).collect(),
        Err(error) => vec![error],
    }
}

fn check_case(program: &Program, case: &cases::Case, path: &Path) -> Option<String> {
    let context = format!("{}:{}", path.display(), case.line);
    let outcome = catch_unwind(|| cases::run(program, case, &context));
    let failed = outcome.unwrap_or_else(|panic| {
        let text = panic.downcast::<String>();
        Err(text.map_or_else(|_| "a panic without a text".to_owned(), |text| *text))
    });
    failed.err().map(|why| format!("line {}: {why}", case.line))
}

fn check_folder(folder: &str) {
    let failed = programs(folder).into_iter().flat_map(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        check_file(&path).into_iter().map(move |why| format!("{folder}/{name}: {why}"))
    });
    let failed: Vec<String> = failed.collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn run() {
    check_folder("tests/filetests/run");
}

#[test]
fn conformance() {
    check_folder("tests/filetests/conformance");
}

#[test]
fn differential() {
    check_folder("tests/filetests/differential");
}

#[test]
fn examples() {
    check_folder("examples");
}

#[test]
fn ordinary_programs() {
    check_folder("benches/ordinary");
}

#[test]
fn every_error_of_the_specialisation_has_a_bad_program_that_gives_it() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/grammar/errors.d/lower.md");
    let text = std::fs::read_to_string(path).unwrap();
    for section in text.split("\n## ").map(|s| s.trim_start_matches("## ")) {
        let (code, _) = section.split_once(':').unwrap();
        let run = section.lines().find_map(|l| l.strip_prefix("run: "));
        let run = RunLine::parse(run.unwrap_or_else(|| panic!("{code} has no run: line")));
        let (_, rest) = section.split_once("```ab\n").unwrap();
        let (program, _) = rest.split_once("\n```").unwrap();
        let program = Program::compile(program).unwrap_or_else(|e| panic!("{code}: {e}"));
        let (function, inputs) = run.bind(&program).unwrap_or_else(|e| panic!("{code}: {e}"));
        let codes: Vec<&str> = match function.bind(&inputs, &run.options) {
            Ok(bound) => bound.compiled().warnings.iter().map(|d| d.code.0).collect(),
            Err(error) => error.diagnostics().iter().map(|d| d.code.0).collect(),
        };
        assert!(codes.contains(&code), "{code} is not found, but {codes:?}");
    }
}
