//! The C code generator for the CPU (`--codegen cc`).
//!
//! Steps of a block that compute on small values become one C function, a *segment*. It takes one group of lanes after
//! another, as many as fill a vector register, skips the groups without an active lane, and keeps what is between the
//! steps in registers or in the L1 cache; variables of the machine are read once and stored once, under the mask. Long rows,
//! products with large matrices, records and messages stay steps, which run as always; the machine schedules, and calls
//! segments in the place of their steps.
//!
//! The text is plain C over the functions of `include/lanes.h` and `include/vmath.h`, which are the same arithmetic as that
//! of the interpreter; the system's C compiler makes a library of it, which is kept on disk.

pub mod abi;
mod cache;
pub mod compiler;
mod functions;
mod library;
mod loaded;
mod schedule;
mod segment;
mod ssa;
#[cfg(test)]
mod tests;
mod text;

use crate::backend::cpu::PADDING;
use crate::base::IdVec;
use crate::plan::{BlockId, Body, CallPlan, FuncId, Globals, Plan};

pub use loaded::{Native, NativeBody, NativePart, NativeSegment};
pub use segment::{BlockPart, Ending, Exit, Segment};

/// What every text begins with.
const PRELUDE: &str = include_str!("include/prelude.h");

/// The C text of the bodies of a plan.
#[derive(Clone, PartialEq, Debug)]
pub struct Code {
    /// The text.
    pub text: String,
    /// For each body, and each of its blocks, what the block runs.
    pub bodies: Vec<IdVec<BlockId, Vec<BlockPart>>>,
}

impl Code {
    /// The code of a plan, which has one body.
    pub fn of_plan(plan: &Plan) -> Self {
        Self::of_bodies(std::iter::once(&plan.body), &plan.globals)
    }

    /// The code of a call plan: one body for each function.
    pub fn of_calls(plan: &CallPlan) -> Self {
        Self::of_bodies(plan.funcs.values().map(|f| &f.body), &plan.globals)
    }

    fn of_bodies<'a, T: Ending + 'a>(bodies: impl Iterator<Item = &'a Body<T>>, globals: &Globals) -> Self {
        let mut text = format!("#define AB_PADDING {PADDING}\n{PRELUDE}");
        let bodies = bodies.enumerate();
        let bodies = bodies.map(|(i, body)| segment::parts(body, globals, &format!("ab_{i}_"), &mut text)).collect();
        Self { text, bodies }
    }

    /// The body of a function of a call plan.
    pub fn body_of(&self, func: FuncId) -> &IdVec<BlockId, Vec<BlockPart>> {
        &self.bodies[func.0 as usize]
    }
}
