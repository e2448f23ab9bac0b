//! The functions of a stack program, and what a call of each does to the variables.

use std::collections::{BTreeMap, BTreeSet};

use super::components::components;
use super::worklist::{Order, postorder};
use crate::base::{Id, IdSet, IdVec, work};
use crate::stack::{Block, BlockId, Program, Terminator, VarId};

/// A function: what a call of one block runs until it returns.
pub struct StackFunction {
    /// Where it starts.
    pub start: BlockId,
    /// The blocks that it runs itself: those of its callees are not among them, those that it jumps to are.
    pub body: Vec<BlockId>,
    /// The blocks that calls of it return to.
    pub returns_to: Vec<BlockId>,
    /// The blocks that call it.
    pub called_from: Vec<BlockId>,
    /// Whether the program starts here.
    pub is_entry: bool,
    /// What it, or anything it calls in turn, may write: of stack variables, the top.
    pub may_write: IdSet<VarId>,
    /// What has been written whenever it returns.
    pub must_write: IdSet<VarId>,
    /// The attempts that it may run under, by the blocks that they return to: where its lanes may go from any place in it.
    pub caught_at: BTreeSet<BlockId>,
}

/// All functions of a program.
pub struct StackFunctions {
    /// In the order of the program.
    pub list: Vec<StackFunction>,
    of_start: BTreeMap<BlockId, usize>,
    /// For each block the functions that run it, by position.
    pub of_block: IdVec<BlockId, Vec<usize>>,
    /// The functions that each one calls, each once.
    callees: Vec<Vec<usize>>,
    /// The functions that call one another, callees first.
    cycles: Vec<Vec<usize>>,
    /// All blocks so that one comes before those that it leads to in its function, loops aside.
    pub forwards: Order,
}

impl StackFunctions {
    /// The functions of a verified program.
    pub fn of(program: &Program) -> Self {
        let mut sites: BTreeMap<BlockId, (Vec<BlockId>, Vec<BlockId>)> = BTreeMap::new();
        sites.insert(program.entry, Default::default());
        for (id, block) in program.blocks.iter() {
            if let Terminator::PushJump { target, ret, .. } = block.term {
                let (callers, returns) = sites.entry(target).or_default();
                callers.push(id);
                returns.push(ret);
            }
        }
        let n = program.blocks.len();
        let next = |b: usize| within(&program.blocks[BlockId::new(b)].term).map(BlockId::index);
        let forwards = Order::new(postorder(n, program.entry.index(), next), n).reversed();
        let (callees, cycles, of_block) = (Vec::new(), Vec::new(), IdVec::filled(vec![], n));
        let mut functions = Self { list: Vec::new(), of_start: BTreeMap::new(), of_block, callees, cycles, forwards };
        for (start, (called_from, returns_to)) in sites {
            let number = functions.list.len();
            let body: Vec<BlockId> = body(program, start).iter().collect();
            for b in &body {
                functions.of_block[*b].push(number);
            }
            functions.of_start.insert(start, number);
            let none = IdSet::new(program.vars.len());
            let is_entry = start == program.entry;
            let (may_write, must_write) = (none.clone(), none);
            functions.list.push(StackFunction {
                start,
                body,
                returns_to,
                called_from,
                is_entry,
                may_write,
                must_write,
                caught_at: BTreeSet::new(),
            });
        }
        functions.find_calls(program);
        functions.find_catches(program);
        functions.find_may_writes(program);
        functions.find_must_writes(program);
        functions
    }

    /// The position of the function that starts at a block that is called.
    pub fn position(&self, start: BlockId) -> usize {
        self.of_start[&start]
    }
    /// The function that starts at a block that is called.
    pub fn at(&self, start: BlockId) -> &StackFunction {
        &self.list[self.position(start)]
    }

