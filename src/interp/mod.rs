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

pub use shared::{SharedError, fold_known, shared_values};

use crate::cfg::Program;
use crate::prim::Prim;
use crate::run::{Outcome, RunInputs, Settings, Sink, TrapKind};
use crate::types::{Array, Precision, Type};
use crate::vmath::Real;
use value::Value;

/// Runs a verified program for every lane of the inputs, in order.
///
/// # Panics
///
/// When the program would not pass [`verify`](crate::cfg::verify()), or the inputs do not have the program's types.
pub fn run(program: &Program, inputs: &RunInputs, settings: &Settings, sink: &dyn Sink) -> Outcome {
    match settings.precision {
        Precision::F32 => machine::run::<f32>(program, inputs, settings, sink),
        Precision::F64 => machine::run::<f64>(program, inputs, settings, sink),
    }
}

/// The meaning of a primitive in one lane, but for random draws: its result, of type `ty`, for operands of the types
/// that it takes. Reals are rounded to the precision.
///
/// # Errors
/// The trap.
///
/// # Panics
/// When the operands do not fit the primitive, or it is a draw.
pub fn apply(prim: Prim, args: &[Array], ty: &Type, precision: Precision) -> Result<Array, TrapKind> {
    fn typed<R: Real>(prim: Prim, args: &[Array], ty: &Type) -> Result<Array, TrapKind> {
        let args: Vec<Value<R>> = args.iter().map(|a| Value::from_array(a, 0, &a.ty())).collect();
        let args: Vec<&Value<R>> = args.iter().collect();
        Ok(arrays::apply(prim, &args, ty)?.to_array())
    }
    match precision {
        Precision::F32 => typed::<f32>(prim, args, ty),
        Precision::F64 => typed::<f64>(prim, args, ty),
    }
}
