//! The generator with a second frame, a function for one lane: it says how much of a target stands in a frame.

mod machine;
mod one_lane;

use crate::backend::cpu::codegen::compiler::Compiler;
use crate::backend::cpu::pc;
use crate::program::{Inputs, Options, Program};
use crate::run::{NoSink, Outcome, Settings};
use crate::types::Array;
use machine::Machine;

/// Runs an entry for some lanes, one function call after the other, and on `pc`: outputs and traps are the same, bit for
/// bit. Without a C compiler it says so, and compares nothing.
fn same(source: &str, entry: &str, inputs: Inputs) {
    let program = Program::compile(source).unwrap_or_else(|error| panic!("{error}"));
    let options = Options::default();
    let bound = program.function(entry).unwrap().bind(&inputs, &options).unwrap_or_else(|error| panic!("{error}"));
    let (units, plan) = (&bound.compiled().units, &bound.compiled().plan);
    let (machine, inputs) = (Machine::new(units, plan), bound.inputs());
    let settings = Settings::default().seed(7).max_stack_depth(200);
    let compiler = match Compiler::find() {
        Ok(compiler) => compiler,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    let lanes = machine.run(&compiler, inputs, &settings);
    let wanted = pc::run(plan, inputs, &settings, &NoSink);
    assert_eq!(essence(&lanes), essence(&wanted), "{entry}");
}

/// Outputs and traps, in which every bit counts.
fn essence(outcome: &Outcome) -> String {
    format!("{:?} {:?}", outcome.outputs, outcome.traps)
}

fn ints(values: &[i64]) -> Array {
    Array::int([values.len()], values.to_vec())
}

fn reals(values: &[f64]) -> Array {
    Array::real([values.len()], values.to_vec())
}

/// `lanes` rows of `n` reals.
fn rows(lanes: usize, n: usize) -> Array {
    let value = |i: usize| (i as f64 * 0.37).sin() * 1.5;
    Array::real([lanes, n], (0..lanes * n).map(value).collect::<Vec<_>>())
}

#[test]
fn recursion() {
    let fib = include_str!("../../../../examples/fib.ab");
    same(fib, "fib", Inputs::new().lane("n", ints(&[1, 5, 6, 8, 9, 15])));
}

#[test]
fn loops() {
    let collatz = include_str!("../../../../examples/collatz.ab");
    same(collatz, "collatz", Inputs::new().lane("n", ints(&[1, 2, 7, 27, 97, 871])));
}

#[test]
fn a_gradient_through_a_loop() {
    let source = "
        fn height(x: real[3], n: int) -> real {
            let mut y = 0.0;
            let mut i = 0;
            while i < n {
                y = y + sum([exp(-x[k] * x[k]) * sin(x[k] + real(i)) for k in 0..3]);
                i += 1;
            }
            y
        }
        pub fn slope(x: real[3], n: int) -> (real, real[3]) { value_and_grad(|v: real[3]| height(v, n))(x) }";
    same(source, "slope", Inputs::new().lane("x", rows(5, 3)).lane("n", ints(&[0, 1, 2, 5, 9])));
}

#[test]
fn arrays_on_stacks_and_products_with_a_shared_matrix() {
    let source = "
        pub fn walk(x: real[4], n: int, shared a: real[4, 4]) -> real[4] {
            if n <= 0 { x } else {
                let deeper = walk(a @ x * 0.5, n - 1, a);
                let other = walk(deeper - x, n - 2, a);
                x + deeper * other
            }
        }";
    let matrix = Array::real([4, 4], (0..16).map(|i| f64::from(i).cos()).collect::<Vec<_>>());
    let inputs = Inputs::new().lane("x", rows(6, 4)).lane("n", ints(&[0, 1, 2, 3, 5, 7])).shared("a", matrix);
    same(source, "walk", inputs);
}

#[test]
fn draws_and_traps() {
    let source = "
        pub fn steps(limit: int) -> (real, int) {
            let mut x = 0.0;
            let mut k = 0;
            while k < limit {
                x = x + random_normal() * random_uniform();
                k += 1;
            }
            assert(limit < 9, \"too many\");
            (x, 100 / (limit - 3))
        }
        pub fn deep(depth: int) -> int { if depth == 0 { 0 } else { 1 + deep(depth - 1) } }";
    same(source, "steps", Inputs::new().lane("limit", ints(&[0, 1, 3, 8, 9, 4])));
    same(source, "deep", Inputs::new().lane("depth", ints(&[3, 150, 250])));
}

#[test]
fn functions_of_reals_and_bools() {
    let source = "
        pub fn mixed(x: real, y: real) -> (real, bool, int) {
            let high = x > y;
            let z = if high { lgamma(abs(x) + 0.5) } else { log1p_exp(y) };
            (max(z, inv_logit(x * y)), high && z > 0.5, int(floor(x * 3.0)))
        }";
    let (x, y) = (reals(&[0.1, -2.5, 3.0, 7.25]), reals(&[1.5, -0.25, 2.0, 9.0]));
    same(source, "mixed", Inputs::new().lane("x", x).lane("y", y));
}

#[test]
fn programs_of_the_file_tests() {
    let recursion = include_str!("../../../../tests/filetests/run/recursion.ab");
    same(recursion, "ackermann", Inputs::new().lane("m", ints(&[1, 2, 2])).lane("n", ints(&[3, 2, 0])));
    same(recursion, "even", Inputs::new().lane("n", ints(&[5, 6, 8, 9, 0])));
    let arrays = include_str!("../../../../tests/filetests/run/arrays_on_stacks.ab");
    same(arrays, "of100", Inputs::new().lane("s", reals(&[3.0, 0.25])).lane("depth", ints(&[6, 2])));
    let draws = include_str!("../../../../tests/filetests/run/draws.ab");
    let shapes = |last: f64| reals(&[1.0, 0.5, 0.003, 1e-10, last]);
    same(draws, "beta", Inputs::new().lane("a", shapes(-0.5)).lane("b", shapes(2.0)));
    let derivatives = include_str!("../../../../tests/filetests/run/derivatives.ab");
    same(derivatives, "computed_twice", Inputs::new().lane("x", reals(&[2.0, -0.5])).lane("n", ints(&[3, 4])));
    let densities = include_str!("../../../../tests/filetests/run/density_gradients.ab");
    same(densities, "logits", Inputs::new().lane("x", reals(&[0.7, -0.2, 1.0])));
}
