//! Cheap blocks, such as the head of a loop or the return after an `if`, are not worth a superstep of their own.

use std::collections::BTreeSet;

use crate::stack::{Block, BlockId, InstKind, Program, SideEffect, Terminator};
use crate::types::Type;

use super::layout::{drop_unreachable, region_of_blocks};

/// Most instructions of a block that is copied.
const MOST_INSTS: usize = 4;
/// Largest cost of a block that is copied, in additions in one lane.
const LARGEST_COST: u64 = 16;

pub(super) fn run(mut program: Program) -> Program {
    let regions = region_of_blocks(&program);
    let small: BTreeSet<BlockId> =
        program.blocks.ids().filter(|b| !regions.contains_key(b) && is_small(&program, *b)).collect();
    for id in program.blocks.ids().filter(|b| !regions.contains_key(b)) {
        let mut seen = vec![id];
        while let Terminator::Jump(to) = program.blocks[id].term {
            if seen.contains(&to) || !small.contains(&to) {
                break;
            }
            seen.push(to);
            let Block { insts, term, loc } = program.blocks[to].clone();
            let block = &mut program.blocks[id];
            if block.insts.is_empty() {
                block.loc = loc;
            }
            block.insts.extend(insts);
            block.term = term;
        }
    }
    drop_unreachable(program)
}

fn is_small(program: &Program, id: BlockId) -> bool {
    let block = &program.blocks[id];
    let cost = |inst: &InstKind| match inst {
        InstKind::Compute { dst, prim, args, .. } => {
            let types: Vec<Type> = args.iter().map(|a| program.operand_type(*a)).collect();
            prim.cost(&types, &program.vars[*dst].ty)
        }
        InstKind::Pop(v) | InstKind::Save { stack: v, .. } => program.vars[*v].ty.elements() as u64,
        InstKind::Effect(SideEffect::TapePush { tape, .. } | SideEffect::TapePop { tape, .. }) => {
            program.tapes[*tape].ty.elements() as u64
        }
        InstKind::Effect(SideEffect::Assert { .. }) => 1,
        InstKind::Effect(SideEffect::Print(_) | SideEffect::Emit { .. }) => LARGEST_COST,
    };
    let total: u64 = block.insts.iter().map(|inst| cost(&inst.kind)).sum();
    block.insts.len() <= MOST_INSTS && total < LARGEST_COST
}
