//! Passes over the stack program. Each can be left out; what a program computes stays the same, bit for bit.

mod copies;
mod duplicate;
mod fusion;
mod layout;
mod merge_blocks;
mod regions;

use super::Pass;
use crate::analysis::storage;
use crate::stack::Program;

const MERGE_BLOCKS: Pass<Program> = Pass {
    name: "merge-stack-blocks",
    doc: "joins blocks with their only successors, skips empty blocks, drops blocks that are never reached",
    run: merge_blocks::run,
};
const COPY_COALESCE: Pass<Program> = Pass {
    name: "copy-coalesce",
    doc: "computes values where they are wanted instead of copying them there, and drops values that nobody reads",
    run: copies::run,
};
const POP_PUSH_FUSION: Pass<Program> = Pass {
    name: "pop-push-fusion",
    doc: "turns a pop and the next push of a variable into an update, or into nothing when the new top is not read",
    run: fusion::run,
};
const REGIONS: Pass<Program> = Pass {
    name: "regions",
    doc: "lets loops whose branches do not diverge run as one superstep, their counters as scalars",
    run: regions::run,
};
const DUPLICATE_SMALL_BLOCKS: Pass<Program> = Pass {
    name: "duplicate-small-blocks",
    doc: "appends a copy of a cheap block to the blocks that jump to it: one superstep less on the way",
    run: duplicate::run,
};
const STORAGE: Pass<Program> =
    Pass { name: "storage", doc: "gives every variable the least storage class after the other passes", run: storage };

/// The passes in the order in which they run; one may run more than once.
pub const STACK_PASSES: &[Pass<Program>] =
    &[MERGE_BLOCKS, COPY_COALESCE, POP_PUSH_FUSION, REGIONS, DUPLICATE_SMALL_BLOCKS, COPY_COALESCE, STORAGE];

fn storage(mut program: Program) -> Program {
    storage::assign(&mut program);
    program
}
