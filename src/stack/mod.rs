//! Layer 2: the stack program: one flat list of basic blocks over global variables, each temporary, register or stack.
//! Program-counter autobatching runs this one. The program counter is a stack variable too; it is not listed.
//!
//! Conventions that the lowering keeps and the verifier checks: a call saves what it may overwrite, so that a function
//! leaves every stack as high as it found it. Before a `pushjump` the caller pushes each variable that is live across
//! the call and that the callee may write (giving the new top the value of the callee's parameter, where it is one), or
//! saves its value without setting the top; after the call it is popped.

mod print;
mod read;
mod verify;

use smallvec::SmallVec;

use crate::base::{IdVec, Loc};
use crate::prim::Prim;
use crate::types::Type;

pub use crate::parts::{Shared, SharedId, SharedSource, StorageClass, Stream, StreamId, Tape, TapeId};
pub use print::print_explained;
pub use read::{Lines, read, read_with_lines};
pub use verify::{Position, VerifyError, verify};

crate::define_id!(
    /// A variable of a stack program.
    VarId, "v"
);
crate::define_id!(
    /// A basic block of a stack program.
    BlockId, "b"
);

/// What an instruction reads: of a stack variable, its top.
pub type Operand = crate::parts::Operand<VarId>;
/// Operands of an instruction.
pub type Args = crate::parts::Args<VarId>;
/// A string with holes and the operands that fill them.
pub type Message = crate::parts::Message<Operand>;
/// What an instruction does besides computing a value.
pub type SideEffect = crate::parts::SideEffect<Operand, VarId>;

/// A whole program.
#[derive(Clone, PartialEq, Debug)]
pub struct Program {
    /// Name of the entry function.
    pub name: String,
    /// All variables.
    pub vars: IdVec<VarId, Var>,
    /// All blocks.
    pub blocks: IdVec<BlockId, Block>,
    /// Where every lane starts. Its program-counter stack then holds one entry, which halts the lane when it is popped.
    pub entry: BlockId,
    /// The lane inputs: set when a lane starts. Their names are the user's.
    pub inputs: Vec<Port>,
    /// The outputs: read when a lane halts.
    pub outputs: Vec<Port>,
    /// The values that are the same for all lanes, in an order in which they can be computed.
    pub shared: IdVec<SharedId, Shared>,
    /// The output streams.
    pub streams: IdVec<StreamId, Stream>,
    /// The tapes: stacks that no call saves and no variable caches the top of.
    pub tapes: IdVec<TapeId, Tape>,
    /// Groups of blocks that run as one superstep: see [`Region`].
    pub regions: Vec<Region>,
}

/// A lane input or an output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Port {
    /// The user's name: `n`, `tree.left`, `result`.
    pub name: String,
    /// The variable.
    pub var: VarId,
}

/// A variable: for every lane one value, or a stack of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Var {
    /// Unique in the program: `fib.n`.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// How it is stored.
    pub class: StorageClass,
    /// Whether it is equal in all active lanes inside one execution of a region (variance `region`). Such a variable is
    /// a temporary of one region and is stored once, not per lane.
    pub uniform: bool,
    /// Why it has this class, for `dump --explain`. May be empty.
    pub why: String,
}

/// A single-entry group of blocks whose branches do not diverge: all conditions are uniform. It runs as one superstep:
/// every active lane goes the same way through it, and they leave it together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    /// Its blocks. It is entered at the first, and at no other.
    pub blocks: Vec<BlockId>,
}

/// A basic block.
#[derive(Clone, PartialEq, Debug)]
pub struct Block {
    /// Straight-line code.
    pub insts: Vec<Inst>,
    /// How it ends.
    pub term: Terminator,
    /// The location that statistics report for it.
    pub loc: Loc,
}

/// An instruction.
#[derive(Clone, PartialEq, Debug)]
pub struct Inst {
    /// What it does.
    pub kind: InstKind,
    /// Where it stands in the source.
    pub loc: Loc,
}

/// How a computed value is stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Write {
    /// `prim v = …`: into a temporary or a register.
    Set,
    /// `push v = …`: as a new top of a stack. The operands are read before.
    Push,
    /// `update v = …`: over the top of a stack.
    Update,
}

/// The kinds of instructions.
#[derive(Clone, PartialEq, Debug)]
pub enum InstKind {
    /// Computes a value and stores it.
    Compute {
        /// How it is stored.
        write: Write,
        /// Where it is stored.
        dst: VarId,
        /// The primitive.
        prim: Prim,
        /// Its operands. The variable that is written may be among them.
        args: Args,
    },
    /// `pop v`: the top goes, the one below it is the top.
    Pop(VarId),
    /// `save v, w`: the value of `w` goes on the stack of `v`, under its top, which stays as it is. The next `pop v` gives
    /// `v` that value.
    Save {
        /// The stack variable.
        stack: VarId,
        /// What is saved: the variable itself, or another one that has what it would get before.
        value: VarId,
    },
    /// What it does besides. A pop off a tape goes over the value of a variable (over the top of a stack):
    /// `tape_pop v = tape`.
    Effect(SideEffect),
}

