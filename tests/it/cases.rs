//! Cases: programs that say in their comments how they are run and what must come out.
//!
//! ```text
//! // run: --entry fib --input n=[5,6] --shared k=3
//! // expect: result = [5, 8]
//! ```
//!
//! Each `// run:` line starts a case; the `// expect:` lines up to the next one belong to it. The arguments are those of
//! `autobatch run` that change results: `--entry` (default `main`), `--input`, `--shared`, `--lanes`, `--seed`, `--real`,
//! `--check nan`, `--max-stack-depth`, `--max-supersteps`; words are separated by spaces, and quotes `'…'` keep spaces.
//! What is expected is one of
//!
//! - `NAME = JSON`: an output, leading axis = lanes; or a field `stream.field` of a stream, a list of records for each lane;
//! - `traps = {"KIND": [LANES…]}`: all the traps; without such a line there must be none;
//! - `prints = ["[lane 0] …", …]`: what is printed, lane after lane.
//!
//! A case runs on every engine under several schedules, modes and cuts of the batch; all must give the same bits.

use std::collections::BTreeMap;
use std::sync::Mutex;

use autobatch::base::Id as _;
use autobatch::parts::StreamId;
use autobatch::pipeline::Passes;
use autobatch::program::io::{ArrayType, Data, JsonArray, parse_json, read_argument};
use autobatch::program::{Bound, Engine, Function, Inputs, Options, Program};
use autobatch::run::{Execution, Schedule, Settings, Sink};
use autobatch::types::{Array, Precision};
use serde_json::{Map, Value, json};

/// One way to run a program, and what must come out.
#[derive(Debug, Default)]
pub(crate) struct Case {
    /// Line of the `run:` comment in its text, counted from 1.
    pub(crate) line: usize,
    arguments: Vec<String>,
    expected: Vec<(String, Value)>,
}

/// The cases of a text, in their order.
pub(crate) fn cases(text: &str) -> Result<Vec<Case>, String> {
    let mut cases: Vec<Case> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let Some(comment) = line.trim().strip_prefix("//").map(str::trim) else { continue };
        if let Some(arguments) = comment.strip_prefix("run:") {
            cases.push(Case { line: i + 1, arguments: words(arguments), expected: Vec::new() });
        } else if let Some(expected) = comment.strip_prefix("expect:") {
            let wrong = || format!("line {}: expected `// expect: name = JSON` after a `// run:`", i + 1);
            let case = cases.last_mut().ok_or_else(wrong)?;
            let (name, value) = expected.split_once('=').ok_or_else(wrong)?;
            let value = parse_json(value.trim(), "expect").map_err(|e| format!("line {}: {e}", i + 1))?;
            case.expected.push((name.trim().to_owned(), value));
        }
    }
    Ok(cases)
}

/// The words of a command line; quotes `'…'` keep spaces together.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in text.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().expect("there is a word").push(c),
        }
    }
    words.retain(|w| !w.is_empty());
    words
}

/// What the arguments of a case say.
struct Arguments {
    entry: String,
    inputs: Vec<(String, bool)>,
    lanes: Option<usize>,
    settings: Settings,
}

impl Arguments {
    fn of(case: &Case) -> Result<Arguments, String> {
        let mut found = Arguments {
            entry: "main".to_owned(),
            inputs: Vec::new(),
            lanes: None,
            settings: Settings { threads: 1, ..Settings::default() },
        };
        let mut words = case.arguments.iter();
        while let Some(flag) = words.next() {
            let value = words.next().ok_or_else(|| format!("`{flag}` needs a value"))?;
            let number = || value.parse::<u64>().map_err(|e| format!("{flag} {value}: {e}"));
            let settings = &mut found.settings;
            match flag.as_str() {
                "--entry" => found.entry.clone_from(value),
                "--input" => found.inputs.push((value.clone(), false)),
                "--shared" => found.inputs.push((value.clone(), true)),
                "--lanes" => found.lanes = Some(number()? as usize),
                "--seed" => settings.seed = number()?,
                "--max-stack-depth" => settings.max_stack_depth = number()? as usize,
                "--max-supersteps" => settings.max_supersteps = number()?,
                "--check" if value == "nan" => settings.check_nan = true,
                "--real" if value == "f32" => settings.precision = Precision::F32,
                "--real" if value == "f64" => settings.precision = Precision::F64,
                _ => return Err(format!("no argument `{flag} {value}` is known here")),
            }
        }
        Ok(found)
    }

    fn inputs(&self, function: &Function<'_>) -> Result<Inputs, String> {
        let mut inputs = Inputs::new();
        for (argument, shared) in &self.inputs {
            let (name, data) = read_argument(argument).map_err(|e| e.to_string())?;
            inputs = add(inputs, function, &name, &data, *shared)?;
        }
        // One lane where nothing says how many there are.
        let one = self.inputs.iter().all(|(_, shared)| *shared).then_some(1);
        Ok(self.lanes.or(one).into_iter().fold(inputs, Inputs::lanes))
    }
}

/// Adds a value; an object gives the fields of a struct.
fn add(mut inputs: Inputs, function: &Function<'_>, name: &str, data: &Data, shared: bool) -> Result<Inputs, String> {
    if let Data::Json(Value::Object(fields)) = data {
        for (field, value) in fields {
            inputs = add(inputs, function, &format!("{name}.{field}"), &Data::Json(value.clone()), shared)?;
        }
        return Ok(inputs);
    }
    let ports = &function.signature().ports;
    let port = ports.iter().find(|p| p.name == name).ok_or_else(|| format!("there is no input `{name}`"))?;
    let rank = port.extents.len() + usize::from(!shared);
    let array = data.to_array(name, ArrayType { dtype: port.dtype, rank }).map_err(|e| e.to_string())?;
    Ok(if shared { inputs.shared(name, array) } else { inputs.lane(name, array) })
}

