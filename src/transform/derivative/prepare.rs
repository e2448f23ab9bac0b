//! What is differentiated: copies of the functions in a form that the sweeps can be made from.

use std::collections::BTreeSet;

use indexmap::IndexMap;

use super::DerivativeRequests;
use super::activity::{Activity, Key};
use super::code::Code;
use crate::analysis::callgraph::CallGraph;
use crate::analysis::components::components;
use crate::analysis::worklist::forwards;
use crate::base::{Id, IdSet, IdVec, work};
use crate::cfg::{Block, BlockId, Func, FuncId, Operand, Program, Terminator, Var, VarId};
use crate::transform::cfg::blocks::FreshNames;
use crate::transform::cfg::{inline, merge_blocks, simplify};

/// How much of what is called is put in the place of its calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::transform) struct Inlining {
    /// A function that has grown to so many instructions takes in no more.
    pub(in crate::transform) most_insts: usize,
    /// What the copies of functions that are called at several places may weigh together, beside those of small ones.
    /// Where there is no limit, loops are copied too.
    pub(in crate::transform) room: usize,
}

impl Inlining {
    /// Everything that is not recursive, up to so many instructions.
    pub(in crate::transform) fn all(most_insts: usize) -> Self {
        Self { most_insts, room: usize::MAX }
    }
    /// What is differentiated. The frame of a function that stays a call is taped, and lanes take two supersteps more in
    /// each sweep: much beside a few additions, nothing beside a loop. Copies of all calls instead would double the code with
    /// each level of functions that call the last one twice. So what is prepared weighs no more than [`SMALL`] times as much as
    /// the source, and the room.
    pub(super) fn of_derivatives() -> Self {
        Self { most_insts: 20_000, room: 2_000 }
    }
}

/// What a block weighs, in instructions: a superstep for the batch, and for the passes.
const BLOCK: usize = 16;
/// A function without a loop that weighs no more is copied to every place that calls it.
const SMALL: usize = 80;

/// Copies of the functions that a root may run: tail calls are calls; functions that are not recursive, and not kept
/// apart by a rule or `@recompute`, stand in the place of their calls, so that one frame holds what the reverse sweep reads:
/// those that are called at one place, small ones, and others while there is room, callees first.
///
/// `wrt` says which parameters of the root vary, if a derivative is to be made. What then depends on none of them and has
/// control flow of its own stays a call: it runs as it is, and of the way that it went nothing is recorded.
pub(in crate::transform) fn prepare(
    program: &Program,
    root: FuncId,
    requests: &DerivativeRequests,
    (inlining, wrt): (Inlining, Option<&[bool]>),
) -> IndexMap<FuncId, Func> {
    let graph = CallGraph::new(program);
    let mut reached = IdSet::new(program.funcs.len());
    let mut sites: IdVec<FuncId, usize> = IdVec::filled(0, program.funcs.len());
    let mut work = vec![root];
    while let Some(func) = work.pop() {
        if reached.insert(func) {
            program.funcs[func].blocks.values().filter_map(|b| b.term.callee()).for_each(|c| sites[c] += 1);
            work.extend(&graph.callees[func]);
        }
    }
    let mut funcs: IndexMap<FuncId, Func> = reached.iter().map(|id| (id, program.funcs[id].clone())).collect();
    funcs.values_mut().for_each(|func| without_tail_calls(program, func));
    let varying = wrt.map(|wrt| varying(&funcs, requests, &(root, wrt.to_vec()), program.tapes.len()));
    let mut making = Making {
        program,
        ready: IndexMap::new(),
        taken: IdVec::filled(Vec::new(), program.funcs.len()),
        sizes: IdVec::filled(0, program.funcs.len()),
        waiting: IdSet::new(program.funcs.len()),
    };
    let mut room = inlining.room;
    let mut copied = IdSet::new(program.funcs.len());
    for id in graph.sccs.iter().flatten().copied().filter(|id| reached.contains(*id)) {
        let mut func = funcs.swap_remove(&id).expect("it was reached");
        simplify(program, &mut func);
        let constant = varying.as_ref().is_some_and(|varying| !varying.contains(&id)) && func.blocks.len() > 1;
        let mut size = insts(&func);
        let calls: Vec<(BlockId, FuncId, bool)> = func.blocks.iter().filter_map(|(at, b)| call(at, &b.term)).collect();
        making.ready.insert(id, func);
        for (block, callee, attempt) in calls {
            if !attempt && copied.contains(callee) && size + making.sizes[callee] <= inlining.most_insts {
                size += making.sizes[callee];
                making.taken[id].push(block);
            } else if making.waiting.contains(callee) {
                making.finish(callee);
            }
        }
        making.sizes[id] = size;
        making.waiting.insert(id);
        let apart = constant || graph.is_recursive(id) || requests.is_apart(id);
        if apart || id == root || sites[id] > 1 {
            making.finish(id);
        }
        if !apart && takes_room(&making.ready[&id], sites[id], &mut room) {
            copied.insert(id);
        }
    }
    // What still waits stands in the place of the one call that there is of it.
    let Making { mut ready, waiting, .. } = making;
    ready.retain(|id, _| !waiting.contains(*id));
    ready
}