    /// The functions by position so that one comes after those that it calls, recursion aside.
    pub fn callees_first(&self) -> impl Iterator<Item = usize> + '_ {
        self.cycles.iter().flatten().copied()
    }

    fn find_calls(&mut self, program: &Program) {
        let callees = |f: &StackFunction| -> Vec<usize> {
            let called = f.body.iter().filter_map(|b| match program.blocks[*b].term {
                Terminator::PushJump { target, .. } => Some(self.position(target)),
                _ => None,
            });
            called.collect::<BTreeSet<usize>>().into_iter().collect()
        };
        self.callees = self.list.iter().map(callees).collect();
        self.cycles = components(self.list.len(), |f| self.callees[f].clone());
    }

    fn find_catches(&mut self, program: &Program) {
        let mut attempts: Vec<Vec<(usize, BlockId)>> = Vec::new();
        for f in &self.list {
            let attempt = |b: &BlockId| match program.blocks[*b].term {
                Terminator::PushJump { target, ret, attempt: Some(_), .. } => Some((self.position(target), ret)),
                _ => None,
            };
            attempts.push(f.body.iter().filter_map(attempt).collect());
        }
        for (callee, ret) in attempts.into_iter().flatten() {
            let mut open = vec![callee];
            while let Some(f) = open.pop() {
                if self.list[f].caught_at.insert(ret) {
                    open.extend(&self.callees[f]);
                }
            }
        }
    }

    fn find_may_writes(&mut self, program: &Program) {
        for f in &mut self.list {
            for b in &f.body {
                work::add(1 + program.blocks[*b].insts.len());
                for v in written_by(&program.blocks[*b]) {
                    f.may_write.insert(v);
                }
            }
        }
        let direct: Vec<IdSet<VarId>> = self.list.iter().map(|f| f.may_write.clone()).collect();
        let all = self.gathered(direct);
        self.list.iter_mut().zip(all).for_each(|(f, set)| f.may_write = set);
    }

    /// For each function what it has and what those that it calls in turn have.
    pub fn gathered<I: Id>(&self, mut own: Vec<IdSet<I>>) -> Vec<IdSet<I>> {
        for cycle in &self.cycles {
            let Some((first, rest)) = cycle.split_first() else { continue };
            let mut all = own[*first].clone();
            rest.iter().for_each(|f| _ = all.union_with(&own[*f]));
            for callee in cycle.iter().flat_map(|f| &self.callees[*f]) {
                // Those of the same cycle are in it already.
                all.union_with(&own[*callee]);
            }
            cycle.iter().for_each(|f| own[*f] = all.clone());
        }
        own
    }

    /// The largest sets that agree with one another: recursion is taken to return at last.
    fn find_must_writes(&mut self, program: &Program) {
        let none = IdSet::new(program.vars.len());
        let all = IdSet::full(program.vars.len());
        let written = |b: BlockId| {
            let mut set = none.clone();
            program.blocks[b].insts.iter().filter_map(|i| i.kind.written()).for_each(|v| _ = set.insert(v));
            set
        };
        let written: IdVec<BlockId, IdSet<VarId>> = program.blocks.ids().map(written).collect();
        self.list.iter_mut().for_each(|f| f.must_write = all.clone());
        let mut before = IdVec::filled(None, program.blocks.len());
        for cycle in self.cycles.clone() {
            let calls_itself = cycle.iter().any(|f| self.callees[*f].iter().any(|callee| cycle.contains(callee)));
            let mut changed = true;
            while changed {
                changed = false;
                for i in &cycle {
                    let now = self.must_write_of(program, &self.list[*i], &written, &all, &mut before);
                    changed |= calls_itself && now != self.list[*i].must_write;
                    self.list[*i].must_write = now;
                }
            }
        }
    }

    /// `before`: room for what has been written before each block; nothing at all, before and after.
    fn must_write_of(
        &self,
        program: &Program,
        f: &StackFunction,
        written: &IdVec<BlockId, IdSet<VarId>>,
        all: &IdSet<VarId>,
        before: &mut IdVec<BlockId, Option<IdSet<VarId>>>,
    ) -> IdSet<VarId> {
        before[f.start] = Some(IdSet::new(program.vars.len()));
        let mut at_return = all.clone();
        let mut open = self.forwards.none();
        open.add(f.start.index());
        while let Some(b) = open.take().map(BlockId::new) {
            let Some(mut now) = before[b].clone() else { continue };
            now.union_with(&written[b]);
            let term = &program.blocks[b].term;
            match term {
                Terminator::PushJump { target, attempt: None, .. } => {
                    now.union_with(&self.at(*target).must_write);
                }
                // a trap sets the results and nothing else is sure then; a callee that returns may have left them alone
                Terminator::PushJump { target, attempt: Some(results), .. } => {
                    let written = &self.at(*target).must_write;
                    results.iter().filter(|v| written.contains(**v)).for_each(|v| _ = now.insert(*v));
                }
                _ => {}
            }
            if *term == Terminator::Return {
                at_return.intersect_with(&now);
            }
            for to in within(term) {
                let changed = match &mut before[to] {
                    Some(known) => known.intersect_with(&now),
                    unknown => {
                        *unknown = Some(now.clone());
                        true
                    }
                };
                if changed {
                    open.add(to.index());
                }
            }
        }
        f.body.iter().for_each(|b| before[*b] = None);
        at_return
    }
}

/// What a block writes: what a trap in the callee of an attempt that ends it sets, too.
pub fn written_by(block: &Block) -> impl Iterator<Item = VarId> + '_ {
    let results = match &block.term {
        Terminator::PushJump { attempt: Some(results), .. } => &results[..],
        _ => &[],
    };
    block.insts.iter().filter_map(|i| i.kind.written()).chain(results.iter().copied())
}

/// The blocks that a function that starts at `start` runs itself: those of its callees are not among them.
fn body(program: &Program, start: BlockId) -> IdSet<BlockId> {
    let mut body = IdSet::new(program.blocks.len());
    let mut open = vec![start];
    body.insert(start);
    while let Some(block) = open.pop() {
        for to in within(&program.blocks[block].term) {
            if body.insert(to) {
                open.push(to);
            }
        }
    }
    body
}

/// The blocks that may come next in the same function.
pub fn within(term: &Terminator) -> impl Iterator<Item = BlockId> + use<> {
    let callee = matches!(term, Terminator::PushJump { .. });
    term.successors().into_iter().skip(usize::from(callee))
}
