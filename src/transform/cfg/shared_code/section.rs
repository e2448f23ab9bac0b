//! Sections: parts of a function with one start and one end that only compute, from what is known where they start.

use std::collections::{BTreeMap, BTreeSet};

use super::super::blocks::FreshNames;
use super::super::{inline, simplify};
use super::known::{Known, State};
use crate::analysis::callgraph::CallGraph;
use crate::analysis::dominance::Dominance;
use crate::analysis::liveness::live_in;
use crate::base::{Id as _, IdSet, IdVec, Loc, work};
use crate::cfg::{Block, BlockId, Func, FuncId, Inst, InstKind, Operand, Program, Terminator, VarId};
use crate::parts::Args;
use crate::prim::Prim;

/// Most instructions of a section, callees included.
const MOST_INSTS: usize = 4000;

/// A section, and its code as a function of its own that returns what is read after it.
pub(super) struct Section {
    /// The block that it starts at, or in whose terminator.
    pub(super) entry: BlockId,
    /// Whether the instructions of that block belong to it.
    pub(super) whole: bool,
    /// The block that it leads to.
    pub(super) exit: BlockId,
    /// The variables that it sets and that are read after it.
    pub(super) results: Vec<VarId>,
    pub(super) code: Func,
    pub(super) loc: Loc,
}

/// What is known of a function that sections are looked for in.
struct Subject<'a> {
    program: &'a Program,
    graph: &'a CallGraph,
    id: FuncId,
    func: &'a Func,
    dominance: Dominance,
    live: IdVec<BlockId, IdSet<VarId>>,
    known: Known,
}

impl Section {
    /// The largest section of a function that reads only what is known.
    pub(super) fn largest(program: &Program, graph: &CallGraph, id: FuncId, func: &Func) -> Option<Section> {
        let (dominance, live, known) = (Dominance::of(func), live_in(func), Known::of(func));
        let subject = Subject { program, graph, id, func, dominance, live, known };
        let mut candidates: Vec<(BlockId, bool, BlockId, BTreeSet<BlockId>)> = Vec::new();
        for (entry, block) in func.blocks.iter().filter(|(b, _)| subject.dominance.is_reached(*b)) {
            if let Terminator::Call { next, args, attempt: false, .. } = &block.term
                && args.iter().all(|a| a.var().is_none())
            {
                candidates.push((entry, false, *next, BTreeSet::new()));
            }
            let Some(exit) = subject.dominance.meeting(entry).filter(|exit| *exit != entry) else { continue };
            let looped = subject.dominance.loop_at(entry).is_some();
            let shared = matches!(block.term, Terminator::Branch(Operand::Shared(_), ..));
            if looped || shared {
                let blocks = subject.between(entry, exit);
                if blocks.contains(&entry) == looped {
                    candidates.push((entry, looped, exit, blocks));
                }
            }
        }
        candidates.sort_by_key(|(entry, _, _, blocks)| (std::cmp::Reverse(blocks.len()), *entry));
        candidates.into_iter().find_map(|(entry, whole, exit, blocks)| subject.section(entry, whole, exit, blocks))
    }

    /// What its code returns at its start, if it does nothing else.
    pub(super) fn returned(&self) -> &[Operand] {
        match &self.code.blocks[BlockId::new(0)].term {
            Terminator::Return(values) => values,
            _ => &[],
        }
    }
}

