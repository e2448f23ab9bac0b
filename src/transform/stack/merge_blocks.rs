//! Joins chains of jumps.

use crate::base::{IdVec, work};
use crate::stack::{BlockId, Operand, Program, Terminator};
use crate::types::Scalar;

use super::layout::{drop_unreachable, entrances, region_of_blocks};

pub(super) fn run(mut program: Program) -> Program {
    skip_empty(&mut program);
    join_chains(&mut program);
    drop_unreachable(program)
}

/// Leads all edges past blocks that only jump on.
fn skip_empty(program: &mut Program) {
    let regions = region_of_blocks(program);
    // Where an edge to a block leads, as far as it was followed; one of a circle of jumps leads to itself.
    let mut known: IdVec<BlockId, Option<BlockId>> = IdVec::filled(None, program.blocks.len());
    let mut on_path = IdVec::filled(false, program.blocks.len());
    let mut skip = |program: &Program, mut to: BlockId| {
        let mut path = Vec::new();
        loop {
            work::add(1);
            let next = match (known[to], &program.blocks[to].term) {
                (Some(end), _) => end,
                (None, Terminator::Jump(next)) if program.blocks[to].insts.is_empty() && !regions.contains_key(&to) => {
                    *next
                }
                _ => break,
            };
            on_path[to] = true;
            path.push(to);
            if on_path[next] {
                to = next;
                break;
            }
            to = next;
        }
        for block in path {
            on_path[block] = false;
            known[block] = Some(to);
        }
        to
    };
    program.entry = skip(program, program.entry);
    for id in program.blocks.ids() {
        let mut term = match &program.blocks[id].term {
            // no other call may come to return there too
            Terminator::PushJump { target, ret, loc, attempt: attempt @ Some(_) } => Terminator::PushJump {
                target: skip(program, *target),
                ret: *ret,
                loc: loc.clone(),
                attempt: attempt.clone(),
            },
            term => term.map_blocks(|b| skip(program, b)),
        };
        term = match term {
            Terminator::Branch(_, yes, no) if yes == no => Terminator::Jump(yes),
            Terminator::Branch(Operand::Const(Scalar::Bool(holds)), yes, no) => {
                Terminator::Jump(if holds { yes } else { no })
            }
            term => term,
        };
        if let Terminator::Jump(to) = term
            && program.blocks[to].insts.is_empty()
            && !regions.contains_key(&id)
            && let end @ (Terminator::Return | Terminator::Halt) = &program.blocks[to].term
        {
            term = end.clone();
        }
        program.blocks[id].term = term;
    }
}

/// Appends to each block its only successor, if nothing else leads there.
fn join_chains(program: &mut Program) {
    let regions = region_of_blocks(program);
    let entrances = entrances(program);
    let mut gone = vec![false; program.blocks.len()];
    for id in program.blocks.ids() {
        if gone[id.0 as usize] {
            continue;
        }
        while let Terminator::Jump(next) = program.blocks[id].term {
            if next == id || entrances[&next] != 1 || regions.get(&next) != regions.get(&id) {
                break;
            }
            gone[next.0 as usize] = true;
            let mut tail = program.blocks[next].clone();
            program.blocks[next].insts.clear();
            program.blocks[next].term = Terminator::Halt;
            let block = &mut program.blocks[id];
            if block.insts.is_empty() {
                block.loc = tail.loc;
            }
            block.insts.append(&mut tail.insts);
            block.term = tail.term;
        }
    }
    for region in &mut program.regions {
        region.blocks.retain(|b| !gone[b.0 as usize]);
    }
}
