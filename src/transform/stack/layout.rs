//! The order of blocks: renumbering, and dropping what is never reached.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::{IdSet, IdVec};
use crate::stack::{Block, BlockId, InstKind, Operand, Program, Terminator, VarId};

impl Terminator {
    /// The same with other blocks.
    pub(super) fn map_blocks(&self, mut to: impl FnMut(BlockId) -> BlockId) -> Terminator {
        match *self {
            Terminator::Jump(b) => Terminator::Jump(to(b)),
            Terminator::Branch(cond, yes, no) => Terminator::Branch(cond, to(yes), to(no)),
            Terminator::PushJump { target, ret, ref loc, ref attempt } => {
                Terminator::PushJump { target: to(target), ret: to(ret), loc: loc.clone(), attempt: attempt.clone() }
            }
            Terminator::Return => Terminator::Return,
            Terminator::Halt => Terminator::Halt,
        }
    }
}

/// Puts the blocks in this order; the others, which nothing may lead to, are dropped.
pub(super) fn reorder(mut program: Program, order: &[BlockId]) -> Program {
    let number: BTreeMap<BlockId, BlockId> = order.iter().copied().zip(program.blocks.ids()).collect();
    let mut blocks: BTreeMap<BlockId, _> =
        program.blocks.iter().filter_map(|(old, block)| Some((*number.get(&old)?, block.clone()))).collect();
    for block in blocks.values_mut() {
        block.term = block.term.map_blocks(|b| number[&b]);
    }
    program.blocks = blocks.into_values().collect();
    program.entry = number[&program.entry];
    for region in &mut program.regions {
        region.blocks = (region.blocks.iter()).filter_map(|b| number.get(b).copied()).collect();
    }
    program.regions.retain(|region| !region.blocks.is_empty());
    program
}

/// Drops the blocks that are never reached.
pub(super) fn drop_unreachable(program: Program) -> Program {
    let mut reached = IdSet::new(program.blocks.len());
    let mut open = vec![program.entry];
    reached.insert(program.entry);
    while let Some(b) = open.pop() {
        for to in program.blocks[b].term.successors() {
            if reached.insert(to) {
                open.push(to);
            }
        }
    }
    let order: Vec<BlockId> = reached.iter().collect();
    reorder(program, &order)
}

/// The region of each block, by position in the list of regions.
pub(super) fn region_of_blocks(program: &Program) -> BTreeMap<BlockId, usize> {
    (program.regions.iter().enumerate()).flat_map(|(i, region)| region.blocks.iter().map(move |b| (*b, i))).collect()
}

/// For each block the number of ways into it: edges, calls, returns, and the start of the program.
pub(super) fn entrances(program: &Program) -> BTreeMap<BlockId, usize> {
    let mut count = BTreeMap::from([(program.entry, 1)]);
    for block in program.blocks.values() {
        for to in block.term.successors() {
            *count.entry(to).or_insert(0) += 1;
        }
    }
    count
}

/// The blocks that mention each variable.
pub(super) fn mentions(program: &Program) -> IdVec<VarId, BTreeSet<BlockId>> {
    let mut mentions = IdVec::filled(BTreeSet::new(), program.vars.len());
    for (id, block) in program.blocks.iter() {
        for v in mentions_of(block) {
            mentions[v].insert(id);
        }
    }
    mentions
}

/// The variables that a block mentions.
pub(super) fn mentions_of(block: &Block) -> BTreeSet<VarId> {
    let mut found = BTreeSet::new();
    for inst in &block.insts {
        inst.kind.for_each_operand(|o| found.extend(o.var()));
        found.extend(inst.kind.written());
        found.extend(inst.kind.moved().map(|(v, _)| v));
    }
    match &block.term {
        Terminator::Branch(cond, ..) => found.extend(cond.var()),
        Terminator::PushJump { attempt: Some(results), .. } => found.extend(results),
        _ => {}
    }
    found
}

/// Visits every mention of a variable in the blocks.
pub(super) fn for_each_var(program: &mut Program, mut visit: impl FnMut(&mut VarId)) {
    for block in program.blocks.values_mut() {
        for inst in &mut block.insts {
            inst.kind.for_each_operand_mut(|o| {
                if let Operand::Var(v) = o {
                    visit(v);
                }
            });
            match &mut inst.kind {
                InstKind::Compute { dst: v, .. } | InstKind::Pop(v) | InstKind::Save { stack: v, .. } => visit(v),
                InstKind::Effect(effect) => effect.dst_mut().into_iter().for_each(&mut visit),
            }
        }
        match &mut block.term {
            Terminator::Branch(Operand::Var(v), ..) => visit(v),
            Terminator::PushJump { attempt: Some(results), .. } => results.iter_mut().for_each(&mut visit),
            _ => {}
        }
    }
}

/// Drops the variables that are not among these, which nothing mentions.
pub(super) fn keep_vars(program: &mut Program, kept: &IdSet<VarId>) {
    let old = std::mem::take(&mut program.vars);
    let mut number: IdVec<VarId, VarId> = old.ids().collect();
    for (id, var) in old.iter().filter(|(id, _)| kept.contains(*id)) {
        number[id] = program.vars.push(var.clone());
    }
    program.inputs.iter_mut().chain(&mut program.outputs).for_each(|p| p.var = number[p.var]);
    for_each_var(program, |v| *v = number[*v]);
}
