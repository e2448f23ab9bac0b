//! Branches whose way is known: after Wegman and Zadeck (*Constant propagation with conditional branches*, 1991), integers
//! and conditions are taken to be constant until a way that can be gone says otherwise. So a loop that turns once is none,
//! and what follows a branch knows its condition.

use super::blocks::drop_unreachable_blocks;
use crate::analysis::worklist::{Open, forwards};
use crate::base::{Id, IdMap, IdVec, work};
use crate::cfg::{BlockId, Func, InstKind, Operand, Program, Terminator, Var, VarId};
use crate::prim::{Prim, eval};
use crate::types::{DType, Scalar};

pub(super) fn run(mut program: Program) -> Program {
    for func in program.funcs.values_mut() {
        decide(func);
    }
    program
}

/// What is known of a variable where a block starts. Of one that is not set on any way so far nothing is known: it may be
/// anything.
#[derive(Clone, Copy, PartialEq)]
enum Value {
    Constant(Scalar),
    Varies,
}

/// The values of the variables that are followed.
type Values = IdMap<VarId, Value>;

struct Known {
    /// Whether each variable is followed.
    followed: IdVec<VarId, bool>,
    /// At the start of each block that may be reached.
    before: IdVec<BlockId, Option<Values>>,
}

fn decide(func: &mut Func) {
    let is_followed = |var: &Var| var.ty.is_scalar() && var.ty.dtype != DType::Real;
    let followed: IdVec<VarId, bool> = func.vars.values().map(is_followed).collect();
    if !followed.values().any(|f| *f) {
        return;
    }
    let mut start = Values::new(func.vars.len());
    for param in func.params.iter().filter(|p| followed[**p]) {
        start.set(*param, Some(Value::Varies));
    }
    let mut known = Known { followed, before: IdVec::filled(None, func.blocks.len()) };
    known.before[BlockId::new(0)] = Some(start);
    let order = forwards(func);
    let mut open = order.none();
    open.add(0);
    while let Some(id) = open.take().map(BlockId::new) {
        let Some(mut now) = known.before[id].clone() else { continue };
        work::add(func.blocks[id].insts.len());
        for inst in &func.blocks[id].insts {
            known.step(&inst.kind, &mut now);
        }
        known.leave(&func.blocks[id].term, &mut now, &mut open);
    }
    known.rewrite(func);
}

impl Known {
    /// Nothing for a variable that is not set.
    fn value(&self, operand: Operand, now: &Values) -> Option<Value> {
        match operand {
            Operand::Const(c) => Some(Value::Constant(c)),
            Operand::Var(v) if self.followed[v] => now.get(v),
            Operand::Var(_) | Operand::Shared(_) => Some(Value::Varies),
        }
    }

    fn step(&self, inst: &InstKind, now: &mut Values) {
        let Some(dst) = inst.dst().filter(|v| self.followed[*v]) else {
            return;
        };
        let value = match inst {
            InstKind::Prim { prim: Prim::Copy, args, .. } => self.value(args[0], now),
            InstKind::Prim { prim, args, .. } => {
                let constants: Option<Vec<Scalar>> = (args.iter())
                    .map(|a| match self.value(*a, now) {
                        Some(Value::Constant(c)) => Some(c),
                        _ => None,
                    })
                    .collect();
                Some(
                    constants
                        .and_then(|c| eval::fold(*prim, &c, eval::EXACT_IN_F32))
                        .map_or(Value::Varies, Value::Constant),
                )
            }
            _ => Some(Value::Varies),
        };
        now.set(dst, value);
    }

    /// Goes on to the blocks that may come next.
    fn leave(&mut self, term: &Terminator, now: &mut Values, open: &mut Open<'_>) {
        let mut arrive = |known: &mut Self, to: BlockId, now: &Values| {
            if known.arrive(to, now) {
                open.add(to.index());
            }
        };
        match term {
            Terminator::Branch(cond, yes, no) => {
                let value = self.value(*cond, now);
                let told = cond.var().filter(|v| self.followed[*v] && yes != no);
                for (to, holds) in [(*yes, true), (*no, false)] {
                    if value == Some(Value::Constant(Scalar::Bool(!holds))) {
                        continue;
                    }
                    if let Some(v) = told {
                        now.set(v, Some(Value::Constant(Scalar::Bool(holds))));
                    }
                    arrive(self, to, now);
                }
            }
            term => {
                for v in term.dsts().iter().filter(|v| self.followed[**v]) {
                    now.set(*v, Some(Value::Varies));
                }
                term.successors().iter().for_each(|to| arrive(self, *to, now));
            }
        }
    }

    /// Whether more may come to a block than was known.
    fn arrive(&mut self, to: BlockId, values: &Values) -> bool {
        match &mut self.before[to] {
            Some(known) => known.join(values, Value::Varies),
            before => {
                *before = Some(values.clone());
                true
            }
        }
    }

    fn rewrite(&self, func: &mut Func) {
        for id in func.blocks.ids() {
            let Some(mut now) = self.before[id].clone() else { continue };
            let block = &mut func.blocks[id];
            let constant = |o: &mut Operand, now: &Values| {
                if let (Operand::Var(_), Some(Value::Constant(c))) = (*o, self.value(*o, now)) {
                    *o = Operand::Const(c);
                }
            };
            for inst in &mut block.insts {
                inst.kind.for_each_operand_mut(|o| constant(o, &now));
                self.step(&inst.kind, &mut now);
            }
            block.term.for_each_operand_mut(|o| constant(o, &now));
            if let Terminator::Branch(Operand::Const(Scalar::Bool(holds)), yes, no) = block.term {
                block.term = Terminator::Jump(if holds { yes } else { no });
            }
        }
        drop_unreachable_blocks(func);
    }
}
