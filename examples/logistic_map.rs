//! A chaotic map for many starting points and growth rates: until when do two neighbours stay together?
//!
//! `cargo run --example logistic_map`
#![allow(clippy::print_stdout, reason = "an example shows what comes out")]

use autobatch::{Inputs, Options, Program};
use ndarray::Array1;

const SOURCE: &str = "
/// Steps until two orbits that start 1e-9 apart are 0.1 apart; at most `limit`.
pub fn parting(rate: real, x: real, shared limit: int) -> int {
    let mut near = x;
    let mut far = x + 1e-9;
    let mut steps = 0;
    while steps < limit && abs(near - far) < 0.1 {
        near = rate * near * (1.0 - near);
        far = rate * far * (1.0 - far);
        steps += 1;
    }
    steps
}
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rates = Array1::linspace(3.5, 4.0, 11);
    let program = Program::compile(SOURCE)?;
    // A single value for an ordinary parameter serves every lane.
    let inputs = Inputs::new().lane("rate", &rates).shared("x", 0.3).shared("limit", 1000);
    let results = program.function("parting")?.run(&inputs, &Options::default())?;
    for (rate, steps) in rates.iter().zip(results.int("result")?) {
        println!("rate {rate:.2}: {steps} steps");
    }
    Ok(())
}
