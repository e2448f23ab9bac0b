//! Pop–push fusion: a variable that one call saved and the next one saves again.

use std::collections::HashMap;

use crate::analysis::stack_liveness::Liveness;
use crate::base::{IdSet, work};
use crate::stack::{Inst, InstKind, Operand, Program, VarId, Write};

pub(super) fn run(mut program: Program) -> Program {
    let liveness = Liveness::of(&program);
    for id in program.blocks.ids() {
        let after = liveness.live_after(&program, id);
        fuse(&mut program.blocks[id].insts, &after);
    }
    program
}

/// Fuses in one block; `after` are the variables that are live after each instruction.
///
/// `pop v; push v = e` is `update v = e` when nothing between touches `v` and `e` does not read it. When `e` is `v` itself,
/// or `v` is saved as it is, the value stays where it is, one below the top, and the top is not set: right if nobody reads
/// it before the next pop.
fn fuse(insts: &mut Vec<Inst>, after: &[IdSet<VarId>]) {
    let mut gone = vec![false; insts.len()];
    let next = next_touches(insts);
    for i in 0..insts.len() {
        let InstKind::Pop(v) = insts[i].kind else {
            continue;
        };
        let moves = |inst: &Inst| inst.kind.moved().is_some_and(|(moved, _)| moved == v);
        let Some(j) = next[i] else {
            continue;
        };
        // A push of another variable may read `v` too.
        if !moves(&insts[j]) {
            continue;
        }
        match &mut insts[j].kind {
            InstKind::Save { value, .. } if *value == v && !after[j].contains(v) => {
                gone[i] = true;
                gone[j] = true;
            }
            InstKind::Compute { write: write @ Write::Push, args, prim, .. } => {
                if !args.contains(&Operand::Var(v)) {
                    *write = Write::Update;
                    gone[i] = true;
                } else if *prim == crate::prim::Prim::Copy && !after[j].contains(v) {
                    gone[i] = true;
                    gone[j] = true;
                }
            }
            _ => {}
        }
    }
    let mut gone = gone.into_iter();
    insts.retain(|_| gone.next() == Some(false));
}

/// For each `pop` where its variable is touched next. What is fused touches the same variables.
fn next_touches(insts: &[Inst]) -> Vec<Option<usize>> {
    let mut next = vec![None; insts.len()];
    let mut known: HashMap<VarId, usize> = HashMap::new();
    work::add(insts.len());
    for (i, inst) in insts.iter().enumerate().rev() {
        if let InstKind::Pop(v) = inst.kind {
            next[i] = known.get(&v).copied();
        }
        inst.kind.for_each_operand(|o| known.extend(o.var().map(|v| (v, i))));
        known.extend(inst.kind.written().map(|v| (v, i)));
        known.extend(inst.kind.moved().map(|(v, _)| (v, i)));
    }
    next
}
