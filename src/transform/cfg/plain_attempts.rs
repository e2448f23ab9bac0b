//! Attempts of functions that cannot trap are ordinary calls, which can be inlined.

use super::blocks::operand_types;
use crate::base::IdVec;
use crate::cfg::{Func, FuncId, InstKind, Program, SideEffect, Terminator};
use crate::prim::Effect;

pub(super) fn run(mut program: Program) -> Program {
    let traps = trapping(&program);
    for block in program.funcs.values_mut().flat_map(|f| f.blocks.values_mut()) {
        if let Terminator::Call { func, attempt, .. } = &mut block.term {
            *attempt &= traps[*func];
        }
    }
    program
}

/// The functions that may trap in a way that an attempt catches, themselves or by what they call; what they attempt does not
/// trap them.
fn trapping(program: &Program) -> IdVec<FuncId, bool> {
    let mut traps: IdVec<FuncId, bool> = program.funcs.values().map(|f| computes_traps(program, f)).collect();
    let mut changed = true;
    while changed {
        changed = false;
        for (id, func) in program.funcs.iter() {
            let calls = |term: &Terminator| match term {
                Terminator::Call { func, attempt: false, .. } | Terminator::TailCall { func, .. } => traps[*func],
                _ => false,
            };
            if !traps[id] && func.blocks.values().any(|b| calls(&b.term)) {
                traps[id] = true;
                changed = true;
            }
        }
    }
    traps
}

fn computes_traps(program: &Program, func: &Func) -> bool {
    func.blocks.values().flat_map(|b| &b.insts).any(|inst| match &inst.kind {
        InstKind::Prim { prim, args, .. } => prim.effect(&operand_types(program, func, args)) == Effect::Traps,
        InstKind::Effect(effect) => matches!(effect, SideEffect::Assert { .. }),
    })
}
