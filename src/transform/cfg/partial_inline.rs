//! Partial inlining of recursive functions: what a function does before it returns early goes in the place of the call, so that
//! the calls at the ends of a recursion, which are half of all where it is binary, are none.

use super::blocks::{FreshNames, cost, drop_unreachable_blocks, drop_unused_variables, edges_to, operand_types};
use super::inline::{copy, return_to};
use crate::base::{Id, IdVec, Names};
use crate::cfg::{Block, BlockId, Func, FuncId, Inst, InstKind, Operand, Program, Terminator, Var, VarId};
use crate::prim::Effect;

/// Most that the way to the early return may cost, in additions: it stands at each call.
const MOST_COST: u64 = 64;
/// Most instructions of it.
const MOST_INSTS: usize = 16;
/// Most elements that are passed and returned: without the call they are copied at each place.
const MOST_ELEMENTS: usize = 64;
/// Most calls of itself that a function may hold. A recursion has few; more only make the function long.
const MOST_SITES: usize = 8;

/// Splits every function that calls itself, and at its start may return at once, in two: the test with the early return, which
/// ends in a tail call of the rest; and the rest, in which the test stands before each call.
pub(super) fn run(mut program: Program) -> Program {
    let mut names = Names::of(program.funcs.values().map(|f| &f.name));
    for id in program.funcs.ids().collect::<Vec<_>>() {
        let Some(early) = early_return(&program, id) else { continue };
        let func = &program.funcs[id];
        let name = names.unique(&format!("{}.rest", func.name));
        let rest = rest(func, id, program.funcs.next_id(), early, name);
        let rest = program.funcs.push(rest);
        split(&mut program.funcs[id], rest, early);
    }
    program
}

/// How a function returns early: by the first or the second way out of its first block.
#[derive(Clone, Copy)]
struct Early {
    first: bool,
    returns: BlockId,
    goes_on: BlockId,
}

fn entry(func: &Func) -> &Block {
    &func.blocks[BlockId::new(0)]
}

/// The early return of a function that calls itself other than in the end; none where it does not pay, where the test changes
/// what the rest is called with, or where it draws: the rest makes it again.
fn early_return(program: &Program, id: FuncId) -> Option<Early> {
    let func = &program.funcs[id];
    let calls = |b: &Block| matches!(b.term, Terminator::Call { func, .. } if func == id);
    let ends = |b: &Block| matches!(b.term, Terminator::TailCall { func, .. } if func == id);
    let attempts = |b: &Block| b.term.is_attempt() && b.term.callee() == Some(id);
    let sites = func.blocks.values().filter(|b| calls(b) || ends(b)).count();
    if !func.blocks.values().any(calls)
        || func.blocks.values().any(attempts)
        || sites > MOST_SITES
        || edges_to(func)[BlockId::new(0)] > 1
    {
        return None;
    }
    let Terminator::Branch(_, a, b) = entry(func).term else { return None };
    let returns = |b: BlockId| matches!(func.blocks[b].term, Terminator::Return(_));
    let early = match (returns(a), returns(b)) {
        (true, false) => Early { first: true, returns: a, goes_on: b },
        (false, true) => Early { first: false, returns: b, goes_on: a },
        _ => return None,
    };
    let insts = || entry(func).insts.iter().chain(&func.blocks[early.returns].insts);
    let computes = insts().all(|i| matches!(i.kind, InstKind::Prim { .. }));
    let draws = |i: &Inst| match &i.kind {
        InstKind::Prim { prim, args, .. } => prim.effect(&operand_types(program, func, args)) == Effect::Random,
        _ => false,
    };
    let repeats = !entry(func).insts.iter().any(draws);
    let params = func.params.iter().map(|p| func.vars[*p].ty.elements());
    let passed: usize = params.chain(func.results.iter().map(|ty| ty.elements())).sum();
    let keeps = insts().all(|i| i.kind.dst().is_none_or(|dst| !func.params.contains(&dst)));
    let weight: u64 = insts().map(|i| cost(program, func, &i.kind)).sum();
    let small = passed <= MOST_ELEMENTS && insts().count() <= MOST_INSTS && weight <= MOST_COST;
    (computes && repeats && keeps && small).then_some(early)
}

/// What a function does when it does not return early, in which the test stands before each call of the function.
fn rest(func: &Func, id: FuncId, new: FuncId, early: Early, name: String) -> Func {
    let mut rest = Func { name, ..func.clone() };
    rest.blocks[BlockId::new(0)].term = Terminator::Jump(early.goes_on);
    let mut names = FreshNames::new(func);
    for at in func.blocks.ids() {
        let mut term = func.blocks[at].term.clone();
        let (args, loc) = match &mut term {
            Terminator::Call { func, args, loc, .. } | Terminator::TailCall { func, args, loc } if *func == id => {
                *func = new;
                (args.clone(), loc.clone())
            }
            _ => continue,
        };
        let mut copies = IdVec::filled(None, func.vars.len());
        let mut renamed = |v: VarId, rest: &mut Func| {
            *copies[v].get_or_insert_with(|| {
                let Var { name, ty } = &func.vars[v];
                names.add(&mut rest.vars, &format!("{}.{name}", func.name), ty.clone())
            })
        };
        let passed = func.params.iter().zip(args).map(|(p, arg)| copy(renamed(*p, &mut rest), arg, &loc));
        let passed: Vec<Inst> = passed.collect();
        let [test, mut returning] = [BlockId::new(0), early.returns].map(|block| {
            let mut block = func.blocks[block].clone();
            block.for_each_var_mut(|v| *v = renamed(*v, &mut rest));
            block
        });
        if let Terminator::Call { dsts, next, .. } = &term {
            return_to(&mut returning, dsts, *next, &loc);
        }
        let calling = Block { insts: Vec::new(), term, loc };
        let (returning, calling) = (rest.blocks.push(returning), rest.blocks.push(calling));
        let Terminator::Branch(cond, ..) = test.term else { unreachable!("it branches") };
        let (a, b) = if early.first { (returning, calling) } else { (calling, returning) };
        let site = &mut rest.blocks[at];
        site.insts.extend(passed.into_iter().chain(test.insts));
        site.term = Terminator::Branch(cond, a, b);
    }
    drop_unreachable_blocks(&mut rest);
    rest
}

/// Leaves of a function the test, the early return and a call of the rest.
fn split(func: &mut Func, rest: FuncId, early: Early) {
    let args = func.params.iter().map(|p| Operand::Var(*p)).collect();
    let block = &mut func.blocks[early.goes_on];
    (block.insts, block.term) = (Vec::new(), Terminator::TailCall { func: rest, args, loc: block.loc.clone() });
    drop_unreachable_blocks(func);
    drop_unused_variables(func);
}
