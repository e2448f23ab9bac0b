//! Which variables of a CFG function may still be read, at the start of each block. Loops and calls included: a fixed point.

use super::worklist::{Order, postorder, reversed};
use crate::base::{Id as _, IdSet, IdVec, work};
use crate::cfg::{Block, BlockId, Func, Operand, Terminator, VarId};

/// The variables that are live when each block starts.
pub fn live_in(func: &Func) -> IdVec<BlockId, IdSet<VarId>> {
    let n = func.blocks.len();
    let mut live = IdVec::filled(IdSet::new(func.vars.len()), n);
    let summaries = summaries(func);
    let before = reversed(n, func.blocks.iter().map(|(id, block)| (id, block.term.successors())));
    let successors = |b: usize| func.blocks[BlockId::new(b)].term.successors().into_iter().map(BlockId::index);
    let order = Order::new(postorder(n, 0, successors), n);
    let mut open = order.all();
    while let Some(id) = open.take().map(BlockId::new) {
        let mut next = func.blocks[id].term.successors().into_iter();
        let mut now = next.next().map_or_else(|| IdSet::new(func.vars.len()), |to| live[to].clone());
        next.for_each(|to| _ = now.union_with(&live[to]));
        summaries[id].step_back(&mut now);
        if now != live[id] {
            live[id] = now;
            before[id].iter().for_each(|b| open.add(b.index()));
        }
    }
    live
}

/// What a block does to what is live, its terminator included.
#[derive(Clone, Default)]
struct Summary {
    /// The variables that it reads before it sets them.
    reads: Vec<VarId>,
    /// The variables that it sets.
    sets: Vec<VarId>,
}

impl Summary {
    fn step_back(&self, now: &mut IdSet<VarId>) {
        work::add(1 + self.reads.len() + self.sets.len());
        self.sets.iter().for_each(|v| now.remove(*v));
        self.reads.iter().for_each(|v| _ = now.insert(*v));
    }
}

fn summaries(func: &Func) -> IdVec<BlockId, Summary> {
    // The last block that reads or sets a variable, so that no block has it twice.
    let mut read_in: IdVec<VarId, Option<BlockId>> = IdVec::filled(None, func.vars.len());
    let mut set_in = read_in.clone();
    let mut of = |(id, block): (BlockId, &Block)| {
        let mut summary = Summary::default();
        let read =
            |o: Operand, summary: &mut Summary, set_in: &IdVec<VarId, Option<BlockId>>, read_in: &mut IdVec<_, _>| {
                if let Operand::Var(v) = o
                    && set_in[v] != Some(id)
                    && read_in[v] != Some(id)
                {
                    read_in[v] = Some(id);
                    summary.reads.push(v);
                }
            };
        let set = |v: VarId, summary: &mut Summary, set_in: &mut IdVec<VarId, Option<BlockId>>| {
            if set_in[v] != Some(id) {
                set_in[v] = Some(id);
                summary.sets.push(v);
            }
        };
        for inst in &block.insts {
            inst.kind.for_each_operand(|o| read(o, &mut summary, &set_in, &mut read_in));
            inst.kind.dst().into_iter().for_each(|v| set(v, &mut summary, &mut set_in));
        }
        block.term.for_each_operand(|o| read(o, &mut summary, &set_in, &mut read_in));
        block.term.dsts().iter().for_each(|v| set(*v, &mut summary, &mut set_in));
        work::add(block.insts.len() + 1);
        summary
    };
    func.blocks.iter().map(&mut of).collect()
}

/// The variables that are live across the call that ends a block: not those that the call sets. Empty when it does not
/// end with a call.
pub fn live_across_call(func: &Func, live: &IdVec<BlockId, IdSet<VarId>>, block: BlockId) -> IdSet<VarId> {
    if let Terminator::Call { dsts, next, .. } = &func.blocks[block].term {
        let mut now = live[*next].clone();
        for dst in dsts {
            now.remove(*dst);
        }
        now
    } else {
        IdSet::new(func.vars.len())
    }
}
