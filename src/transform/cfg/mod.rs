//! Passes over the CFG program. Each gives a program that does the same in every lane: the same outputs, records and
//! draws, and the same traps. Two things may differ, and are documented as such: inlined and tail calls, and those whose early
//! return is inlined, do not count as active calls, neither for the limit nor in the depth that a trap tells, and the number of
//! blocks that run changes. With `check_nan` leave `if-convert`, `guard-arms` and `join-conditions`
//! out: they evaluate both arms, and a NaN may be born in the one that is not taken.

pub(super) mod blocks;
mod diamonds;
mod guards;
mod hoist_shared;
pub(super) mod if_convert;
pub(super) mod in_place;
pub(super) mod inline;
mod join_conditions;
mod known_branches;
pub(super) mod merge_blocks;
mod partial_inline;
mod plain_attempts;
mod reuse;
mod shared_code;
mod signatures;
pub(super) mod simplify;
mod tail_calls;

use super::Pass;
use crate::cfg::Program;

const SIMPLIFY: Pass<Program> = Pass {
    name: "simplify",
    doc: "folds constants, propagates copies, drops dead code, parameters and functions",
    run: simplify::run,
};
const PLAIN_ATTEMPTS: Pass<Program> = Pass {
    name: "plain-attempts",
    doc: "turns attempts of functions that cannot trap into calls",
    run: plain_attempts::run,
};
const TAIL_CALLS: Pass<Program> = Pass {
    name: "tail-calls",
    doc: "turns a call whose results are returned at once into a tail call",
    run: tail_calls::run,
};
const PARTIAL_INLINE: Pass<Program> = Pass {
    name: "partial-inline",
    doc: "tests before a recursive call whether it would return at once",
    run: partial_inline::run,
};
const INLINE: Pass<Program> = Pass {
    name: "inline",
    doc: "puts non-recursive functions that are small or called once in the place of the call",
    run: inline::run,
};
const MERGE_BLOCKS: Pass<Program> = Pass {
    name: "merge-blocks",
    doc: "joins blocks that always follow one another and skips empty ones",
    run: merge_blocks::run,
};
const KNOWN_BRANCHES: Pass<Program> = Pass {
    name: "known-branches",
    doc: "follows constants and conditions along the ways that can be gone: loops that turn once are none",
    run: known_branches::run,
};
const IF_CONVERT: Pass<Program> = Pass {
    name: "if-convert",
    doc: "turns branches between cheap arms that cannot trap into selects",
    run: if_convert::run,
};
const GUARD_ARMS: Pass<Program> = Pass {
    name: "guard-arms",
    doc: "for batches: turns branches between cheap arms that may trap into selects, of harmless operands too",
    run: if_convert::run_guarded,
};
const JOIN_CONDITIONS: Pass<Program> = Pass {
    name: "join-conditions",
    doc: "for batches: makes selects of branches on several conditions, such as `a || b`, whose cheap arms store to elements",
    run: join_conditions::run,
};
const EARLY_RETURN: Pass<Program> = Pass {
    name: "early-return",
    doc: "returns at once where a jump leads to a block that only returns",
    run: merge_blocks::return_early,
};

const HOIST_SHARED: Pass<Program> = Pass {
    name: "hoist-shared",
    doc: "computes what depends on shared values only once, before the lanes start",
    run: hoist_shared::run,
};

const REUSE: Pass<Program> = Pass { name: "reuse", doc: "computes nothing twice in a block", run: reuse::run };
const SHARED_CODE: Pass<Program> = Pass {
    name: "shared-code",
    doc: "computes loops, branches and calls that depend on shared values only once, before the lanes start",
    run: shared_code::run,
};

const CHANGE_IN_PLACE: Pass<Program> = Pass {
    name: "change-in-place",
    doc: "changes an array itself where only the changed copy is wanted",
    run: in_place::run,
};

/// The passes in the order in which they run; one that stands here twice runs twice.
pub const CFG_PASSES: &[Pass<Program>] = &[
    MERGE_BLOCKS,
    SIMPLIFY,
    PLAIN_ATTEMPTS,
    TAIL_CALLS,
    PARTIAL_INLINE,
    INLINE,
    MERGE_BLOCKS,
    KNOWN_BRANCHES,
    SIMPLIFY,
    MERGE_BLOCKS,
    HOIST_SHARED,
    SHARED_CODE,
    IF_CONVERT,
    REUSE,
    SIMPLIFY,
    HOIST_SHARED,
    TAIL_CALLS,
    MERGE_BLOCKS,
];

/// The last passes for the reference interpreter alone: where many lanes run at once, arms that return are made selects
/// before.
pub const LANE_PASSES: &[Pass<Program>] = &[EARLY_RETURN, CHANGE_IN_PLACE];

/// Further passes for the engines that run many lanes at once: for them a branch costs more than computing what some lanes do
/// not need. The reference interpreter runs the program without them.
pub const BATCH_PASSES: &[Pass<Program>] =
    &[GUARD_ARMS, JOIN_CONDITIONS, REUSE, SIMPLIFY, TAIL_CALLS, MERGE_BLOCKS, EARLY_RETURN, CHANGE_IN_PLACE];
