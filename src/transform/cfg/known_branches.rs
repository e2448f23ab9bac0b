//! Branches whose way is known: after Wegman and Zadeck (*Constant propagation with conditional branches*, 1991), integers
//! and conditions are taken to be constant until a way that can be gone says otherwise. So a loop that turns once is none,
//! and what follows a branch knows its condition.

use super::blocks::drop_unreachable_blocks;
use crate::analysis::worklist::{Open, forwards};
use crate::base::{Id, IdVec};
use crate::cfg::{BlockId, Func, InstKind, Operand, Program, Terminator, VarId};
use crate::prim::{Prim, eval};
use crate::types::{DType, Scalar};

/// Most values that are kept: variables that are followed times blocks.
const MOST_VALUES: usize = 1 << 22;

pub(super) fn run(mut program: Program) -> Program {
    for func in program.funcs.values_mut() {
        decide(func);
    }
    program
}

/// What is known of a variable where a block starts. A variable that is not set on any way so far may be anything.
#[derive(Clone, Copy, PartialEq)]
enum Value {
    Unset,
    Constant(Scalar),
    Varies,
}

impl Value {
    fn meet(self, other: Value) -> Value {
        match (self, other) {
            (Value::Unset, v) | (v, Value::Unset) => v,
            (a, b) if a == b => a,
            _ => Value::Varies,
        }
    }
}

/// The values of the variables that are followed.
type Values = Vec<Value>;

struct Known {
    /// The place of each variable among those that are followed.
    place: IdVec<VarId, Option<usize>>,
    /// At the start of each block that may be reached.
    before: IdVec<BlockId, Option<Values>>,
}

fn decide(func: &mut Func) {
    let mut count = 0;
    let place = func.vars.values().map(|var| {
        let followed = var.ty.is_scalar() && var.ty.dtype != DType::Real;
        followed.then(|| {
            count += 1;
            count - 1
        })
    });
    let place: IdVec<VarId, Option<usize>> = place.collect();
    if count == 0 || count * func.blocks.len() > MOST_VALUES {
        return;
    }
    let mut known = Known { place, before: IdVec::filled(None, func.blocks.len()) };
    let mut start = vec![Value::Unset; count];
    for param in &func.params {
        if let Some(p) = known.place[*param] {
            start[p] = Value::Varies;
        }
    }
    known.before[BlockId::new(0)] = Some(start);
    let order = forwards(func);
    let mut open = order.none();
    open.add(0);
    while let Some(id) = open.take().map(BlockId::new) {
        let Some(mut now) = known.before[id].clone() else { continue };
        for inst in &func.blocks[id].insts {
            known.step(&inst.kind, &mut now);
        }
        known.leave(&func.blocks[id].term, &mut now, &mut open);
    }
    known.rewrite(func);
}

impl Known {
    fn value(&self, operand: Operand, now: &Values) -> Value {
        match operand {
            Operand::Const(c) => Value::Constant(c),
            Operand::Var(v) => self.place[v].map_or(Value::Varies, |p| now[p]),
            Operand::Shared(_) => Value::Varies,
        }
    }

    fn step(&self, inst: &InstKind, now: &mut Values) {
        let Some(p) = inst.dst().and_then(|v| self.place[v]) else {
            return;
        };
        now[p] = match inst {
            InstKind::Prim { prim: Prim::Copy, args, .. } => self.value(args[0], now),
            InstKind::Prim { prim, args, .. } => {
                let constants: Option<Vec<Scalar>> = (args.iter())
                    .map(|a| match self.value(*a, now) {
                        Value::Constant(c) => Some(c),
                        _ => None,
                    })
                    .collect();
                constants.and_then(|c| eval::fold(*prim, &c)).map_or(Value::Varies, Value::Constant)
            }
            _ => Value::Varies,
        };
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
                let told = cond.var().and_then(|v| self.place[v]).filter(|_| yes != no);
                for (to, holds) in [(*yes, true), (*no, false)] {
                    if value == Value::Constant(Scalar::Bool(!holds)) {
                        continue;
                    }
                    if let Some(p) = told {
                        now[p] = Value::Constant(Scalar::Bool(holds));
                    }
                    arrive(self, to, now);
                }
            }
            term => {
                for p in term.dsts().iter().filter_map(|v| self.place[*v]) {
                    now[p] = Value::Varies;
                }
                term.successors().iter().for_each(|to| arrive(self, *to, now));
            }
        }
    }

    /// Whether more may come to a block than was known.
    fn arrive(&mut self, to: BlockId, values: &Values) -> bool {
        match &mut self.before[to] {
            Some(known) => {
                let mut changed = false;
                for (k, v) in known.iter_mut().zip(values) {
                    let met = k.meet(*v);
                    changed |= met != *k;
                    *k = met;
                }
                changed
            }
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
                if let (Operand::Var(_), Value::Constant(c)) = (*o, self.value(*o, now)) {
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