/// The functions of which something varies in a derivative, or may, since they use tapes.
fn varying(
    funcs: &IndexMap<FuncId, Func>,
    requests: &DerivativeRequests,
    root: &Key,
    tapes: usize,
) -> BTreeSet<FuncId> {
    let mut activity = Activity::new(funcs, requests, tapes);
    activity.results(root);
    activity.varying()
}

fn simplify(program: &Program, func: &mut Func) {
    merge_blocks::merge(program, func);
    simplify::simplify_fully(program, func);
    merge_blocks::merge(program, func);
}

/// A call that ends a block, and whether it is an attempt.
fn call(block: BlockId, term: &Terminator) -> Option<(BlockId, FuncId, bool)> {
    Some((block, term.callee()?, term.is_attempt()))
}

/// The functions while they are put together. What is called at one place waits until it is known whether it stays a
/// call: if not, it is put together with its caller, and not once for each level of calls.
struct Making<'a> {
    program: &'a Program,
    ready: IndexMap<FuncId, Func>,
    /// The blocks of functions that wait whose calls they take in.
    taken: IdVec<FuncId, Vec<BlockId>>,
    /// The instructions of each with what it takes in.
    sizes: IdVec<FuncId, usize>,
    waiting: IdSet<FuncId>,
}

impl Making<'_> {
    /// Puts together a function that waits, and simplifies it.
    fn finish(&mut self, id: FuncId) {
        if self.taken[id].is_empty() {
            self.waiting.remove(id);
            return;
        }
        let mut func = inline::put_together(id, |id| &self.ready[&id], &self.taken);
        simplify(self.program, &mut func);
        self.sizes[id] = insts(&func);
        self.taken[id].clear();
        self.waiting.remove(id);
        self.ready[&id] = func;
    }
}

/// Whether a function is copied to the places that call it; the room that it takes is gone.
fn takes_room(func: &Func, sites: usize, room: &mut usize) -> bool {
    if sites <= 1 || *room == usize::MAX {
        return true;
    }
    let successors = |b: usize| func.blocks[BlockId::new(b)].term.successors().iter().map(|s| s.index()).collect();
    let loops = |component: &Vec<usize>| {
        let first = BlockId::new(component[0]);
        component.len() > 1 || func.blocks[first].term.successors().contains(&first)
    };
    if components(func.blocks.len(), successors).iter().any(loops) {
        return false;
    }
    let weight = func.blocks.values().map(|b| b.insts.len() + BLOCK).sum::<usize>();
    if weight <= SMALL {
        return true;
    }
    let more = weight.saturating_mul(sites - 1);
    let fits = more <= *room;
    if fits {
        *room -= more;
    }
    fits
}

fn insts(func: &Func) -> usize {
    func.blocks.values().map(|b| b.insts.len() + 1).sum()
}

fn without_tail_calls(program: &Program, func: &mut Func) {
    let mut names = FreshNames::new(func);
    for id in func.blocks.ids() {
        let Terminator::TailCall { func: callee, args, loc } = func.blocks[id].term.clone() else { continue };
        let results = program.funcs[callee].results.clone();
        let dsts: Vec<VarId> = results.into_iter().map(|ty| names.add(&mut func.vars, "result", ty)).collect();
        let values = dsts.iter().map(|v| Operand::Var(*v)).collect();
        let next = func.blocks.push(Block { insts: Vec::new(), term: Terminator::Return(values), loc: loc.clone() });
        func.blocks[id].term = Terminator::Call { func: callee, args, dsts, next, loc, attempt: false };
    }
}

