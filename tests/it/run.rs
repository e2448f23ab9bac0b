//! Programs with their inputs and what must come out, on every engine: `tests/filetests/run/*.ab`.
//!
//! Comment lines at the start of a program say what to do:
//! - `// run: --entry f --input x=[1,2] --shared y=3 --lanes 2 --seed 7` runs an entry; values are JSON without spaces,
//!   the leading axis of an input is the lanes;
//!   `--passes on` leaves out the run with all passes off;
//! - `// expect: result = [3, 4]` says what an output of the last run is, exactly, the leading axis being the lanes; rows of
//!   lanes that trap are not compared;
//! - `// trap: index out of range [1]` says which lanes of the last run trap and why; no other lane may;
//! - `// line: 0: x = 1` is the next line that lane 0 prints, `// record: 0: draw [1.0, [2.0]]` its next record.
//!
//! The bad programs of `grammar/errors.d/lower.md` are driven by their `run:` lines in the same way.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;

use autobatch::backend::cpu;
use autobatch::base::{Diagnostic, Id as _, SourceMap};
use autobatch::check::{FileLoader, check_program};
use autobatch::lower::hir_to_cfg::{entry_signature, specialise};
use autobatch::parts::StreamId;
use autobatch::pipeline::{self, Passes};
use autobatch::run::{Inputs, Outcome, Settings, Sink};
use autobatch::types::{Array, ArrayData, DType, Precision, Scalar, Type};
use autobatch::{cfg, hir, interp};
use indexmap::IndexMap;
use serde_json::Value as Json;

/// One `run:` line with what must come of it.
#[derive(Default)]
struct Run {
    entry: String,
    inputs: BTreeMap<String, Json>,
    shared: BTreeMap<String, Json>,
    lanes: Option<usize>,
    seed: u64,
    /// Only with all passes: without tail calls it would need too much stack.
    optimised: bool,
    expected: Vec<(String, Json)>,
    traps: Vec<(String, Vec<usize>)>,
    said: Vec<(usize, String)>,
}

fn parse_run(line: &str) -> Run {
    let mut run = Run::default();
    let mut words = line.split_whitespace();
    while let Some(word) = words.next() {
        let value = words.next().expect("a value after each option");
        let assign = || {
            let (name, json) = value.split_once('=').expect("name=JSON");
            (name.to_owned(), serde_json::from_str(json).expect("JSON"))
        };
        match word {
            "--entry" => run.entry = value.to_owned(),
            "--input" => run.inputs.extend([assign()]),
            "--shared" => run.shared.extend([assign()]),
            "--lanes" => run.lanes = Some(value.parse().expect("a number")),
            "--passes" => run.optimised = value == "on",
            "--seed" => run.seed = value.parse().expect("a number"),
            other => panic!("unknown option {other}"),
        }
    }
    run
}

fn parse_runs(text: &str) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for line in text.lines().filter_map(|l| l.strip_prefix("// ")) {
        let Some((key, rest)) = line.split_once(": ") else {
            continue;
        };
        match (key, runs.last_mut()) {
            ("run", _) => runs.push(parse_run(rest)),
            ("expect", Some(run)) => {
                let (name, json) = rest.split_once(" = ").expect("name = JSON");
                let json = serde_json::from_str(json).expect("JSON");
                run.expected.push((name.to_owned(), json));
            }
            ("trap", Some(run)) => {
                let (kind, lanes) = rest.split_once(" [").expect("kind [lanes]");
                let lanes = serde_json::from_str(&format!("[{lanes}")).expect("lanes");
                run.traps.push((kind.to_owned(), lanes));
            }
            ("line" | "record", Some(run)) => {
                let (lane, text) = rest.split_once(": ").expect("lane: text");
                let text = format!("{key} {text}");
                run.said.push((lane.parse().expect("a lane"), text));
            }
            _ => {}
        }
    }
    runs
}

