//! The cases of an example on a page: how it is run and what must come out, everything that a user sees of a run included.
//!
//! ```text
//! // run: --entry fib --input n=[5,6] --seed 3
//! // expect: result = [5, 8]
//! ```
//!
//! Each `// run:` line (see [`RunLine`]) starts a case; the `// expect:` lines up to the next one belong to it:
//!
//! - `NAME = JSON`: an output, leading axis = lanes, rows of lanes that trap being zero; or a field `stream.field` of a stream,
//!   a list of records for each lane;
//! - `traps = {"KIND": [LANES…]}`: all the traps; without such a line there must be none;
//! - `prints = ["[lane 0] …", …]`: what is printed, lane after lane.
//!
//! The numbers are those of the engine `scalar`; all engines must do the same in every way of running them.

use std::collections::BTreeMap;
use std::sync::Mutex;

use autobatch::parts::StreamId;
use autobatch::program::Program;
use autobatch::program::io::{JsonArray, parse_json};
use autobatch::run::Sink;
use autobatch::types::Array;
use serde_json::{Map, Value, json};

use crate::observed::Configuration;
use crate::run_files::agree;
use crate::run_line::RunLine;

/// One way to run a program, and what must come out.
pub(crate) struct Case {
    /// Line of the `run:` comment in its text, counted from 1.
    pub(crate) line: usize,
    run: RunLine,
    expected: Vec<(String, Value)>,
}

/// The cases of a text, in their order.
pub(crate) fn cases(text: &str) -> Result<Vec<Case>, String> {
    let mut cases: Vec<Case> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if let Some(arguments) = line.strip_prefix("// run: ") {
            cases.push(Case { line: i + 1, run: RunLine::parse(arguments), expected: Vec::new() });
        } else if let Some(expected) = line.strip_prefix("// expect: ") {
            let wrong = || format!("line {}: `// expect: name = JSON` is wanted, after a `// run:`", i + 1);
            let case = cases.last_mut().ok_or_else(wrong)?;
            let (name, value) = expected.split_once(" = ").ok_or_else(wrong)?;
            let value = parse_json(value, "expect").map_err(|e| format!("line {}: {e}", i + 1))?;
            case.expected.push((name.to_owned(), value));
        }
    }
    Ok(cases)
}

/// Fields of a record.
type Record = Vec<Array>;

/// What lanes say, each in its order.
#[derive(Default)]
struct Said {
    prints: Mutex<BTreeMap<usize, Vec<String>>>,
    records: Mutex<BTreeMap<(StreamId, usize), Vec<Record>>>,
}

impl Sink for Said {
    fn emit(&self, position: usize, stream: StreamId, record: Vec<Array>) {
        let mut records = self.records.lock().expect("no test panics here");
        records.entry((stream, position)).or_default().push(record);
    }
    fn print(&self, position: usize, line: String) {
        self.prints.lock().expect("no test panics here").entry(position).or_default().push(line);
    }
}

/// Runs a case; says what is not as expected. Panics, naming `context`, where engines disagree.
pub(crate) fn run(program: &Program, case: &Case, context: &str) -> Result<(), String> {
    let (function, inputs) = case.run.bind(program);
    let scalar = Configuration::scalar(&case.run.options);
    let said = Said::default();
    let bound = function.bind(&inputs, &scalar.options).map_err(|e| e.to_string())?;
    let results = bound.run(&scalar.options, &said).map_err(|e| e.to_string())?;
    let mut found: Map<String, Value> =
        results.outputs().iter().map(|(name, array)| (name.clone(), list(array))).collect();
    let mut traps: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for trap in results.traps() {
        traps.entry(trap.kind.name()).or_default().push(results.lanes()[trap.position]);
    }
    found.insert("traps".to_owned(), json!(traps));
    found.insert("prints".to_owned(), prints(&said));
    let records = said.records.lock().expect("no test panics here");
    for (id, stream) in bound.compiled().stack.streams.iter() {
        for (f, (field, _)) in stream.fields.iter().enumerate() {
            let lane = |l| records.get(&(id, l)).into_iter().flatten().map(|r| list(&r[f])).collect::<Value>();
            found.insert(format!("{}.{field}", stream.name), (0..bound.lanes()).map(lane).collect());
        }
    }
    compare(case, &found)?;
    agree(&case.run, &function, &inputs, &scalar, context);
    Ok(())
}

/// As nested lists, reals with all their digits.
fn list(array: &Array) -> Value {
    serde_json::to_value(JsonArray(array)).expect("an array is a list")
}

fn prints(said: &Said) -> Value {
    let prints = said.prints.lock().expect("no test panics here");
    let lines = |(lane, lines): (&usize, &Vec<String>)| -> Vec<Value> {
        lines.iter().map(|line| json!(format!("[lane {lane}] {line}"))).collect()
    };
    prints.iter().flat_map(lines).collect()
}

fn compare(case: &Case, found: &Map<String, Value>) -> Result<(), String> {
    if !case.expected.iter().any(|(name, _)| name == "traps") && found["traps"] != json!({}) {
        return Err(format!("there are traps: {}", found["traps"]));
    }
    for (name, expected) in &case.expected {
        match found.get(name) {
            Some(value) if same(value, expected) => {}
            Some(value) => return Err(format!("`{name}` is {value}, not {expected}")),
            None => return Err(format!("there is no `{name}`, only {:?}", found.keys().collect::<Vec<_>>())),
        }
    }
    Ok(())
}

/// Equal, where `2` may be written for `2.0`.
fn same(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Number(a), Value::Number(b)) => a == b || (a.is_f64() && a.as_f64() == b.as_f64()),
        (a, b) => a == b,
    }
}

#[test]
fn a_wrong_expectation_is_found() {
    let text = "// run: --input x=[1,2]\n// expect: result = [2, 5]\npub fn main(x: real) -> real { 2.0 * x }";
    let program = Program::compile(text).expect("it checks");
    let cases = cases(text).expect("it is well-formed");
    let error = run(&program, &cases[0], "here").expect_err("4 is not 5");
    assert!(error.contains("`result` is [2.0,4.0], not [2,5]"), "{error}");
}
