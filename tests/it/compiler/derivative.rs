//! Derivatives against central differences, against each other, and on all engines.
//!
//! `tests/filetests/derivative/*.ab`: programs with a function `f`. The lanes of a
//! `// run: --entry f --input x=[0.7, -0.4]` (see [`crate::tools::cases`]) are points; the derivative is with respect
//! to all real parameters. The reverse derivative is compared with differences of `f`, the forward one with the reverse
//! one; both, being programs with real parameters themselves, are then treated like `f`, which checks derivatives of
//! derivatives. `// derivatives: 1` stops after the first. `// cost: 4` says that value and gradient together run at
//! most so many times as many primitives as the value.

use std::path::{Path, PathBuf};

use autobatch::backend::cpu::{self, MACHINE};
use autobatch::base::IdVec;
use autobatch::cfg::{self, Func, VarId};
use autobatch::pipeline::{Passes, from_cfg};
use autobatch::program::Program;
use autobatch::run::{NoSink, Outcome, RunInputs, Settings};
use autobatch::transform::derivative::{DerivativeError, DerivativeRequest, DerivativeRequests, Mode};
use autobatch::transform::expansion;
use autobatch::types::{Array, ArrayData, DType, Type};
use autobatch::{interp, program};

use crate::tools::cases::cases;
use crate::tools::effort;
use crate::tools::random_programs::Rng;

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests/derivative");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "ab"));
    files.sort();
    assert!(!files.is_empty());
    files
}

/// The reverse derivative of an entry with parameters of these types with respect to the real ones.
pub(crate) fn derived(program: &cfg::Program, params: &[Type]) -> Result<cfg::Program, DerivativeError> {
    let wrt: Vec<bool> = params.iter().map(|ty| ty.dtype == DType::Real).collect();
    try_derive(program, Mode::Reverse, &wrt)
}

/// Panics when there is none.
pub(crate) fn derive(program: &cfg::Program, mode: Mode, wrt: &[bool]) -> cfg::Program {
    try_derive(program, mode, wrt).unwrap_or_else(|e| panic!("{e:?}"))
}

/// The program whose entry is the derivative of the entry.
pub(crate) fn try_derive(program: &cfg::Program, mode: Mode, wrt: &[bool]) -> Result<cfg::Program, DerivativeError> {
    let mut program = program.clone();
    let of = program.entry;
    let func = &program.funcs[of];
    let mut vars: IdVec<VarId, cfg::Var> = IdVec::new();
    let mut params: Vec<VarId> = func.params.iter().map(|p| vars.push(func.vars[*p].clone())).collect();
    let wanted: Vec<Type> =
        func.params.iter().zip(wrt).filter(|(_, w)| **w).map(|(p, _)| func.vars[*p].ty.clone()).collect();
    let reals: Vec<Type> = func.results.iter().filter(|ty| ty.dtype == DType::Real).cloned().collect();
    let (given, gives) = match mode {
        Mode::Forward => (wanted, reals),
        Mode::Reverse => (reals, wanted),
    };
    for (i, ty) in given.into_iter().enumerate() {
        params.push(vars.push(cfg::Var { name: format!("given#{i}"), ty }));
    }
    let results: Vec<Type> = func.results.iter().cloned().chain(gives).collect();
    let (name, loc) = (format!("{}.derived", func.name), func.loc.clone());
    let placeholder = Func { name, params, results, vars, blocks: IdVec::new(), loc: loc.clone() };
    let outputs = (0..placeholder.results.len()).map(|i| format!("output{i}")).collect();
    let target = program.funcs.push(placeholder);
    let request = DerivativeRequest { target, of, mode, wrt: wrt.to_vec(), of_one: false, loc };
    let requests = DerivativeRequests { requests: vec![request], ..DerivativeRequests::default() };
    expand(&mut program, &requests)?;
    program.entry = target;
    program.outputs = outputs;
    let errors = cfg::verify(&program);
    assert!(errors.is_empty(), "{errors:#?}\n{program}");
    Ok(program)
}

fn lane(array: &Array) -> Array {
    Array::new(std::iter::once(1).chain(array.shape.iter().copied()), array.data.clone())
}

