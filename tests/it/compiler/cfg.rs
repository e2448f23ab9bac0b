//! File tests of the CFG program: `tests/filetests/cfg/*.cfg`.
//!
//! Every file whose text can be read must come back the same from its printed form. Comments say what else is expected:
//!
//! - `; error: text` at the end of a line: that line is rejected, by the reader or the verifier, with this text.
//! - `; run: n=5 x=[1.5, 2.0] -> 8, [1.0]`: the outputs for these lane inputs, or `-> trap: integer overflow at fib:3, depth 2`.
//!   Shared inputs are given in the same way.
//! - `; prints: text` after a run: a line that it prints. `; emits: draw [[1, 2], 3]`: a record.
//! - `; pass: inline, simplify`: the text that these passes give is the file's snapshot.
//! - `; explain`: the snapshot has the variance of every variable, and why.
//!
//! A run must give the same after each of the passes, and after all of them.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use autobatch::analysis::variance;
use autobatch::cfg::{self, Program};
use autobatch::interp;
use autobatch::parts::{StreamId, render};
use autobatch::pipeline::{self, Passes};
use autobatch::run::{Inputs, Outcome, Record, Settings, Sink};
use autobatch::transform::cfg::{BATCH_PASSES, CFG_PASSES, LANE_PASSES};
use autobatch::types::{Array, ArrayData, DType, Precision, Type};
use indexmap::IndexMap;

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests/cfg");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of the file tests")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "cfg"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// What a run said besides its outputs.
#[derive(Default)]
struct Said(Mutex<Vec<String>>);

impl Sink for Said {
    fn emit(&self, _position: usize, stream: StreamId, record: &dyn Record) -> Result<(), autobatch::run::NoMemory> {
        let fields: Vec<String> = record.arrays().iter().map(text_of).collect();
        let line = format!("emits: {stream} {}", fields.join(", "));
        self.0.lock().expect("no panic").push(line.trim_end().to_string());
        Ok(())
    }
    fn print(&self, _position: usize, line: String) {
        let line = format!("prints: {line}");
        self.0.lock().expect("no panic").push(line);
    }
}

fn text_of(value: &Array) -> String {
    render(&[String::new(), String::new()], [value.clone()], Precision::F64)
}

/// The directives of a file: the comments that start with one of the words.
fn directives<'t>(text: &'t str, word: &str) -> Vec<(usize, &'t str)> {
    let marker = format!("; {word}:");
    text.lines()
        .enumerate()
        .filter_map(|(i, line)| line.split_once(&marker).map(|(_, rest)| (i + 1, rest.trim())))
        .collect()
}

/// Errors of the reader or the verifier with their lines.
fn errors_of(text: &str) -> Result<Program, Vec<(usize, String)>> {
    match cfg::read_with_lines(text) {
        Err(e) => Err(vec![(e.line as usize, e.message)]),
        Ok((program, lines)) => {
            let errors = cfg::verify(&program);
            if errors.is_empty() {
                return Ok(program);
            }
            let at_line = |e: cfg::VerifyError| (lines.line(e.place) as usize, e.message);
            Err(errors.into_iter().map(at_line).collect())
        }
    }
}

fn check_errors(text: &str) -> Option<Program> {
    let mut expected = directives(text, "error");
    match errors_of(text) {
        Ok(program) => {
            assert!(expected.is_empty(), "expected {expected:?}, found no error");
            Some(program)
        }
        Err(found) => {
            for (line, message) in &found {
                let at = expected.iter().position(|(l, wanted)| l == line && message.contains(wanted));
                let Some(at) = at else {
                    panic!("unexpected error at line {line}: {message}");
                };
                expected.remove(at);
            }
            assert!(expected.is_empty(), "missing {expected:?}, found {found:?}");
            None
        }
    }
}

/// `[[1.0, 2.0], [3.0, 4.0]]` as an array of this type.
fn array_of(text: &str, ty: &Type) -> Array {
    let parts = text.split(|c: char| "[], ".contains(c)).filter(|p| !p.is_empty());
    let parts: Vec<&str> = parts.collect();
    let data = match ty.dtype {
        DType::Bool => ArrayData::Bool(parts.iter().map(|p| p.parse().expect("a bool")).collect()),
        DType::Int => ArrayData::Int(parts.iter().map(|p| p.parse().expect("an int")).collect()),
        DType::Real => ArrayData::Real(parts.iter().map(|p| p.parse().expect("a real")).collect()),
    };
    Array::new(ty.shape.iter().copied(), data)
}

/// `n=5 x=[1, 2]`
fn assignments(text: &str) -> IndexMap<String, String> {
    let mut values = IndexMap::new();
    let mut rest = text.trim();
    while let Some((name, after)) = rest.split_once('=') {
        // up to the name before the next `=`
        let end = after
            .find('=')
            .map_or(after.len(), |next| after[..next].trim_end().rfind(' ').expect("a space before a name"));
        values.insert(name.trim().to_string(), after[..end].trim().to_string());
        rest = after[end..].trim();
    }
    values
}

fn one_lane(array: Array) -> Array {
    let shape: Vec<usize> = std::iter::once(1).chain(array.shape.iter().copied()).collect();
    Array::new(shape, array.data)
}

fn run_one(program: &Program, given: &str, settings: &Settings) -> (Outcome, Vec<String>) {
    let given = assignments(given);
    let lane = |v: &cfg::Var| one_lane(array_of(&given[&v.name], &v.ty));
    let mut shared = IndexMap::new();
    for value in program.shared.values() {
        if value.source == cfg::SharedSource::Input {
            shared.insert(value.name.clone(), array_of(&given[&value.name], &value.ty));
        }
    }
    let shared = interp::shared_values(&program.shared, &shared, settings.precision);
    let inputs = Inputs {
        lanes: vec![0],
        values: program.lane_inputs().map(lane).collect(),
        shared: shared.expect("shared values"),
    };
    let said = Said::default();
    let outcome = interp::run(program, &inputs, settings, &said);
    (outcome, said.0.into_inner().expect("no panic"))
}

