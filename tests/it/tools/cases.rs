//! THE format of programs that say what they do: programs in
//! `tests/filetests/{run,conformance,differential,derivative}` and `examples`, the examples of the reference, and texts
//! of IRs in `tests/filetests/{cfg,stack}`, whose comments start with `;`. CONTRIBUTING.md describes it for whoever
//! adds one.
//!
//! ```text
//! // run: --entry divide --input a=[6,5] --input b=[3,0] --seed 3
//! // expect: result = [2, 0]
//! // trap: division by zero [1] at divide:9
//! // print: [lane 0] 6 by 3
//! ```
//!
//! Each `// run:` line (see [`RunLine`]) starts a case; the lines up to the next one belong to it:
//!
//! - `expect: NAME = JSON`: an output, leading axis = lanes, rows of lanes that trap being zero; or a field `stream.field` of
//!   a stream, a list of records for each lane; of a stream without fields, the number of its records;
//! - `trap: KIND [LANES…]`, or with a place `trap: KIND [LANES…] at FUNCTION:LINE`, or with what is told, too,
//!   `trap: KIND [LANES…] at FUNCTION:LINE: MESSAGE`: all the traps must be named. Behind the line of the text of an IR,
//!   `, depth N` is the number of active calls before passes;
//! - `print: [lane N] TEXT`: all that is printed, lane after lane, where there is at least one such line;
//! - `refused: TEXT`: the run is refused, in these words among others.
//!
//! The numbers are those of the engine `scalar`; all engines must do the same in every way of running them. A file with a
//! line `// costly` runs in fewer of them by default.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, BuildHasherDefault};
use std::sync::{Mutex, PoisonError};

use autobatch::base::{FileId, Id as _};
use autobatch::parts::StreamId;
use autobatch::program::io::{JsonArray, parse_json};
use autobatch::program::{Bound, Engine, Function, Inputs, Options, Program, Results};
use autobatch::run::{NoSink, Settings, Sink};
use autobatch::types::{Array, Scalar};
use autobatch::{cfg, stack, unit};
use serde_json::{Map, Value};

use crate::tools::effort;
use crate::tools::observed::{Configuration, difference, observe_toy};
use crate::tools::run_line::RunLine;

/// One way to run a program, and what must come out.
pub(crate) struct Case {
    /// Line of the `run:` comment in its text, counted from 1.
    pub(crate) line: usize,
    run: RunLine,
    expected: Vec<(String, Value)>,
    traps: Vec<ExpectedTrap>,
    prints: Vec<String>,
    refused: Option<String>,
    /// Whether the file says that it takes long.
    costly: bool,
}

/// A `trap:` line.
struct ExpectedTrap {
    kind: String,
    lanes: Vec<u64>,
    /// `function:line`, where the test pins it.
    place: Option<String>,
    /// The depth of calls, where the test pins it.
    depth: Option<usize>,
    /// The message, where the test pins it.
    message: Option<String>,
}

impl ExpectedTrap {
    fn parse(text: &str) -> Option<ExpectedTrap> {
        let (kind, rest) = text.split_once(" [")?;
        let (lanes, place) = rest.split_once(']')?;
        let lanes = lanes.split(',').map(|l| l.trim().parse().ok()).collect::<Option<_>>()?;
        let mut trap = ExpectedTrap { kind: kind.to_owned(), lanes, place: None, depth: None, message: None };
        if place.trim().is_empty() {
            return Some(trap);
        }
        let rest = place.trim().strip_prefix("at ")?;
        let (place, message) = rest.split_once(": ").map_or((rest, None), |(place, message)| (place, Some(message)));
        let (place, depth) = place.split_once(", depth ").map_or((place, None), |(place, depth)| (place, Some(depth)));
        trap.depth = depth.map(str::parse).transpose().ok()?;
        trap.place = Some(place.to_owned());
        trap.message = message.map(str::to_owned);
        Some(trap)
    }
}

/// The lines of cases.
const KEYS: [&str; 5] = ["run", "expect", "trap", "print", "refused"];
/// The lines of heads that some folders have: see the tests that read them.
const OTHER_KEYS: [&str; 8] = ["cost", "count", "derivatives", "error", "pass", "register", "stack", "temporary"];

