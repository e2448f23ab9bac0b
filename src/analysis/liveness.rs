//! Which variables of a CFG function may still be read, at the start of each block. Loops and calls included: a fixed point.

use crate::base::{IdSet, IdVec};
use crate::cfg::{BlockId, Func, InstKind, Operand, Terminator, VarId};

/// The variables that are live when each block starts.
pub fn live_in(func: &Func) -> IdVec<BlockId, IdSet<VarId>> {
    let mut live = IdVec::filled(IdSet::new(func.vars.len()), func.blocks.len());
    let mut changed = true;
    while changed {
        changed = false;
        for (id, block) in func.blocks.iter().rev() {
            let mut now = live_at_terminator(func, &live, id);
            for inst in block.insts.iter().rev() {
                step(&inst.kind, &mut now);
            }
            if now != live[id] {
                live[id] = now;
                changed = true;
            }
        }
    }
    live
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

fn live_at_terminator(func: &Func, live: &IdVec<BlockId, IdSet<VarId>>, block: BlockId) -> IdSet<VarId> {
    let term = &func.blocks[block].term;
    let mut now = live_across_call(func, live, block);
    match term {
        Terminator::Jump(to) => {
            now.union_with(&live[*to]);
        }
        Terminator::Branch(cond, yes, no) => {
            now.union_with(&live[*yes]);
            now.union_with(&live[*no]);
            read(&[*cond], &mut now);
        }
        Terminator::Call { args, .. } | Terminator::TailCall { args, .. } | Terminator::Return(args) => {
            read(args, &mut now)
        }
    }
    now
}

fn read(operands: &[Operand], now: &mut IdSet<VarId>) {
    for v in operands.iter().filter_map(|o| o.var()) {
        now.insert(v);
    }
}

fn step(inst: &InstKind, now: &mut IdSet<VarId>) {
    match inst {
        InstKind::Prim { dst, args, .. } => {
            now.remove(*dst);
            read(args, now);
        }
        InstKind::Assert { cond, message } => {
            read(&[*cond], now);
            read(&message.args, now);
        }
        InstKind::Print(message) => read(&message.args, now),
        InstKind::Emit { args, .. } => read(args, now),
        InstKind::TapePush { value, .. } => read(&[*value], now),
        InstKind::TapePop { dst, .. } => {
            now.remove(*dst);
        }
    }
}