/// The outputs of one lane, all reals in a row.
pub(crate) fn outputs(program: &cfg::Program, values: &[Array], shared: &[Array]) -> Vec<f64> {
    let inputs = RunInputs::new(vec![0], values.iter().map(lane).collect(), shared.to_vec());
    let outcome = interp::run(program, &inputs, &settings(), &NoSink);
    assert!(outcome.traps.is_empty(), "{:?}\n{program}", outcome.traps);
    reals(&outcome.outputs)
}

fn settings() -> Settings {
    Settings::default().max_supersteps(1_000_000)
}

fn reals(arrays: &[Array]) -> Vec<f64> {
    arrays
        .iter()
        .flat_map(|a| match &a.data {
            ArrayData::Real(v) => v.clone(),
            _ => Vec::new(),
        })
        .collect()
}

fn elements(values: &[Array]) -> Vec<(usize, usize)> {
    let each = |(i, a): (usize, &Array)| match &a.data {
        ArrayData::Real(v) => (0..v.len()).map(move |e| (i, e)).collect(),
        _ => Vec::new(),
    };
    values.iter().enumerate().flat_map(each).collect()
}

fn shifted(values: &[Array], (i, e): (usize, usize), by: f64) -> Vec<Array> {
    let mut values = values.to_vec();
    if let ArrayData::Real(v) = &mut values[i].data {
        v[e] += by;
    }
    values
}

fn random(ty: &Type, rng: &mut Rng) -> Array {
    let data = (0..ty.elements()).map(|_| (rng.below(2000) as f64 - 1000.0) / 700.0).collect();
    Array::new(ty.shape.iter().copied(), ArrayData::Real(data))
}

/// Where derivatives are checked.
pub(crate) struct Point<'a> {
    /// The shared values of the program.
    pub(crate) shared: &'a [Array],
    /// For messages.
    pub(crate) name: String,
}

/// Checks the derivatives of the entry at a point, and theirs, `order` times.
pub(crate) fn check(program: &cfg::Program, values: &[Array], order: usize, point: &Point<'_>) {
    let entry = &program.funcs[program.entry];
    let wrt: Vec<bool> = entry.params.iter().map(|p| entry.vars[*p].ty.dtype == DType::Real).collect();
    let mut rng = Rng::new(0x5eed + order as u64);
    let real_results: Vec<Type> = entry.results.iter().filter(|ty| ty.dtype == DType::Real).cloned().collect();
    if !wrt.contains(&true) || real_results.is_empty() {
        return;
    }
    let reverse = derive(program, Mode::Reverse, &wrt);
    let cotangents: Vec<Array> = real_results.iter().map(|ty| random(ty, &mut rng)).collect();
    let given: Vec<Array> = values.iter().chain(&cotangents).cloned().collect();
    let found = outputs(&reverse, &given, point.shared);
    let value = outputs(program, values, point.shared);
    let same =
        found[..value.len()].iter().zip(&value).all(|(a, b)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan());
    assert!(same, "{}: the value changed: {value:?}, {found:?}\n{program}\n{reverse}", point.name);
    let gradient = &found[value.len()..];
    let weights = reals(&cotangents);
    let total = |values: &[Array]| -> f64 {
        outputs(program, values, point.shared).iter().zip(&weights).map(|(a, b)| a * b).sum()
    };
    for (at, found) in elements(values).into_iter().zip(gradient) {
        let h = 1e-4;
        let at_distance = |k: f64| total(&shifted(values, at, k * h));
        // sixth order
        let wanted = (45.0 * (at_distance(1.0) - at_distance(-1.0)) - 9.0 * (at_distance(2.0) - at_distance(-2.0))
            + (at_distance(3.0) - at_distance(-3.0)))
            / (60.0 * h);
        let close = (wanted - found).abs() <= 1e-7 * (1.0 + wanted.abs() + found.abs());
        assert!(close, "{} (order {order}): ∂/∂{at:?} is {wanted}, found {found}\n{program}\n{reverse}", point.name);
    }
    let forward = derive(program, Mode::Forward, &wrt);
    let directions: Vec<Array> =
        values.iter().zip(&wrt).filter(|(_, w)| **w).map(|(v, _)| random(&v.ty(), &mut rng)).collect();
    let given_forward: Vec<Array> = values.iter().chain(&directions).cloned().collect();
    let found = outputs(&forward, &given_forward, point.shared);
    let tangent: f64 = found[value.len()..].iter().zip(&weights).map(|(a, b)| a * b).sum();
    let wanted: f64 = gradient.iter().zip(reals(&directions)).map(|(a, b)| a * b).sum();
    let close = (wanted - tangent).abs() <= 1e-9 * (1.0 + wanted.abs() + tangent.abs());
    assert!(close, "{} (order {order}): forward {tangent}, reverse {wanted}\n{program}\n{forward}", point.name);
    engines_agree(&reverse, &given, point);
    engines_agree(&forward, &given_forward, point);
    if order > 1 {
        check(&reverse, &given, order - 1, point);
        check(&forward, &given_forward, order - 1, point);
    }
}

