//! Layer 2: the unit program: what each block computes, as values. It stands between the stack program (or, for
//! `local`, the CFG program) and everything that runs: plans, and generated code, are made of it.
//!
//! Within a block every value is computed once and has a number. What outlives the block goes through the *variables*
//! of the machine. A block loads a variable at most once, before it stores it, and stores it at most once, in its
//! active lanes: with what the variable holds at the end, and only where somebody may read that afterwards. So the
//! stores of a block are what is live at its end of all that it sets (or all that it sets, with the passes `storage` or
//! `temporaries` off).
//!
//! Temporaries of the stack program are values and have no place here; a temporary that crosses blocks is one of a
//! region, and is a variable that lives no longer than one execution of the region. Stacks have two operations:
//! `push s, x` puts `x` on the memory of the stack, under the top that the variable holds, and `x = pop s` takes off
//! what lies there; the top itself is loaded and stored like a register.
//!
//! ```text
//! b2: @fib:3
//!   %0: int = load fib.n
//!   %1: int = sub %0, 1
//!   push fib.n, %0
//!   store fib.n, %1
//!   pushjump b0, b3
//! ```

mod print;
mod read;
mod verify;

use std::sync::Arc;

use smallvec::SmallVec;

use crate::base::{IdVec, Loc};
use crate::parts::{Shared, SharedId, StorageClass, Stream, StreamId, Tape, TapeId};
use crate::prim::Prim;
use crate::types::Type;

pub use read::{read, read_calls};
pub use verify::{UnitError, verify, verify_calls};

crate::define_id!(
    /// A variable of a [`Body`].
    VarId, "v"
);
crate::define_id!(
    /// A value of a [`Block`].
    ValueId, "%"
);
crate::define_id!(
    /// A basic block of a [`Body`].
    BlockId, "b"
);
crate::define_id!(
    /// A unit of a [`Body`].
    UnitId, "u"
);
crate::define_id!(
    /// A function of a [`CallProgram`].
    FuncId, "f"
);

/// What an operation reads.
pub type Operand = crate::parts::Operand<ValueId>;
/// Operands of an operation.
pub type Args = crate::parts::Args<ValueId>;
/// A string with holes and the operands that fill them.
pub type Message = crate::parts::Message<Operand>;
/// What an operation does besides computing a value.
pub type SideEffect = crate::parts::SideEffect<Operand, ValueId>;
/// What a call passes: a whole register, or what is the same for all lanes.
pub type Argument = crate::parts::Operand<VarId>;

/// The units of a stack program, for program-counter autobatching.
#[derive(Clone, PartialEq, Debug)]
pub struct Program {
    /// Name of the entry function.
    pub name: String,
    /// Its code.
    pub body: Body<Terminator>,
    /// Where every lane starts.
    pub entry: BlockId,
    /// The lane inputs: set when a lane starts.
    pub inputs: Vec<Port>,
    /// The outputs: read when a lane halts.
    pub outputs: Vec<Port>,
    /// What is the same for all lanes.
    pub globals: Globals,
}

/// The units of a CFG program, for local static autobatching.
#[derive(Clone, PartialEq, Debug)]
pub struct CallProgram {
    /// The functions.
    pub funcs: IdVec<FuncId, Func>,
    /// Where lanes start.
    pub entry: FuncId,
    /// Names of the outputs, one for each result of the entry.
    pub outputs: Vec<String>,
    /// What is the same for all lanes.
    pub globals: Globals,
}

/// A function of a [`CallProgram`]. It starts at its first block.
#[derive(Clone, PartialEq, Debug)]
pub struct Func {
    /// Its name.
    pub name: String,
    /// The variables that are set when it starts.
    pub params: Vec<VarId>,
    /// Types of its results.
    pub results: Vec<Type>,
    /// Its code.
    pub body: Body<CallTerminator>,
    /// Where it stands in the source.
    pub loc: Loc,
}

/// What is the same for all lanes of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Globals {
    /// The shared values, in an order in which they can be computed.
    pub shared: IdVec<SharedId, Shared>,
    /// The output streams.
    pub streams: IdVec<StreamId, Stream>,
    /// The tapes.
    pub tapes: IdVec<TapeId, Tape>,
}

/// A lane input or an output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Port {
    /// The user's name.
    pub name: String,
    /// Its variable.
    pub var: VarId,
}