impl Subject<'_> {
    /// The blocks on the ways from a block to another that it always leads to; with the first if a way leads back to it.
    fn between(&self, entry: BlockId, exit: BlockId) -> BTreeSet<BlockId> {
        let mut found = BTreeSet::new();
        let mut work: Vec<BlockId> = self.func.blocks[entry].term.successors().to_vec();
        while let Some(block) = work.pop() {
            if block != exit && found.insert(block) {
                work.extend(self.func.blocks[block].term.successors());
            }
        }
        found
    }

    fn section(&self, entry: BlockId, whole: bool, exit: BlockId, blocks: BTreeSet<BlockId>) -> Option<Section> {
        let func = self.func;
        // Entered at its start only, and nothing in it but computing.
        let home = |p: &BlockId| blocks.contains(p) || *p == entry;
        let closed = |b: &BlockId| *b == entry || self.dominance.predecessors(*b).iter().all(home);
        if !blocks.iter().all(closed) || !blocks.iter().all(|b| self.computes(&func.blocks[*b])) {
            return None;
        }
        let set = self.set_in(entry, &blocks);
        let results: Vec<VarId> = self.live[exit].iter().filter(|v| set.contains(v)).collect();
        if results.is_empty() {
            return None;
        }
        let known = self.known_before(entry, whole, &blocks)?;
        if self.read_before_set(entry, whole, &blocks).any(|v| known.get(v).is_none()) {
            return None;
        }
        let loc = func.blocks[entry].loc.clone();
        let code = self.code(entry, whole, exit, &blocks, &results);
        let mut section = Section { entry, whole, exit, results, code, loc };
        self.inline_calls(&mut section.code)?;
        self.initialise(&mut section, &known)?;
        simplify::simplify_fully(self.program, &mut section.code);
        Some(section)
    }

    fn computes(&self, block: &Block) -> bool {
        let plain = |i: &Inst| matches!(&i.kind, InstKind::Prim { prim, .. } if !prim.is_draw());
        block.insts.iter().all(plain)
            && !block.term.is_attempt()
            && match block.term {
                Terminator::Jump(_) | Terminator::Branch(..) => true,
                Terminator::Call { func, .. } => !self.graph.is_recursive(func) && func != self.id,
                Terminator::TailCall { .. } | Terminator::Return(_) => false,
            }
    }

    fn set_in(&self, entry: BlockId, blocks: &BTreeSet<BlockId>) -> BTreeSet<VarId> {
        let mut set: BTreeSet<VarId> = self.func.blocks[entry].term.dsts().iter().copied().collect();
        for block in blocks.iter().map(|b| &self.func.blocks[*b]) {
            set.extend(block.insts.iter().filter_map(|i| i.kind.dst()));
            set.extend(block.term.dsts());
        }
        set
    }

    /// The blocks as a function: a start, the blocks, and an end that returns the results.
    fn code(&self, entry: BlockId, whole: bool, exit: BlockId, blocks: &BTreeSet<BlockId>, results: &[VarId]) -> Func {
        let func = self.func;
        let loc = &func.blocks[entry].loc;
        let mut places: BTreeMap<BlockId, BlockId> =
            blocks.iter().enumerate().map(|(i, b)| (*b, BlockId::new(i + 1))).collect();
        places.insert(exit, BlockId::new(blocks.len() + 1));
        let moved = |term: &Terminator| {
            let mut term = term.clone();
            term.for_each_successor_mut(|b| *b = places[b]);
            term
        };
        let term = if whole { Terminator::Jump(places[&entry]) } else { moved(&func.blocks[entry].term) };
        let mut code = IdVec::new();
        code.push(Block { insts: Vec::new(), term, loc: loc.clone() });
        for block in blocks.iter().map(|b| &func.blocks[*b]) {
            code.push(Block { term: moved(&block.term), ..block.clone() });
        }
        let values = results.iter().map(|v| Operand::Var(*v)).collect();
        code.push(Block { insts: Vec::new(), term: Terminator::Return(values), loc: loc.clone() });
        Func {
            name: func.name.clone(),
            params: Vec::new(),
            results: results.iter().map(|v| func.vars[*v].ty.clone()).collect(),
            vars: func.vars.clone(),
            blocks: code,
            loc: func.loc.clone(),
        }
    }

    /// Puts callees in the place of calls; `None` when one does more than compute, or it gets too large.
    fn inline_calls(&self, code: &mut Func) -> Option<()> {
        let mut names = FreshNames::new(code);
        let mut at = 0;
        while at < code.blocks.len() {
            let block = BlockId::new(at);
            at += 1;
            let Some(callee) = code.blocks[block].term.callee() else { continue };
            if code.blocks[block].term.is_attempt() || self.graph.is_recursive(callee) {
                return None;
            }
            inline::inline(code, block, &self.program.funcs[callee], &mut names);
            if code.blocks.values().map(|b| b.insts.len() + 1).sum::<usize>() > MOST_INSTS {
                return None;
            }
        }
        let computes =
            |b: &Block| b.insts.iter().all(|i| matches!(&i.kind, InstKind::Prim { prim, .. } if !prim.is_draw()));
        code.blocks.values().all(computes).then_some(())
    }

    /// Sets at the start what the code reads before it sets it; `None` when that is not known.
    fn initialise(&self, section: &mut Section, known: &State) -> Option<()> {
        let first = BlockId::new(0);
        let read: Vec<VarId> = live_in(&section.code)[first].iter().collect();
        let mut insts = Vec::new();
        for var in read {
            let args = Args::from_slice(&[known.get(var)?]);
            insts.push(Inst { kind: InstKind::Prim { dst: var, prim: Prim::Copy, args }, loc: section.loc.clone() });
        }
        // What stands there already are the arguments of an inlined call.
        section.code.blocks[first].insts.splice(0..0, insts);
        Some(())
    }

    /// The variables that the first block of a section reads before it sets them: some of those that the section does.
    fn read_before_set(&self, entry: BlockId, whole: bool, blocks: &BTreeSet<BlockId>) -> impl Iterator<Item = VarId> {
        let mut reads = BTreeSet::new();
        let mut first = |block: &Block| {
            let mut set = BTreeSet::new();
            for inst in &block.insts {
                inst.kind.for_each_operand(|o| reads.extend(o.var().filter(|v| !set.contains(v))));
                set.extend(inst.kind.dst());
            }
            block.term.for_each_operand(|o| reads.extend(o.var().filter(|v| !set.contains(v))));
            work::add(block.insts.len() + 1);
        };
        if whole {
            first(&self.func.blocks[entry]);
        } else {
            let arms = self.func.blocks[entry].term.successors();
            arms.iter().filter(|b| blocks.contains(b)).for_each(|b| first(&self.func.blocks[*b]));
        }
        reads.into_iter()
    }

    fn known_before(&self, entry: BlockId, whole: bool, blocks: &BTreeSet<BlockId>) -> Option<State> {
        if !whole {
            return self.known.after(self.func, entry);
        }
        let outside = |p: &&BlockId| !blocks.contains(p) && self.dominance.is_reached(**p);
        let before = self.dominance.predecessors(entry).iter().filter(outside);
        let states = before.filter_map(|p| self.known.after(self.func, *p));
        states.reduce(|mut a, b| {
            a.meet(&b);
            a
        })
    }
}