/// The cases of a text, in their order.
pub(crate) fn cases(text: &str) -> Result<Vec<Case>, String> {
    let mut cases: Vec<Case> = Vec::new();
    let costly = text.lines().any(|line| line == "// costly");
    for (i, line) in text.lines().enumerate() {
        let comment = line.strip_prefix("// ").or_else(|| line.strip_prefix("; "));
        let Some(comment) = comment else { continue };
        let wrong = |what: String| format!("line {}: {what}", i + 1);
        let Some((key, rest)) = comment.split_once(": ") else {
            match KEYS.iter().find(|key| comment.starts_with(&format!("{key} ["))) {
                Some(key) => return Err(wrong(format!("`{key}:` is wanted"))),
                None => continue,
            }
        };
        // A word in front of a colon is a key, so that a slip of the pen is not taken for prose.
        if key.bytes().all(|b| b.is_ascii_lowercase()) && !KEYS.contains(&key) && !OTHER_KEYS.contains(&key) {
            return Err(wrong(format!("`{key}:` is none of {KEYS:?} and {OTHER_KEYS:?}")));
        }
        if key == "run" {
            cases.push(Case {
                line: i + 1,
                run: RunLine::parse(rest),
                expected: Vec::new(),
                traps: Vec::new(),
                prints: Vec::new(),
                refused: None,
                costly,
            });
        } else if let Some(case) = cases.last_mut() {
            case.line_of(key, rest).map_err(wrong)?;
        } else if KEYS.contains(&key) {
            return Err(wrong(format!("`{key}:` before the first `run:`")));
        }
    }
    Ok(cases)
}

impl Case {
    /// The `run:` line.
    pub(crate) fn run(&self) -> &RunLine {
        &self.run
    }

    fn line_of(&mut self, key: &str, rest: &str) -> Result<(), String> {
        match key {
            "expect" => {
                let (name, value) = rest.split_once(" = ").ok_or("`// expect: name = JSON` is wanted")?;
                let value = parse_json(value, "expect").map_err(|e| e.to_string())?;
                self.expected.push((name.to_owned(), value));
            }
            "trap" => {
                let wrong = || "`// trap: KIND [lanes]` is wanted, or `… at FUNCTION:LINE`".to_owned();
                self.traps.push(ExpectedTrap::parse(rest).ok_or_else(wrong)?);
            }
            "print" => self.prints.push(rest.to_owned()),
            "refused" => self.refused = Some(rest.to_owned()),
            _ => {}
        }
        Ok(())
    }
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
    fn emit(
        &self,
        position: usize,
        stream: StreamId,
        record: &dyn autobatch::run::Record,
    ) -> Result<(), autobatch::run::NoMemory> {
        let mut records = self.records.lock().expect("no test panics here");
        records.entry((stream, position)).or_default().push(record.arrays());
        Ok(())
    }
    fn print(&self, position: usize, line: String) {
        self.prints.lock().expect("no test panics here").entry(position).or_default().push(line);
    }
}

/// Runs a case; says what is not as expected. Panics, naming `context`, where engines disagree.
pub(crate) fn run(program: &Program, case: &Case, context: &str) -> Result<(), String> {
    let scalar = Configuration::scalar(&case.run.options);
    let bound = (case.run.bind(program)).and_then(|(function, inputs)| {
        let bound = function.bind(&inputs, &scalar.options)?;
        Ok((function, inputs, bound))
    });
    let (function, inputs, bound) = match (&case.refused, bound) {
        (None, bound) => bound.map_err(|e| e.to_string())?,
        (Some(wanted), Err(error)) if error.to_string().contains(wanted) => return Ok(()),
        (Some(wanted), Err(error)) => return Err(format!("refused, but not with {wanted:?}: {error}")),
        (Some(wanted), Ok(_)) => return Err(format!("not refused: {wanted:?} is wanted")),
    };
    check(case, &bound, &scalar.options, false)?;
    agree(program, case, &function, &inputs, context);
    Ok(())
}

