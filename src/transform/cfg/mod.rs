//! Passes over the CFG program. Each gives a program that does the same in every lane: the same outputs, records and
//! draws, and the same traps. Two things may differ, and are documented as such: inlined and tail calls do not count as
//! active calls, and the number of blocks that run changes. With `check_nan` leave `if-convert` out: it evaluates both
//! arms, and a NaN may be born in the one that is not taken.

pub(super) mod blocks;
mod if_convert;
pub(super) mod inline;
pub(super) mod merge_blocks;
mod signatures;
pub(super) mod simplify;
mod tail_calls;

use crate::cfg::{Program, verify};

/// A pass: a name, what it does, and the function that does it.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Its name, as in `--no-pass NAME`.
    pub name: &'static str,
    /// What it does, in one line.
    pub doc: &'static str,
    /// Gives the rewritten program; the given one is verified, and so is the result.
    pub run: fn(Program) -> Program,
}

const SIMPLIFY: Pass = Pass {
    name: "simplify",
    doc: "folds constants, propagates copies, drops dead code, parameters and functions",
    run: simplify::run,
};
const TAIL_CALLS: Pass = Pass {
    name: "tail-calls",
    doc: "turns a call whose results are returned at once into a tail call",
    run: tail_calls::run,
};
const INLINE: Pass = Pass {
    name: "inline",
    doc: "puts non-recursive functions that are small or called once in the place of the call",
    run: inline::run,
};
const MERGE_BLOCKS: Pass = Pass {
    name: "merge-blocks",
    doc: "joins blocks that always follow one another and skips empty ones",
    run: merge_blocks::run,
};
const IF_CONVERT: Pass = Pass {
    name: "if-convert",
    doc: "turns branches between cheap arms that cannot trap into selects",
    run: if_convert::run,
};

const EARLY_RETURN: Pass = Pass {
    name: "early-return",
    doc: "returns at once where a jump leads to a block that only returns",
    run: merge_blocks::return_early,
};

/// The passes in the order in which they run; one that stands here twice runs twice.
pub const CFG_PASSES: &[Pass] = &[
    MERGE_BLOCKS,
    SIMPLIFY,
    TAIL_CALLS,
    INLINE,
    MERGE_BLOCKS,
    SIMPLIFY,
    IF_CONVERT,
    SIMPLIFY,
    TAIL_CALLS,
    MERGE_BLOCKS,
    EARLY_RETURN,
];

/// The passes that are switched off.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Disabled {
    names: Vec<String>,
}

impl Disabled {
    /// Switches off passes by name. Names that no CFG pass has are kept too: they may belong to another IR.
    pub fn new(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { names: names.into_iter().map(Into::into).collect() }
    }
    /// Switches off one more pass.
    pub fn add(&mut self, name: impl Into<String>) {
        self.names.push(name.into());
    }
    /// Whether a pass is switched off.
    pub fn contains(&self, name: &str) -> bool {
        self.names.iter().any(|n| n == name)
    }
}

/// Runs all passes that are not switched off.
///
/// # Panics
///
/// In debug builds, when a pass makes a program that the verifier rejects: names the pass and the violations.
pub fn run_passes(mut program: Program, disabled: &Disabled) -> Program {
    for pass in CFG_PASSES {
        if !disabled.contains(pass.name) {
            program = run_pass(pass, program);
        }
    }
    program
}

/// Runs one pass; in debug builds the result is verified, as by [`run_passes`].
pub fn run_pass(pass: &Pass, program: Program) -> Program {
    let program = (pass.run)(program);
    if cfg!(debug_assertions) {
        let errors: Vec<String> = verify(&program).iter().map(ToString::to_string).collect();
        assert!(errors.is_empty(), "the pass `{}` broke the program: {}\n{program}", pass.name, errors.join("; "));
    }
    program
}
