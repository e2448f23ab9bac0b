//! Layer 5: the reference interpreter `scalar`: one lane after another, one instruction after another. It is the meaning of
//! a program; every other engine must give the same bits.
//!
//! Calls have frames on the heap, so that only [`Settings::max_stack_depth`](crate::run::Settings::max_stack_depth) limits
//! recursion. What a lane does depends on its inputs, the seed and its number, and on nothing else.

mod arrays;
mod code;
mod last_use;
mod machine;
mod scalars;
mod shared;
mod triangular;
mod value;

pub use shared::{SharedError, shared_values};

use crate::cfg::Program;
use crate::run::{Inputs, Outcome, Settings, Sink};
use crate::types::Precision;

/// Runs a verified program for every lane of the inputs, in order.
///
/// # Panics
///
/// When the program would not pass [`verify`](crate::cfg::verify()), or the inputs do not have the program's types.
pub fn run(program: &Program, inputs: &Inputs, settings: &Settings, sink: &dyn Sink) -> Outcome {
    match settings.precision {
        Precision::F32 => machine::run::<f32>(program, inputs, settings, sink),
        Precision::F64 => machine::run::<f64>(program, inputs, settings, sink),
    }
}