/// Runs what is bound; says what is not as expected. The depths of calls count where `depths` says so.
pub(crate) fn check(case: &Case, bound: &Bound, options: &Options, depths: bool) -> Result<(), String> {
    let said = Said::default();
    let results = bound.run(options, &said).map_err(|e| e.to_string())?;
    let mut found: Map<String, Value> =
        results.outputs().iter().map(|(name, array)| (name.clone(), output(&results, name, array))).collect();
    let records = said.records.lock().expect("no test panics here");
    for (id, stream) in bound.compiled().units.globals.streams.iter() {
        if stream.fields.is_empty() {
            let count = |l| Value::from(records.get(&(id, l)).map_or(0, Vec::len));
            found.insert(stream.name.clone(), (0..bound.lanes()).map(count).collect());
        }
        for (f, (field, _)) in stream.fields.iter().enumerate() {
            let lane = |l| records.get(&(id, l)).into_iter().flatten().map(|r| list(&r[f])).collect::<Value>();
            found.insert(format!("{}.{field}", stream.name), (0..bound.lanes()).map(lane).collect());
        }
    }
    compare_traps(case, &results, depths)?;
    compare_prints(case, &said)?;
    compare(case, &found)
}

/// An output as nested lists; where lanes differ in length, each without its padding.
fn output(results: &Results, name: &str, array: &Array) -> Value {
    match results.is_ragged(name) {
        true => (0..array.shape[0]).filter_map(|lane| Some(list(&results.lane(name, lane)?))).collect(),
        false => list(array),
    }
}

/// As nested lists, reals with all their digits.
fn list(array: &Array) -> Value {
    serde_json::to_value(JsonArray(array)).expect("an array is a list")
}

fn compare_traps(case: &Case, results: &Results, depths: bool) -> Result<(), String> {
    let mut wanted: BTreeMap<u64, &ExpectedTrap> = BTreeMap::new();
    for trap in &case.traps {
        wanted.extend(trap.lanes.iter().map(|lane| (*lane, trap)));
    }
    for trap in results.traps() {
        let lane = results.lanes()[trap.position];
        let shown = format!("lane {lane} traps: {} at {} {}", trap.kind, trap.loc, trap.message);
        match wanted.remove(&lane) {
            Some(expected) if expected.kind == trap.kind.name() => {
                if expected.place.as_ref().is_some_and(|place| *place != trap.loc.to_string()) {
                    return Err(format!("{shown}: another place is wanted"));
                }
                if depths && expected.depth.is_some_and(|depth| depth != trap.call_depth) {
                    return Err(format!("{shown}, depth {}: another depth is wanted", trap.call_depth));
                }
                if expected.message.as_ref().is_some_and(|message| *message != trap.message) {
                    return Err(format!("{shown}: another message is wanted"));
                }
            }
            _ => return Err(format!("{shown}: this is not wanted")),
        }
    }
    match wanted.first_key_value() {
        Some((lane, trap)) => Err(format!("lane {lane} does not trap: {} is wanted", trap.kind)),
        None => Ok(()),
    }
}

fn compare_prints(case: &Case, said: &Said) -> Result<(), String> {
    let prints = said.prints.lock().expect("no test panics here");
    let lines = prints.iter().flat_map(|(lane, lines)| lines.iter().map(move |line| format!("[lane {lane}] {line}")));
    let found: Vec<String> = lines.collect();
    if case.prints.is_empty() || found == case.prints {
        return Ok(());
    }
    Err(format!("prints {found:#?}"))
}

fn compare(case: &Case, found: &Map<String, Value>) -> Result<(), String> {
    for (name, expected) in &case.expected {
        match found.get(name) {
            Some(value) if same(value, expected) => {}
            Some(value) => return Err(format!("`{name}` is {value}, not {expected}")),
            None => return Err(format!("there is no `{name}`, only {:?}", found.keys().collect::<Vec<_>>())),
        }
    }
    Ok(())
}

