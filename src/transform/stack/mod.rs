//! Passes over the stack program. Each can be left out; what a program computes stays the same, bit for bit.

mod copies;
mod duplicate;
mod fusion;
mod layout;
mod merge_blocks;
mod regions;

use crate::analysis::storage;
use crate::stack::{Program, verify};

/// A pass: from a program to one that does the same.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Its name, by which it is switched off.
    pub name: &'static str,
    /// What it does, one line.
    pub doc: &'static str,
    /// The pass.
    pub run: fn(Program) -> Program,
}

const MERGE_BLOCKS: Pass = Pass {
    name: "merge-blocks",
    doc: "joins blocks with their only successors, skips empty blocks, drops blocks that are never reached",
    run: merge_blocks::run,
};
const COPY_COALESCE: Pass = Pass {
    name: "copy-coalesce",
    doc: "computes values where they are wanted instead of copying them there, and drops values that nobody reads",
    run: copies::run,
};
const POP_PUSH_FUSION: Pass = Pass {
    name: "pop-push-fusion",
    doc: "turns a pop and the next push of a variable into an update, or into nothing when the new top is not read",
    run: fusion::run,
};
const REGIONS: Pass = Pass {
    name: "regions",
    doc: "lets loops whose branches do not diverge run as one superstep, their counters as scalars",
    run: regions::run,
};
const DUPLICATE_SMALL_BLOCKS: Pass = Pass {
    name: "duplicate-small-blocks",
    doc: "appends a copy of a cheap block to the blocks that jump to it: one superstep less on the way",
    run: duplicate::run,
};
const STORAGE: Pass =
    Pass { name: "storage", doc: "gives every variable the least storage class after the other passes", run: storage };

/// The passes in the order in which they run; one may run more than once.
pub const STACK_PASSES: &[Pass] =
    &[MERGE_BLOCKS, COPY_COALESCE, POP_PUSH_FUSION, REGIONS, DUPLICATE_SMALL_BLOCKS, COPY_COALESCE, STORAGE];

fn storage(mut program: Program) -> Program {
    storage::assign(&mut program);
    program
}

/// Runs the passes except those named in `off`. In debug builds every pass is followed by the verifier; a failure is a bug
/// of the pass, and the panic names it.
pub fn optimize(mut program: Program, off: &[String]) -> Program {
    check("the lowering", &program);
    for pass in STACK_PASSES {
        if !off.iter().any(|name| name == pass.name) {
            program = (pass.run)(program);
            check(pass.name, &program);
        }
    }
    program
}

fn check(guilty: &str, program: &Program) {
    if cfg!(debug_assertions) {
        let errors = verify(program);
        assert!(errors.is_empty(), "{guilty} made a wrong stack program: {}\n{program}", errors[0]);
    }
}
