//! Selects in the place of branches on conditions that depend on an index.

use std::collections::HashSet;

use super::Way;
use super::tiling::Tiling;
use crate::base::{IdSet, IdVec};
use crate::cfg::{BlockId, Func, Inst, InstKind, Operand, Program, Terminator, VarId};
use crate::parts::Args;
use crate::prim::{BatchRule, Prim};
use crate::transform::cfg::blocks::{FreshNames, edges_to};
use crate::transform::cfg::if_convert::{self, Conversion};
use crate::transform::cfg::merge_blocks::merge;
use crate::types::{Scalar, Shape, Type};

/// What both arms of a branch and the selects may cost together for one element, in additions. A loop would cost a superstep
/// for each element, many times that.
const MOST_COST: u64 = 4096;

/// What a product has in the place of operands, and gives, in an arm that is not taken.
const HARMLESS: Operand = Operand::Const(Scalar::Real(1.0));

/// Turns branches on conditions that depend on an index into selects, as far as that can be.
pub(super) fn select_arms(program: &Program, func: &mut Func, index: usize, (start, end): (i64, i64), way: Way) {
    let mut gated = HashSet::new();
    loop {
        if way.differentiated {
            gate_products(func, &Tiling::of(func, index), &mut gated);
        }
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
        if !if_convert::convert_where(program, func, conversion) {
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
    let mut work: Vec<BlockId> = func.blocks.ids().collect();
    while let Some(head) = work.pop() {
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
                work.extend(func.blocks.ids().filter(|b| func.blocks[*b].term.successors().contains(&head)));
            }
        }
    }
}

/// Whether a product or a solve has an operand that depends on the index.
fn is_product(prim: Prim, args: &[Operand], tiling: &Tiling) -> bool {
    let sums = matches!(prim.row().batch, BatchRule::Contraction | BatchRule::Triangular) && prim != Prim::Cholesky;
    sums && args.iter().any(|a| tiling.is_tiled(*a))
}

/// Keeps derivatives out of products in arms that are not taken, by selects of the result and of the operands that depend on the
/// index: a derivative adds up what all rows give, where a zero does not win over what is no number. All else needs nothing of
/// the kind, since in the other rules it does. What does not depend on the index, such as the weights of a model, needs none
/// either, which would be one copy for each element: the product stays one with all rows.
fn gate_products(func: &mut Func, tiling: &Tiling, gated: &mut HashSet<(VarId, Operand)>) {
    let types: Vec<Type> = func.vars.values().map(|v| v.ty.clone()).collect();
    let edges = edges_to(func);
    let mut names = FreshNames::new(func);
    for head in func.blocks.ids() {
        let Terminator::Branch(cond, yes, no) = func.blocks[head].term else { continue };
        if !tiling.is_tiled(cond) {
            continue;
        }
        for (arm, taken) in [(yes, true), (no, false)] {
            let sets_cond = func.blocks[arm].insts.iter().any(|i| i.kind.dst().map(Operand::Var) == Some(cond));
            let products = func.blocks[arm].insts.iter().any(|inst| match &inst.kind {
                InstKind::Prim { dst, prim, args } => is_product(*prim, args, tiling) && !gated.contains(&(*dst, cond)),
                _ => false,
            });
            if edges[arm] != 1 || arm == head || !products {
                continue;
            }
            // what decided, if the arm sets the condition
            let decided = if sets_cond {
                let kept = names.add(&mut func.vars, "condition", Type::bool());
                let kind = InstKind::Prim { dst: kept, prim: Prim::Copy, args: Args::from_slice(&[cond]) };
                let loc = func.blocks[head].loc.clone();
                func.blocks[head].insts.push(Inst { kind, loc });
                Operand::Var(kept)
            } else {
                cond
            };
            let mut insts = Vec::new();
            for mut inst in std::mem::take(&mut func.blocks[arm].insts) {
                let loc = inst.loc.clone();
                let gate = |dst: VarId, x: Operand| {
                    let args = if taken { [decided, x, HARMLESS] } else { [decided, HARMLESS, x] };
                    let kind = InstKind::Prim { dst, prim: Prim::Select, args: Args::from_slice(&args) };
                    Inst { kind, loc: loc.clone() }
                };
                let InstKind::Prim { dst, prim, args } = &mut inst.kind else {
                    insts.push(inst);
                    continue;
                };
                if !is_product(*prim, args, tiling) || gated.contains(&(*dst, cond)) {
                    insts.push(inst);
                    continue;
                }
                let result = *dst;
                for arg in args.iter_mut().filter(|a| tiling.is_tiled(**a)) {
                    let ty = &types[arg.var().expect("what is tiled is a variable").0 as usize];
                    let kept = names.add(&mut func.vars, "gated", ty.clone());
                    gated.insert((kept, cond));
                    insts.push(gate(kept, *arg));
                    *arg = Operand::Var(kept);
                }
                let raw = names.add(&mut func.vars, "product", types[result.0 as usize].clone());
                gated.insert((raw, cond));
                *dst = raw;
                let select = gate(result, Operand::Var(raw));
                insts.extend([inst, select]);
            }
            func.blocks[arm].insts = insts;
        }
    }
}
