//! Drops what is computed, saved or copied for nobody: nothing that the program gives depends on it, though it may be read
//! to compute more of the same, round and round through calls. A saved variable whose top is not read before the pop gets no
//! new top.

use crate::analysis::stack_liveness::{Liveness, is_pure, step_back_wanted};
use crate::base::IdSet;
use crate::stack::{InstKind, Program, VarId, Write};

use super::layout::{for_each_var, keep_vars};

pub(super) fn run(program: Program) -> Program {
    let found = Liveness::of_wanted(&program);
    drop_unwanted(program, found)
}

/// The same, but for what calls save: that stays, with what it takes to compute it.
pub(super) fn run_keeping_saves(program: Program) -> Program {
    let found = Liveness::of_wanted_and_saved(&program);
    drop_unwanted(program, found)
}

fn drop_unwanted(mut program: Program, (liveness, popped): (Liveness, IdSet<VarId>)) -> Program {
    for id in program.blocks.ids() {
        let mut now = liveness.live_at_end(&program, id);
        let mut insts = std::mem::take(&mut program.blocks[id].insts);
        for inst in insts.iter_mut().rev() {
            let after = now.clone();
            step_back_wanted(&program, &inst.kind, &mut now, &popped);
            let pure = is_pure(&program, &inst.kind);
            match &mut inst.kind {
                InstKind::Compute { write: write @ Write::Push, dst, .. } if !popped.contains(*dst) => {
                    *write = Write::Update;
                }
                InstKind::Compute { write: Write::Push, dst, .. } if pure && !after.contains(*dst) => {
                    inst.kind = InstKind::Save { stack: *dst, value: *dst };
                }
                _ => {}
            }
        }
        let mut now = liveness.live_at_end(&program, id);
        let mut kept = Vec::with_capacity(insts.len());
        for inst in insts.into_iter().rev() {
            let gone = match &inst.kind {
                InstKind::Compute { write: Write::Push, .. } => false,
                InstKind::Compute { dst, .. } => !now.contains(*dst) && is_pure(&program, &inst.kind),
                InstKind::Pop(v) | InstKind::Save { stack: v, .. } => !popped.contains(*v),
                _ => false,
            };
            if !gone {
                step_back_wanted(&program, &inst.kind, &mut now, &popped);
                kept.push(inst);
            }
        }
        kept.reverse();
        program.blocks[id].insts = kept;
    }
    let mut used = IdSet::new(program.vars.len());
    for port in program.inputs.iter().chain(&program.outputs) {
        used.insert(port.var);
    }
    for_each_var(&mut program, |v| {
        used.insert(*v);
    });
    keep_vars(&mut program, &used);
    program
}
