//! Shards go over to generated functions between any two supersteps with the same bits: a run of each small program, on
//! both engines, at both precisions and on one thread and on two, changes over at each superstep that there is. Lanes go to
//! straight code, and back, between any two units.

use std::path::PathBuf;

use autobatch::backend::Form;
use autobatch::backend::cpu::codegen::{Code, Generated, Native, Turns};
use autobatch::backend::cpu::{local, pc};
use autobatch::mcmc::sampling::{Job, Sampling};
use autobatch::program::{Bound, Codegen, Engine, Inputs, Options, Program};
use autobatch::run::Settings;
use autobatch::types::Precision;

use super::machine::{Outcomes, Said, essence};
use crate::tools::{effort, observed};

pub(crate) const SOURCE: &str = "
/// Calls, and units that are routed.
pub fn fib(n: int) -> int { if n < 3 { 1 } else { fib(n - 1) + fib(n - 2) } }

/// A loop, which is a region.
pub fn collatz(n: int) -> int {
    let mut m = n + 1;
    let mut turns = 0;
    while m != 1 {
        m = if m % 2 == 0 { m / 2 } else { 3 * m + 1 };
        turns += 1;
    }
    turns
}

/// Stacks of bools, of small arrays and of larger ones, draws, and traps.
pub fn saved(n: int) -> real { down(n, n % 3 == 0, [0.5 * n, 1.0], [1.0 * n, 2.0, 3.0, 4.0, 5.0]) }
fn down(n: int, odd: bool, w: real[2], v: real[5]) -> real {
    if n <= 0 { return sum(v) + w[n + 1] + random_normal(); }
    let below = down(n - 1, !odd, w + 1.0, 0.5 * v) + (if n % 4 == 0 { down(n - 4, odd, 0.5 * w, v + 1.0) } else { 0.25 });
    if odd { below + sum(v) } else { below - w[1] }
}

/// A derivative, whose way forward leaves tapes.
pub fn gradient(n: int) -> real { grad(|x| folded(n, x))(0.3 + 0.1 * n) }
fn folded(n: int, x: real) -> real {
    let mut y = x;
    let mut turns = 0;
    while turns < n {
        y = if y > 1.0 { log(y) * x } else { exp(y) + twice(turns, y) };
        turns += 1;
    }
    y
}
fn twice(n: int, x: real) -> real { if n <= 0 { x } else { sin(x) * twice(n - 2, x) } }
";

/// Runs on an engine with generated functions, which the run finds in this way.
fn run(bound: &Bound, engine: Engine, generated: Generated<'_>, settings: &Settings) -> Outcomes {
    let (compiled, said) = (bound.compiled(), Said::default());
    let outcome = match engine {
        Engine::Local => {
            let calls = compiled.calls.as_ref().expect("made of a CFG program");
            local::run_with(calls, generated, bound.inputs(), settings, &said)
        }
        _ => pc::run_with(&compiled.plan, generated, bound.inputs(), settings, &said),
    };
    (outcome, said.take())
}

fn code(bound: &Bound, engine: Engine, form: Form) -> Code {
    let compiled = bound.compiled();
    match (engine, form, &compiled.call_units, &compiled.calls) {
        (Engine::Local, _, Some(units), Some(calls)) => Code::of_calls(units, calls),
        (_, Form::Groups, ..) => Code::of_units(&compiled.units, &compiled.plan),
        _ => Code::straight(&compiled.units, &compiled.plan),
    }
}