/// Extents and flat elements of nested JSON arrays.
fn flatten(json: &Json, depth: usize, shape: &mut Vec<usize>, flat: &mut Vec<Json>) {
    match json {
        Json::Array(items) => {
            if shape.len() == depth {
                shape.push(items.len());
            }
            items.iter().for_each(|i| flatten(i, depth + 1, shape, flat));
        }
        scalar => flat.push(scalar.clone()),
    }
}

fn number(json: &Json) -> f64 {
    match json {
        Json::String(s) => s.parse().expect("nan or inf"),
        json => json.as_f64().expect("a number"),
    }
}

fn array(json: &Json, dtype: DType) -> Array {
    let (mut shape, mut flat) = (Vec::new(), Vec::new());
    flatten(json, 0, &mut shape, &mut flat);
    let data = match dtype {
        DType::Bool => ArrayData::Bool(flat.iter().map(|j| j.as_bool().expect("a bool")).collect()),
        DType::Int => ArrayData::Int(flat.iter().map(|j| j.as_i64().expect("an int")).collect()),
        DType::Real => ArrayData::Real(flat.iter().map(number).collect()),
    };
    Array::new(shape, data)
}

fn show(array: &Array) -> String {
    fn rows(array: &Array, axis: usize, at: &mut usize) -> String {
        match array.shape.get(axis) {
            None => {
                *at += 1;
                array.get(*at - 1).to_string()
            }
            Some(n) => {
                let rows: Vec<String> = (0..*n).map(|_| rows(array, axis + 1, at)).collect();
                format!("[{}]", rows.join(", "))
            }
        }
    }
    rows(array, 0, &mut 0)
}

/// What lanes say, in the order of each lane.
struct Listener<'a> {
    program: &'a cfg::Program,
    said: Mutex<BTreeMap<usize, Vec<String>>>,
}

impl Sink for Listener<'_> {
    fn emit(&self, position: usize, stream: StreamId, record: Vec<Array>) {
        let fields: Vec<String> = record.iter().map(show).collect();
        let name = &self.program.streams[stream].name;
        let text = format!("record {name} [{}]", fields.join(", "));
        self.said.lock().unwrap().entry(position).or_default().push(text);
    }
    fn print(&self, position: usize, line: String) {
        let text = format!("line {line}");
        self.said.lock().unwrap().entry(position).or_default().push(text);
    }
}

/// A program and where it stands, checked.
fn check(name: &str, text: &str) -> (hir::Program, SourceMap) {
    let mut sources = SourceMap::default();
    let main = sources.add(name, text);
    let (program, diagnostics) = check_program(main, &mut sources, &mut FileLoader);
    let Some(program) = program else {
        panic!("{name}: {diagnostics:#?}");
    };
    (program, sources)
}

/// What a run is given: lane inputs in order, shared inputs by name.
struct Given {
    lanes: Vec<u64>,
    values: Vec<Array>,
    shared: IndexMap<String, Array>,
}

/// An entry, the event types of its ports, and for each port whether it is shared, its name and its value.
type Entry = (hir::FnId, Vec<Type>, Vec<(bool, String, Array)>);

/// The inputs of a run, in the order of the ports, and their event types.
fn bind(program: &hir::Program, run: &Run) -> Result<Entry, Diagnostic> {
    let entry = program.exports[&run.entry];
    let signature = entry_signature(program, entry)?;
    let mut types = Vec::new();
    let mut values = Vec::new();
    for port in &signature.ports {
        let given = if port.shared { &run.shared } else { &run.inputs };
        let json = given.get(&port.name).unwrap_or_else(|| panic!("no value for {}", port.name));
        let value = array(json, port.dtype);
        let mut ty = value.ty();
        if !port.shared {
            ty.shape.remove(0);
        }
        types.push(ty);
        values.push((port.shared, port.name.clone(), value));
    }
    Ok((entry, types, values))
}

