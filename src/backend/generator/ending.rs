//! How blocks end, as far as generated code must know.

use crate::base::{IdVec, Loc};
use crate::unit::{Attempt, BlockEnd, BlockId, CallTerminator, Terminator, UnitId};

/// Where a block sends its lanes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::backend) enum Exit<'a> {
    /// To a block.
    Jump(BlockId),
    /// To the first block where the condition holds, else to the second.
    Branch(BlockId, BlockId),
    /// To a block; the second is where they return to.
    Call(BlockId, BlockId, &'a Loc),
    /// To where they were called from; those that were not are done.
    Return,
    /// Nowhere: they are done.
    Halt,
}

/// How a function sends its lanes on.
pub(in crate::backend) struct Route<'a> {
    /// The unit where they wait.
    pub(in crate::backend) unit: UnitId,
    pub(in crate::backend) exit: Exit<'a>,
    /// Of each block its unit.
    pub(in crate::backend) units: &'a IdVec<BlockId, UnitId>,
    /// The blocks that calls return to.
    pub(in crate::backend) returns: &'a [BlockId],
}

/// How a block ends, for generated code.
pub(in crate::backend) trait Ending: BlockEnd {
    /// Where it sends lanes, where generated code can do that.
    fn exit(&self) -> Option<Exit<'_>>;
    /// The attempt that it calls under.
    fn attempt(&self) -> Option<&Attempt>;
    /// The attempt that it calls under, if the heights of stacks and tapes must be noted for that.
    fn noted(&self) -> Option<&Attempt> {
        self.attempt().filter(|attempt| attempt.has_heights())
    }
    /// The block that a call returns to, where generated code can return.
    fn returned_to(&self) -> Option<BlockId>;
}

impl Ending for Terminator {
    fn exit(&self) -> Option<Exit<'_>> {
        Some(match self {
            Terminator::Jump(block) => Exit::Jump(*block),
            Terminator::Branch(_, yes, no) => Exit::Branch(*yes, *no),
            Terminator::PushJump { target, ret, loc, .. } => Exit::Call(*target, *ret, loc),
            Terminator::Return => Exit::Return,
            Terminator::Halt => Exit::Halt,
        })
    }
    fn attempt(&self) -> Option<&Attempt> {
        match self {
            Terminator::PushJump { attempt, .. } => attempt.as_ref(),
            _ => None,
        }
    }
    fn returned_to(&self) -> Option<BlockId> {
        match self {
            Terminator::PushJump { ret, .. } => Some(*ret),
            _ => None,
        }
    }
}

impl Ending for CallTerminator {
    fn exit(&self) -> Option<Exit<'_>> {
        None
    }
    fn attempt(&self) -> Option<&Attempt> {
        None
    }
    fn returned_to(&self) -> Option<BlockId> {
        None
    }
}