/// How many primitives a run executes.
fn primitives(program: &cfg::Program, values: &[Array], shared: &[Array]) -> u64 {
    let given: indexmap::IndexMap<String, Array> = program
        .shared
        .iter()
        .filter(|(_, s)| s.source == cfg::SharedSource::Input)
        .map(|(id, s)| (s.name.clone(), shared[id.0 as usize].clone()))
        .collect();
    let compiled = from_cfg(program.clone(), &Passes::default(), MACHINE);
    let settings = settings().stats(true);
    let wanted = &compiled.cfg.as_ref().expect("made of a CFG program").shared;
    let shared = interp::shared_values(wanted, &given, settings.get_precision()).expect("shared values");
    let inputs = RunInputs::new(vec![0], values.iter().map(lane).collect(), shared);
    let outcome = cpu::pc::run(&compiled.plan, &inputs, &settings, &NoSink);
    outcome.stats.prims.values().sum()
}

fn check_cost(program: &cfg::Program, values: &[Array], most: u64, point: &Point<'_>) {
    let entry = &program.funcs[program.entry];
    let wrt: Vec<bool> = entry.params.iter().map(|p| entry.vars[*p].ty.dtype == DType::Real).collect();
    let gradient = derive(program, Mode::Reverse, &wrt);
    let seeded: Vec<Array> = values.iter().cloned().chain([Array::new([], ArrayData::Real(vec![1.0]))]).collect();
    let (value, both) = (primitives(program, values, point.shared), primitives(&gradient, &seeded, point.shared));
    println!("{}: {both} primitives for value and gradient, {value} for the value", point.name);
    assert!(both <= most * value, "{}: {both} primitives, {value} for the value\n{gradient}", point.name);
}

/// All engines, with and without passes, give the interpreter's bits.
pub(crate) fn engines_agree(program: &cfg::Program, values: &[Array], point: &Point<'_>) {
    let lanes = 5;
    let rows: Vec<Array> = values
        .iter()
        .map(|value| {
            let shape: Vec<usize> = std::iter::once(lanes).chain(value.shape.iter().copied()).collect();
            let data = match &value.data {
                ArrayData::Real(v) => ArrayData::Real(
                    (0..lanes).flat_map(|l| v.iter().map(move |x| x * (1.0 + 0.03 * l as f64))).collect(),
                ),
                ArrayData::Int(v) => ArrayData::Int(v.repeat(lanes)),
                ArrayData::Bool(v) => ArrayData::Bool(v.repeat(lanes)),
            };
            Array::new(shape, data)
        })
        .collect();
    let shared: indexmap::IndexMap<String, Array> = program
        .shared
        .iter()
        .filter(|(_, s)| s.source == cfg::SharedSource::Input)
        .map(|(id, s)| (s.name.clone(), point.shared[id.0 as usize].clone()))
        .collect();
    let bits = |o: &Outcome| o.outputs.iter().map(|a| format!("{:?}", normal(a))).collect::<Vec<_>>();
    let run = |program: &cfg::Program| {
        let shared =
            interp::shared_values(&program.shared, &shared, settings().get_precision()).expect("shared values");
        (RunInputs::new((0..lanes as u64).collect(), rows.clone(), shared), ())
    };
    let (inputs, ()) = run(program);
    let wanted = interp::run(program, &inputs, &settings(), &NoSink);
    for passes in [Passes::none(), Passes::default()] {
        let compiled = from_cfg(program.clone(), &passes, MACHINE);
        let inputs = run(compiled.cfg.as_ref().expect("made of a CFG program")).0;
        let pc = cpu::pc::run(&compiled.plan, &inputs, &settings(), &NoSink);
        let local = cpu::local::run(compiled.calls.as_ref().expect("a plan"), &inputs, &settings(), &NoSink);
        assert_eq!(bits(&pc), bits(&wanted), "{}: pc\n{program}", point.name);
        assert_eq!(bits(&local), bits(&wanted), "{}: local\n{program}", point.name);
    }
}

