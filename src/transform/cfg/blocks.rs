//! What several passes do with blocks, variables and functions.

use std::sync::Arc;

use crate::analysis::liveness::{live_across_call, live_in};
use crate::base::{Id, IdSet, IdVec, Names};
use crate::cfg::{BlockId, Func, FuncId, InstKind, Operand, Program, SharedId, SharedSource, Terminator, Var, VarId};
use crate::parts;
use crate::prim::{Effect, Prim};
use crate::types::Type;

/// How many edges lead to each block; the start of the function counts as one to the first block.
pub(in crate::transform) fn edges_to(func: &Func) -> IdVec<BlockId, usize> {
    let mut edges = IdVec::filled(0, func.blocks.len());
    if let Some(first) = func.blocks.ids().next() {
        edges[first] += 1;
    }
    for block in func.blocks.values() {
        for next in block.term.successors() {
            edges[next] += 1;
        }
    }
    edges
}

/// Drops blocks that no path reaches; the others keep their order. Whether there were any.
pub(in crate::transform) fn drop_unreachable_blocks(func: &mut Func) -> bool {
    let mut reached = IdSet::new(func.blocks.len());
    let mut work = vec![BlockId::new(0)];
    while let Some(block) = work.pop() {
        if reached.insert(block) {
            work.extend(func.blocks[block].term.successors());
        }
    }
    let mut new_ids = IdVec::filled(BlockId::new(0), func.blocks.len());
    let old = std::mem::take(&mut func.blocks);
    let count = old.len();
    for (id, block) in old.ids().zip(old.values()) {
        if reached.contains(id) {
            new_ids[id] = func.blocks.push(block.clone());
        }
    }
    for block in func.blocks.values_mut() {
        block.term.for_each_successor_mut(|b| *b = new_ids[*b]);
    }
    func.blocks.len() < count
}

/// Drops variables that nothing mentions. Whether there were any.
pub(in crate::transform) fn drop_unused_variables(func: &mut Func) -> bool {
    let mut used = IdSet::new(func.vars.len());
    for param in &func.params {
        used.insert(*param);
    }
    for_each_var(func, |v| {
        used.insert(*v);
    });
    let count = func.vars.len();
    let mut new_ids = IdVec::filled(VarId::new(0), count);
    let old = std::mem::take(&mut func.vars);
    for (id, var) in old.iter() {
        if used.contains(id) {
            new_ids[id] = func.vars.push(var.clone());
        }
    }
    if func.vars.len() == count {
        return false;
    }
    for param in &mut func.params {
        *param = new_ids[*param];
    }
    for_each_var(func, |v| *v = new_ids[*v]);
    true
}

/// Visits every mention of a variable in the blocks.
pub(in crate::transform) fn for_each_var(func: &mut Func, mut visit: impl FnMut(&mut VarId)) {
    for block in func.blocks.values_mut() {
        block.for_each_var_mut(&mut visit);
    }
}

/// Drops functions that nothing calls. Whether there were any.
pub(in crate::transform) fn drop_uncalled_functions(program: &mut Program) -> bool {
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
pub(in crate::transform) fn drop_unread_shared(program: &mut Program) -> bool {
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

/// The variables that live when the terminator of a block starts, for each block.
pub(in crate::transform) fn live_at_terminators(func: &Func) -> IdVec<BlockId, IdSet<VarId>> {
    let live = live_in(func);
    let mut at_terminators = IdVec::new();
    for (id, block) in func.blocks.iter() {
        let mut now = live_across_call(func, &live, id);
        if !matches!(block.term, Terminator::Call { .. }) {
            for next in block.term.successors() {
                now.union_with(&live[next]);
            }
        }
        block.term.for_each_operand(|o| {
            if let Operand::Var(v) = o {
                now.insert(v);
            }
        });
        at_terminators.push(now);
    }
    at_terminators
}

/// Steps over an instruction backwards: what lives before it.
pub(in crate::transform) fn step_back(inst: &InstKind, live: &mut IdSet<VarId>) {
    if let Some(dst) = inst.dst() {
        live.remove(dst);
    }
    inst.for_each_operand(|o| {
        if let Operand::Var(v) = o {
            live.insert(v);
        }
    });
}

/// The types of operands.
pub(in crate::transform) fn operand_types(program: &Program, func: &Func, args: &[Operand]) -> Vec<Type> {
    args.iter().map(|o| program.operand_type(func, *o)).collect()
}

/// Whether a primitive is total and without effect for these operands.
pub(in crate::transform) fn is_pure(program: &Program, func: &Func, prim: Prim, args: &[Operand]) -> bool {
    prim.effect(&operand_types(program, func, args)) == Effect::Pure
}

/// Cost of an instruction in one lane, in additions.
pub(super) fn cost(program: &Program, func: &Func, inst: &InstKind) -> u64 {
    match inst {
        InstKind::Prim { dst, prim, args } => prim.cost(&operand_types(program, func, args), &func.vars[*dst].ty),
        _ => 1,
    }
}

/// Makes variables with names that no other variable of the function has.
#[derive(Debug)]
pub(in crate::transform) struct FreshNames(Names);

impl FreshNames {
    pub(in crate::transform) fn new(func: &Func) -> Self {
        Self(Names::of(func.vars.values().map(|v| &v.name)))
    }
    /// No name is taken.
    pub(in crate::transform) fn none() -> Self {
        Self(Names::default())
    }
    /// Adds a variable; its name is `wanted`, with a number where that is taken.
    pub(in crate::transform) fn add(&mut self, vars: &mut IdVec<VarId, Var>, wanted: &str, ty: Type) -> VarId {
        vars.push(Var { name: self.0.unique(wanted), ty })
    }
}
