//! Programs that say what they do: `tests/filetests/conformance/*.ab` and `examples/*.ab`, on every engine.
//!
//! Comment lines at the start of a program:
//! - `// run: --entry f --input x=[1, 2] --shared y=3 --lanes 2 --seed 7`: the flags of `autobatch run`. Without `--engine`
//!   the program runs on all engines, schedules and ways of execution, with all passes and with none, in several shards and
//!   batches, and every lane must do the same in all of them, bit for bit.
//! - `// expect: result = [3, 4]`: an output of the run before it, lanes along the leading axis, in JSON. Lanes that trap
//!   are not compared.
//! - `// trap: index out of range [1]`: the lanes that trap in this way; no others may.
//! - `// error: E0305`: the program does not compile, with this code among its errors.

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use autobatch::program::io::{ArrayType, Data, parse_json};
use autobatch::program::{Inputs, Program};
use autobatch::run::Settings;
use autobatch::types::{Array, Scalar};

use crate::observed::{Configuration, difference};
use crate::run_line::RunLine;

/// What a `run:` line must give.
struct Expected<'t> {
    run: RunLine,
    outputs: Vec<(&'t str, &'t str)>,
    traps: Vec<(&'t str, Vec<u64>)>,
}

fn expectations(text: &str) -> Vec<Expected<'_>> {
    let mut all: Vec<Expected<'_>> = Vec::new();
    for line in text.lines().filter_map(|l| l.strip_prefix("// ")) {
        let Some((key, rest)) = line.split_once(": ") else { continue };
        match (key, all.last_mut()) {
            ("run", _) => all.push(Expected { run: RunLine::parse(rest), outputs: Vec::new(), traps: Vec::new() }),
            ("expect", Some(last)) => last.outputs.push(rest.split_once(" = ").expect("name = JSON")),
            ("trap", Some(last)) => {
                let (kind, lanes) = rest.split_once(" [").expect("kind [lanes]");
                let lanes = lanes.trim_end().trim_end_matches(']').split(',');
                last.traps.push((kind, lanes.map(|l| l.trim().parse().expect("a lane")).collect()));
            }
            _ => {}
        }
    }
    all
}

fn programs(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = entries.map(|e| e.expect("an entry").path());
    let mut paths: Vec<PathBuf> = paths.filter(|p| p.extension().is_some_and(|e| e == "ab")).collect();
    paths.sort();
    paths
}

fn same(a: Scalar, b: Scalar) -> bool {
    match (a, b) {
        (Scalar::Real(a), Scalar::Real(b)) => a == b || a.is_nan() && b.is_nan(),
        _ => a == b,
    }
}

fn check_output(found: &Array, json: &str, trapped: &[u64], context: &str) {
    let value = parse_json(json, "expect").unwrap_or_else(|e| panic!("{context}: {e}"));
    let ty = ArrayType { dtype: found.dtype(), rank: found.shape.len() };
    let wanted = Data::Json(value).to_array("expect", ty).unwrap_or_else(|e| panic!("{context}: {e}"));
    assert_eq!(wanted.shape, found.shape, "{context}: {json} is wanted, {found:?} found");
    let each = found.len() / found.shape[0].max(1);
    for i in (0..found.len()).filter(|i| !trapped.contains(&((i / each) as u64))) {
        assert!(same(wanted.get(i), found.get(i)), "{context}: {json} is wanted, {found:?} found");
    }
}

fn check_run(program: &Program, expected: &Expected<'_>, context: &str) {
    let run = &expected.run;
    let (function, inputs) = run.bind(program);
    let reference = Configuration::scalar(&run.options);
    let results = function.run(&inputs, &reference.options).unwrap_or_else(|e| panic!("{context}: {e}"));
    let mut traps: Vec<(u64, &str)> =
        expected.traps.iter().flat_map(|(kind, lanes)| lanes.iter().map(|l| (*l, *kind))).collect();
    traps.sort_unstable();
    let found: Vec<(u64, &str)> =
        results.traps().iter().map(|t| (results.lanes()[t.position], t.kind.name())).collect();
    assert_eq!(found, traps, "{context}: {:?}", results.traps());
    let trapped: Vec<u64> = traps.iter().map(|t| t.0).collect();
    for (name, json) in &expected.outputs {
        let array = results.output(name);
        let array = array.unwrap_or_else(|| panic!("{context}: no output {name} among {:?}", results.outputs().keys()));
        check_output(array, json, &trapped, context);
    }
    agree(run, &function, &inputs, &reference, context);
}

/// All engines do what the reference does, in every way of running them; panics where one does not.
pub(crate) fn agree(
    run: &RunLine,
    function: &autobatch::program::Function<'_>,
    inputs: &Inputs,
    reference: &Configuration,
    context: &str,
) {
    let wanted = reference.observe(function, inputs).unwrap_or_else(|why| panic!("{context}: {why}"));
    for mut configuration in Configuration::systematic(&run.options) {
        if run.engine.is_some_and(|engine| engine != configuration.options.engine) {
            continue;
        }
        if run.options.settings.max_stack_depth < Settings::default().max_stack_depth {
            // What counts as a call depends on the passes.
            configuration.options.passes = run.options.passes.clone();
        }
        let found = configuration.observe(function, inputs);
        let found = found.unwrap_or_else(|why| panic!("{context}: {configuration}: {why}"));
        if let Some(why) = difference(&wanted, &found) {
            panic!("{context}: {configuration}\n{why}");
        }
    }
}

fn check_file(path: &Path) {
    let text = std::fs::read_to_string(path).expect("a text");
    let wanted: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("// error: ")).collect();
    match Program::load(path) {
        Ok(program) => {
            assert!(wanted.is_empty(), "{}: {wanted:?} is not found", path.display());
            let all = expectations(&text);
            assert!(!all.is_empty(), "{} runs nothing", path.display());
            for (i, expected) in all.iter().enumerate() {
                check_run(&program, expected, &format!("{} run {}", path.display(), i + 1));
            }
        }
        Err(error) => {
            let codes: Vec<&str> = error.diagnostics().iter().map(|d| d.code.0).collect();
            let all = !wanted.is_empty() && wanted.iter().all(|code| codes.contains(code));
            assert!(all, "{}: {error}", path.display());
        }
    }
}

/// Checks all the files and says of each that fails why.
fn check_folder(folder: &str, at_least: usize) {
    let paths = programs(folder);
    assert!(paths.len() >= at_least, "only {} programs in {folder}", paths.len());
    let failed = paths.iter().filter(|path| {
        let failed = catch_unwind(|| check_file(path)).is_err();
        if failed {
            eprintln!("{} fails", path.display());
        }
        failed
    });
    let failed: Vec<&PathBuf> = failed.collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn conformance() {
    check_folder("tests/filetests/conformance", 25);
}

#[test]
fn examples() {
    check_folder("examples", 10);
}