/// What comes after `->`.
fn result_text(outcome: &Outcome) -> String {
    if let Some(trap) = outcome.traps.first() {
        let message = if trap.message.is_empty() { String::new() } else { format!(": {}", trap.message) };
        return format!("trap: {} at {}, depth {}{message}", trap.kind, trap.loc, trap.call_depth);
    }
    let rows = outcome.outputs.iter().map(|o| {
        let row = Array::new(o.shape[1..].iter().copied(), o.data.clone());
        text_of(&row)
    });
    rows.collect::<Vec<_>>().join(", ")
}

fn check_runs(text: &str, program: &Program) {
    let said = |after: usize| {
        let lines = text.lines().skip(after).map(|l| l.trim_start_matches("; "));
        lines
            .take_while(|l| l.starts_with("prints:") || l.starts_with("emits:"))
            .map(str::to_string)
            .collect::<Vec<_>>()
    };
    for (line, run) in directives(text, "run") {
        let (given, expected) = run.split_once("->").expect("`->` in a run");
        let (given, precision) = match given.trim().strip_prefix("f32") {
            Some(given) => (given, Precision::F32),
            None => (given, Precision::F64),
        };
        let settings = Settings {
            precision,
            max_stack_depth: 100,
            max_tape_depth: 100,
            max_supersteps: 1_000_000,
            check_nan: text.contains("; check: nan"),
            ..Settings::default()
        };
        let (outcome, lines) = run_one(program, given, &settings);
        assert_eq!(result_text(&outcome), expected.trim(), "line {line}: {run}");
        assert_eq!(lines, said(line), "line {line}: {run}");
        if settings.check_nan {
            continue;
        }
        let alone = CFG_PASSES.iter().chain(LANE_PASSES).chain(BATCH_PASSES).map(|p| run_pass(p.name, program.clone()));
        let all = pipeline::optimise_cfg(program.clone(), &Passes::default());
        for passed in alone.chain([all]) {
            let (outcome, lines) = run_one(&passed, given, &settings);
            // an inlined call is no active call
            let outputs = |text: &str| text.split(", depth").next().map(str::to_string);
            let expected = outputs(expected.trim());
            assert_eq!(outputs(&result_text(&outcome)), expected, "{run}: {passed}");
            assert_eq!(lines, said(line), "{run}: {passed}");
        }
    }
}

/// Runs one pass and verifies what it makes.
fn run_pass(name: &str, program: Program) -> Program {
    let pass =
        CFG_PASSES.iter().chain(LANE_PASSES).chain(BATCH_PASSES).find(|p| p.name == name).expect("the name of a pass");
    let program = (pass.run)(program);
    assert_eq!(cfg::verify(&program), [], "{name}\n{program}");
    program
}

fn check_passes(text: &str, path: &Path, mut program: Program) {
    let names = directives(text, "pass").pop().map(|(_, names)| names);
    let explained = text.lines().any(|line| line == "; explain");
    if names.is_none() && !explained {
        return;
    }
    for name in names.iter().flat_map(|names| names.split(", ")) {
        program = run_pass(name, program);
    }
    let text = if explained { variance::print_explained(&program) } else { program.to_string() };
    let name = path.file_stem().expect("a file").to_string_lossy();
    insta::with_settings!({
        snapshot_path => "../filetests/cfg/snapshots",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!(name.into_owned(), text);
    });
}

#[test]
fn file_tests() {
    for path in files() {
        let text = std::fs::read_to_string(&path).expect("a text");
        println!("{}", path.display());
        let Some(program) = check_errors(&text) else {
            continue;
        };
        let printed = program.to_string();
        let again = cfg::read(&printed).unwrap_or_else(|e| panic!("{e}\n{printed}"));
        assert_eq!(again.to_string(), printed);
        check_runs(&text, &program);
        check_passes(&text, &path, program);
    }
}

#[test]
fn broken_texts_give_errors_not_panics() {
    let texts: Vec<String> = files().iter().map(|path| std::fs::read_to_string(path).expect("a text")).collect();
    arbtest::arbtest(|u| {
        let mut text = u.choose(&texts)?.clone().into_bytes();
        for _ in 0..u.int_in_range(1..=8)? {
            let at = u.choose_index(text.len())?;
            let to = (at + u.int_in_range(0..=20)?).min(text.len());
            match u.int_in_range(0..=3)? {
                0 => text[at] = *u.choose(b"(){}[]:,=@$`\"\\-; \nabcfunv0159.x")?,
                1 => drop(text.drain(at..to)),
                2 => {
                    let from = u.choose_index(text.len())?;
                    let part = text[from..(from + 30).min(text.len())].to_vec();
                    text.splice(at..to, part);
                }
                _ => text[at] = u.arbitrary()?,
            }
            if text.is_empty() {
                return Ok(());
            }
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        if let Ok(program) = errors_of(&text) {
            let again = cfg::read(&program.to_string()).expect("what is printed can be read");
            assert_eq!(again.to_string(), program.to_string());
        }
        Ok(())
    })
    .budget_ms(1500);
    arbtest::arbtest(|u| {
        let bytes: Vec<u8> = u.arbitrary()?;
        let _ = cfg::read(&String::from_utf8_lossy(&bytes));
        Ok(())
    })
    .budget_ms(300);
}
