//! What depends on shared values and constants only is computed once, before any lane starts. The lowering does the same for
//! what it sees; inlining and derivatives make more.

use std::collections::HashMap;

use super::blocks::{drop_unread_shared, operand_types};
use crate::base::{IdVec, Names};
use crate::cfg::{Func, InstKind, Operand, Program, Shared, SharedId, SharedSource, VarId};
use crate::parts;
use crate::prim::{Effect, Prim};
use crate::types::Type;

type SharedArgs = parts::Args<SharedId>;

/// Makes shared values of total primitives of shared values and constants whose variable is set nowhere else.
pub(super) fn run(mut program: Program) -> Program {
    let mut known: HashMap<(Prim, SharedArgs, Type), SharedId> = HashMap::new();
    let mut names = Names::of(program.shared.values().map(|s| &s.name));
    for id in program.funcs.ids() {
        let mut func = program.funcs[id].clone();
        while hoist(&mut program, &mut func, &mut known, &mut names) {}
        program.funcs[id] = func;
    }
    drop_unread_shared(&mut program);
    program
}

fn hoist(
    program: &mut Program,
    func: &mut Func,
    known: &mut HashMap<(Prim, SharedArgs, Type), SharedId>,
    names: &mut Names,
) -> bool {
    let mut writes: IdVec<VarId, usize> = IdVec::filled(0, func.vars.len());
    func.params.iter().for_each(|p| writes[*p] += 1);
    for block in func.blocks.values() {
        block.insts.iter().filter_map(|i| i.kind.dst()).for_each(|v| writes[v] += 1);
        block.term.dsts().iter().for_each(|v| writes[*v] += 1);
    }
    let mut hoisted: IdVec<VarId, Option<SharedId>> = IdVec::filled(None, func.vars.len());
    let mut blocks = std::mem::take(&mut func.blocks);
    for block in blocks.values_mut() {
        block.insts.retain(|inst| {
            let InstKind::Prim { dst, prim, args } = &inst.kind else { return true };
            let pure = || prim.effect(&operand_types(program, func, args)) == Effect::Pure;
            let shared: Option<SharedArgs> = args.iter().map(|a| a.shared()).collect();
            let Some(shared) = shared.filter(|_| writes[*dst] == 1 && *prim != Prim::Copy && pure()) else {
                return true;
            };
            let ty = func.vars[*dst].ty.clone();
            let value = *known.entry((*prim, shared.clone(), ty.clone())).or_insert_with(|| {
                let name = names.numbered("%h", 1);
                program.shared.push(Shared { name, ty, source: SharedSource::Prim(*prim, shared) })
            });
            hoisted[*dst] = Some(value);
            false
        });
    }
    let found = hoisted.values().any(Option::is_some);
    let mut read = |operand: &mut Operand| {
        if let Operand::Var(v) = operand
            && let Some(value) = hoisted[*v]
        {
            *operand = Operand::Shared(value);
        }
    };
    for block in blocks.values_mut() {
        block.insts.iter_mut().for_each(|i| i.kind.for_each_operand_mut(&mut read));
        block.term.for_each_operand_mut(&mut read);
    }
    func.blocks = blocks;
    found
}
