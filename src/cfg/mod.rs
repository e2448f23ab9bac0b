//! Layer 2: the CFG program: functions of basic blocks over mutable variables, all types concrete, structs split into
//! fields. Local static autobatching and the reference interpreter run this one.

pub mod build;
mod print;
mod read;
pub mod trim;
mod verify;

use smallvec::SmallVec;

use crate::base::{Id as _, IdSet, IdVec, Loc};
use crate::prim::Prim;
use crate::types::Type;

pub use crate::parts::{Shared, SharedId, SharedSource, Stream, StreamId, Tape, TapeId};
pub use print::{func_text, print_annotated};
pub use read::{Lines, read, read_with_lines};
pub use verify::{Position, VerifyError, verify};

crate::define_id!(
    /// A function of a [`Program`].
    FuncId, "f"
);
crate::define_id!(
    /// A variable of a [`Func`].
    VarId, "v"
);
crate::define_id!(
    /// A basic block of a [`Func`].
    BlockId, "b"
);
/// A whole program, specialised to shapes, types and function arguments; not to the number of lanes.
#[derive(Clone, PartialEq, Debug)]
pub struct Program {
    /// Its functions.
    pub funcs: IdVec<FuncId, Func>,
    /// Where every lane starts. Its parameters are the lane inputs, its results the outputs.
    pub entry: FuncId,
    /// The values that are the same for all lanes, in an order in which they can be computed.
    pub shared: IdVec<SharedId, Shared>,
    /// The output streams.
    pub streams: IdVec<StreamId, Stream>,
    /// The tapes, which all functions share.
    pub tapes: IdVec<TapeId, Tape>,
    /// Names of the outputs, one for each result of the entry: `result`, or a field such as `tree.left`.
    pub outputs: Vec<String>,
}

/// A function.
#[derive(Clone, PartialEq, Debug)]
pub struct Func {
    /// Unique in the program: the user's name, with a suffix where specialisation made several.
    pub name: String,
    /// The parameters: variables that are set when the function starts.
    pub params: Vec<VarId>,
    /// Types of the results.
    pub results: Vec<Type>,
    /// All variables.
    pub vars: IdVec<VarId, Var>,
    /// The blocks. It starts at the first.
    pub blocks: IdVec<BlockId, Block>,
    /// Where it stands in the source.
    pub loc: Loc,
}

impl Func {
    /// Visits every mention of a variable in its blocks, mutable.
    pub fn for_each_var_mut(&mut self, mut visit: impl FnMut(&mut VarId)) {
        self.blocks.values_mut().for_each(|block| block.for_each_var_mut(&mut visit));
    }
    /// The blocks that can be reached, so that one comes before its successors, loops aside.
    pub fn reverse_postorder(&self) -> Vec<BlockId> {
        let entry = BlockId::new(0);
        let mut seen = IdSet::new(self.blocks.len());
        seen.insert(entry);
        let mut order = Vec::new();
        // A block, and how many of its successors were visited.
        let mut stack = vec![(entry, 0)];
        while let Some((block, next)) = stack.last_mut() {
            match self.blocks[*block].term.successors().get(*next).copied() {
                Some(successor) => {
                    *next += 1;
                    if seen.insert(successor) {
                        stack.push((successor, 0));
                    }
                }
                None => {
                    order.push(*block);
                    stack.pop();
                }
            }
        }
        order.reverse();
        order
    }
}

/// A variable: mutable, one value per lane and activation. Reading it before it is set is an error that the verifier finds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Var {
    /// Unique in the function.
    pub name: String,
    /// Its type.
    pub ty: Type,
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

/// What an instruction reads.
pub type Operand = crate::parts::Operand<VarId>;
/// Operands of an instruction.
pub type Args = crate::parts::Args<VarId>;
/// A string with holes and the operands that fill them.
pub type Message = crate::parts::Message<Operand>;
/// What an instruction does besides computing a value.
pub type SideEffect = crate::parts::SideEffect<Operand, VarId>;

/// An instruction.
#[derive(Clone, PartialEq, Debug)]
pub struct Inst {
    /// What it does.
    pub kind: InstKind,
    /// Where it stands in the source.
    pub loc: Loc,
}

/// The kinds of instructions.
#[derive(Clone, PartialEq, Debug)]
pub enum InstKind {
    /// `dst = prim args`. The variable may be one of its own operands.
    Prim {
        /// Where the result goes.
        dst: VarId,
        /// The primitive.
        prim: Prim,
        /// Its operands.
        args: Args,
    },
    /// What it does besides. A pop off a tape sets a variable: `dst = tape_pop tape`.
    Effect(SideEffect),
}

/// How a block ends.
#[derive(Clone, PartialEq, Debug)]
pub enum Terminator {
    /// To a block.
    Jump(BlockId),
    /// To the first block where the bool scalar holds, else to the second.
    Branch(Operand, BlockId, BlockId),
    /// `dsts = call func args`, then on to a block. Variables of the caller keep their values.
    Call {
        /// The function.
        func: FuncId,
        /// One operand for each parameter, all read before any parameter is set.
        args: Vec<Operand>,
        /// One variable for each result; no variable twice.
        dsts: Vec<VarId>,
        /// Where it goes on.
        next: BlockId,
        /// Where the call stands in the source.
        loc: Loc,
        /// Whether it is an attempt: a lane that traps before the call returns, with a trap that [can be caught], goes on at
        /// `next` too, with NaN in every real of `dsts`, 0 in every int and `false` in every bool; its tapes are as high as they
        /// were.
        ///
        /// [can be caught]: crate::run::TrapKind::is_caught
        attempt: bool,
    },
    /// `tailcall func args`: the results of the callee, which have the same types, are the results of this function. It
    /// uses no stack.
    TailCall {
        /// The function.
        func: FuncId,
        /// One operand for each parameter, all read before any parameter is set.
        args: Vec<Operand>,
        /// Where the call stands in the source.
        loc: Loc,
    },
    /// Ends the function with its results.
    Return(Vec<Operand>),
}