/// What lanes say, each in its order.
#[derive(Default)]
struct Said {
    prints: Mutex<BTreeMap<usize, Vec<String>>>,
    records: Mutex<BTreeMap<StreamId, BTreeMap<usize, Vec<Vec<Array>>>>>,
}

impl Sink for Said {
    fn emit(&self, position: usize, stream: StreamId, record: Vec<Array>) {
        let mut records = self.records.lock().expect("no test panics here");
        records.entry(stream).or_default().entry(position).or_default().push(record);
    }
    fn print(&self, position: usize, line: String) {
        self.prints.lock().expect("no test panics here").entry(position).or_default().push(line);
    }
}

/// Runs a case on every engine and in every way; says what is not as expected.
pub(crate) fn run(program: &Program, case: &Case) -> Result<(), String> {
    let arguments = Arguments::of(case)?;
    let function = program.function(&arguments.entry).map_err(|e| e.to_string())?;
    let inputs = arguments.inputs(&function)?;
    let mut first: Option<Map<String, Value>> = None;
    for options in ways(&arguments.settings) {
        let bound = function.bind(&inputs, &options).map_err(|e| e.to_string())?;
        let found = outcome(&bound, &options)?;
        let way = || format!("{:?} {:?}", options.engine, options.settings);
        match &first {
            None => {
                compare(case, &found).map_err(|e| format!("{}: {e}", way()))?;
                first = Some(found);
            }
            Some(first) if *first != found => {
                return Err(format!("{} gives\n{found:#?}\nwhere scalar gives\n{first:#?}", way()));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Every engine, schedule and mode, with the batch in one piece and in small ones; with passes and without, where no limit
/// on active calls is set.
fn ways(settings: &Settings) -> Vec<Options> {
    let of = |engine, schedule, execution, shard_lanes| Options {
        engine,
        settings: Settings { schedule, execution, shard_lanes, ..settings.clone() },
        ..Options::default()
    };
    let mut ways = vec![of(Engine::Scalar, Schedule::default(), Execution::Auto, 0)];
    for engine in [Engine::Pc, Engine::Local] {
        for schedule in [Schedule::default(), Schedule::Earliest, Schedule::MostLanes] {
            for execution in [Execution::Mask, Execution::Gather] {
                for shard_lanes in [0, 3] {
                    ways.push(of(engine, schedule, execution, shard_lanes));
                }
            }
        }
        // Passes take calls away, so a limit on active calls is the one thing that they may change.
        if settings.max_stack_depth == Settings::default().max_stack_depth {
            let plain = of(engine, Schedule::default(), Execution::Auto, 0);
            ways.push(Options { passes: Passes::none(), ..plain });
        }
    }
    ways
}

/// Everything that came out, by the names that `expect:` has for it. Bits of reals are kept: no number is rounded.
fn outcome(bound: &Bound, options: &Options) -> Result<Map<String, Value>, String> {
    let said = Said::default();
    let results = bound.run(options, &said).map_err(|e| e.to_string())?;
    let list = |array: &Array| serde_json::to_value(JsonArray(array)).map_err(|e| e.to_string());
    let mut found = Map::new();
    for (name, array) in results.outputs() {
        found.insert(name.clone(), list(array)?);
    }
    let mut traps: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for trap in results.traps() {
        traps.entry(trap.kind.name()).or_default().push(results.lanes()[trap.position]);
    }
    found.insert("traps".to_owned(), json!(traps));
    let prints = said.prints.into_inner().expect("no test panics here");
    let prints = prints.iter().flat_map(|(lane, lines)| lines.iter().map(move |line| format!("[lane {lane}] {line}")));
    found.insert("prints".to_owned(), prints.collect());
    let mut records = said.records.into_inner().expect("no test panics here");
    for (id, stream) in bound.compiled().stack.streams.iter() {
        let mut lanes = records.remove(&id).unwrap_or_default();
        let lanes: Vec<Vec<Vec<Array>>> = (0..bound.lanes()).map(|l| lanes.remove(&l).unwrap_or_default()).collect();
        for (f, (field, _)) in stream.fields.iter().enumerate() {
            let column = |records: &Vec<Vec<Array>>| records.iter().map(|r| list(&r[f])).collect::<Result<Value, _>>();
            let columns = lanes.iter().map(column).collect::<Result<Value, _>>()?;
            found.insert(format!("{}.{field}", stream.name), columns);
        }
    }
    debug_assert!(records.is_empty(), "records of {:?}", records.keys().map(|id| id.index()).collect::<Vec<_>>());
    Ok(found)
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
fn words_are_split_and_kept_together() {
    assert_eq!(words(" --input  x='[1, 2]' --lanes 3"), ["--input", "x=[1, 2]", "--lanes", "3"]);
}

#[test]
fn a_wrong_expectation_is_found() {
    let text = "// run: --input x=[1,2]\n// expect: result = [2, 5]\npub fn main(x: real) -> real { 2.0 * x }";
    let program = Program::compile(text).expect("it checks");
    let cases = cases(text).expect("it is well-formed");
    let error = run(&program, &cases[0]).expect_err("4 is not 5");
    assert!(error.contains("`result` is [2.0,4.0], not [2,5]"), "{error}");
}
