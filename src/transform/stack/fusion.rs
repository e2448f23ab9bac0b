//! Pop–push fusion: a variable that one call saved and the next one saves again.

use crate::analysis::stack_liveness::Liveness;
use crate::base::IdSet;
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
    for i in 0..insts.len() {
        let InstKind::Pop(v) = insts[i].kind else {
            continue;
        };
        let moves = |inst: &Inst| inst.kind.moved().is_some_and(|(moved, _)| moved == v);
        let Some(j) = (i + 1..insts.len()).find(|j| insts[*j].kind.touches(v)) else {
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
