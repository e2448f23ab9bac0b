//! Passes over the stack program. Each can be left out; what a program computes stays the same, bit for bit.

mod coalesce;
mod copies;
mod dead;
mod duplicate;
mod fusion;
mod layout;
mod merge_blocks;
mod propagate;
mod regions;
mod sink;

use super::Pass;
use crate::analysis::storage;
use crate::stack::Program;

pub use crate::analysis::storage::StorageClasses;

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
const DEAD_STORES: Pass<Program> = Pass {
    name: "dead-stores",
    doc: "drops what is computed or saved for nobody, through calls and recursion too; what is only saved gets no new top",
    run: dead::run,
};
const PROPAGATE_COPIES: Pass<Program> = Pass {
    name: "propagate-copies",
    doc: "reads and saves what was copied, not the copy, across blocks and calls",
    run: propagate::run,
};
const SINK_POPS: Pass<Program> = Pass {
    name: "sink-pops",
    doc: "pops a variable where it is wanted, so that its last value can be used until then",
    run: sink::run,
};
const COALESCE: Pass<Program> = Pass {
    name: "coalesce",
    doc: "makes one variable of several that are copies of one another and never differ while they are wanted",
    run: coalesce::run,
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
const STORAGE: Pass<Program> = Pass {
    name: "storage",
    doc: "keeps in registers what no call saves; without it everything that crosses a block is on a stack",
    run: storage,
};

/// The passes in the order in which they run; one may run more than once.
pub const STACK_PASSES: &[Pass<Program>] = &[
    MERGE_BLOCKS,
    DEAD_STORES,
    PROPAGATE_COPIES,
    COPY_COALESCE,
    DEAD_STORES,
    SINK_POPS,
    POP_PUSH_FUSION,
    REGIONS,
    COALESCE,
    COPY_COALESCE,
    POP_PUSH_FUSION,
    MERGE_BLOCKS,
    DUPLICATE_SMALL_BLOCKS,
    PROPAGATE_COPIES,
    MERGE_BLOCKS,
    COPY_COALESCE,
    DEAD_STORES,
    STORAGE,
];

/// What a pass does where calls save more than what is live: it leaves alone what they save.
pub fn keeping_saves(pass: &Pass<Program>) -> fn(Program) -> Program {
    if pass.name == DEAD_STORES.name { dead::run_keeping_saves } else { pass.run }
}

fn storage(mut program: Program) -> Program {
    storage::assign(&mut program);
    program
}

/// Gives every variable the least storage class of those that may be used.
pub fn store_in(mut program: Program, classes: StorageClasses) -> Program {
    storage::assign_of(&mut program, classes);
    program
}
