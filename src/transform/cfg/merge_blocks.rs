//! Fewer, larger blocks: each block that runs costs the machine a superstep.

use super::blocks::{cost, drop_unreachable_blocks, edges_to};
use crate::base::Id;
use crate::cfg::{BlockId, Func, Program, Terminator};

/// Skips empty blocks, and joins a block with the one it jumps to when nothing else leads there.
pub(super) fn run(mut program: Program) -> Program {
    for id in program.funcs.ids() {
        let mut func = program.funcs[id].clone();
        merge(&program, &mut func);
        program.funcs[id] = func;
    }
    program
}

/// Merges the blocks of one function of the program.
pub(in crate::transform) fn merge(program: &Program, func: &mut Func) {
    loop {
        let threaded = thread_jumps(func);
        drop_unreachable_blocks(func);
        if !(join(program, func) || threaded) {
            return;
        }
        drop_unreachable_blocks(func);
    }
}

/// Where an edge to a block leads in the end.
fn target(func: &Func, from: BlockId) -> BlockId {
    let mut at = from;
    for _ in 0..func.blocks.len() {
        match &func.blocks[at] {
            block if block.insts.is_empty() => match block.term {
                Terminator::Jump(next) => at = next,
                _ => return at,
            },
            _ => return at,
        }
    }
    // a cycle of empty blocks: a loop without end, which stays one
    from
}

fn thread_jumps(func: &mut Func) -> bool {
    let targets: Vec<BlockId> = func.blocks.ids().map(|b| target(func, b)).collect();
    let mut changed = false;
    for id in func.blocks.ids() {
        let term = &mut func.blocks[id].term;
        term.for_each_successor_mut(|b| {
            changed |= *b != targets[b.index()];
            *b = targets[b.index()];
        });
        if let Terminator::Branch(_, a, b) = *term
            && a == b
        {
            *term = Terminator::Jump(a);
            changed = true;
        }
    }
    changed
}

fn join(program: &Program, func: &mut Func) -> bool {
    let edges = edges_to(func);
    let first = BlockId::new(0);
    let mut changed = false;
    for id in func.blocks.ids() {
        while let Terminator::Jump(next) = func.blocks[id].term {
            if next == id || next == first || edges[next] != 1 {
                break;
            }
            let weight = |b: BlockId| -> u64 {
                let insts = func.blocks[b].insts.iter();
                insts.map(|i| cost(program, func, &i.kind)).sum()
            };
            // statistics report the block at its heaviest part
            let heavier = weight(next) > weight(id);
            let tail = func.blocks[next].clone();
            // it jumps to itself, so that nobody finds it twice
            func.blocks[next].term = Terminator::Jump(next);
            func.blocks[next].insts.clear();
            let block = &mut func.blocks[id];
            if heavier {
                block.loc = tail.loc;
            }
            block.insts.extend(tail.insts);
            block.term = tail.term;
            changed = true;
        }
    }
    changed
}

/// Returns at once where a jump leads to a block that only returns. After if-conversion, which looks for arms that meet.
pub(super) fn return_early(mut program: Program) -> Program {
    for func in program.funcs.values_mut() {
        for id in func.blocks.ids() {
            if let Terminator::Jump(next) = func.blocks[id].term {
                let block = &func.blocks[target(func, next)];
                if block.insts.is_empty() && matches!(block.term, Terminator::Return(_)) {
                    func.blocks[id].term = block.term.clone();
                }
            }
        }
        drop_unreachable_blocks(func);
    }
    program
}
