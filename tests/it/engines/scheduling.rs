//! Scheduling: how often heavy blocks run, from the machine's own statistics.

use autobatch::program::{Codegen, Engine, Inputs, Options, Program, Results};
use autobatch::run::{Schedule, Stats};

fn example(name: &str) -> Program {
    let path = format!("{}/examples/{name}", env!("CARGO_MANIFEST_DIR"));
    Program::load(path).unwrap_or_else(|e| panic!("{e}"))
}

fn with_stats(engine: Engine) -> Options {
    let mut options = Options::default().engine(engine).codegen(Codegen::Off).stats(true).seed(1);
    // All lanes in one shard.
    options = options.threads(1);
    options
}

/// 64 lanes of the example.
fn pea_nuts(program: &Program, rounds: i64, options: &Options) -> Results {
    let inputs = Inputs::new().shared("rounds", rounds).lanes(64);
    program.function("pea_nuts").and_then(|f| f.run(&inputs, options)).unwrap_or_else(|e| panic!("{e}"))
}

/// Executions of the heaviest block of a function; inlined or not, blocks keep the name of their function.
fn executions(stats: &Stats, function: &str) -> u64 {
    let blocks = stats.blocks.iter().filter(|b| &*b.loc.function == function && b.executions > 0);
    blocks
        .max_by_key(|b| b.weight)
        .unwrap_or_else(|| panic!("no block of `{function}` ran: {:#?}", stats.blocks))
        .executions
}

#[test]
fn the_cost_aware_schedule_runs_heavy_leaves_as_rarely_as_possible() {
    let program = example("pea_nuts.ab");
    let pc = pea_nuts(&program, 50, &with_stats(Engine::Pc));
    let leaves = pc.output("leaves").and_then(|a| a.as_int()).expect("the leaves of each lane");
    let bound = *leaves.iter().max().expect("lanes") as u64;
    let found = executions(pc.stats(), "leaf");
    let local = pea_nuts(&program, 50, &with_stats(Engine::Local));
    let found_local = executions(local.stats(), "leaf");
    println!("leaf: bound {bound}, pc {found}, local {found_local}");
    assert!(found >= bound, "{found} executions cannot be less than {bound}");
    assert!(found as f64 <= 1.05 * bound as f64, "{found} executions, the bound is {bound}");
    assert!(found_local >= 3 * found, "local needs {found_local}, pc {found}");
    assert_eq!(pc.outputs(), local.outputs());
    // What the README says of it.
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).expect("there is a README");
    let readme = readme.split_whitespace().collect::<Vec<_>>().join(" ");
    let says = format!(
        "no lane needs more than {bound} runs of the heavy leaf; by program counter there are {found}, by local batching \
         {found_local} "
    );
    assert!(readme.contains(&says), "README.md does not say: {says}");
}

#[test]
fn no_schedule_runs_fewer_leaves_than_the_bound() {
    let program = example("pea_nuts.ab");
    for schedule in [Schedule::Earliest, Schedule::MostLanes, Schedule::CostAware { theta: 0.5 }] {
        let options = with_stats(Engine::Pc).schedule(schedule);
        let results = pea_nuts(&program, 10, &options);
        let leaves = results.output("leaves").and_then(|a| a.as_int()).expect("the leaves of each lane");
        let found = executions(results.stats(), "leaf");
        println!("{schedule:?}: {found}");
        assert!(found >= *leaves.iter().max().expect("lanes") as u64);
    }
}

/// Lanes in different calls of `fib` meet at the addition: it runs as often as the lane that needs it most.
#[test]
fn different_calls_meet_at_one_addition() {
    let source = "pub fn fib(n: int) -> int { if n <= 1 { 1 } else { fib(n - 1) + fib(n - 2) } }";
    let program = Program::compile(source).expect("a valid program");
    let inputs = Inputs::new().lane("n", vec![3_i64, 7, 4, 5]);
    let options = with_stats(Engine::Pc).schedule(Schedule::Earliest);
    let results = program.function("fib").and_then(|f| f.run(&inputs, &options)).expect("runs");
    assert_eq!(results.output("result").and_then(|a| a.as_int()), Some(&[3, 21, 5, 8][..]));
    assert_eq!(results.stats().prims.get("add"), Some(&20));
}

/// Code that no lane reaches does not run; code that some lanes reach runs once for all of them.
#[test]
fn only_what_a_lane_takes_is_run() {
    let program = Program::compile("pub fn f(x: int) -> int { if x < 0 { -x } else { x } }").expect("a valid program");
    let negations = |x: Vec<i64>, engine| {
        let options = with_stats(engine).passes(autobatch::pipeline::Passes::none());
        let results = program.function("f").and_then(|f| f.run(&Inputs::new().lane("x", x), &options)).expect("runs");
        results.stats().prims.get("neg").copied().unwrap_or(0)
    };
    for engine in [Engine::Local, Engine::Pc] {
        assert_eq!(negations(vec![12, -13, 14, -15], engine), 1, "{engine:?}");
        assert_eq!(negations(vec![12, 13, 14], engine), 0, "{engine:?}");
    }
    assert_eq!(negations(vec![12, -13, 14, -15], Engine::Scalar), 2);
}

#[test]
fn compilations_are_kept_and_serve_every_number_of_lanes() {
    use std::sync::Arc;

    use autobatch::pipeline::Passes;
    use autobatch::types::{DType, Type};

    let program = Program::compile("pub fn twice[n](x: real[n]) -> real[n] { 2.0 * x }").expect("a valid program");
    let function = program.function("twice").expect("an entry");
    let of_extent = |n| function.compile(vec![Type::new(DType::Real, [n])], &Passes::default()).expect("compiles");
    assert!(Arc::ptr_eq(&of_extent(3), &of_extent(3)));
    assert!(!Arc::ptr_eq(&of_extent(3), &of_extent(4)));
    let options = Options::default();
    let one = function.bind(&Inputs::new().lane("x", ndarray::Array2::<f64>::zeros((1, 3))), &options).expect("binds");
    let many = function.bind(&Inputs::new().lane("x", ndarray::Array2::<f64>::zeros((9, 3))), &options).expect("binds");
    assert!(std::ptr::eq(one.compiled(), many.compiled()));
    let other_passes = function.compile(vec![Type::new(DType::Real, [3])], &Passes::none()).expect("compiles");
    assert!(!Arc::ptr_eq(&other_passes, &of_extent(3)));
}

#[test]
fn mutual_tail_calls_run_at_constant_depth() {
    let program = example("even_odd.ab");
    let function = program.function("is_even").expect("an entry");
    let inputs = Inputs::new().lane("n", vec![100_000_i64, 3, 99_999]);
    for engine in [Engine::Scalar, Engine::Local, Engine::Pc] {
        let options = with_stats(engine).max_stack_depth(2);
        let results = function.run(&inputs, &options).expect("runs");
        assert_eq!(results.output("result").and_then(|a| a.as_bool()), Some(&[true, false, false][..]), "{engine:?}");
        assert!(results.traps().is_empty(), "{engine:?}: {:?}", results.traps());
    }
}