/// With one kind of NaN.
pub(crate) fn normal(array: &Array) -> Vec<u64> {
    let one_nan = |x: &f64| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() };
    match &array.data {
        ArrayData::Real(v) => v.iter().map(one_nan).collect(),
        ArrayData::Int(v) => v.iter().map(|x| *x as u64).collect(),
        ArrayData::Bool(v) => v.iter().map(|x| u64::from(*x)).collect(),
    }
}

/// The value of a comment `// KEY: NUMBER`.
fn number_of(text: &str, key: &str) -> Option<u64> {
    let value = text.lines().find_map(|l| l.strip_prefix("// ")?.strip_prefix(key)?.strip_prefix(": "))?;
    Some(value.trim().parse().expect("a number"))
}

/// The values of one lane.
fn of_lane(rows: &Array, lane: usize) -> Array {
    let mut row = rows.rows(lane..lane + 1);
    row.shape.remove(0);
    row
}

fn check_file(path: &Path, highest: usize) {
    let text = std::fs::read_to_string(path).expect("a text");
    println!("{}", path.display());
    let program = Program::compile(&text).unwrap_or_else(|e: program::Error| panic!("{}: {e}", path.display()));
    let order = number_of(&text, "derivatives").unwrap_or(2).min(highest as u64) as usize;
    let options = program::Options::default().passes(Passes::none());
    let cases = cases(&text).unwrap_or_else(|wrong| panic!("{}: {wrong}", path.display()));
    assert!(!cases.is_empty(), "{} has no point", path.display());
    for case in cases {
        let bound = case.run().bind(&program).and_then(|(function, inputs)| function.bind(&inputs, &options));
        let bound = bound.unwrap_or_else(|e| panic!("{}:{}: {e}", path.display(), case.line));
        let cfg = bound.compiled().cfg.as_ref().expect("made of a program");
        for lane in 0..bound.lanes() {
            let values: Vec<Array> = bound.inputs().values.iter().map(|rows| of_lane(rows, lane)).collect();
            let name = format!("{}:{}, lane {lane}", path.display(), case.line);
            let point = Point { shared: &bound.inputs().shared, name };
            check(cfg, &values, order, &point);
            if let Some(most) = number_of(&text, "cost") {
                check_cost(cfg, &values, most, &point);
            }
        }
    }
}

#[test]
fn derivatives_of_programs_are_those_that_differences_say() {
    let only = std::env::var("AUTOBATCH_DERIVATIVE").ok();
    for (number, path) in files().iter().enumerate() {
        if only.as_ref().is_none_or(|name| path.to_string_lossy().contains(name.as_str())) {
            let second = only.is_some() || effort::tried(number, 3);
            check_file(path, if second { 2 } else { 1 });
        }
    }
}

fn expand(program: &mut cfg::Program, derivatives: &DerivativeRequests) -> Result<(), DerivativeError> {
    let requests = expansion::Requests { derivatives: derivatives.clone(), comprehensions: Vec::new() };
    expansion::expand(program, &requests, None).map(|_| ())
}

