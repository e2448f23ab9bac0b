//! Copies within a block: readers of a copy read the original, and what is computed only to be copied is computed in its
//! place.

use std::collections::HashMap;

use crate::analysis::stack_copies::keeps_top;
use crate::analysis::stack_liveness::{Liveness, is_pure, step_back};
use crate::base::{IdSet, work};
use crate::prim::Prim;
use crate::stack::{Inst, InstKind, Operand, Program, SideEffect, Terminator, VarId, Write};

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
    copies: HashMap<VarId, Operand>,
    /// The variables that are copies of a variable, some of them no more.
    of: HashMap<VarId, Vec<VarId>>,
}

impl Known {
    fn original(&self, operand: Operand) -> Operand {
        operand.var().and_then(|v| self.copies.get(&v)).copied().unwrap_or(operand)
    }

    fn step(&mut self, inst: &mut Inst) {
        work::add(1);
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
        self.copies.remove(&written);
        for copy in self.of.remove(&written).into_iter().flatten() {
            if self.copies.get(&copy) == Some(&Operand::Var(written)) {
                self.copies.remove(&copy);
            }
        }
        if let Some((_, dst, src)) = copy(&inst.kind) {
            self.copies.insert(dst, src);
            src.var().into_iter().for_each(|v| self.of.entry(v).or_default().push(dst));
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
fn coalesce(program: &Program, insts: Vec<Inst>, end: IdSet<VarId>) -> Vec<Inst> {
    let mut live = end;
    let mut code = Code::new(insts);
    for at in (0..code.insts.len()).rev() {
        let Some(inst) = &code.insts[at] else { continue };
        let inst = &inst.kind;
        if is_dead(program, inst, &live) {
            code.insts[at] = None;
            continue;
        }
        if let Some((write, dst, Operand::Var(from))) = copy(inst)
            && from != dst
            && !live.contains(from)
        {
            if code.made_in_place(at, write, dst, from) {
                continue;
            }
            code.compute_later(program, at, from);
        }
        if let Some(inst) = &code.insts[at] {
            step_back(&inst.kind, &mut live);
        }
    }
    code.insts.into_iter().flatten().collect()
}

fn is_dead(program: &Program, inst: &InstKind, live: &IdSet<VarId>) -> bool {
    match inst {
        InstKind::Compute { write: Write::Push, .. } => false,
        InstKind::Compute { dst, .. } => keeps_top(inst) || (!live.contains(*dst) && is_pure(program, inst)),
        _ => false,
    }
}

/// The instructions of a block, some of them gone, and where they touch variables.
struct Code {
    insts: Vec<Option<Inst>>,
    /// Where each variable is read, or its value, top or height changed, ascending.
    touched: HashMap<VarId, Vec<usize>>,
    /// Where its value is changed.
    written: HashMap<VarId, Vec<usize>>,
}

impl Code {
    fn new(insts: Vec<Inst>) -> Self {
        let (mut touched, mut written): (HashMap<VarId, Vec<usize>>, HashMap<VarId, Vec<usize>>) = Default::default();
        work::add(insts.len());
        for (i, inst) in insts.iter().enumerate() {
            let mut touch = |v: VarId| {
                let places = touched.entry(v).or_default();
                if places.last() != Some(&i) {
                    places.push(i);
                }
            };
            inst.kind.for_each_operand(|o| o.var().into_iter().for_each(&mut touch));
            inst.kind.moved().into_iter().for_each(|(v, _)| touch(v));
            if let Some(v) = inst.kind.written() {
                touch(v);
                written.entry(v).or_default().push(i);
            }
        }
        Self { insts: insts.into_iter().map(Some).collect(), touched, written }
    }

    /// The last place before another that touches a variable. Later ones are forgotten.
    fn last_touched(&mut self, v: VarId, before: usize) -> Option<usize> {
        last(&self.insts, self.touched.get_mut(&v)?, before)
    }

    /// The same for a change of its value.
    fn last_written(&mut self, v: VarId, before: usize) -> Option<usize> {
        last(&self.insts, self.written.get_mut(&v)?, before)
    }

    fn kind(&mut self, at: usize) -> &mut InstKind {
        &mut self.insts[at].as_mut().expect("what is gone is not listed").kind
    }

    /// `t = op; …; d = copy t` becomes `d = op; …` where nothing between touches `d`; so does `t = tape_pop`.
    fn made_in_place(&mut self, at: usize, write: Write, dst: VarId, from: VarId) -> bool {
        let Some(made) = self.last_written(from, at) else { return false };
        let fits = match self.kind(made) {
            InstKind::Compute { write: w, .. } => *w != Write::Push,
            InstKind::Effect(SideEffect::TapePop { .. }) => write != Write::Push,
            _ => false,
        };
        if !fits || self.last_touched(dst, at).is_some_and(|last| last > made) {
            return false;
        }
        // Before `at` it is read only after it is made, and by what makes it.
        self.last_touched(from, at);
        let places = self.touched.entry(from).or_default();
        let between = places.split_off(places.partition_point(|place| *place <= made));
        for place in &between {
            if self.insts[*place].is_some() {
                self.kind(*place).for_each_operand_mut(|o| {
                    if o.var() == Some(from) {
                        *o = Operand::Var(dst);
                    }
                });
            }
        }
        work::add(between.len());
        match self.kind(made) {
            InstKind::Compute { write: w, dst: d, .. } => (*w, *d) = (write, dst),
            InstKind::Effect(SideEffect::TapePop { dst: d, .. }) => *d = dst,
            _ => {}
        }
        self.insts[at] = None;
        let places = self.touched.entry(dst).or_default();
        if places.last() != Some(&made) {
            places.push(made);
        }
        places.extend(between);
        let places = self.written.entry(dst).or_default();
        places.truncate(places.partition_point(|place| *place < made));
        places.push(made);
        self.written.entry(from).or_default().pop();
        if !self.kind(made).touches(from) {
            self.touched.entry(from).or_default().pop();
        }
        true
    }

    /// `t = op; …; d = copy t` becomes `…; d = op` where `op` may wait: it is pure, nothing between reads `t` or changes what
    /// it reads.
    fn compute_later(&mut self, program: &Program, at: usize, from: VarId) {
        let Some(made) = self.last_written(from, at) else { return };
        let op = self.kind(made).clone();
        let InstKind::Compute { write, prim, args, .. } = &op else { return };
        if *write == Write::Push || !is_pure(program, &op) || self.last_touched(from, at) != Some(made) {
            return;
        }
        if args.iter().filter_map(|a| a.var()).any(|v| self.last_written(v, at).is_some_and(|last| last > made)) {
            return;
        }
        let Some(inst) = self.insts[made].take() else { return };
        if let Some(copy) = &mut self.insts[at] {
            if let InstKind::Compute { prim: new_prim, args: new_args, .. } = &mut copy.kind {
                (*new_prim, *new_args) = (*prim, args.clone());
            }
            copy.loc = inst.loc;
        }
    }
}

/// The last of these places before another where an instruction is left. Later ones are forgotten.
fn last(insts: &[Option<Inst>], places: &mut Vec<usize>, before: usize) -> Option<usize> {
    while places.last().is_some_and(|place| *place >= before || insts[*place].is_none()) {
        places.pop();
    }
    places.last().copied()
}
