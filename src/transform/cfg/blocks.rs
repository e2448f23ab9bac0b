//! What several passes do with blocks, variables and functions.

use crate::analysis::liveness::{live_across_call, live_in};
use crate::base::{IdSet, IdVec, Names};
use crate::cfg::{BlockId, Func, InstKind, Operand, Program, Terminator, Var, VarId};
use crate::prim::{Effect, Prim};
use crate::types::Type;

pub(in crate::transform) use crate::cfg::trim::{
    drop_uncalled_functions, drop_unreachable_blocks, drop_unread_shared, drop_unused_variables,
};

/// How many edges lead to each block; the start of the function counts as one to the first block.
pub(in crate::transform) fn edges_to(func: &Func) -> IdVec<BlockId, usize> {
    let mut edges = IdVec::filled(0, func.blocks.len());
    if let Some(first) = func.blocks.ids().next() {
        edges[first] += 1;
    }
    for block in func.blocks.values() {
        for next in block.term.successors() {
            edges[next] += 1;
        }
    }
    edges
}

/// The variables that live when the terminator of a block starts, for each block.
pub(in crate::transform) fn live_at_terminators(func: &Func) -> IdVec<BlockId, IdSet<VarId>> {
    let live = live_in(func);
    let mut at_terminators = IdVec::new();
    for (id, block) in func.blocks.iter() {
        let mut now = live_across_call(func, &live, id);
        if !matches!(block.term, Terminator::Call { .. }) {
            for next in block.term.successors() {
                now.union_with(&live[next]);
            }
        }
        block.term.for_each_operand(|o| {
            if let Operand::Var(v) = o {
                now.insert(v);
            }
        });
        at_terminators.push(now);
    }
    at_terminators
}

/// Steps over an instruction backwards: what lives before it.
pub(in crate::transform) fn step_back(inst: &InstKind, live: &mut IdSet<VarId>) {
    if let Some(dst) = inst.dst() {
        live.remove(dst);
    }
    inst.for_each_operand(|o| {
        if let Operand::Var(v) = o {
            live.insert(v);
        }
    });
}

/// The types of operands.
pub(in crate::transform) fn operand_types(program: &Program, func: &Func, args: &[Operand]) -> Vec<Type> {
    args.iter().map(|o| program.operand_type(func, *o)).collect()
}

/// Whether a primitive is total and without effect for these operands.
pub(in crate::transform) fn is_pure(program: &Program, func: &Func, prim: Prim, args: &[Operand]) -> bool {
    prim.effect(&operand_types(program, func, args)) == Effect::Pure
}

/// Cost of an instruction in one lane, in additions.
pub(super) fn cost(program: &Program, func: &Func, inst: &InstKind) -> u64 {
    match inst {
        InstKind::Prim { dst, prim, args } => prim.cost(&operand_types(program, func, args), &func.vars[*dst].ty),
        _ => 1,
    }
}

/// Makes variables with names that no other variable of the function has.
#[derive(Debug)]
pub(in crate::transform) struct FreshNames(Names);

impl FreshNames {
    pub(in crate::transform) fn new(func: &Func) -> Self {
        Self(Names::of(func.vars.values().map(|v| &v.name)))
    }
    /// No name is taken.
    pub(in crate::transform) fn none() -> Self {
        Self(Names::default())
    }
    /// Adds a variable; its name is `wanted`, with a number where that is taken.
    pub(in crate::transform) fn add(&mut self, vars: &mut IdVec<VarId, Var>, wanted: &str, ty: Type) -> VarId {
        vars.push(Var { name: self.0.unique(wanted), ty })
    }
}