/// How many instructions and blocks a program compiled from this text has before passes.
fn size_of(text: &str) -> usize {
    let program = Program::compile(text).unwrap_or_else(|e: program::Error| panic!("{e}"));
    let function = program.function("main").expect("a function `main`");
    let compiled = function.compile(vec![Type::scalar(DType::Real)], &Passes::none()).expect("it compiles");
    let funcs = &compiled.cfg.as_ref().expect("made of a program").funcs;
    funcs.values().flat_map(|f| f.blocks.values()).map(|b| b.insts.len() + 1).sum()
}

/// `f0`, and functions each of which calls the last one twice.
fn levels(n: usize, main: &str) -> String {
    let mut text = "fn f0(x: real) -> real { if x > 0.5 { sin(x) } else { x * x } }\n".to_owned();
    for k in 1..=n {
        let last = k - 1;
        text += &format!("fn f{k}(x: real) -> real {{ let mut a = f{last}(x); if a > 1.5 {{ a = a - 1.0; }} ");
        text += &format!("a + 0.5 * f{last}(0.5 * x) }}\n");
    }
    text + &format!("pub fn main(x: real) -> real {{ {} }}\n", main.replace("F", &format!("f{n}")))
}

#[test]
fn derivatives_grow_with_the_source_and_not_with_its_calls() {
    for main in ["grad(F)(x)", "jvp(F)(x, 1.0).1", "grad(grad(F))(x)", "hessian(F)(x)"] {
        let size = |n: usize| size_of(&levels(n, main)) as f64;
        // where the room for copies is used up, each function adds much the same
        let (a, b, c) = (size(16), size(32), size(48));
        assert!(c - b <= 1.5 * (b - a), "{main}: {a}, {b}, {c} instructions with 16, 32, 48 levels");
        assert!(c <= 40_000.0, "{main}: {c} instructions");
    }
}

#[test]
fn small_functions_are_copied_to_their_calls_in_derivatives() {
    let text = "
fn rate(x: real, y: real) -> real { x * y - 0.3 * sin(x) }
fn step(x: real, h: real) -> real {
    let a = rate(x, h);
    let b = rate(x + 0.5 * h * a, h);
    let c = rate(x + 0.5 * h * b, h);
    let d = rate(x + h * c, h);
    x + h / 6.0 * (a + 2.0 * b + 2.0 * c + d)
}
fn loss(x: real) -> real { step(step(x, 0.1), 0.2) + step(x, 0.3) }
pub fn main(x: real) -> real { grad(loss)(x) }
";
    let program = Program::compile(text).unwrap_or_else(|e: program::Error| panic!("{e}"));
    let function = program.function("main").expect("a function `main`");
    let compiled = function.compile(vec![Type::scalar(DType::Real)], &Passes::none()).expect("it compiles");
    let cfg = compiled.cfg.as_ref().expect("made of a program");
    assert!(cfg.tapes.is_empty(), "{cfg}");
    assert!(!cfg.funcs.values().any(|f| f.name.ends_with(".sweep")), "{cfg}");
}

/// What the gradient in `main` gives for one lane, and the bytes that it pushes on stacks and tapes.
fn gradient_and_bytes(text: &str, n: usize) -> (Vec<f64>, u64) {
    let program = Program::compile(text).unwrap_or_else(|e: program::Error| panic!("{e}"));
    let function = program.function("main").expect("a function `main`");
    let compiled = function.compile(vec![Type::new(DType::Real, [n])], &Passes::default()).expect("it compiles");
    let x: Vec<f64> = (0..n).map(|i| 0.5 + (i % 7) as f64 / 8.0).collect();
    let settings = Settings::default().stats(true);
    let wanted = &compiled.cfg.as_ref().expect("made of a program").shared;
    let shared =
        interp::shared_values(wanted, &indexmap::IndexMap::new(), settings.get_precision()).expect("shared values");
    let inputs = RunInputs::new(vec![0], vec![Array::new([1, n], ArrayData::Real(x))], shared);
    let outcome = cpu::pc::run(&compiled.plan, &inputs, &settings, &NoSink);
    let local = cpu::local::run(compiled.calls.as_ref().expect("a plan"), &inputs, &settings, &NoSink);
    let scalar = interp::run(compiled.cfg.as_ref().expect("a program"), &inputs, &settings, &NoSink);
    assert!(outcome.traps.is_empty(), "{:?}", outcome.traps);
    assert_eq!(normal(&outcome.outputs[0]), normal(&scalar.outputs[0]));
    assert_eq!(normal(&local.outputs[0]), normal(&scalar.outputs[0]));
    (reals(&outcome.outputs), outcome.stats.variables.iter().map(|v| v.bytes_pushed).sum())
}

