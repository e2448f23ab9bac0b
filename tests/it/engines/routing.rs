//! Generated functions that take the lanes of a block and send them on do what the steps of the block do: the same results,
//! traps and statistics for every number of lanes, schedule and limit.

use autobatch::program::{Codegen, Engine, Inputs, Options, Program, Results};
use autobatch::run::{BlockStats, Execution, NoSink, Schedule, Settings};

use crate::tools::observed;

const SOURCE: &str = "
/// Lanes at different depths of different calls.
pub fn fib(n: int) -> int { if n < 3 { 1 } else { fib(n - 1) + fib(n - 2) } }

/// More places to return to than are compared at once.
pub fn many(n: int) -> int {
    if n <= 0 { return 1; }
    let a = many(n - 1) + 2 * many(n - 3) + 3 * many(n - 4) + 4 * many(n - 5) + 5 * many(n - 6);
    let b = many(n - 7) + 2 * many(n - 8) + 3 * many(n - 9) + 4 * many(n - 10) + 5 * many(n - 11);
    a + 7 * b
}

/// Stacks of bools, of small arrays and of larger ones.
pub fn saved(n: int) -> real { down(n, n % 3 == 0, [0.5 * n, 1.0], [1.0 * n, 2.0, 3.0, 4.0, 5.0]) }
fn down(n: int, odd: bool, w: real[2], v: real[5]) -> real {
    if n <= 0 { return sum(v) + w[0]; }
    let below = down(n - 1, !odd, w + 1.0, 0.5 * v) + (if n % 4 == 0 { down(n - 3, odd, 0.5 * w, v + 1.0) } else { 0.25 });
    if odd { below + sum(v) } else { below - w[1] }
}

/// Traps at the bottom of the recursion, and on the way back.
pub fn trapping(n: int) -> int {
    if n <= 0 { 100 / n } else { trapping(n - 2) / (n - 5) + n }
}

/// A loop without calls.
pub fn collatz(n: int) -> int {
    let mut m = n + 1;
    let mut turns = 0;
    while m != 1 {
        m = if m % 2 == 0 { m / 2 } else { 3 * m + 1 };
        turns += 1;
    }
    turns
}
";

fn run(program: &Program, entry: &str, inputs: &Inputs, codegen: Codegen, settings: &Settings) -> Results {
    let function = program.function(entry).unwrap();
    let engine = Engine::Pc;
    let options = Options::default().engine(engine).codegen(codegen).settings(settings.clone());
    function.bind(inputs, &options).unwrap().run(&options, &NoSink).unwrap()
}

/// All that a run shows but its time.
fn shown(results: &Results) -> String {
    let stats = results.stats();
    // Steps compute all lanes, generated code groups of them.
    let without_issued = |mut block: BlockStats| {
        block.lanes_issued = 0;
        block
    };
    let blocks = stats.blocks.iter().cloned().map(without_issued);
    let mut shown = format!("{:?}\n{:?}\n{}\n", results.outputs(), results.traps(), stats.supersteps);
    shown += &format!("{:?}\n{:?}\n", blocks.collect::<Vec<_>>(), stats.variables);
    if results.traps().is_empty() {
        // Steps that follow when all lanes have trapped do not run.
        shown += &format!("{:?}\n", stats.prims);
    }
    shown
}

fn agree(entry: &str, change: impl Fn(Settings) -> Settings) {
    if observed::codegen() == Codegen::Off {
        return;
    }
    let program = Program::compile(SOURCE).unwrap();
    // The program keeps its code: a run that is to stop would not wait for the C compiler.
    run(&program, entry, &Inputs::new().lane("n", vec![1_i64]), Codegen::Cc, &Settings::default());
    for lanes in [0, 1, 9, 130] {
        let inputs = Inputs::new().lane("n", (0..lanes).map(|lane| lane * 7 % 13).collect::<Vec<i64>>());
        for schedule in [Schedule::Earliest, Schedule::MostLanes, Schedule::default()] {
            for shard_lanes in [0, 7, 64] {
                // Masked steps take the same lanes in each superstep; whatever is gathered counts other columns.
                let execution = Execution::Mask;
                let settings = Settings::default()
                    .schedule(schedule)
                    .execution(execution)
                    .shard_lanes(shard_lanes)
                    .threads(1)
                    .stats(true);
                let settings = change(settings);
                let [steps, generated] = [Codegen::Off, Codegen::Cc]
                    .map(|codegen| shown(&run(&program, entry, &inputs, codegen, &settings)));
                assert_eq!(steps, generated, "{entry}, {lanes} lanes, {settings:?}");
            }
        }
    }
}

#[test]
fn lanes_go_the_same_ways() {
    for entry in ["fib", "many", "saved", "trapping", "collatz"] {
        agree(entry, |settings| settings);
    }
}

#[test]
fn calls_that_are_too_deep_trap_alike() {
    for entry in ["fib", "many", "saved", "trapping"] {
        for depth in [1, 4] {
            agree(entry, |settings| settings.max_stack_depth(depth));
        }
    }
}

#[test]
fn blocks_are_counted_alike() {
    for entry in ["fib", "saved", "collatz"] {
        agree(entry, |settings| settings.max_supersteps(40));
    }
}

#[test]
fn a_run_that_is_stopped_ends() {
    agree("fib", |settings| settings.stop(std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true))));
}
