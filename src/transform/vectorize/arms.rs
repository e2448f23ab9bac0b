//! Selects in the place of branches on conditions that depend on an index.

use super::tiling::Tiling;
use crate::analysis::worklist::reversed;
use crate::base::{IdSet, IdVec, work};
use crate::cfg::{BlockId, Func, Inst, InstKind, Operand, Program, Terminator, VarId};
use crate::prim::Prim;
use crate::transform::cfg::blocks::edges_to;
use crate::transform::cfg::if_convert::{self, Conversion};
use crate::transform::cfg::merge_blocks::merge;
use crate::types::{Shape, Type};

/// What both arms of a branch and the selects may cost together for one element, in additions. A loop would cost a superstep
/// for each element, many times that.
const MOST_COST: u64 = 4096;

/// Turns branches on conditions that depend on an index into selects, as far as that can be.
pub(super) fn select_arms(program: &Program, func: &mut Func, index: usize, (start, end): (i64, i64)) {
    loop {
        let tiling = Tiling::of(func, index);
        let numbers = tiling.numbers(func, func.params[index], start..end);
        let types: Vec<Type> = func.vars.values().map(|v| v.ty.clone()).collect();
        let shape = |o: Operand| match o {
            Operand::Var(v) => types[v.0 as usize].shape.clone(),
            Operand::Shared(s) => program.shared[s].ty.shape.clone(),
            Operand::Const(_) => Shape::new(),
        };
        let total = |prim: Prim, args: &[Operand]| {
            prim == Prim::Index
                && args[1..].iter().zip(shape(args[0])).all(|(index, extent)| numbers.in_range(*index, extent))
        };
        lift_reads(func, &total);
        let conversion = Conversion {
            wanted: &|cond| tiling.is_tiled(cond),
            total: &total,
            guarded: true,
            most_cost: MOST_COST,
            most_of_head: 0,
            copies_cost_less: false,
        };
        if !if_convert::convert_where(program, func, conversion, usize::MAX) {
            return;
        }
        merge(program, func);
    }
}

/// Moves reads of elements that are there for certain in front of the branches in whose arms they stand: an arm then needs the
/// element from outside, and not the array.
fn lift_reads(func: &mut Func, total: &dyn Fn(Prim, &[Operand]) -> bool) {
    let mut writes: IdVec<VarId, usize> = IdVec::filled(0, func.vars.len());
    func.params.iter().for_each(|p| writes[*p] += 1);
    for block in func.blocks.values() {
        block.insts.iter().filter_map(|i| i.kind.dst()).for_each(|v| writes[v] += 1);
        block.term.dsts().iter().for_each(|v| writes[*v] += 1);
    }
    let edges = edges_to(func);
    let before = reversed(func.blocks.len(), func.blocks.iter().map(|(id, b)| (id, b.term.successors())));
    let mut open: Vec<BlockId> = func.blocks.ids().collect();
    while let Some(head) = open.pop() {
        work::add(1);
        let Terminator::Branch(_, yes, no) = func.blocks[head].term else { continue };
        for arm in [yes, no].into_iter().filter(|arm| edges[*arm] == 1 && *arm != head) {
            let (mut set, mut lifted) = (IdSet::new(func.vars.len()), Vec::new());
            func.blocks[arm].insts.retain(|inst: &Inst| {
                let free = |o: &Operand| o.var().is_none_or(|v| !set.contains(v));
                let lift = match &inst.kind {
                    InstKind::Prim { dst, prim, args } => {
                        writes[*dst] == 1 && args.iter().all(free) && total(*prim, args)
                    }
                    _ => false,
                };
                if lift {
                    lifted.push(inst.clone());
                } else if let Some(dst) = inst.kind.dst() {
                    set.insert(dst);
                }
                !lift
            });
            if !lifted.is_empty() {
                func.blocks[head].insts.extend(lifted);
                // the head may be an arm itself
                open.extend(&before[head]);
            }
        }
    }
}