fn specialised(
    program: &hir::Program,
    sources: &SourceMap,
    run: &Run,
) -> Result<(cfg::Program, Given), Vec<Diagnostic>> {
    let (entry, types, values) = bind(program, run).map_err(|d| vec![d])?;
    let made = specialise(program, sources, entry, &types)?;
    let errors = cfg::verify(&made);
    assert!(errors.is_empty(), "{errors:#?}\n{made}");
    let lane_inputs: Vec<Array> = values.iter().filter(|v| !v.0).map(|v| v.2.clone()).collect();
    let shared = values.into_iter().filter(|v| v.0).map(|v| (v.1, v.2)).collect();
    let lanes = run.lanes.or(lane_inputs.first().map(|a| a.shape[0])).unwrap_or(1);
    let inputs = Given { lanes: (0..lanes as u64).collect(), values: lane_inputs, shared };
    Ok((made, inputs))
}

/// What must be the same on all engines, as text.
fn summary(outcome: &Outcome, listener: &Listener<'_>) -> String {
    let mut text = String::new();
    let trapped: Vec<usize> = outcome.traps.iter().map(|t| t.position).collect();
    for (name, value) in listener.program.outputs.iter().zip(&outcome.outputs) {
        let lanes = value.shape[0];
        let each = value.len() / lanes.max(1);
        for lane in (0..lanes).filter(|l| !trapped.contains(l)) {
            let elements: Vec<String> = (0..each).map(|i| bits(value.get(lane * each + i))).collect();
            writeln!(text, "{name} {lane}: {}", elements.join(" ")).unwrap();
        }
    }
    for trap in &outcome.traps {
        writeln!(
            text,
            "trap {}: {} at {} depth {} {}",
            trap.position, trap.kind, trap.loc, trap.call_depth, trap.message
        )
        .unwrap();
    }
    for (lane, said) in listener.said.lock().unwrap().iter() {
        writeln!(text, "said {lane}: {said:?}").unwrap();
    }
    text
}

fn bits(scalar: Scalar) -> String {
    match scalar {
        Scalar::Real(r) => format!("{scalar}#{:x}", r.to_bits()),
        other => other.to_string(),
    }
}

fn compare(outcome: &Outcome, listener: &Listener<'_>, run: &Run, context: &str) {
    let trapped: Vec<usize> = outcome.traps.iter().map(|t| t.position).collect();
    for (name, json) in &run.expected {
        let at = listener.program.outputs.iter().position(|o| o == name);
        let at = at.unwrap_or_else(|| panic!("{context}: no output {name} among {:?}", listener.program.outputs));
        let value = &outcome.outputs[at];
        let wanted = array(json, value.dtype());
        assert_eq!(wanted.shape, value.shape, "{context}: {name} = {}", show(value));
        let each = value.len() / value.shape[0].max(1);
        for i in (0..value.len()).filter(|i| !trapped.contains(&(i / each))) {
            assert_eq!(value.get(i), wanted.get(i), "{context}: {name} = {}", show(value));
        }
    }
    let mut wanted: Vec<(usize, &str)> = Vec::new();
    for (kind, lanes) in &run.traps {
        wanted.extend(lanes.iter().map(|l| (*l, kind.as_str())));
    }
    wanted.sort_unstable();
    let found: Vec<(usize, &str)> = outcome.traps.iter().map(|t| (t.position, t.kind.name())).collect();
    assert_eq!(found, wanted, "{context}: {:?}", outcome.traps);
    let mut said: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (lane, text) in &run.said {
        said.entry(*lane).or_default().push(text.clone());
    }
    assert_eq!(*listener.said.lock().unwrap(), said, "{context}");
}

#[test]
fn programs_do_on_every_engine_what_they_say() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/filetests/run");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    let only = std::env::var("RUN_ONLY").unwrap_or_default();
    let chosen = paths.iter().filter(|p| p.to_string_lossy().contains(&only));
    let failed: Vec<String> = chosen.flat_map(|path| failures(path)).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// The runs of a program that do not do what they should.
