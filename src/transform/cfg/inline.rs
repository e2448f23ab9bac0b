//! Inlining: the blocks of a callee in the place of a call. Locations stay those of the callee. An inlined call is no active
//! call any more: it does not count for the stack limit, nor in the call depth of a trap.

use std::collections::{BTreeMap, BTreeSet};

use super::blocks::{FreshNames, cost, drop_uncalled_functions, edges_to};
use crate::analysis::callgraph::CallGraph;
use crate::analysis::components::components;
use crate::base::{Id, IdVec, Loc, work};
use crate::cfg::{Block, BlockId, Func, FuncId, Inst, InstKind, Operand, Program, Terminator, VarId};
use crate::parts::Args;
use crate::prim::Prim;
use crate::types::Type;

/// Most instructions of a function that is inlined at more than one place.
const MOST_INSTS: usize = 48;
/// What a call costs a batch in each lane, in additions, beside what goes in and out: two supersteps. A function that is
/// inlined may cost as much as its call, what it calls left out: two copies of a heavy block cannot run together for lanes
/// that are in different copies.
const CALL: u64 = 256;
/// What each element of the arguments and results costs: it is loaded and stored by a copy, under the mask, and loaded again
/// where it is used.
const PASSED: u64 = 3;
/// Most that such a function may cost whatever goes in and out: a superstep is nothing beside it, and that lanes meet is all.
const MOST_COST: u64 = 1 << 14;
/// All copies of such a function but one may cost so many calls together.
const MOST_COPIED: u64 = 2;
/// What a function may cost that is inlined wherever it is called.
const CHEAP: u64 = 64;
/// Instructions of all copies together of a function that is called again and again on one way. They become one block, in
/// which lanes stay together; between calls they part, and meet only where the machine waits for them.
const MOST_ON_ONE_WAY: usize = 2000;
/// Names of inlined variables that tell all calls on the way are no longer than this.
const LONGEST_NAME: usize = 160;
/// A function that has grown to so many instructions takes in no more.
const MOST_GROWTH: usize = 4000;

/// Inlines non-recursive functions that are called at one place only, or that are small and have no loop; callees first. What
/// they call in turn is not copied: leapfrog steps are, the gradient that they call is not.
pub(super) fn run(mut program: Program) -> Program {
    let graph = CallGraph::new(&program);
    let mut sites = IdVec::<FuncId, usize>::filled(0, program.funcs.len());
    for func in program.funcs.values() {
        for callee in func.blocks.values().filter_map(|b| b.term.callee()) {
            sites[callee] += 1;
        }
    }
    let ways = ways(&program);
    let mut taken = Taken::new(program.funcs.len());
    // What is asked of callees, which are what they will be when their callers ask.
    let mut shapes: IdVec<FuncId, Option<Shape>> = IdVec::filled(None, program.funcs.len());
    for id in graph.sccs.iter().flatten() {
        let mut size = Size::of(&program.funcs[*id]);
        for block in program.funcs[*id].blocks.ids() {
            let term = program.funcs[*id].blocks[block].term.clone();
            let Some(callee) = term.callee() else { continue };
            // what stands in the place of a call traps as the caller does
            let attempt = term.is_attempt();
            let wanted = !attempt && !graph.is_recursive(callee) && callee != program.entry && {
                let mut small = || {
                    let shape = shapes[callee].get_or_insert_with(|| Shape::of(&program, &program.funcs[callee]));
                    shape.small(sites[callee]) || ways[callee] == 1 && shape.is_one_way(sites[callee])
                };
                size.insts + taken.sizes[callee].insts <= MOST_GROWTH && (sites[callee] == 1 || small())
            };
            if !wanted {
                taken.put_together(&mut program, callee);
                continue;
            }
            if sites[callee] > 1 {
                // What it calls has one site more.
                let calls = program.funcs[callee].blocks.values().filter_map(|b| b.term.callee());
                calls.for_each(|called| sites[called] += 1);
            }
            size.take(&term, &program.funcs[callee], taken.sizes[callee]);
            taken.calls[*id].push(block);
        }
        taken.sizes[*id] = size;
        // What is called at one place waits for what the caller says.
        if sites[*id] != 1 || graph.is_recursive(*id) || *id == program.entry {
            taken.put_together(&mut program, *id);
        }
    }
    drop_uncalled_functions(&mut program);
    program
}

