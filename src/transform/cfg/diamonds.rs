//! Branches whose arms go on to one block, and what the arms have from the block before them: what that has computed last
//! is not computed again, and a place that it has read is stored to whether the arm is taken or not.

use std::collections::HashMap;

use super::reuse::Known;
use crate::base::{IdSet, IdVec, Loc, work};
use crate::cfg::{Args, BlockId, Func, Inst, InstKind, Operand, Terminator, VarId};
use crate::prim::Prim;
use crate::types::Type;

/// A branch that can be converted.
pub(super) struct Diamond {
    pub(super) head: BlockId,
    pub(super) cond: Operand,
    /// The arms where the condition holds and where it does not; an arm may be missing.
    pub(super) arms: [Option<BlockId>; 2],
    pub(super) join: BlockId,
}

/// `var[indices] = value`, in one arm or in both.
pub(super) struct Store {
    pub(super) var: VarId,
    /// By each arm; of one that does not store, what stood there before.
    pub(super) values: [Operand; 2],
    pub(super) indices: Args,
    pub(super) loc: Loc,
}

/// So many of the last instructions of a head are known: arms are short, and speak of what was just looked at.
const LOOKED_AT: usize = 64;

impl Diamond {
    /// The branch at the end of a block, if it is one.
    pub(super) fn at(func: &Func, edges: &IdVec<BlockId, usize>, head: BlockId) -> Option<Self> {
        let Terminator::Branch(cond, yes, no) = func.blocks[head].term else {
            return None;
        };
        let after = |arm: BlockId| match func.blocks[arm].term {
            Terminator::Jump(next) if edges[arm] == 1 && arm != head && next != arm => Some(next),
            _ => None,
        };
        let (arms, join) = match (after(yes), after(no)) {
            (Some(a), Some(b)) if a == b => ([Some(yes), Some(no)], a),
            (Some(a), _) if a == no => ([Some(yes), None], no),
            (_, Some(b)) if b == yes => ([None, Some(no)], yes),
            _ => return None,
        };
        Some(Self { head, cond, arms, join })
    }

    /// Takes out of the arms what the head has computed, and the stores that can be made in any case. `live`: at the join.
    /// Returns the stores, and the arms as they were.
    pub(super) fn lift(&self, func: &mut Func, live: &IdSet<VarId>) -> (Vec<Store>, [Option<Vec<Inst>>; 2]) {
        let insts = &func.blocks[self.head].insts;
        let last = &insts[insts.len().saturating_sub(LOOKED_AT)..];
        work::add(last.len());
        let of_type = |v: VarId| func.vars[v].ty.clone();
        let mut head = Known::default();
        for inst in last {
            head.note(&inst.kind, of_type);
        }
        let written = |arm: Option<BlockId>| {
            let insts = arm.iter().flat_map(|arm| &func.blocks[*arm].insts);
            insts.filter_map(|inst| inst.kind.dst()).collect::<Vec<VarId>>()
        };
        let written = self.arms.map(written);
        let without_known = |i: usize| {
            let insts = &func.blocks[self.arms[i]?].insts;
            Some(self.without_known(insts, (&head, &written[i]), live, of_type))
        };
        let (arms, mut stores) = lift_common(&head, [0, 1].map(without_known), of_type);
        let mut number = 0..;
        let lifted = arms.map(|insts| {
            let arm = number.next()?;
            Some(lift_stores(insts?, arm, (&head, &written), of_type, &mut stores))
        });
        let before = [0, 1].map(|i| {
            let arm = self.arms[i]?;
            lifted[i].clone().map(|lifted| std::mem::replace(&mut func.blocks[arm].insts, lifted))
        });
        (stores, before)
    }

    /// The instructions of an arm without those whose results the head has; `written`: what the arm writes.
    fn without_known(
        &self,
        insts: &[Inst],
        (head, written): (&Known, &[VarId]),
        live: &IdSet<VarId>,
        types: impl Fn(VarId) -> Type + Copy,
    ) -> Vec<Inst> {
        let (mut known, mut same) = (head.clone(), HashMap::<VarId, VarId>::new());
        let mut left = Vec::with_capacity(insts.len());
        for inst in insts {
            let mut inst = inst.clone();
            inst.kind.for_each_operand_mut(|o| {
                if let Some(v) = o.var().and_then(|v| same.get(&v)) {
                    *o = Operand::Var(*v);
                }
            });
            let Some(dst) = inst.kind.dst() else {
                left.push(inst);
                continue;
            };
            let found = known.of(&inst.kind, types).filter(|v| !written.contains(v));
            same.remove(&dst);
            known.forget(dst);
            let Some(earlier) = found else {
                left.push(inst);
                continue;
            };
            same.insert(dst, earlier);
            if live.contains(dst) {
                let args = Args::from_slice(&[Operand::Var(earlier)]);
                inst.kind = InstKind::Prim { dst, prim: Prim::Copy, args };
                left.push(inst);
            }
        }
        left
    }

