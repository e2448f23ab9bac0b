//! Tail calls: a call whose results are returned at once reuses the frame.

use crate::cfg::{BlockId, Func, Operand, Program, Terminator, VarId};

/// Turns calls whose next block only returns their results, in order, into tail calls. An attempt is none: its lanes come
/// back when they trap.
pub(super) fn run(mut program: Program) -> Program {
    let results: Vec<_> = program.funcs.values().map(|f| f.results.clone()).collect();
    for func in program.funcs.values_mut() {
        for id in func.blocks.ids() {
            let Terminator::Call { func: callee, args, dsts, next, loc, attempt: false } = &func.blocks[id].term else {
                continue;
            };
            if results[callee.0 as usize] == func.results && returns(func, *next, dsts) {
                func.blocks[id].term = Terminator::TailCall { func: *callee, args: args.clone(), loc: loc.clone() };
            }
        }
    }
    program
}

/// Whether a block, through empty blocks, does nothing but return these variables.
fn returns(func: &Func, mut block: BlockId, values: &[VarId]) -> bool {
    for _ in 0..func.blocks.len() {
        if !func.blocks[block].insts.is_empty() {
            return false;
        }
        match &func.blocks[block].term {
            Terminator::Jump(next) => block = *next,
            Terminator::Return(found) => {
                let wanted = values.iter().map(|v| Operand::Var(*v));
                return found.iter().copied().eq(wanted);
            }
            _ => return false,
        }
    }
    false
}
