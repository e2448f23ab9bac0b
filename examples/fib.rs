//! The library in one page: compile a program, run one of its functions for many lanes, look at what came out.
//!
//! `cargo run --example fib`
#![allow(clippy::print_stdout, reason = "an example shows what comes out")]

use autobatch::{Engine, Inputs, Options, Program};
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

    for engine in [Engine::Scalar, Engine::Local, Engine::Pc] {
        let results = fib.run(&inputs, &Options::default().engine(engine).stats(true))?;
        println!("{engine:?}: {}, utilization {:.2}", results.int("result")?, results.stats().utilization());
    }
    Ok(())
}
