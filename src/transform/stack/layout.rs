//! The order of blocks: renumbering, and dropping what is never reached.

use std::collections::BTreeMap;

use crate::base::IdSet;
use crate::stack::{BlockId, Program, Terminator};

impl Terminator {
    /// The same with other blocks.
    pub(super) fn map_blocks(&self, mut to: impl FnMut(BlockId) -> BlockId) -> Terminator {
        match *self {
            Terminator::Jump(b) => Terminator::Jump(to(b)),
            Terminator::Branch(cond, yes, no) => Terminator::Branch(cond, to(yes), to(no)),
            Terminator::PushJump { target, ret, ref loc } => {
                Terminator::PushJump { target: to(target), ret: to(ret), loc: loc.clone() }
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