/// By function: on how many ways without branches it is called. What is called in a loop is called more often than what
/// stands before it: of a caller that calls in loops only these calls count.
fn ways(program: &Program) -> IdVec<FuncId, usize> {
    let mut ways = IdVec::<FuncId, usize>::filled(0, program.funcs.len());
    for func in program.funcs.values() {
        let callee = |id: BlockId| match &func.blocks[id].term {
            Terminator::Call { func, .. } => Some(*func),
            _ => None,
        };
        let edges = edges_to(func);
        // The call of the same function that comes next whatever happens, if there is one.
        let goes_on = |(_, block): (BlockId, &Block)| {
            let Terminator::Call { func: called, next, .. } = &block.term else { return None };
            let mut at = *next;
            while let Terminator::Jump(to) = func.blocks[at].term
                && edges[at] == 1
            {
                at = to;
            }
            (edges[at] == 1 && callee(at) == Some(*called)).then_some(at)
        };
        let behind: BTreeSet<BlockId> = func.blocks.iter().filter_map(goes_on).collect();
        let successors = |b: usize| func.blocks[BlockId::new(b)].term.successors().iter().map(|n| n.index()).collect();
        let loops: BTreeSet<usize> =
            components(func.blocks.len(), successors).into_iter().filter(|c| c.len() > 1).flatten().collect();
        let mut here: BTreeMap<FuncId, [usize; 2]> = BTreeMap::new();
        for id in func.blocks.ids().filter(|id| !behind.contains(id)) {
            if let Some(called) = func.blocks[id].term.callee() {
                here.entry(called).or_default()[usize::from(loops.contains(&id.index()))] += 1;
            }
        }
        here.into_iter()
            .for_each(|(called, [outside, inside])| ways[called] += if inside > 0 { inside } else { outside });
    }
    ways
}

/// The calls that functions take in. They are put together at once, so that every block is copied to where it ends up,
/// and not once for each level of calls.
struct Taken {
    /// The blocks whose calls a function takes in; none of one that has them.
    calls: IdVec<FuncId, Vec<BlockId>>,
    /// The sizes of functions with what they take in.
    sizes: IdVec<FuncId, Size>,
}

impl Taken {
    fn new(funcs: usize) -> Self {
        Self { calls: IdVec::filled(Vec::new(), funcs), sizes: IdVec::filled(Size::default(), funcs) }
    }
    /// Puts a function together, if that is not done.
    fn put_together(&mut self, program: &mut Program, id: FuncId) {
        if !self.calls[id].is_empty() {
            let func = put_together(id, |id| &program.funcs[id], &self.calls);
            program.funcs[id] = func;
            self.calls[id].clear();
        }
    }
}

/// How much a function is.
#[derive(Clone, Copy, Default)]
struct Size {
    /// Instructions and terminators.
    insts: usize,
    /// Blocks that return.
    returns: usize,
}

impl Size {
    fn of(func: &Func) -> Self {
        let returns = func.blocks.values().filter(|b| matches!(b.term, Terminator::Return(_)));
        Self { insts: insts(func), returns: returns.count() }
    }
    /// A callee is put in the place of a call.
    fn take(&mut self, call: &Terminator, callee: &Func, size: Size) {
        self.insts += size.insts + callee.params.len();
        match call {
            Terminator::Call { dsts, .. } => self.insts += size.returns * dsts.len(),
            _ => self.returns += size.returns,
        }
    }
}

/// A function with what it takes in in the place of the calls, and what that takes in in turn. Every block is copied
/// once.
pub(in crate::transform) fn put_together<'a>(
    id: FuncId,
    func: impl Fn(FuncId) -> &'a Func,
    taken: &IdVec<FuncId, Vec<BlockId>>,
) -> Func {
    let mut whole = func(id).clone();
    work::add(insts(&whole));
    let mut names = FreshNames::new(&whole);
    // Calls from the outermost in: whose blocks they are, where these start, the calls on the way, and how many are
    // done.
    let mut open = vec![(id, 0, String::new(), 0)];
    while let Some((id, first, path, done)) = open.last_mut() {
        let Some(block) = taken[*id].get(*done) else {
            open.pop();
            continue;
        };
        *done += 1;
        let at = BlockId::new(*first + block.index());
        let callee = whole.blocks[at].term.callee().expect("it ends with the call that is taken in");
        let body = func(callee);
        let path = inner_path(path, &body.name);
        let start = whole.blocks.len();
        inline_as(&path, &mut whole, at, body, &mut names);
        open.push((callee, start, path, 0));
    }
    whole
}

fn insts(func: &Func) -> usize {
    func.blocks.values().map(|b| b.insts.len() + 1).sum()
}

/// What decides whether a function is inlined.
#[derive(Clone, Copy)]
struct Shape {
    /// Its instructions and terminators, without copies.
    computing: usize,
    branches: bool,
    loops: bool,
    calls: bool,
    /// What it costs in one lane, in additions, and what a call of it does.
    cost: u64,
    call: u64,
}

impl Shape {
    fn of(program: &Program, func: &Func) -> Self {
        // Copies, such as calls inside leave that were inlined, go later.
        let copy = |inst: &Inst| matches!(inst.kind, InstKind::Prim { prim: Prim::Copy, .. });
        let all = || func.blocks.values().flat_map(|b| &b.insts).filter(|i| !copy(i));
        let successors = |b: usize| func.blocks[BlockId::new(b)].term.successors().iter().map(|n| n.index()).collect();
        let looped = |c: &Vec<usize>| {
            c.len() > 1 || func.blocks[BlockId::new(c[0])].term.successors().iter().any(|n| n.index() == c[0])
        };
        work::add(insts(func));
        Self {
            computing: all().count() + func.blocks.len(),
            branches: func.blocks.values().any(|b| matches!(b.term, Terminator::Branch(..))),
            loops: components(func.blocks.len(), successors).iter().any(looped),
            calls: func.blocks.values().any(|b| b.term.callee().is_some()),
            cost: all().map(|i| cost(program, func, &i.kind)).sum(),
            call: cost_of_call(func),
        }
    }