/// Equal, where `2` may be written for `2.0`. What is written `-0.0` has its sign.
fn same(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Number(a), Value::Number(b)) => {
            let negative = |n: &serde_json::Number| n.as_f64().is_some_and(|x| x == 0.0 && x.is_sign_negative());
            a == b && negative(a) == negative(b)
                || a.is_f64() && a.as_f64() == b.as_f64() && (!negative(b) || negative(a))
        }
        (a, b) => a == b,
    }
}

/// Whether the text takes derivatives: whole-array code and loops add up the contributions to one in different orders.
fn takes_derivatives(program: &Program) -> bool {
    let text = &program.sources().file(FileId::new(0)).text;
    ["grad", "jvp", "vjp", "jacobian", "hessian"].iter().any(|word| text.contains(word))
}

/// Whether a case is left to a machine with a GPU: a C compiler takes seconds for the text for one, which is one function.
fn is_left_to_a_gpu(case: &Case) -> bool {
    std::env::var_os("AUTOBATCH_TEST_DEVICE").is_none() && effort::all() && !case.line.is_multiple_of(6)
}

/// All engines do what the reference does, in every way of running them; panics where one does not. Whether comprehensions
/// are whole-array code or loops makes no difference but for roundings in derivatives.
fn agree(program: &Program, case: &Case, function: &Function<'_>, inputs: &Inputs, context: &str) {
    let run = &case.run;
    let wanted = Configuration::scalar(&run.options).observe(function, inputs);
    let wanted = wanted.unwrap_or_else(|why| panic!("{context}: {why}"));
    let derives = takes_derivatives(program);
    for (number, mut configuration) in Configuration::systematic(&run.options).into_iter().enumerate() {
        if !effort::tried(number + case.line, if case.costly { 24 } else { 6 })
            || run.engine.is_some_and(|engine| engine != configuration.options.get_engine())
        {
            continue;
        }
        if run.options.get_settings().get_max_stack_depth() < Settings::default().get_max_stack_depth() {
            // What counts as a call depends on the passes.
            configuration.options = configuration.options.passes(run.options.get_passes().clone());
        }
        if derives
            && run.options.get_passes().is_on("vectorize")
            && !configuration.options.get_passes().is_on("vectorize")
        {
            configuration.options = configuration.options.with_pass("vectorize").expect("there is such a pass");
        }
        if configuration.options.get_backend().name() != "cpu" {
            configuration.options = configuration.options.with_pass("cached-tops").expect("there is such a pass");
            if is_left_to_a_gpu(case) {
                continue;
            }
        }
        let found = configuration.observe(function, inputs);
        let found = found.unwrap_or_else(|why| panic!("{context}: {configuration}: {why}"));
        if let Some(why) = difference(&wanted, &found) {
            panic!("{context}: {configuration}\n{why}");
        }
    }
    let options = run.options.clone().engine(Engine::Pc);
    let settings = options.get_settings();
    // The toy looks for no NaN.
    if !settings.get_check_nan() && run.engine.is_none_or(|engine| engine == Engine::Pc) {
        let bound = function.bind(inputs, &options).unwrap_or_else(|why| panic!("{context}: {why}"));
        let found = observe_toy(&bound, &options);
        if let Some(why) = difference(&wanted, &found) {
            panic!("{context}: the toy executor of units\n{why}\n{}", bound.compiled().units);
        }
        round_trips(&bound, context);
    }
    if derives {
        nearly_agree(run, function, inputs, context);
    }
}

/// Whether a text was not seen before: many cases of a file are of one program.
fn is_new(text: &str) -> bool {
    static SEEN: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(text);
    SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(hash)
}