#[test]
fn recursions_push_what_changes_and_not_the_arrays_that_they_pass_along() {
    // with the loop that does the same
    let programs = [
        (
            "fn r[n](x: real[n], i: int) -> real { if i == n { 0.0 } else { x[i] * x[i] + r(x, i + 1) } }
             pub fn main[n](x: real[n]) -> real[n] { grad(r)(x, 0) }",
            "fn r[n](x: real[n]) -> real { let mut s = 0.0; for i in 0..n { s = s + x[i] * x[i]; } s }
             pub fn main[n](x: real[n]) -> real[n] { grad(r)(x) }",
        ),
        (
            "fn even[n](x: real[n], w: real[n], i: int) -> real {
                 if i >= n { 1.0 } else { x[i] * w[i] + odd(x, w, i + 1) }
             }
             fn odd[n](x: real[n], w: real[n], i: int) -> real {
                 if i >= n { 1.0 } else { sin(x[i]) * w[i] + even(x, w, i + 1) }
             }
             pub fn main[n](x: real[n]) -> real[n] { grad(|y| { even(y, x, 0) })(x) }",
            "fn f[n](x: real[n], w: real[n]) -> real {
                 let mut s = 0.0;
                 for i in 0..n { if i % 2 == 0 { s = s + x[i] * w[i]; } else { s = s + sin(x[i]) * w[i]; } }
                 s
             }
             pub fn main[n](x: real[n]) -> real[n] { grad(|y| { f(y, x) })(x) }",
        ),
        // changed in place, on the way down and on the way up, and read at the end as a whole
        (
            "fn r[n](b: real[n], i: int, c: real) -> real {
                 if i == n { return sum(b * b); }
                 let mut d = b;
                 d[i] = d[i] * c + sin(d[i]);
                 r(d, i + 1, c)
             }
             pub fn main[n](x: real[n]) -> real[n] { grad(|y| { r(y, 0, y[0]) })(x) }",
            "fn f[n](b: real[n], c: real) -> real {
                 let mut d = b;
                 for i in 0..n { d[i] = d[i] * c + sin(d[i]); }
                 sum(d * d)
             }
             pub fn main[n](x: real[n]) -> real[n] { grad(|y| { f(y, y[0]) })(x) }",
        ),
        (
            "fn r[n](b: real[n], i: int) -> real[n] {
                 if i == n { return b; }
                 let mut d = b;
                 d[i] = d[i] * d[(i + 1) % n];
                 let mut e = r(d, i + 1);
                 e[i] = e[i] * e[0];
                 e
             }
             pub fn main[n](x: real[n]) -> real[n] { grad(|y| { sum(r(y, 0)) })(x) }",
            "fn f[n](b: real[n]) -> real {
                 let mut d = b;
                 for i in 0..n { d[i] = d[i] * d[(i + 1) % n]; }
                 for k in 0..n { let i = n - 1 - k; d[i] = d[i] * d[0]; }
                 sum(d)
             }
             pub fn main[n](x: real[n]) -> real[n] { grad(f)(x) }",
        ),
    ];
    for (recursion, turns) in programs {
        let (found, bytes) = gradient_and_bytes(recursion, 40);
        let (wanted, _) = gradient_and_bytes(turns, 40);
        for (found, wanted) in found.iter().zip(&wanted) {
            assert!((found - wanted).abs() <= 1e-14 * (1.0 + wanted.abs()), "{found}, {wanted}\n{recursion}");
        }
        let (_, twice) = gradient_and_bytes(recursion, 80);
        assert!(twice <= 2 * bytes + 100, "{bytes} bytes with 40 elements, {twice} with 80\n{recursion}");
        assert!(bytes <= 100 * 40, "{bytes} bytes with 40 elements\n{recursion}");
    }
}