    /// Puts the arms back.
    pub(super) fn put_back(&self, func: &mut Func, arms: [Option<Vec<Inst>>; 2]) {
        for (arm, insts) in self.arms.iter().zip(arms) {
            if let (Some(arm), Some(insts)) = (arm, insts) {
                func.blocks[*arm].insts = insts;
            }
        }
    }
}

/// The instructions of an arm without the stores that can be made in any case: to a place that the head has read, of an array
/// that the arms do nothing else with but to read what it held before. `written`: what each arm writes.
fn lift_stores(
    insts: Vec<Inst>,
    arm: usize,
    (head, written): (&Known, &[Vec<VarId>; 2]),
    types: impl Fn(VarId) -> Type + Copy,
    stores: &mut Vec<Store>,
) -> Vec<Inst> {
    let mut known = head.clone();
    let mut lifted = Vec::new();
    for (at, inst) in insts.iter().enumerate() {
        let Some(var) = inst.kind.dst() else { continue };
        if let InstKind::Prim { prim: Prim::SetIndex, args, .. } = &inst.kind
            && args[0] == Operand::Var(var)
            && written.iter().flatten().filter(|w| **w == var).count() == 1
            && reads(&insts, var) == 1
            && insts[at..].iter().all(|later| later.kind.dst().map(Operand::Var) != Some(args[1]))
            && let Some(before) = known.element(var, &args[2..], &part(&types(var), args.len() - 2))
        {
            let (mut values, indices, loc) = ([args[1]; 2], Args::from_slice(&args[2..]), inst.loc.clone());
            values[1 - arm] = Operand::Var(before);
            stores.push(Store { var, values, indices, loc });
            lifted.push(at);
        }
        known.forget(var);
    }
    let mut at = 0..;
    insts.into_iter().filter(|_| at.next().is_none_or(|at| !lifted.contains(&at))).collect()
}

/// The only store to a variable in an arm, if the variable has no other part in it and what is stored is not changed
/// later: its place among the instructions.
fn only_store(insts: &[Inst], var: VarId) -> Option<usize> {
    let mut of_var = insts.iter().enumerate().filter(|(_, inst)| inst.kind.dst() == Some(var));
    let (at, inst) = of_var.next().filter(|_| of_var.next().is_none())?;
    let InstKind::Prim { prim: Prim::SetIndex, args, .. } = &inst.kind else { return None };
    let is_changed = |o: &Operand, of: &[Inst]| of.iter().any(|i| i.kind.dst().map(Operand::Var) == Some(*o));
    let stays = !is_changed(&args[1], &insts[at..]) && !args[2..].iter().any(|index| is_changed(index, insts));
    (args[0] == Operand::Var(var) && reads(insts, var) == 1 && stays).then_some(at)
}

/// The arms without the stores that both make to one place of an array, which is known to be there: no lane traps at it.
fn lift_common(
    head: &Known,
    arms: [Option<Vec<Inst>>; 2],
    types: impl Fn(VarId) -> Type,
) -> ([Option<Vec<Inst>>; 2], Vec<Store>) {
    let [Some(mut yes), Some(mut no)] = arms else { return (arms, Vec::new()) };
    let mut stores = Vec::new();
    let written: Vec<VarId> = yes.iter().filter_map(|inst| inst.kind.dst()).collect();
    for var in written {
        let (Some(a), Some(b)) = (only_store(&yes, var), only_store(&no, var)) else { continue };
        let (InstKind::Prim { args: of_yes, .. }, InstKind::Prim { args: of_no, .. }) = (&yes[a].kind, &no[b].kind)
        else {
            continue;
        };
        let indices = &of_yes[2..];
        let is_there = |(index, extent): (&Operand, &usize)| head.is_below(*index, *extent);
        if indices == &of_no[2..] && indices.iter().zip(&types(var).shape).all(is_there) {
            let (values, indices, loc) = ([of_yes[1], of_no[1]], Args::from_slice(indices), yes[a].loc.clone());
            stores.push(Store { var, values, indices, loc });
            yes.remove(a);
            no.remove(b);
        }
    }
    ([Some(yes), Some(no)], stores)
}

/// The type of a part of an array at so many indices.
fn part(array: &Type, indices: usize) -> Type {
    Type { dtype: array.dtype, shape: array.shape[indices..].iter().copied().collect() }
}

/// How often instructions read a variable.
fn reads(insts: &[Inst], v: VarId) -> usize {
    let mut count = 0;
    for inst in insts {
        inst.kind.for_each_operand(|o| count += usize::from(o == Operand::Var(v)));
    }
    count
}
