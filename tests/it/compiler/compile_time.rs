//! How the time of compilation grows, counted in what passes and analyses look at: never by a clock. And that a
//! compilation can be stopped.

#[path = "../../../benches/families.rs"]
mod families;

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::tools::effort;
use autobatch::base::work;
use autobatch::pipeline::Passes;
use autobatch::program::{ErrorKind, Inputs, Options, Program, stoppable};
use autobatch::stack;
use autobatch::transform::stack::STACK_PASSES;
use autobatch::types::{DType, Type};
use families::{Family, GRADIENT, VALUE};

/// Programs that grow in one way and their sizes, for the value and for the gradient: such that a square or worse
/// shows, twice the program still compiles in a second or two without optimisation, and what is done up to a limit,
/// such as inlining, is on the same side of it for both.
const SHAPES: &[(Family, [usize; 2])] = &[
    (("assignments", families::assignments), [240, 240]),
    (("lets", families::lets), [240, 240]),
    (("branches", families::branches), [120, 120]),
    (("else ifs", families::else_ifs), [300, 300]),
    (("terms", families::terms), [240, 240]),
    (("loops", families::loops), [120, 120]),
    (("chain of functions", families::chain), [200, 200]),
    (("plain chain of functions", families::plain_chain), [1500, 1500]),
    (("recursion over dimensions", families::dimensions), [300, 150]),
    (("functions of arrays", families::arrays), [400, 200]),
    (("steps over rows", families::rows), [200, 200]),
    (("sums over rows", families::row_sums), [200, 200]),
    (("arguments", families::arguments), [200, 200]),
    (("branches in a comprehension", families::comprehension), [150, 150]),
    (("a bit of everything", families::mixed), [600, 600]),
];

/// Twice the program may take so much more: twice, and what a logarithm and rounding add.
const MOST_GROWTH: f64 = 2.3;

fn compile(text: &str) -> Result<(), autobatch::program::Error> {
    let program = Program::compile(text)?;
    let types = [DType::Real, DType::Real, DType::Int].map(Type::scalar).to_vec();
    program.function("main")?.compile(types, &Passes::default()).map(drop)
}

/// What it takes to compile a program, its text included.
fn work_of(text: &str) -> u64 {
    let before = work::done();
    compile(text).expect("it compiles");
    work::done() - before
}

#[test]
fn twice_the_program_takes_hardly_more_than_twice_the_work() {
    let mut told = String::new();
    let mut bad = Vec::new();
    for (number, ((name, made), sizes)) in SHAPES.iter().enumerate() {
        for (i, ((what, main), size)) in [("value", VALUE), ("gradient", GRADIENT)].into_iter().zip(sizes).enumerate() {
            if !effort::tried(number + i, 4) {
                continue;
            }
            let [once, twice] = [*size, 2 * size].map(|n| work_of(&(made(n) + main)));
            let growth = twice as f64 / once as f64;
            let _ = writeln!(told, "{name}, {what}, {size}: {once}, twice that: {twice}, {growth:.2}");
            if growth > MOST_GROWTH {
                bad.push(format!("{name}, {what}"));
            }
        }
    }
    println!("{told}");
    assert!(bad.is_empty(), "more than {MOST_GROWTH} times: {bad:?}\n{told}");
}

/// Functions with a loop that each call the one before from two places, so that they stay calls.
fn called_twice(n: usize) -> String {
    let mut text = "fn f0(x: real, k: int) -> real { x }\n".to_owned();
    for i in 1..=n {
        let (last, call) = (i - 1, "let mut a = x;\n    for j in 0..k { a = a * 0.9 + 0.1; }\n");
        let _ = write!(
            text,
            "fn f{i}(x: real, k: int) -> real {{\n    {call}    if a > 2.0 {{ f{last}(a, k) + 1.0 }} else {{ f{last}(a * 2.0, k) \
             }}\n}}\n"
        );
    }
    text + &format!("pub fn main(x: real, k: int) -> real {{ grad(f{n})(x, k) }}\n")
}

#[test]
fn derivatives_through_calls_too() {
    let [once, twice] = [60, 120].map(|n| {
        let types = [DType::Real, DType::Int].map(Type::scalar).to_vec();
        let program = Program::compile(&called_twice(n)).expect("a program");
        work::note_stages();
        program.function("main").and_then(|f| f.compile(types, &Passes::default()).map(drop)).expect("it compiles");
        let stages = work::stages();
        stages
            .iter()
            .filter(|stage| stage.name == "derivatives and comprehensions")
            .map(|stage| stage.work)
            .sum::<u64>()
    });
    let growth = twice as f64 / once as f64;
    assert!(once > 0 && growth < MOST_GROWTH, "{once}, twice that: {twice}, {growth:.2}");
}

/// A chain of blocks that only jump on, each to the one before it.
fn empty_blocks(n: usize) -> String {
    let blocks: String = (0..n).map(|i| format!("\nb{}:\n  jump b{i}\n", i + 1)).collect();
    format!(
        "program f entry b{n}\ninputs x: x\noutputs x: x\nvar x: int register\n\nb0:\n  prim x = add x, 1\n  halt\n{blocks}"
    )
}

#[test]
fn chains_of_empty_blocks_of_the_stack_program_too() {
    let [once, twice] = [2_000, 4_000].map(|n| {
        let mut program = stack::read(&empty_blocks(n)).expect("a program");
        let before = work::done();
        for pass in STACK_PASSES {
            program = (pass.run)(program);
        }
        assert_eq!(program.blocks.len(), 1);
        work::done() - before
    });
    let growth = twice as f64 / once as f64;
    assert!(growth < MOST_GROWTH, "{once}, twice that: {twice}, {growth:.2}");
}

#[test]
fn a_compilation_that_is_stopped_ends_where_it_is() {
    let text = families::mixed(200) + GRADIENT;
    let all = work_of(&text);
    let stop = Arc::new(AtomicBool::new(true));
    let before = work::done();
    let stopped = stoppable(&stop, || compile(&text));
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Interrupted);
    assert!(work::done() - before < all / 100, "{} of {all}", work::done() - before);
    stop.store(false, Ordering::Relaxed);
    stoppable(&stop, || compile(&text)).expect("nobody stops it");
}

#[test]
fn the_flag_of_a_run_stops_its_compilation() {
    let program = Program::compile(&(families::mixed(200) + GRADIENT)).expect("a program");
    let function = program.function("main").expect("it has one");
    let inputs = Inputs::new().lane("x", vec![1.0]).lane("c", vec![0.5]).lane("k", vec![1_i64]);
    let stop = Arc::new(AtomicBool::new(true));
    let options = Options::default().stop(Arc::clone(&stop));
    assert_eq!(function.bind(&inputs, &options).unwrap_err().kind(), ErrorKind::Interrupted);
    stop.store(false, Ordering::Relaxed);
    function.bind(&inputs, &options).expect("nobody stops it");
}
