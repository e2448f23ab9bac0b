//! Fewer, larger blocks: each block that runs costs the machine a superstep.

use super::blocks::{cost, drop_unreachable_blocks, edges_to};
use crate::base::{Id, IdVec, work};
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

/// Where an edge to a block leads in the end, for each block.
fn targets(func: &Func) -> IdVec<BlockId, BlockId> {
    let passed = |b: BlockId| match func.blocks[b].term {
        Terminator::Jump(next) if func.blocks[b].insts.is_empty() => Some(next),
        _ => None,
    };
    // A cycle of empty blocks is a loop without end, which stays one: an edge to what leads there stays as it is.
    let mut found: IdVec<BlockId, Option<Option<BlockId>>> = IdVec::filled(None, func.blocks.len());
    let mut on_path = IdVec::filled(false, func.blocks.len());
    for start in func.blocks.ids() {
        let (mut path, mut at) = (Vec::new(), start);
        let end = loop {
            work::add(1);
            if let Some(known) = found[at] {
                break known;
            }
            if on_path[at] {
                break None;
            }
            match passed(at) {
                Some(next) => {
                    on_path[at] = true;
                    path.push(at);
                    at = next;
                }
                None => {
                    found[at] = Some(Some(at));
                    break Some(at);
                }
            }
        };
        path.into_iter().for_each(|b| found[b] = Some(end));
    }
    found.iter().map(|(b, end)| end.flatten().unwrap_or(b)).collect()
}

fn thread_jumps(func: &mut Func) -> bool {
    let targets = targets(func);
    let mut changed = false;
    for id in func.blocks.ids() {
        let term = &mut func.blocks[id].term;
        term.for_each_successor_mut(|b| {
            changed |= *b != targets[*b];
            *b = targets[*b];
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

/// What the instructions of each block cost in one lane, in additions.
pub(super) fn weights(program: &Program, func: &Func) -> IdVec<BlockId, u64> {
    work::add(func.blocks.values().map(|b| b.insts.len()).sum());
    func.blocks.values().map(|b| b.insts.iter().map(|i| cost(program, func, &i.kind)).sum()).collect()
}

fn join(program: &Program, func: &mut Func) -> bool {
    let edges = edges_to(func);
    let mut weights = weights(program, func);
    let mut changed = false;
    for id in func.blocks.ids() {
        while let Terminator::Jump(next) = func.blocks[id].term {
            if !absorbs(&edges, id, next) {
                break;
            }
            absorb(func, &mut weights, id, next);
            changed = true;
        }
    }
    changed
}

/// Whether a block that jumps to another may take it in.
pub(super) fn absorbs(edges: &IdVec<BlockId, usize>, id: BlockId, next: BlockId) -> bool {
    next != id && next != BlockId::new(0) && edges[next] == 1
}

/// Appends to a block the one that it jumps to, which is never reached after that.
pub(super) fn absorb(func: &mut Func, weights: &mut IdVec<BlockId, u64>, id: BlockId, next: BlockId) {
    // statistics report the block at its heaviest part
    let heavier = weights[next] > weights[id];
    weights[id] += weights[next];
    let tail = &mut func.blocks[next];
    let (insts, loc) = (std::mem::take(&mut tail.insts), tail.loc.clone());
    // it jumps to itself, so that nobody finds it twice
    let term = std::mem::replace(&mut tail.term, Terminator::Jump(next));
    let block = &mut func.blocks[id];
    if heavier {
        block.loc = loc;
    }
    block.insts.extend(insts);
    block.term = term;
}

/// Returns at once where a jump leads to a block that only returns. After if-conversion, which looks for arms that meet.
pub(super) fn return_early(mut program: Program) -> Program {
    for func in program.funcs.values_mut() {
        let targets = targets(func);
        for id in func.blocks.ids() {
            if let Terminator::Jump(next) = func.blocks[id].term {
                let block = &func.blocks[targets[next]];
                if block.insts.is_empty() && matches!(block.term, Terminator::Return(_)) {
                    func.blocks[id].term = block.term.clone();
                }
            }
        }
        drop_unreachable_blocks(func);
    }
    program
}