/// How a block ends.
#[derive(Clone, PartialEq, Debug)]
pub enum Terminator {
    /// To a block.
    Jump(BlockId),
    /// To the first block where the bool scalar holds, else to the second.
    Branch(Operand, BlockId, BlockId),
    /// Pushes the second block on the program-counter stack and goes to the first.
    PushJump {
        /// Where it goes.
        target: BlockId,
        /// Where the callee returns to. That of an attempt is the return block of no other call.
        ret: BlockId,
        /// Where the call stands in the source.
        loc: Loc,
        /// For an attempt, the variables that the callee leaves its results in. A lane that traps before it returns, with a trap
        /// that [can be caught], goes on at `ret` too: its stacks and tapes are as high as they were at the call, and these
        /// variables (of stacks, the tops) hold NaN, 0 or `false`.
        ///
        /// [can be caught]: crate::run::TrapKind::is_caught
        attempt: Option<Vec<VarId>>,
    },
    /// Pops the program-counter stack and goes there; a lane whose entry is popped halts.
    Return,
    /// The lane is done.
    Halt,
}

impl Program {
    /// The type of an operand.
    pub fn operand_type(&self, operand: Operand) -> Type {
        operand.ty(|v| self.vars[v].ty.clone(), |s| self.shared[s].ty.clone())
    }
}

impl Terminator {
    /// The blocks that may come next without a return.
    pub fn successors(&self) -> SmallVec<[BlockId; 2]> {
        match *self {
            Terminator::Jump(b) => SmallVec::from_slice(&[b]),
            Terminator::Branch(_, a, b) => SmallVec::from_slice(&[a, b]),
            Terminator::PushJump { target, ret, .. } => SmallVec::from_slice(&[target, ret]),
            Terminator::Return | Terminator::Halt => SmallVec::new(),
        }
    }
}

impl InstKind {
    /// Calls `visit` with every operand that is read, in order.
    pub fn for_each_operand(&self, mut visit: impl FnMut(Operand)) {
        match self {
            InstKind::Compute { args, .. } => args.iter().copied().for_each(visit),
            InstKind::Effect(effect) => effect.reads().copied().for_each(visit),
            InstKind::Save { value, .. } => visit(Operand::Var(*value)),
            InstKind::Pop(_) => {}
        }
    }
    /// Calls `change` with every operand that is read, to be replaced.
    pub fn for_each_operand_mut(&mut self, mut change: impl FnMut(&mut Operand)) {
        match self {
            InstKind::Compute { args, .. } => args.iter_mut().for_each(change),
            InstKind::Effect(effect) => effect.reads_mut().for_each(change),
            InstKind::Save { value, .. } => {
                let mut operand = Operand::Var(*value);
                change(&mut operand);
                // What is no variable cannot be saved: it keeps its own.
                *value = operand.var().unwrap_or(*value);
            }
            InstKind::Pop(_) => {}
        }
    }
    /// Whether it reads a variable (of a stack variable, the top).
    pub fn reads(&self, var: VarId) -> bool {
        let mut found = false;
        self.for_each_operand(|o| found |= o.var() == Some(var));
        found
    }
    /// The variable over whose value (of a stack variable, over whose top) a computed or popped value is written: not that
    /// of a push, nor what `pop` throws away.
    pub fn overwritten_mut(&mut self) -> Option<&mut VarId> {
        match self {
            InstKind::Compute { write: Write::Push, .. } => None,
            InstKind::Compute { dst, .. } => Some(dst),
            InstKind::Effect(effect) => effect.dst_mut(),
            InstKind::Pop(_) | InstKind::Save { .. } => None,
        }
    }
    /// The stack variable whose height it changes, and by how much.
    pub fn moved(&self) -> Option<(VarId, i64)> {
        match *self {
            InstKind::Compute { write: Write::Push, dst, .. } => Some((dst, 1)),
            InstKind::Save { stack, .. } => Some((stack, 1)),
            InstKind::Pop(v) => Some((v, -1)),
            _ => None,
        }
    }
    /// Whether it reads a variable, or changes its value, its top or its height.
    pub fn touches(&self, var: VarId) -> bool {
        self.reads(var) || self.written() == Some(var) || self.moved().is_some_and(|(moved, _)| moved == var)
    }
    /// The variable whose value (of a stack variable, whose top) it changes.
    pub fn written(&self) -> Option<VarId> {
        match self {
            InstKind::Compute { dst, .. } | InstKind::Pop(dst) => Some(*dst),
            InstKind::Effect(effect) => effect.dst().copied(),
            InstKind::Save { .. } => None,
        }
    }
}
