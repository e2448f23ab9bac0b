//! Parameters that a function does not read and results that no caller reads.

use crate::analysis::liveness::live_in;
use crate::base::{Id, IdVec};
use crate::cfg::{BlockId, FuncId, Program, Terminator};

/// Drops them, except from the entry. Whether there were any.
pub(super) fn drop_unused(program: &mut Program) -> bool {
    drop_parameters(program) | drop_results(program)
}

fn keep<T>(items: &mut Vec<T>, kept: &[bool]) {
    let mut kept = kept.iter();
    items.retain(|_| *kept.next().expect("one flag for each"));
}

fn drop_parameters(program: &mut Program) -> bool {
    let mut kept: IdVec<FuncId, Vec<bool>> = IdVec::new();
    for (id, func) in program.funcs.iter() {
        let live = live_in(func);
        let read = |p: &_| id == program.entry || live[BlockId::new(0)].contains(*p);
        kept.push(func.params.iter().map(read).collect());
    }
    for (id, func) in program.funcs.iter_mut() {
        keep(&mut func.params, &kept[id]);
        for block in func.blocks.values_mut() {
            if let Terminator::Call { func, args, .. } | Terminator::TailCall { func, args, .. } = &mut block.term {
                keep(args, &kept[*func]);
            }
        }
    }
    kept.values().any(|k| k.contains(&false))
}

fn drop_results(program: &mut Program) -> bool {
    let mut kept: IdVec<FuncId, Vec<bool>> = IdVec::new();
    for func in program.funcs.values() {
        kept.push(vec![false; func.results.len()]);
    }
    kept[program.entry].fill(true);
    for (id, func) in program.funcs.iter() {
        let live = live_in(func);
        for block in func.blocks.values() {
            match &block.term {
                Terminator::Call { func, dsts, next, .. } => {
                    for (kept, dst) in kept[*func].iter_mut().zip(dsts) {
                        *kept |= live[*next].contains(*dst);
                    }
                }
                // the results of both go together; a function that calls itself decides nothing
                Terminator::TailCall { func: callee, .. } if *callee != id => {
                    kept[*callee].fill(true);
                    kept[id].fill(true);
                }
                _ => {}
            }
        }
    }
    for (id, func) in program.funcs.iter_mut() {
        keep(&mut func.results, &kept[id]);
        for block in func.blocks.values_mut() {
            match &mut block.term {
                Terminator::Call { func, dsts, .. } => keep(dsts, &kept[*func]),
                Terminator::Return(values) => keep(values, &kept[id]),
                _ => {}
            }
        }
    }
    kept.values().any(|k| k.contains(&false))
}