/// A program is at every stage what its text says.
fn round_trips(bound: &Bound, context: &str) {
    let compiled = bound.compiled();
    if let Some(text) = compiled.cfg.as_ref().map(ToString::to_string).filter(|text| is_new(text)) {
        let read = cfg::read(&text).unwrap_or_else(|why| panic!("{context}: {why}\n{text}"));
        assert_eq!(read.to_string(), text, "{context}");
    }
    if let Some(text) = compiled.stack.as_ref().map(ToString::to_string).filter(|text| is_new(text)) {
        let read = stack::read(&text).unwrap_or_else(|why| panic!("{context}: {why}\n{text}"));
        assert_eq!(read.to_string(), text, "{context}");
    }
    let text = compiled.units.to_string();
    if is_new(&text) {
        let read = unit::read(&text).unwrap_or_else(|why| panic!("{context}: {why}\n{text}"));
        assert_eq!(unit::verify(&read), [], "{context}\n{text}");
        assert_eq!(read.to_string(), text, "{context}");
    }
    if let Some(text) = compiled.call_units.as_ref().map(ToString::to_string).filter(|text| is_new(text)) {
        let read = unit::read_calls(&text).unwrap_or_else(|why| panic!("{context}: {why}\n{text}"));
        assert_eq!(unit::verify_calls(&read), [], "{context}\n{text}");
        assert_eq!(read.to_string(), text, "{context}");
    }
}

/// Loops and whole-array code give the same outputs up to roundings.
fn nearly_agree(run: &RunLine, function: &Function<'_>, inputs: &Inputs, context: &str) {
    let outputs = |vectorize: bool| {
        let mut options = Configuration::scalar(&run.options).options;
        if !vectorize {
            options = options.without_pass("vectorize").expect("there is such a pass");
        }
        let results = function.bind(inputs, &options).and_then(|bound| bound.run(&options, &NoSink));
        results.unwrap_or_else(|why| panic!("{context}: {why}"))
    };
    let (whole, loops) = (outputs(true), outputs(false));
    let trapped = |results: &Results| results.traps().iter().map(|t| (t.position, t.kind)).collect::<Vec<_>>();
    assert_eq!(trapped(&whole), trapped(&loops), "{context}: traps without `vectorize`");
    for ((name, a), (_, b)) in whole.outputs().iter().zip(loops.outputs()) {
        for i in 0..a.len() {
            let (Scalar::Real(x), Scalar::Real(y)) = (a.get(i), b.get(i)) else {
                assert_eq!(a.get(i), b.get(i), "{context}: `{name}` without `vectorize`");
                continue;
            };
            let close = x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= 1e-9 * (1.0 + x.abs().max(y.abs()));
            assert!(close, "{context}: `{name}` is {x}, without `vectorize` {y}");
        }
    }
}

#[test]
fn a_wrong_expectation_is_found() {
    let wrong = |expectation: &str, body: &str| {
        let text = format!("// run: --input x=[1,2]\n{expectation}\npub fn main(x: int) -> int {{ {body} }}");
        let program = Program::compile(&text).expect("it checks");
        run(&program, &cases(&text).expect("it is well-formed")[0], "here").expect_err("it is wrong")
    };
    let error = wrong("// expect: result = [2, 5]", "2 * x");
    assert!(error.contains("`result` is [2,4], not [2,5]"), "{error}");
    let error = wrong("// trap: division by zero [1]", "1 / (x - 1)");
    assert!(error.contains("lane 0 traps: division by zero at main:3"), "{error}");
    let error = wrong("// trap: division by zero [0] at main:4", "1 / (x - 1)");
    assert!(error.contains("another place is wanted"), "{error}");
    let error = wrong("// trap: division by zero [0]", "x");
    assert!(error.contains("lane 0 does not trap"), "{error}");
    let error = wrong("// print: [lane 0] 2", "print(\"{x}\"); x");
    assert!(error.contains("[lane 1] 2"), "{error}");
    let error = wrong("// refused: `x`", "x");
    assert!(error.contains("not refused"), "{error}");
}

#[test]
fn a_slip_in_a_line_is_no_prose() {
    let wrong = |line: &str| cases(&format!("// run:\n// run: --input x=[1]\n{line}")).map(|_| ()).expect_err(line);
    assert!(wrong("// expects: result = [2]").starts_with("line 3: `expects:` is none of"));
    assert_eq!(wrong("// trap [0]"), "line 3: `trap:` is wanted");
    assert_eq!(cases("// expect: x = 1").map(|_| ()), Err("line 1: `expect:` before the first `run:`".to_owned()));
    assert!(cases("// An example: it is prose.\n// Two words: too.").is_ok());
}