/// Blocks over one set of variables; `T` is the type of their terminators.
#[derive(Clone, PartialEq, Debug)]
pub struct Body<T> {
    /// The variables.
    pub vars: IdVec<VarId, Var>,
    /// The blocks.
    pub blocks: IdVec<BlockId, Block<T>>,
    /// The units. Each block belongs to one.
    pub units: IdVec<UnitId, Unit>,
}

/// A variable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Var {
    /// Unique in its body.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// How it is stored. A temporary lives within one execution of one region.
    pub class: StorageClass,
    /// Whether it is stored once for all lanes: a temporary of a region, equal in all of its active lanes.
    pub uniform: bool,
}

/// What runs as one superstep: a block, or a region.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unit {
    /// Its blocks; it is entered at the first.
    pub blocks: Vec<BlockId>,
    /// Whether it is a region: its branches do not diverge, and it runs until its lanes leave it.
    pub region: bool,
}

/// A basic block.
#[derive(Clone, PartialEq, Debug)]
pub struct Block<T> {
    /// The values that it computes, each by one operation, in the order of their operations.
    pub values: IdVec<ValueId, Value>,
    /// What it does, in order.
    pub ops: Vec<Op>,
    /// How it ends.
    pub term: T,
    /// The location that statistics report for it.
    pub loc: Loc,
}

/// A value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Value {
    /// Its type in one lane.
    pub ty: Type,
    /// Whether there is one for all lanes.
    pub uniform: bool,
    /// The variable of the program that it was made for; for people, and not in the text form.
    pub name: Arc<str>,
}

/// An operation.
#[derive(Clone, PartialEq, Debug)]
pub struct Op {
    /// What it does.
    pub kind: OpKind,
    /// Where it stands in the source.
    pub loc: Loc,
}

/// The kinds of operations. Those with a `dst` compute it.
#[derive(Clone, PartialEq, Debug)]
pub enum OpKind {
    /// `x = load v`: what the variable holds; of a stack, its top.
    Load {
        /// The value.
        dst: ValueId,
        /// The variable.
        var: VarId,
    },
    /// `x = prim operands`
    Compute {
        /// The value.
        dst: ValueId,
        /// The primitive.
        prim: Prim,
        /// Its operands.
        args: Args,
    },
    /// `store v, x`: in the active lanes the variable holds this from now on; of a stack, its top is overwritten.
    Store {
        /// The variable.
        var: VarId,
        /// What it gets.
        value: Operand,
    },
    /// `push s, x`: puts a value on the memory of a stack, in the active lanes.
    Push {
        /// The stack variable.
        stack: VarId,
        /// The value.
        value: Operand,
    },
    /// `x = pop s`: takes the last value off the memory of a stack, in the active lanes. What the variable held means
    /// nothing any more; a `store` follows where somebody reads the new top.
    Pop {
        /// The value.
        dst: ValueId,
        /// The stack variable.
        stack: VarId,
    },
    /// What it does besides. A pop off a tape computes a value: `x = tape_pop tape`.
    Effect(SideEffect),
}

/// How a block of a [`Program`] ends.
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
        /// For an attempt, what a trap in the callee does before the lane goes on at `ret`.
        attempt: Option<Attempt>,
    },
    /// Pops the program-counter stack and goes there; a lane whose entry is popped halts.
    Return,
    /// The lane is done.
    Halt,
}

/// What it takes to bring a lane that trapped in the callee of an attempt back to the return block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Attempt {
    /// The variables of the results that somebody reads: they get NaN, 0 or `false`.
    pub results: Vec<VarId>,
    /// The stacks that the callee, or what it calls, may push on: their memory gets the height that it had at the call.
    pub stacks: Vec<VarId>,
    /// The tapes that it may push on.
    pub tapes: Vec<TapeId>,
}

impl Attempt {
    /// Whether heights must be known.
    pub fn has_heights(&self) -> bool {
        !(self.stacks.is_empty() && self.tapes.is_empty())
    }
}

/// How an array gets from one set of variables to another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Passing {
    /// As a copy.
    Copy,
    /// Where it is: the callee only reads it, and the caller has it back.
    Lent,
    /// Where it is: nobody wants what was passed any more.
    Given,
}

