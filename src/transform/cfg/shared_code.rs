//! What depends on shared values only is computed once, before the lanes start, whole loops, branches and calls of it
//! too.
//!
//! *Known* is a variable at a place where it holds one shared value or constant, however the place is reached. A
//! primitive of known operands becomes a shared value. A *section* (a loop, the arms of a branch on a shared condition,
//! a call) is entered and left at one place. If it reads what is known, and does nothing but compute, it becomes a
//! *routine*: blocks in the source of shared values (`shared total: real = routine { … }`), which the interpreter runs
//! when the values are bound.
//!
//! All this may trap, or not end, though no lane would have come there. Then the shared values cannot be computed: the
//! routine is given up after a bounded time, and the program is compiled again without this pass, so that only the
//! lanes that come there trap. So what a lane does never depends on it. A routine is never dropped for being unread: a
//! trap would be lost.

mod known;
mod section;

use std::sync::Arc;

use super::blocks::drop_unreachable_blocks;
use super::simplify;
use crate::analysis::callgraph::CallGraph;
use crate::base::{Id as _, IdVec, Loc, Names};
use crate::cfg::{Func, FuncId, Inst, InstKind, Operand, Program, Shared, SharedId, SharedSource, Terminator, VarId};
use crate::parts::routine::{Block, Routine, RoutineBlock, RoutineVar, Step, Term};
use crate::parts::{self, Args};
use crate::prim::{Effect, Prim};
use crate::types::{DType, Type};
use known::Known;
use section::Section;

/// More rounds than any function needs whose size is bounded by reason.
const MOST_ROUNDS: usize = 200;

/// Makes shared values of what depends on shared values only.
pub(super) fn run(mut program: Program) -> Program {
    let graph = CallGraph::new(&program);
    let mut names = Names::of(program.shared.values().map(|s| &s.name));
    for id in program.funcs.ids() {
        let mut func = program.funcs[id].clone();
        for _ in 0..MOST_ROUNDS {
            // What is known now may be all that a branch or a product needs to be folded.
            if !hoist(&mut program, &mut func, &mut names) && !share(&mut program, &graph, id, &mut func, &mut names) {
                break;
            }
            simplify::simplify_fully(&program, &mut func);
        }
        program.funcs[id] = func;
    }
    program
}

/// Reads known variables as what they hold, and makes shared values of primitives of known operands. Whether there were any.
fn hoist(program: &mut Program, func: &mut Func, names: &mut Names) -> bool {
    let known = Known::of(func);
    let mut changed = false;
    let mut blocks = std::mem::take(&mut func.blocks);
    for (id, block) in blocks.iter_mut() {
        let Some(mut now) = known.at(id) else { continue };
        for inst in &mut block.insts {
            inst.kind.for_each_operand_mut(|o| changed |= now.replace(o));
            if let InstKind::Prim { dst, prim, args } = &mut inst.kind
                && let Some(source) = as_shared(program, func, (*dst, *prim, args), &inst.loc)
            {
                let name = names.unique(&func.vars[*dst].name);
                let id = program.shared.push(Shared { name, ty: func.vars[*dst].ty.clone(), source });
                *prim = Prim::Copy;
                *args = Args::from_slice(&[Operand::Shared(id)]);
                changed = true;
            }
            now.step(&inst.kind);
        }
        block.term.for_each_operand_mut(|o| changed |= now.replace(o));
    }
    func.blocks = blocks;
    changed
}

