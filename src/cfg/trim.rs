//! Dropping what nothing reaches, mentions, calls or reads: blocks, variables, functions, shared values.

use std::sync::Arc;

use super::{BlockId, Func, FuncId, Operand, Program, SharedId, SharedSource, Terminator, VarId};
use crate::base::{Id as _, IdSet, IdVec};
use crate::parts;

/// Drops blocks that no path reaches; the others keep their order. Whether there were any.
pub fn drop_unreachable_blocks(func: &mut Func) -> bool {
    let mut reached = IdSet::new(func.blocks.len());
    let mut work = vec![BlockId::new(0)];
    while let Some(block) = work.pop() {
        if reached.insert(block) {
            work.extend(func.blocks[block].term.successors());
        }
    }
    if func.blocks.ids().all(|id| reached.contains(id)) {
        return false;
    }
    let mut new_ids = IdVec::filled(BlockId::new(0), func.blocks.len());
    let old = std::mem::take(&mut func.blocks);
    for (id, block) in old.ids().zip(old.values()) {
        if reached.contains(id) {
            new_ids[id] = func.blocks.push(block.clone());
        }
    }
    for block in func.blocks.values_mut() {
        block.term.for_each_successor_mut(|b| *b = new_ids[*b]);
    }
    true
}

/// Drops variables that nothing mentions. Whether there were any.
pub fn drop_unused_variables(func: &mut Func) -> bool {
    let mut used = IdSet::new(func.vars.len());
    for param in &func.params {
        used.insert(*param);
    }
    func.for_each_var_mut(|v| _ = used.insert(*v));
    if func.vars.ids().all(|id| used.contains(id)) {
        return false;
    }
    let mut new_ids = IdVec::filled(VarId::new(0), func.vars.len());
    let old = std::mem::take(&mut func.vars);
    for (id, var) in old.iter() {
        if used.contains(id) {
            new_ids[id] = func.vars.push(var.clone());
        }
    }
    for param in &mut func.params {
        *param = new_ids[*param];
    }
    func.for_each_var_mut(|v| *v = new_ids[*v]);
    true
}

/// Drops functions that nothing calls. Whether there were any.
pub fn drop_uncalled_functions(program: &mut Program) -> bool {
    let mut called = IdSet::new(program.funcs.len());
    let mut work = vec![program.entry];
    while let Some(func) = work.pop() {
        if called.insert(func) {
            let blocks = program.funcs[func].blocks.values();
            work.extend(blocks.filter_map(|b| b.term.callee()));
        }
    }
    let count = program.funcs.len();
    let mut new_ids = IdVec::filled(FuncId::new(0), count);
    let old = std::mem::take(&mut program.funcs);
    for (id, func) in old.iter() {
        if called.contains(id) {
            new_ids[id] = program.funcs.push(func.clone());
        }
    }
    program.entry = new_ids[program.entry];
    for func in program.funcs.values_mut() {
        for block in func.blocks.values_mut() {
            if let Terminator::Call { func, .. } | Terminator::TailCall { func, .. } = &mut block.term {
                *func = new_ids[*func];
            }
        }
    }
    program.funcs.len() < count
}

/// Drops shared values that nothing reads, but for inputs. Whether there were any.
pub fn drop_unread_shared(program: &mut Program) -> bool {
    let mut read = IdSet::new(program.shared.len());
    let mut note = |o: Operand| {
        if let Operand::Shared(s) = o {
            read.insert(s);
        }
    };
    for block in program.funcs.values().flat_map(|f| f.blocks.values()) {
        block.insts.iter().for_each(|i| i.kind.for_each_operand(&mut note));
        block.term.for_each_operand(&mut note);
    }
    // a value is made of earlier ones
    for (id, shared) in program.shared.iter().rev() {
        match &shared.source {
            SharedSource::Input => _ = read.insert(id),
            SharedSource::Prim(_, args) if read.contains(id) => {
                for arg in args {
                    if let parts::Operand::Shared(s) = arg {
                        read.insert(*s);
                    }
                }
            }
            SharedSource::Prim(..) | SharedSource::Constant(_) => {}
            // It may trap, which is not to be lost.
            SharedSource::Routine(routine, _) => {
                read.insert(id);
                routine.shared().for_each(|s| _ = read.insert(s));
            }
        }
    }
    let count = program.shared.len();
    let mut new_ids = IdVec::filled(SharedId::new(0), count);
    // All results of a routine stand one after another and have one copy of it.
    let mut last_routine = Arc::new(parts::Routine { vars: IdVec::new(), blocks: IdVec::new() });
    let old = std::mem::take(&mut program.shared);
    for (id, shared) in old.iter().filter(|(id, _)| read.contains(*id)) {
        let mut shared = shared.clone();
        match &mut shared.source {
            SharedSource::Prim(_, args) => {
                for arg in args {
                    if let parts::Operand::Shared(s) = arg {
                        *s = new_ids[*s];
                    }
                }
            }
            SharedSource::Routine(routine, 0) => {
                last_routine = Arc::new(routine.renumbered(|s| new_ids[s]));
                *routine = Arc::clone(&last_routine);
            }
            SharedSource::Routine(routine, _) => *routine = Arc::clone(&last_routine),
            SharedSource::Input | SharedSource::Constant(_) => {}
        }
        new_ids[id] = program.shared.push(shared);
    }
    let renumber = |o: &mut Operand| {
        if let Operand::Shared(s) = o {
            *s = new_ids[*s];
        }
    };
    for block in program.funcs.values_mut().flat_map(|f| f.blocks.values_mut()) {
        block.insts.iter_mut().for_each(|i| i.kind.for_each_operand_mut(renumber));
        block.term.for_each_operand_mut(renumber);
    }
    program.shared.len() < count
}