fn failures(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let name = path.file_name().unwrap().to_string_lossy();
    let (program, sources) = match catch_unwind(|| check(&name, &text)) {
        Ok(checked) => checked,
        Err(panic) => return vec![text_of(panic)],
    };
    let runs = parse_runs(&text);
    assert!(!runs.is_empty(), "{name} runs nothing");
    let mut failed = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        let context = format!("{name} run {} ({})", i + 1, run.entry);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let (made, inputs) = specialised(&program, &sources, run).unwrap_or_else(|d| panic!("{context}: {d:#?}"));
            check_engines(&made, &inputs, run, &context);
        }));
        failed.extend(outcome.err().map(text_of));
    }
    failed
}

fn text_of(panic: Box<dyn std::any::Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(_) => "a panic without a text".to_owned(),
    }
}

fn check_engines(made: &cfg::Program, given: &Given, run: &Run, context: &str) {
    let settings = Settings { seed: run.seed, max_stack_depth: 200, ..Settings::default() };
    let listener = || Listener { program: made, said: Mutex::default() };
    let plain = (!run.optimised).then_some(("no passes", Passes::none()));
    for (which, passes) in plain.into_iter().chain([("all passes", Passes::default())]) {
        let context = format!("{context}, {which}");
        let compiled = pipeline::from_cfg(made.clone(), &passes);
        let program = compiled.cfg.as_ref().expect("made from a CFG program");
        let inputs = with_shared(program, given);
        let scalar_said = listener();
        let outcome = interp::run(program, &inputs, &settings, &scalar_said);
        compare(&outcome, &scalar_said, run, &context);
        let wanted = summary(&outcome, &scalar_said);
        let said = listener();
        let outcome = cpu::pc::run(&compiled.plan, &inputs, &settings, &said);
        assert_eq!(summary(&outcome, &said), wanted, "{context}: pc and scalar differ");
        let calls = compiled.calls.as_ref().expect("made from a CFG program");
        let said = listener();
        let outcome = cpu::local::run(calls, &inputs, &settings, &said);
        assert_eq!(summary(&outcome, &said), wanted, "{context}: local and scalar differ");
    }
}

/// The inputs with all shared values, the computed ones included.
fn with_shared(program: &cfg::Program, given: &Given) -> Inputs {
    let shared = interp::shared_values(&program.shared, &given.shared, Precision::F64);
    Inputs { lanes: given.lanes.clone(), values: given.values.clone(), shared: shared.expect("shared values") }
}

#[test]
fn every_error_of_the_specialisation_has_a_bad_program_that_gives_it() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/grammar/errors.d/lower.md");
    let text = std::fs::read_to_string(path).unwrap();
    for section in text.split("\n## ").map(|s| s.trim_start_matches("## ")) {
        let (code, _) = section.split_once(':').unwrap();
        let run = section.lines().find_map(|l| l.strip_prefix("run: "));
        let run = parse_run(run.unwrap_or_else(|| panic!("{code} has no run: line")));
        let (_, rest) = section.split_once("```ab\n").unwrap();
        let (program, _) = rest.split_once("\n```").unwrap();
        let (program, sources) = check(code, program);
        let found = match specialised(&program, &sources, &run) {
            Ok(_) => panic!("{code} is not found"),
            Err(diagnostics) => diagnostics,
        };
        let codes: Vec<&str> = found.iter().map(|d| d.code.0).collect();
        assert!(codes.contains(&code), "{code}: {found:#?}");
    }
}

#[test]
fn the_number_of_lanes_does_not_matter_to_the_program() {
    let (program, sources) =
        check("fib", "pub fn fib(n: int) -> int { if n < 3 { 1 } else { fib(n - 1) + fib(n - 2) } }");
    let one = parse_run("--entry fib --input n=[5]");
    let many = parse_run("--entry fib --input n=[5,6,7]");
    let made = |run| specialised(&program, &sources, run).expect("fits").0;
    assert_eq!(made(&one), made(&many));
    assert_eq!(made(&one).funcs.len(), 1);
    assert_eq!(made(&one).entry.index(), 0);
}