impl Program {
    /// The type of an operand in a function.
    pub fn operand_type(&self, func: &Func, operand: Operand) -> Type {
        operand.ty(|v| func.vars[v].ty.clone(), |s| self.shared[s].ty.clone())
    }
}

impl Block {
    /// Visits the locations in it, mutable.
    pub fn for_each_loc_mut(&mut self, mut visit: impl FnMut(&mut Loc)) {
        visit(&mut self.loc);
        self.insts.iter_mut().for_each(|inst| visit(&mut inst.loc));
        if let Terminator::Call { loc, .. } | Terminator::TailCall { loc, .. } = &mut self.term {
            visit(loc);
        }
    }
    /// Visits every variable that it reads or writes, its terminator included, mutable.
    pub fn for_each_var_mut(&mut self, mut visit: impl FnMut(&mut VarId)) {
        let read = |operand: &mut Operand, visit: &mut dyn FnMut(&mut VarId)| {
            if let Operand::Var(v) = operand {
                visit(v);
            }
        };
        for inst in &mut self.insts {
            inst.kind.for_each_operand_mut(|o| read(o, &mut visit));
            inst.kind.dst_mut().into_iter().for_each(&mut visit);
        }
        self.term.for_each_operand_mut(|o| read(o, &mut visit));
        if let Terminator::Call { dsts, .. } = &mut self.term {
            dsts.iter_mut().for_each(visit);
        }
    }
}

impl InstKind {
    /// Visits what it reads, in order.
    pub fn for_each_operand(&self, visit: impl FnMut(Operand)) {
        match self {
            InstKind::Prim { args, .. } => args.iter().copied().for_each(visit),
            InstKind::Effect(effect) => effect.reads().copied().for_each(visit),
        }
    }
    /// Visits what it reads, in order, mutable.
    pub fn for_each_operand_mut(&mut self, visit: impl FnMut(&mut Operand)) {
        match self {
            InstKind::Prim { args, .. } => args.iter_mut().for_each(visit),
            InstKind::Effect(effect) => effect.reads_mut().for_each(visit),
        }
    }
    /// The variable that it writes.
    pub fn dst(&self) -> Option<VarId> {
        match self {
            InstKind::Prim { dst, .. } => Some(*dst),
            InstKind::Effect(effect) => effect.dst().copied(),
        }
    }
    /// The variable that it writes, mutable.
    pub fn dst_mut(&mut self) -> Option<&mut VarId> {
        match self {
            InstKind::Prim { dst, .. } => Some(dst),
            InstKind::Effect(effect) => effect.dst_mut(),
        }
    }
}

impl Terminator {
    /// Whether it is a call that is an attempt.
    pub fn is_attempt(&self) -> bool {
        matches!(self, Terminator::Call { attempt: true, .. })
    }
    /// Visits what it reads, in order.
    pub fn for_each_operand(&self, mut visit: impl FnMut(Operand)) {
        match self {
            Terminator::Jump(_) => {}
            Terminator::Branch(cond, ..) => visit(*cond),
            Terminator::Call { args, .. } | Terminator::TailCall { args, .. } | Terminator::Return(args) => {
                args.iter().for_each(|a| visit(*a))
            }
        }
    }
    /// Visits what it reads, in order, mutable.
    pub fn for_each_operand_mut(&mut self, mut visit: impl FnMut(&mut Operand)) {
        match self {
            Terminator::Jump(_) => {}
            Terminator::Branch(cond, ..) => visit(cond),
            Terminator::Call { args, .. } | Terminator::TailCall { args, .. } | Terminator::Return(args) => {
                args.iter_mut().for_each(visit)
            }
        }
    }
    /// Visits the blocks that may come next, mutable.
    pub fn for_each_successor_mut(&mut self, mut visit: impl FnMut(&mut BlockId)) {
        match self {
            Terminator::Jump(b) => visit(b),
            Terminator::Branch(_, a, b) => {
                visit(a);
                visit(b);
            }
            Terminator::Call { next, .. } => visit(next),
            Terminator::TailCall { .. } | Terminator::Return(_) => {}
        }
    }
    /// The variables that it writes: those of a call, for what comes next.
    pub fn dsts(&self) -> &[VarId] {
        match self {
            Terminator::Call { dsts, .. } => dsts,
            _ => &[],
        }
    }
    /// The function that it calls.
    pub fn callee(&self) -> Option<FuncId> {
        match self {
            Terminator::Call { func, .. } | Terminator::TailCall { func, .. } => Some(*func),
            _ => None,
        }
    }
    /// The blocks of the same function that may come next.
    pub fn successors(&self) -> SmallVec<[BlockId; 2]> {
        match self {
            Terminator::Jump(b) => SmallVec::from_slice(&[*b]),
            Terminator::Branch(_, a, b) => SmallVec::from_slice(&[*a, *b]),
            Terminator::Call { next, .. } => SmallVec::from_slice(&[*next]),
            Terminator::TailCall { .. } | Terminator::Return(_) => SmallVec::new(),
        }
    }
}
