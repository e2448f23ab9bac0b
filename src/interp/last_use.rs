//! Where a function reads an array for the last time. There it is handed over instead of held twice, so that who
//! changes it in place has no copy to make.

use std::collections::BTreeSet;

use crate::base::{IdSet, IdVec};
use crate::cfg::{Block, BlockId, Func, InstKind, Operand, Terminator, VarId};
use crate::prim::Prim;

/// The reads that are the last ones.
#[derive(Debug, Default)]
pub(super) struct LastUses {
    /// Copies, by block and instruction.
    copies: BTreeSet<(BlockId, usize)>,
    /// Arguments of calls, by block and place.
    args: BTreeSet<(BlockId, usize)>,
}

impl LastUses {
    /// Of a function.
    pub(super) fn new(func: &Func) -> Self {
        let array = |o: &Operand| o.var().is_some_and(|v| !func.vars[v].ty.is_scalar());
        let copied = |block: &Block| block.insts.iter().any(|i| copy_of(&i.kind).is_some_and(|o| array(&o)));
        let passed = |block: &Block| matches!(&block.term, Terminator::Call { args, .. } if args.iter().any(array));
        let mut uses = Self::default();
        if !func.blocks.values().any(|block| copied(block) || passed(block)) {
            return uses;
        }
        let live_in = live_in(func);
        for (id, block) in func.blocks.iter() {
            let mut live = live_out(&live_in, block, func.vars.len());
            if let Terminator::Call { args, dsts, .. } = &block.term {
                dsts.iter().for_each(|dst| live.remove(*dst));
                for (k, arg) in args.iter().enumerate().filter(|(_, arg)| array(arg)) {
                    let last = arg.var().is_some_and(|v| !live.contains(v));
                    if last && !args[k + 1..].contains(arg) && !args[..k].contains(arg) {
                        uses.args.insert((id, k));
                    }
                }
            }
            step_over(&block.term, &mut live);
            for (at, inst) in block.insts.iter().enumerate().rev() {
                let from = copy_of(&inst.kind).filter(array).and_then(|o| o.var());
                if from.is_some_and(|v| !live.contains(v) && inst.kind.dst() != Some(v)) {
                    uses.copies.insert((id, at));
                }
                step_back(&inst.kind, &mut live);
            }
        }
        uses
    }

    /// Whether a copy is the last that reads what it copies.
    pub(super) fn is_last_copy(&self, block: BlockId, inst: usize) -> bool {
        self.copies.contains(&(block, inst))
    }

    /// Whether nobody reads an argument of the call that ends a block any more.
    pub(super) fn is_last_arg(&self, block: BlockId, arg: usize) -> bool {
        self.args.contains(&(block, arg))
    }
}

fn copy_of(inst: &InstKind) -> Option<Operand> {
    match inst {
        InstKind::Prim { prim: Prim::Copy, args, .. } => Some(args[0]),
        _ => None,
    }
}

/// What lives at the start of each block.
fn live_in(func: &Func) -> IdVec<BlockId, IdSet<VarId>> {
    let mut live_in = IdVec::filled(IdSet::new(func.vars.len()), func.blocks.len());
    let mut order = func.reverse_postorder();
    order.reverse();
    let mut changed = true;
    while changed {
        changed = false;
        for id in &order {
            let block = &func.blocks[*id];
            let mut live = live_out(&live_in, block, func.vars.len());
            if let Terminator::Call { dsts, .. } = &block.term {
                dsts.iter().for_each(|dst| live.remove(*dst));
            }
            step_over(&block.term, &mut live);
            block.insts.iter().rev().for_each(|inst| step_back(&inst.kind, &mut live));
            changed |= live_in[*id].union_with(&live);
        }
    }
    live_in
}

fn live_out(live_in: &IdVec<BlockId, IdSet<VarId>>, block: &Block, vars: usize) -> IdSet<VarId> {
    let mut live = IdSet::new(vars);
    for next in block.term.successors() {
        live.union_with(&live_in[next]);
    }
    live
}

/// What a terminator reads lives before it.
fn step_over(term: &Terminator, live: &mut IdSet<VarId>) {
    term.for_each_operand(|o| {
        if let Operand::Var(v) = o {
            live.insert(v);
        }
    });
}

fn step_back(inst: &InstKind, live: &mut IdSet<VarId>) {
    if let Some(dst) = inst.dst() {
        live.remove(dst);
    }
    inst.for_each_operand(|o| {
        if let Operand::Var(v) = o {
            live.insert(v);
        }
    });
}