/// How a block of a [`CallProgram`] ends.
#[derive(Clone, PartialEq, Debug)]
pub enum CallTerminator {
    /// To a block.
    Jump(BlockId),
    /// To the first block where the bool scalar holds, else to the second.
    Branch(Operand, BlockId, BlockId),
    /// A call, then on to a block.
    Call {
        /// The function.
        func: FuncId,
        /// One for each parameter, and how it gets there.
        args: Vec<(Argument, Passing)>,
        /// The variables that the results go to.
        dsts: Vec<VarId>,
        /// Where it goes on.
        next: BlockId,
        /// Where the call stands in the source.
        loc: Loc,
        /// Whether a lane that traps in the callee goes on at `next`, with NaN, 0 or `false` for results.
        attempt: bool,
    },
    /// A call whose results are the results of this function.
    TailCall {
        /// The function.
        func: FuncId,
        /// One for each parameter, and how it gets there.
        args: Vec<(Argument, Passing)>,
    },
    /// Ends the function with its results, and how each gets to the caller.
    Return(Vec<(Argument, Passing)>),
}

/// How a block ends, as far as both kinds of programs agree.
pub trait BlockEnd {
    /// The condition of a branch.
    fn condition(&self) -> Option<Operand>;
    /// The block that all lanes go to, with nothing else done.
    fn onward(&self) -> Option<BlockId>;
    /// The blocks of the same body that may come next, of a call the one that it returns to.
    fn successors(&self) -> SmallVec<[BlockId; 2]>;
}

impl BlockEnd for Terminator {
    fn condition(&self) -> Option<Operand> {
        match self {
            Terminator::Branch(cond, ..) => Some(*cond),
            _ => None,
        }
    }
    fn onward(&self) -> Option<BlockId> {
        match self {
            Terminator::Jump(to) => Some(*to),
            _ => None,
        }
    }
    fn successors(&self) -> SmallVec<[BlockId; 2]> {
        match self {
            Terminator::Jump(to) => SmallVec::from_slice(&[*to]),
            Terminator::Branch(_, yes, no) => SmallVec::from_slice(&[*yes, *no]),
            Terminator::PushJump { target, ret, .. } => SmallVec::from_slice(&[*target, *ret]),
            Terminator::Return | Terminator::Halt => SmallVec::new(),
        }
    }
}

impl BlockEnd for CallTerminator {
    fn condition(&self) -> Option<Operand> {
        match self {
            CallTerminator::Branch(cond, ..) => Some(*cond),
            _ => None,
        }
    }
    fn onward(&self) -> Option<BlockId> {
        match self {
            CallTerminator::Jump(to) => Some(*to),
            _ => None,
        }
    }
    fn successors(&self) -> SmallVec<[BlockId; 2]> {
        match self {
            CallTerminator::Jump(to) | CallTerminator::Call { next: to, .. } => SmallVec::from_slice(&[*to]),
            CallTerminator::Branch(_, yes, no) => SmallVec::from_slice(&[*yes, *no]),
            CallTerminator::TailCall { .. } | CallTerminator::Return(_) => SmallVec::new(),
        }
    }
}

impl OpKind {
    /// The value that it computes.
    pub fn dst(&self) -> Option<ValueId> {
        match self {
            OpKind::Load { dst, .. } | OpKind::Compute { dst, .. } | OpKind::Pop { dst, .. } => Some(*dst),
            OpKind::Effect(effect) => effect.dst().copied(),
            OpKind::Store { .. } | OpKind::Push { .. } => None,
        }
    }
    /// Calls `visit` with every operand that is read, in order.
    pub fn for_each_operand(&self, mut visit: impl FnMut(Operand)) {
        match self {
            OpKind::Load { .. } | OpKind::Pop { .. } => {}
            OpKind::Compute { args, .. } => args.iter().copied().for_each(visit),
            OpKind::Store { value, .. } | OpKind::Push { value, .. } => visit(*value),
            OpKind::Effect(effect) => effect.reads().copied().for_each(visit),
        }
    }
    /// The variable that it loads, stores, pushes on or pops.
    pub fn var(&self) -> Option<VarId> {
        match self {
            OpKind::Load { var, .. } | OpKind::Store { var, .. } => Some(*var),
            OpKind::Push { stack, .. } | OpKind::Pop { stack, .. } => Some(*stack),
            _ => None,
        }
    }
}

impl Globals {
    /// The type of an operand, with those of variables or values.
    fn type_of<V: Copy>(&self, operand: crate::parts::Operand<V>, of: impl FnOnce(V) -> Type) -> Type {
        operand.ty(of, |s| self.shared[s].ty.clone())
    }
}

impl<T> Block<T> {
    /// The type of an operand of one of its operations.
    pub fn operand_type(&self, operand: Operand, globals: &Globals) -> Type {
        globals.type_of(operand, |value| self.values[value].ty.clone())
    }
}