/// One block returns, the first block has no predecessors, and a block with several predecessors is what each of them
/// jumps to.
pub(super) fn normalise(program: &Program, func: &mut Func) {
    crate::transform::cfg::blocks::drop_unreachable_blocks(func);
    one_exit(program, func);
    let first = BlockId::new(0);
    let leads_back = func.blocks.values().any(|b| b.term.successors().contains(&first));
    if leads_back {
        let copy = func.blocks[first].clone();
        let loc = copy.loc.clone();
        let moved = func.blocks.push(copy);
        for block in func.blocks.values_mut() {
            block.term.for_each_successor_mut(|b| {
                if *b == first {
                    *b = moved;
                }
            });
        }
        func.blocks[first] = Block { insts: Vec::new(), term: Terminator::Jump(moved), loc };
    }
    let mut edges = crate::transform::cfg::blocks::edges_to(func);
    edges[first] -= 1;
    for id in func.blocks.ids() {
        let block = &func.blocks[id];
        if matches!(block.term, Terminator::Jump(_)) {
            continue;
        }
        let loc = block.loc.clone();
        let mut term = block.term.clone();
        let mut added = Vec::new();
        let next = func.blocks.len();
        term.for_each_successor_mut(|b| {
            if edges[*b] > 1 {
                added.push(Block { insts: Vec::new(), term: Terminator::Jump(*b), loc: loc.clone() });
                *b = BlockId::new(next + added.len() - 1);
            }
        });
        func.blocks[id].term = term;
        added.into_iter().for_each(|b| {
            func.blocks.push(b);
        });
    }
}

/// One block returns.
pub(in crate::transform) fn one_exit(program: &Program, func: &mut Func) {
    let returning: Vec<BlockId> =
        func.blocks.iter().filter(|(_, b)| matches!(b.term, Terminator::Return(_))).map(|(id, _)| id).collect();
    if returning.len() < 2 {
        return;
    }
    let loc = func.loc.clone();
    let mut names = FreshNames::new(func);
    let results = func.results.clone();
    let vars: Vec<VarId> = results.into_iter().map(|ty| names.add(&mut func.vars, "result", ty)).collect();
    let values = vars.iter().map(|v| Operand::Var(*v)).collect();
    let exit = func.blocks.push(Block { insts: Vec::new(), term: Terminator::Return(values), loc });
    for id in returning {
        let Terminator::Return(values) = std::mem::replace(&mut func.blocks[id].term, Terminator::Jump(exit)) else {
            unreachable!("it returned");
        };
        let loc = func.blocks[id].loc.clone();
        let mut code = Code::new(program, std::mem::take(&mut func.vars), loc);
        for (var, value) in vars.iter().zip(values) {
            code.assign(*var, value);
        }
        func.vars = code.vars;
        func.blocks[id].insts.extend(code.insts);
    }
}

/// Gives every variable without a name one, and makes all names unique.
pub(in crate::transform) fn name_all(func: &mut Func) {
    let mut taken = FreshNames::none();
    let old: Vec<Var> = func.vars.values().cloned().collect();
    func.vars = crate::base::IdVec::new();
    for var in old {
        let wanted = if var.name.is_empty() { "d" } else { &var.name };
        taken.add(&mut func.vars, wanted, var.ty);
    }
}

/// Sets to zero, at the start, what may be read before it is set. The sweeps never read such a zero for what it is: they go back the
/// way that they came, and where a value is saved before it was set, its old value is not needed. But that is not seen in
/// the blocks alone, and every variable must be set before it is read.
pub(super) fn set_all(program: &Program, func: &mut Func) {
    let all = IdSet::full(func.vars.len());
    let mut at_entry: IdVec<BlockId, IdSet<VarId>> = IdVec::filled(all, func.blocks.len());
    at_entry[BlockId::new(0)] = IdSet::new(func.vars.len());
    for param in &func.params {
        at_entry[BlockId::new(0)].insert(*param);
    }
    let order = forwards(func);
    let mut open = order.all();
    while let Some(id) = open.take().map(BlockId::new) {
        let block = &func.blocks[id];
        let mut set = at_entry[id].clone();
        work::add(block.insts.len());
        block.insts.iter().filter_map(|i| i.kind.dst()).chain(block.term.dsts().iter().copied()).for_each(|v| {
            set.insert(v);
        });
        for next in block.term.successors() {
            if at_entry[next].intersect_with(&set) {
                open.add(next.index());
            }
        }
    }
    let mut unset = IdSet::new(func.vars.len());
    for (id, block) in func.blocks.iter() {
        let mut set = at_entry[id].clone();
        let mut read = |o: Operand, set: &IdSet<VarId>| {
            if let Operand::Var(v) = o
                && !set.contains(v)
            {
                unset.insert(v);
            }
        };
        for inst in &block.insts {
            inst.kind.for_each_operand(|o| read(o, &set));
            if let Some(dst) = inst.kind.dst() {
                set.insert(dst);
            }
        }
        block.term.for_each_operand(|o| read(o, &set));
    }
    let mut code = Code::new(program, std::mem::take(&mut func.vars), func.loc.clone());
    for v in unset.iter() {
        code.set_zero(v);
    }
    let first = &mut func.blocks[BlockId::new(0)];
    code.insts.append(&mut first.insts);
    first.insts = code.insts;
    func.vars = code.vars;
}
