//! A program with every operand resolved to where it is found at run time.

use smallvec::SmallVec;

use super::last_use::LastUses;
use super::value::{Elem, Value};
use crate::base::{Id, Loc};
use crate::cfg::{Block, BlockId, Func, InstKind, Operand, Program, Terminator, VarId};
use crate::parts::SideEffect;
use crate::prim::{BatchRule, Prim};
use crate::run::RunInputs;
use crate::types::Type;
use crate::vmath::Real;

/// Where an operand is found.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// In the frame.
    Var(u32),
    /// In the frame, and not read again: it may be taken from there.
    Last(u32),
    /// Among the shared values and constants.
    Pool(u32),
}

/// Several operands.
pub(super) type Sources = SmallVec<[Source; 4]>;

/// An instruction.
#[derive(Debug)]
pub(super) enum Op {
    /// An elementwise primitive of one scalar.
    Unary { prim: Prim, dst: u32, x: Source },
    /// An elementwise primitive of two scalars.
    Binary { prim: Prim, dst: u32, x: Source, y: Source },
    /// A selection by a scalar between values of one type.
    Select { dst: u32, args: [Source; 3] },
    /// A copy of what is not read again.
    Move { dst: u32, from: u32 },
    /// `x = set_index x, …` or `x = set_slice x, …`
    SetInPlace { prim: Prim, dst: u32, args: Sources },
    /// A random draw.
    Draw { prim: Prim, dst: u32, ty: Type },
    /// Any other primitive.
    General { prim: Prim, dst: u32, args: Sources, ty: Type },
    /// What an instruction does besides.
    Effect(SideEffect<Source, u32>),
}

#[derive(Debug)]
pub(super) enum Term {
    Jump(u32),
    Branch(Source, u32, u32),
    Call { func: u32, args: Sources, dsts: SmallVec<[u32; 4]>, next: u32, loc: Loc, attempt: bool },
    TailCall { func: u32, args: Sources },
    Return(Sources),
}

#[derive(Debug)]
pub(super) struct BlockCode {
    /// Number among all blocks of the program.
    pub(super) number: usize,
    pub(super) ops: Vec<Op>,
    pub(super) term: Term,
}

#[derive(Debug)]
pub(super) struct FuncCode {
    pub(super) vars: usize,
    /// The variables that hold arrays.
    pub(super) arrays: Vec<u32>,
    pub(super) params: Vec<u32>,
    pub(super) blocks: Vec<BlockCode>,
}

#[derive(Debug)]
pub(super) struct Code<R> {
    pub(super) funcs: Vec<FuncCode>,
    /// The shared values, then the constants.
    pub(super) pool: Vec<Value<R>>,
}

/// Marks what a block reads for the last time.
fn hand_over(block: &mut BlockCode, last: &LastUses, id: BlockId) {
    for (at, op) in block.ops.iter_mut().enumerate().filter(|(at, _)| last.is_last_copy(id, *at)) {
        debug_assert!(matches!(op, Op::General { prim: Prim::Copy, .. }), "copy {at} is of an array");
        if let Op::General { dst, args, .. } = op
            && let Source::Var(from) = args[0]
        {
            *op = Op::Move { dst: *dst, from };
        }
    }
    if let Term::Call { args, .. } = &mut block.term {
        for (k, arg) in args.iter_mut().enumerate().filter(|(k, _)| last.is_last_arg(id, *k)) {
            debug_assert!(matches!(arg, Source::Var(_)), "argument {k} is a variable");
            if let Source::Var(v) = *arg {
                *arg = Source::Last(v);
            }
        }
    }
}

impl<R: Real> Code<R> {
    pub(super) fn new(program: &Program, inputs: &RunInputs) -> Self {
        let shared = program.shared.values().zip(inputs.shared.iter());
        let mut code = Code {
            funcs: vec![],
            pool: shared.map(|(shared, array)| Value::from_array(array, 0, &shared.ty)).collect(),
        };
        let mut number = 0;
        for func in program.funcs.values() {
            let mut blocks = vec![];
            let last = LastUses::new(func);
            for (id, block) in func.blocks.iter() {
                let mut made = code.block(program, func, block, number);
                hand_over(&mut made, &last, id);
                blocks.push(made);
                number += 1;
            }
            code.funcs.push(FuncCode {
                vars: func.vars.len(),
                arrays: func.vars.iter().filter(|(_, v)| !v.ty.is_scalar()).map(|(id, _)| id.0).collect(),
                params: func.params.iter().map(|p| p.0).collect(),
                blocks,
            });
        }
        code
    }

    fn source(&mut self, operand: Operand) -> Source {
        match operand {
            Operand::Var(v) => Source::Var(v.0),
            Operand::Shared(s) => Source::Pool(s.0),
            Operand::Const(c) => {
                self.pool.push(Value::Scalar(Elem::new(c)));
                Source::Pool(self.pool.len() as u32 - 1)
            }
        }
    }

    fn sources(&mut self, operands: &[Operand]) -> Sources {
        operands.iter().map(|o| self.source(*o)).collect()
    }

    fn block(&mut self, program: &Program, func: &Func, block: &Block, number: usize) -> BlockCode {
        let ops = block
            .insts
            .iter()
            .map(|inst| match &inst.kind {
                InstKind::Prim { dst, prim, args } => self.prim(program, func, *dst, *prim, args),
                InstKind::Effect(effect) => Op::Effect(effect.map_reads(|o| self.source(*o)).map_dst(|v| v.0)),
            })
            .collect();
        BlockCode { number, ops, term: self.term(&block.term) }
    }

    fn prim(&mut self, program: &Program, func: &Func, dst: VarId, prim: Prim, operands: &[Operand]) -> Op {
        let ty = &func.vars[dst].ty;
        let types: SmallVec<[Type; 4]> = operands.iter().map(|o| program.operand_type(func, *o)).collect();
        let args = self.sources(operands);
        let elementwise = prim.row().batch == BatchRule::Elementwise;
        let scalars = elementwise && types.iter().all(Type::is_scalar);
        let sets = prim.changes_part();
        let own = operands.first() == Some(&Operand::Var(dst));
        let dst = dst.0;
        match args[..] {
            [x] if scalars => Op::Unary { prim, dst, x },
            [x, y] if scalars => Op::Binary { prim, dst, x, y },
            [c, x, y] if prim == Prim::Select && types[0].is_scalar() && types[1] == types[2] => {
                Op::Select { dst, args: [c, x, y] }
            }
            _ if prim.row().batch == BatchRule::Random => Op::Draw { prim, dst, ty: ty.clone() },
            _ if sets && own => Op::SetInPlace { prim, dst, args },
            _ => Op::General { prim, dst, args, ty: ty.clone() },
        }
    }

    fn term(&mut self, term: &Terminator) -> Term {
        match term {
            Terminator::Jump(b) => Term::Jump(b.0),
            Terminator::Branch(cond, a, b) => Term::Branch(self.source(*cond), a.0, b.0),
            Terminator::Call { func, args, dsts, next, loc, attempt } => Term::Call {
                func: func.index() as u32,
                args: self.sources(args),
                dsts: dsts.iter().map(|d| d.0).collect(),
                next: next.0,
                loc: loc.clone(),
                attempt: *attempt,
            },
            Terminator::TailCall { func, args, .. } => {
                Term::TailCall { func: func.index() as u32, args: self.sources(args) }
            }
            Terminator::Return(values) => Term::Return(self.sources(values)),
        }
    }
}