/// Changes over at each superstep, or at so many of them.
fn agree(name: &str, places: u64, bind: impl Fn(&Options) -> Bound) {
    if observed::codegen() == Codegen::Off {
        return;
    }
    for (engine, form, precision) in [
        (Engine::Pc, Form::Groups, Precision::F64),
        (Engine::Pc, Form::Groups, Precision::F32),
        (Engine::Pc, Form::OneLane, Precision::F64),
        (Engine::Pc, Form::OneLane, Precision::F32),
        (Engine::Local, Form::Groups, Precision::F64),
        (Engine::Local, Form::Groups, Precision::F32),
    ] {
        let options = Options::default().engine(engine).precision(precision).seed(3).codegen(Codegen::Off);
        let bound = bind(&options);
        let native = Native::new(code(&bound, engine, form), precision, None).expect("the generated C compiles");
        for threads in [1, 2] {
            let settings = options.get_settings().clone().threads(threads).shard_lanes(5);
            let off = run(&bound, engine, Generated::Nothing, &settings);
            if form == Form::Groups {
                let all = run(&bound, engine, Generated::Now(&native), &settings);
                assert_eq!(essence(&all), essence(&off), "{name}: {form:?}, {settings:?}");
            }
            // Of all shards together, so that the last ones are never reached.
            let supersteps = off.0.stats.supersteps;
            assert!(supersteps > 3, "{name}: nothing to change over in");
            for at in (0..=supersteps).step_by((supersteps / places).max(1) as usize) {
                let turns = Turns::new(None, &native, [at as usize, usize::MAX]);
                let generated =
                    if form == Form::Groups { Generated::At(&native, at) } else { Generated::InTurns(&turns) };
                let changed = run(&bound, engine, generated, &settings);
                assert_eq!(essence(&changed), essence(&off), "{name}: {form:?} from superstep {at} on, {settings:?}");
            }
        }
    }
}

#[test]
fn programs_change_over_at_every_superstep() {
    let program = Program::compile(SOURCE).expect("it compiles");
    for (name, most) in [("fib", 9), ("collatz", 11), ("saved", 8), ("gradient", 7)] {
        let inputs = Inputs::new().lane("n", (0..13).map(|lane| lane * 5 % most).collect::<Vec<i64>>());
        agree(name, u64::MAX, |options| program.function(name).unwrap().bind(&inputs, options).expect("it binds"));
    }
}

#[test]
fn chains_change_over_at_many_supersteps() {
    let model = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("change-over.ab");
    let text = "pub fn log_density(q: real[2]) -> real { -0.5 * dot(q, q) - 0.1 * q[0] * q[1] * q[1] * q[1] * q[1] }";
    std::fs::write(&model, text).expect("the folder of tests");
    let job = Job { chains: 7, warmup: 4, draws: 3, ..Job::new(&model) };
    let sampling = Sampling::new(&job, |_| Ok(Inputs::new())).expect("the model is right");
    let places = if effort::all() { u64::MAX } else { 40 };
    agree("chains", places, |options| sampling.bound(options).expect("it binds"));
}

/// Groups and straight code take turns: each lane moves to a shard of its own and back, visit after visit.
#[test]
fn forms_of_code_take_turns() {
    if observed::codegen() == Codegen::Off {
        return;
    }
    let program = Program::compile(SOURCE).expect("it compiles");
    for (name, most) in [("fib", 9), ("collatz", 11), ("saved", 8), ("gradient", 7)] {
        let inputs = Inputs::new().lane("n", (0..37).map(|lane| lane * 5 % most).collect::<Vec<i64>>());
        for precision in [Precision::F64, Precision::F32] {
            let options = Options::default().precision(precision).seed(3).codegen(Codegen::Off);
            let bound = program.function(name).unwrap().bind(&inputs, &options).expect("it binds");
            let native = |form| Native::new(code(&bound, Engine::Pc, form), precision, None).expect("it compiles");
            let (groups, alone) = (native(Form::Groups), native(Form::OneLane));
            for threads in [1, 2] {
                let settings = options.get_settings().clone().threads(threads).shard_lanes(5);
                let off = run(&bound, Engine::Pc, Generated::Nothing, &settings);
                for (groups, turns) in [
                    (None, [1, 1]),
                    (Some(&groups), [1, 1]),
                    (Some(&groups), [3, 2]),
                    (Some(&groups), [2, 7]),
                    (None, [0, usize::MAX]),
                ] {
                    let turns = Turns::new(groups, &alone, turns);
                    let both = run(&bound, Engine::Pc, Generated::InTurns(&turns), &settings);
                    assert_eq!(essence(&both), essence(&off), "{name}: {turns:?}, {settings:?}");
                    assert!(turns.changes() > 0, "{name}: {turns:?}");
                }
            }
        }
    }
}