/// A primitive of known operands as a shared value: one that may trap as a routine.
fn as_shared(
    program: &Program,
    func: &Func,
    (dst, prim, args): (VarId, Prim, &[Operand]),
    loc: &Loc,
) -> Option<SharedSource> {
    if prim == Prim::Copy || prim.is_draw() {
        return None;
    }
    let shared: Args<SharedId> = args.iter().map(|a| a.shared()).collect::<Option<_>>()?;
    let types: Vec<Type> = args.iter().map(|a| program.operand_type(func, *a)).collect();
    let constant = !args.iter().any(|a| matches!(a, Operand::Shared(_)));
    if !constant && prim.effect(&types) == Effect::Traps {
        let var = &func.vars[dst];
        let mut vars = IdVec::new();
        let dst = vars.push((var.name.clone(), var.ty.clone()));
        let args = args.iter().map(|a| a.shared()).collect::<Option<_>>()?;
        let block = Block {
            steps: vec![Step { dst, prim, args, loc: loc.clone() }],
            term: Term::Return(Args::from_slice(&[parts::Operand::Var(dst)])),
        };
        let blocks = [block].into_iter().collect();
        return Some(SharedSource::Routine(Arc::new(Routine { vars, blocks }), 0));
    }
    // Arithmetic of constant ints and bools is folded by `simplify`, that of reals depends on the precision of the run.
    let real = || types.iter().any(|ty| ty.dtype == DType::Real) && prim.effect(&types) == Effect::Pure;
    (!constant || real()).then_some(SharedSource::Prim(prim, shared))
}

/// Makes a routine of the largest section that can be one. Whether there was any.
fn share(program: &mut Program, graph: &CallGraph, id: FuncId, func: &mut Func, names: &mut Names) -> bool {
    let Some(section) = Section::largest(program, graph, id, func) else { return false };
    let results = section.results.clone();
    let values = match routine(&section.code) {
        Some(routine) => add_results(program, func, &results, routine, names),
        // It computes nothing: its results are known as they are.
        None => section.returned().to_vec(),
    };
    let loc = section.loc.clone();
    let block = &mut func.blocks[section.entry];
    if section.whole {
        block.insts.clear();
    }
    for (var, value) in results.iter().zip(values) {
        let kind = InstKind::Prim { dst: *var, prim: Prim::Copy, args: Args::from_slice(&[value]) };
        block.insts.push(Inst { kind, loc: loc.clone() });
    }
    block.term = Terminator::Jump(section.exit);
    drop_unreachable_blocks(func);
    true
}

fn add_results(
    program: &mut Program,
    func: &Func,
    results: &[VarId],
    routine: Routine,
    names: &mut Names,
) -> Vec<Operand> {
    let routine = Arc::new(routine);
    let add = |(i, var): (usize, &VarId)| {
        let var = &func.vars[*var];
        let source = SharedSource::Routine(Arc::clone(&routine), i);
        Operand::Shared(program.shared.push(Shared { name: names.unique(&var.name), ty: var.ty.clone(), source }))
    };
    results.iter().enumerate().map(add).collect()
}

/// The code of a section as a routine; `None` when it does nothing but return what is known.
fn routine(code: &Func) -> Option<Routine> {
    let var = |v: VarId| RoutineVar::new(v.index());
    let operand = |o: &Operand| o.map(var);
    let block = |b: crate::cfg::BlockId| RoutineBlock::new(b.index());
    let blocks: IdVec<RoutineBlock, Block> = code
        .blocks
        .values()
        .map(|source| Block {
            steps: source
                .insts
                .iter()
                .map(|inst| match &inst.kind {
                    InstKind::Prim { dst, prim, args } => {
                        let args = args.iter().map(operand).collect();
                        Step { dst: var(*dst), prim: *prim, args, loc: inst.loc.clone() }
                    }
                    _ => unreachable!("a section only computes"),
                })
                .collect(),
            term: match &source.term {
                Terminator::Jump(b) => Term::Jump(block(*b)),
                Terminator::Branch(cond, a, b) => Term::Branch(operand(cond), block(*a), block(*b)),
                Terminator::Return(values) => Term::Return(values.iter().map(operand).collect()),
                Terminator::Call { .. } | Terminator::TailCall { .. } => unreachable!("a section's calls are inlined"),
            },
        })
        .collect();
    let first = blocks.values().next().expect("code has blocks");
    let known = |values: &Args<RoutineVar>| values.iter().all(|v| v.var().is_none());
    if let (true, Term::Return(values)) = (first.steps.is_empty(), &first.term)
        && known(values)
    {
        return None;
    }
    let vars = code.vars.values().map(|v| (v.name.clone(), v.ty.clone())).collect();
    Some(Routine { vars, blocks })
}
