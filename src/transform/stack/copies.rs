//! Copies within a block: readers of a copy read the original, and what is computed only to be copied is computed in its
//! place.

use crate::analysis::stack_copies::keeps_top;
use crate::analysis::stack_liveness::{Liveness, is_pure, step_back};
use crate::base::IdSet;
use crate::prim::Prim;
use crate::stack::{Inst, InstKind, Operand, Program, Terminator, VarId, Write};

pub(super) fn run(mut program: Program) -> Program {
    for id in program.blocks.ids() {
        let block = &mut program.blocks[id];
        let mut known = Known::default();
        for inst in &mut block.insts {
            known.step(inst);
        }
        if let Terminator::Branch(cond, ..) = &mut block.term {
            *cond = known.original(*cond);
        }
    }
    // Rewriting a block only shortens lives, so that what was computed for the others stays true.
    let liveness = Liveness::of(&program);
    for id in program.blocks.ids() {
        let end = liveness.live_at_end(&program, id);
        let insts = std::mem::take(&mut program.blocks[id].insts);
        program.blocks[id].insts = coalesce(&program, insts, end);
    }
    program
}

/// The variables that are copies of something at a point of a block.
#[derive(Default)]
struct Known {
    copies: Vec<(VarId, Operand)>,
}

impl Known {
    fn original(&self, operand: Operand) -> Operand {
        let known = |v| self.copies.iter().find(|(copy, _)| *copy == v);
        operand.var().and_then(known).map_or(operand, |(_, o)| *o)
    }

    fn step(&mut self, inst: &mut Inst) {
        if keeps_top(&inst.kind) {
            return;
        }
        inst.kind.for_each_operand_mut(|o| *o = self.original(*o));
        if keeps_top(&inst.kind) {
            return;
        }
        let Some(written) = inst.kind.written() else {
            return;
        };
        self.copies.retain(|(copy, of)| *copy != written && of.var() != Some(written));
        if let Some((_, dst, src)) = copy(&inst.kind) {
            self.copies.push((dst, src));
        }
    }
}

fn copy(inst: &InstKind) -> Option<(Write, VarId, Operand)> {
    match inst {
        InstKind::Compute { write, dst, prim: Prim::Copy, args } => Some((*write, *dst, args[0])),
        _ => None,
    }
}

/// Drops what nobody reads and merges computations with the copies of their results, from the end of a block to its start.
fn coalesce(program: &Program, mut insts: Vec<Inst>, end: IdSet<VarId>) -> Vec<Inst> {
    let mut live = end;
    let mut at = insts.len();
    while at > 0 {
        at -= 1;
        let inst = &insts[at].kind;
        if is_dead(program, inst, &live) {
            insts.remove(at);
            continue;
        }
        if let Some((write, dst, Operand::Var(from))) = copy(inst)
            && from != dst
            && !live.contains(from)
        {
            if compute_in_place(&mut insts, at, write, dst, from) || pop_in_place(&mut insts, at, write, dst, from) {
                continue;
            }
            compute_later(program, &mut insts, &mut at, from);
        }
        step_back(&insts[at].kind, &mut live);
    }
    insts
}

fn is_dead(program: &Program, inst: &InstKind, live: &IdSet<VarId>) -> bool {
    match inst {
        InstKind::Compute { write: Write::Push, .. } => false,
        InstKind::Compute { dst, .. } => keeps_top(inst) || (!live.contains(*dst) && is_pure(program, inst)),
        _ => false,
    }
}

/// Where `from`, which the instruction `at` copies, was computed in this block.
fn computed_at(insts: &[Inst], at: usize, from: VarId) -> Option<usize> {
    let i = insts[..at].iter().rposition(|inst| inst.kind.written() == Some(from))?;
    match insts[i].kind {
        InstKind::Compute { write, .. } if write != Write::Push => Some(i),
        _ => None,
    }
}

/// `t = op; …; d = copy t` becomes `d = op; …` where nothing between touches `d`.
fn compute_in_place(insts: &mut Vec<Inst>, at: usize, write: Write, dst: VarId, from: VarId) -> bool {
    let Some(i) = computed_at(insts, at, from) else {
        return false;
    };
    let between = i + 1..at;
    if insts[between.clone()].iter().any(|inst| inst.kind.touches(dst)) {
        return false;
    }
    read_instead(&mut insts[between], from, dst);
    if let InstKind::Compute { write: w, dst: d, .. } = &mut insts[i].kind {
        (*w, *d) = (write, dst);
    }
    insts.remove(at);
    true
}

/// `t = tape_pop; …; d = copy t` becomes `d = tape_pop; …` where nothing between touches `d`.
fn pop_in_place(insts: &mut Vec<Inst>, at: usize, write: Write, dst: VarId, from: VarId) -> bool {
    let Some(i) = insts[..at].iter().rposition(|inst| inst.kind.written() == Some(from)) else {
        return false;
    };
    if write == Write::Push || insts[i + 1..at].iter().any(|inst| inst.kind.touches(dst)) {
        return false;
    }
    let InstKind::TapePop { dst: popped, .. } = &mut insts[i].kind else {
        return false;
    };
    *popped = dst;
    read_instead(&mut insts[i + 1..at], from, dst);
    insts.remove(at);
    true
}

/// Reads `to` where `from` was read.
fn read_instead(insts: &mut [Inst], from: VarId, to: VarId) {
    for inst in insts {
        inst.kind.for_each_operand_mut(|o| {
            if o.var() == Some(from) {
                *o = Operand::Var(to);
            }
        });
    }
}

/// `t = op; …; d = copy t` becomes `…; d = op` where `op` may wait: it is pure, nothing between reads `t` or changes what
/// it reads. `at` follows the copy.
fn compute_later(program: &Program, insts: &mut Vec<Inst>, at: &mut usize, from: VarId) {
    let Some(i) = computed_at(insts, *at, from) else {
        return;
    };
    let op = &insts[i].kind;
    let movable = is_pure(program, op)
        && insts[i + 1..*at]
            .iter()
            .all(|inst| !inst.kind.reads(from) && inst.kind.written().is_none_or(|v| !op.reads(v)));
    if !movable {
        return;
    }
    let op = insts.remove(i);
    *at -= 1;
    if let (InstKind::Compute { prim, args, .. }, InstKind::Compute { prim: new_prim, args: new_args, .. }) =
        (&mut insts[*at].kind, op.kind)
    {
        (*prim, *args) = (new_prim, new_args);
    }
    insts[*at].loc = op.loc;
}
