//! What a call may write: the variables that its function and all that it calls in turn may set.

use std::collections::BTreeMap;

use super::globals::{Globals, calls};
use crate::analysis::components::components;
use crate::base::{Id as _, IdSet};
use crate::cfg::{FuncId, Operand, Program, Terminator};
use crate::stack::VarId;

/// May-write sets of functions.
pub(super) struct Writes {
    of: BTreeMap<FuncId, IdSet<VarId>>,
}

impl Writes {
    pub(super) fn of(program: &Program, globals: &Globals) -> Self {
        let mut of: BTreeMap<FuncId, IdSet<VarId>> =
            globals.functions().map(|f| (f, direct(program, globals, f))).collect();
        // Callees first; functions that call one another write the same.
        let callees = |f: usize| calls(&program.funcs[FuncId::new(f)]).map(|(callee, _)| callee.index()).collect();
        for cycle in components(program.funcs.len(), callees) {
            let cycle: Vec<FuncId> = cycle.into_iter().map(FuncId::new).filter(|f| of.contains_key(f)).collect();
            let mut all = IdSet::new(globals.vars.len());
            for f in &cycle {
                all.union_with(&of[f]);
                for (callee, _) in calls(&program.funcs[*f]) {
                    all.union_with(&of[&callee]);
                }
            }
            of.extend(cycle.into_iter().map(|f| (f, all.clone())));
        }
        Self { of }
    }

    /// What a call with these arguments may write: parameters it sets to a new value, and what the callee writes.
    pub(super) fn of_call(
        &self,
        program: &Program,
        globals: &Globals,
        caller: FuncId,
        callee: FuncId,
        args: &[Operand],
    ) -> IdSet<VarId> {
        let mut set = self.of[&callee].clone();
        for (param, _) in new_params(program, globals, caller, callee, args) {
            set.insert(param);
        }
        set
    }
}

/// The parameters to which a call gives a new value, with the operands: not those that it passes on to themselves.
pub(super) fn new_params<'a>(
    program: &'a Program,
    globals: &'a Globals,
    caller: FuncId,
    callee: FuncId,
    args: &'a [Operand],
) -> impl Iterator<Item = (VarId, Operand)> + 'a {
    (program.funcs[callee].params.iter().zip(args))
        .map(move |(param, arg)| (globals.var(callee, *param), *arg))
        .filter(move |(param, arg)| arg.var().map(|v| globals.var(caller, v)) != Some(*param))
}

fn direct(program: &Program, globals: &Globals, f: FuncId) -> IdSet<VarId> {
    let func = &program.funcs[f];
    let mut set = IdSet::new(globals.vars.len());
    for block in func.blocks.values() {
        for inst in &block.insts {
            if let Some(dst) = inst.kind.dst() {
                set.insert(globals.var(f, dst));
            }
        }
        match &block.term {
            Terminator::Call { dsts, .. } => {
                for dst in dsts {
                    set.insert(globals.var(f, *dst));
                }
            }
            Terminator::Return(_) => {
                for result in globals.results(f) {
                    set.insert(*result);
                }
            }
            _ => {}
        }
    }
    for (callee, args) in calls(func) {
        for (param, _) in new_params(program, globals, f, callee, args) {
            set.insert(param);
        }
    }
    set
}