    /// Whether copies of a function that is called on one way only are one block.
    fn is_one_way(&self, sites: usize) -> bool {
        !self.branches && !self.calls && !self.loops && self.computing.saturating_mul(sites) <= MOST_ON_ONE_WAY
    }

    /// Whether copies of a function do no harm: few and cheap instructions, no draws of many numbers, no loop.
    fn small(&self, sites: usize) -> bool {
        let copied = self.cost.saturating_mul(sites as u64 - 1) <= MOST_COPIED.saturating_mul(self.call);
        self.computing <= MOST_INSTS
            && !self.loops
            && self.cost <= self.call.min(MOST_COST)
            && (copied || (!self.calls && self.cost <= CHEAP))
    }
}

/// What a call of a function costs a batch in each lane, in additions.
fn cost_of_call(func: &Func) -> u64 {
    let elements = |ty: &Type| ty.elements() as u64;
    let args: u64 = func.params.iter().map(|v| elements(&func.vars[*v].ty)).sum();
    let results: u64 = func.results.iter().map(elements).sum();
    CALL.saturating_add(PASSED.saturating_mul(args.saturating_add(results)))
}

/// What the call did with the results of the callee.
enum Site {
    Call { dsts: Vec<VarId>, next: BlockId },
    TailCall,
}

/// Puts the blocks of a callee in the place of the call that ends a block.
pub(in crate::transform) fn inline(caller: &mut Func, at: BlockId, callee: &Func, names: &mut FreshNames) {
    inline_as(&callee.name, caller, at, callee, names);
}

/// The same with names that begin with the calls on the way.
fn inline_as(path: &str, caller: &mut Func, at: BlockId, callee: &Func, names: &mut FreshNames) {
    work::add(insts(callee));
    let vars: IdVec<VarId, VarId> = callee
        .vars
        .values()
        .map(|var| names.add(&mut caller.vars, &inner_name(path, &var.name), var.ty.clone()))
        .collect();
    let first = caller.blocks.len();
    let entry = Terminator::Jump(BlockId::new(first));
    let (site, args, loc) = match std::mem::replace(&mut caller.blocks[at].term, entry) {
        Terminator::Call { args, dsts, next, loc, .. } => (Site::Call { dsts, next }, args, loc),
        Terminator::TailCall { args, loc, .. } => (Site::TailCall, args, loc),
        _ => unreachable!("only calls are inlined"),
    };
    // the callee's variables are new, so no argument is overwritten before it is read
    for (param, arg) in callee.params.iter().zip(args) {
        let inst = copy(vars[*param], arg, &loc);
        caller.blocks[at].insts.push(inst);
    }
    for block in callee.blocks.values() {
        let mut block = block.clone();
        block.for_each_var_mut(|v| *v = vars[*v]);
        block.term.for_each_successor_mut(|b| *b = BlockId::new(first + b.index()));
        if loc.place.is_some() {
            block.for_each_loc_mut(|inner| inner.take_place(std::iter::once(&loc)));
        }
        if let Site::Call { dsts, next } = &site {
            return_to(&mut block, dsts, *next, &loc);
        }
        caller.blocks.push(block);
    }
}

/// The calls on the way into a callee. Through many levels of calls the innermost is told, not all on the way.
fn inner_path(path: &str, callee: &str) -> String {
    if path.is_empty() || path.len() + callee.len() > LONGEST_NAME {
        callee.to_owned()
    } else {
        format!("{path}.{callee}")
    }
}

/// The name of a variable of a callee in a caller.
fn inner_name(path: &str, var: &str) -> String {
    match var.rfind('.') {
        Some(dot) if path.len() + var.len() > LONGEST_NAME => format!("{path}{}", &var[dot..]),
        _ => format!("{path}.{var}"),
    }
}

/// Lets a block of a callee that ends the callee go on in the caller.
pub(super) fn return_to(block: &mut Block, dsts: &[VarId], next: BlockId, loc: &Loc) {
    match block.term.clone() {
        Terminator::Return(values) => {
            // values are the callee's: none of them is a variable that is written here
            let copies = dsts.iter().zip(values);
            block.insts.extend(copies.map(|(dst, value)| copy(*dst, value, loc)));
            block.term = Terminator::Jump(next);
        }
        Terminator::TailCall { func, args, loc } => {
            block.term = Terminator::Call { func, args, dsts: dsts.to_vec(), next, loc, attempt: false };
        }
        _ => {}
    }
}

pub(super) fn copy(dst: VarId, value: Operand, loc: &Loc) -> Inst {
    Inst { kind: InstKind::Prim { dst, prim: Prim::Copy, args: Args::from_slice(&[value]) }, loc: loc.clone() }
}
