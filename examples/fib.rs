//! The library in one page: compile a program, run one of its functions for many lanes, look at what came out.
//!
//! `cargo run --example fib`
#![allow(clippy::print_stdout, reason = "an example shows what comes out")]

use autobatch::program::{Engine, Inputs, Options, Program};
use ndarray::array;

const SOURCE: &str = "
/// The n-th Fibonacci number.
pub fn fib(n: int) -> int {
    if n < 3 { 1 } else { fib(n - 1) + fib(n - 2) }
}
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let program = Program::compile(SOURCE)?;
    let fib = program.function("fib")?;
    let inputs = Inputs::new().lane("n", array![5, 6, 8, 9, -1]);

    let mut options = Options::default();
    options.settings.stats = true;
    for engine in [Engine::Scalar, Engine::Local, Engine::Pc] {
        options.engine = engine;
        let results = fib.run(&inputs, &options)?;
        let values = results.output("result").and_then(|a| a.to_ndarray_int()).expect("an int for every lane");
        println!("{engine:?}: {values}, utilization {:.2}", results.stats().utilization());
    }
    Ok(())
}
