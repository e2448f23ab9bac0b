//! Region formation: loops whose branches do not diverge, with the code before them that sets their counters and the
//! code after them, run as one superstep.
//!
//! A branch does not diverge if its condition is *uniform*: computed inside the region from constants, shared values
//! and other uniform variables. So a loop over a shared number of turns keeps no counter for each lane, and everywhere
//! else a branch on a shared value is a jump. A counter that is set before the region is not uniform, though it may
//! hold the same number in every lane's history: lanes may enter the region at different times.
//!
//! Code after a loop that ends in a call, a return or a branch that diverges is parted from its end, which stays outside.

mod growing;

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::components::components;
use crate::analysis::stack_liveness::{Liveness, step_back};
use crate::analysis::worklist::reversed;
use crate::base::{Id as _, IdSet, IdVec, Loc, Names, work};
use crate::stack::{Block, BlockId, InstKind, Program, Region, StorageClass, Terminator, VarId};

use super::layout::{mentions, mentions_of, reorder};
use growing::Growing;

/// Forms the largest regions that it finds. A program that has regions already keeps them as they are.
pub(super) fn run(program: Program) -> Program {
    if !program.regions.is_empty() {
        return program;
    }
    let legal: BTreeSet<BlockId> =
        program.blocks.iter().filter(|(_, block)| is_legal(block)).map(|(id, _)| id).collect();
    let mut forming = Forming::new(program);
    forming.loops_among(&legal);
    forming.finish()
}

/// Whether a block may be in a region as far as its instructions and its kind of terminator go.
fn is_legal(block: &Block) -> bool {
    matches!(block.term, Terminator::Jump(_) | Terminator::Branch(..))
        && block.insts.iter().all(|inst| !moves_stack(&inst.kind))
}

fn moves_stack(inst: &InstKind) -> bool {
    inst.moved().is_some()
}

/// What is kept of a program while regions are formed in it.
struct Forming {
    program: Program,
    /// How many blocks it had.
    count: usize,
    liveness: Liveness,
    /// What is live where each block starts. Regions only give names of their own to what lives inside them alone, which
    /// changes it nowhere else.
    live_in: IdVec<BlockId, IdSet<VarId>>,
    /// The blocks with an edge, a call or a return to each block.
    predecessors: IdVec<BlockId, Vec<BlockId>>,
    /// The blocks that mention each variable.
    mentions: IdVec<VarId, BTreeSet<BlockId>>,
    /// The inputs and outputs.
    ports: BTreeSet<VarId>,
    names: Names,
    regions: Vec<Growing>,
    region_of: IdVec<BlockId, Option<usize>>,
    /// The region in which each variable lives alone, and whether it is uniform there.
    inside: IdVec<VarId, Option<(usize, bool)>>,
    /// The blocks that were split off, by the block that they come after in the end.
    split: BTreeMap<BlockId, Vec<BlockId>>,
}

impl Forming {
    fn new(program: Program) -> Self {
        let n = program.blocks.len();
        let liveness = Liveness::of(&program);
        let live_in = program.blocks.ids().map(|b| liveness.live_in(b).clone()).collect();
        let successors = |block: &Block| block.term.successors().into_iter().collect::<BTreeSet<_>>();
        let predecessors = reversed(n, program.blocks.iter().map(|(id, block)| (id, successors(block))));
        let mentions = mentions(&program);
        let ports = program.inputs.iter().chain(&program.outputs).map(|p| p.var).collect();
        let names = Names::of(program.vars.values().map(|v| &v.name));
        let inside = IdVec::filled(None, program.vars.len());
        let (regions, split) = (Vec::new(), BTreeMap::new());
        let region_of = IdVec::filled(None, n);
        Self {
            program,
            count: n,
            liveness,
            live_in,
            predecessors,
            mentions,
            ports,
            names,
            regions,
            region_of,
            inside,
            split,
        }
    }

    /// The program with its regions, the blocks that were split off after what they were split from.
    fn finish(mut self) -> Program {
        let mut order = Vec::new();
        let mut regions: Vec<Vec<BlockId>> = self.regions.iter().map(|r| vec![r.first]).collect();
        for (id, region) in self.region_of.iter() {
            if let Some(r) = *region
                && self.regions[r].first != id
            {
                regions[r].push(id);
            }
        }
        self.program.regions = regions.into_iter().map(|blocks| Region { blocks }).collect();
        for id in self.program.blocks.ids().take(self.count) {
            // What was split off may have been split again.
            let mut open = vec![id];
            while let Some(block) = open.pop() {
                order.push(block);
                open.extend(self.split.get(&block).into_iter().flatten());
            }
        }
        reorder(self.program, &order)
    }

    /// Makes regions of the outermost loops among these blocks that can be one, and where a loop cannot, of loops inside it.
    fn loops_among(&mut self, blocks: &BTreeSet<BlockId>) {
        let mut loops = self.loops(blocks);
        loops.sort();
        for nodes in loops {
            let heads = self.entered(&nodes);
            if let [head] = heads[..]
                && self.form(head, &nodes)
            {
                continue;
            }
            let mut inner = nodes;
            for head in heads {
                inner.remove(&head);
            }
            self.loops_among(&inner);
        }
    }

    fn loops(&self, blocks: &BTreeSet<BlockId>) -> Vec<BTreeSet<BlockId>> {
        work::add(blocks.len());
        let nodes: Vec<BlockId> = blocks.iter().copied().collect();
        let successors = |n: usize| -> Vec<usize> {
            (self.program.blocks[nodes[n]].term.successors().iter())
                .filter_map(|b| nodes.binary_search(b).ok())
                .collect()
        };
        components(nodes.len(), successors)
            .into_iter()
            .filter(|c| c.len() > 1 || successors(c[0]).contains(&c[0]))
            .map(|c| c.into_iter().map(|n| nodes[n]).collect())
            .collect()
    }

    /// The blocks of a loop that are entered from outside.
    fn entered(&self, nodes: &BTreeSet<BlockId>) -> Vec<BlockId> {
        let entered =
            |b: &BlockId| *b == self.program.entry || self.predecessors[*b].iter().any(|from| !nodes.contains(from));
        nodes.iter().copied().filter(entered).collect()
    }

    /// Makes a region of a loop, if its branches do not diverge.
    fn form(&mut self, head: BlockId, nodes: &BTreeSet<BlockId>) -> bool {
        let outside: Vec<BlockId> = self.predecessors[head].iter().copied().filter(|b| !nodes.contains(b)).collect();
        let before = match outside[..] {
            [before] if head != self.program.entry && self.leads_all_on(before, head) => Some(before),
            _ => None,
        };
        let Some(before) = before else {
            return self.grow_on(head, nodes, None);
        };
        if let Some(earlier) = self.region_of[before] {
            return self.grow_on(self.regions[earlier].first, nodes, Some(earlier));
        }
        let (first, whole) = self.split_after_stack_moves(before);
        let mut all = nodes.clone();
        all.insert(first);
        let formed = self.grow_on(first, &all, None);
        if !formed && let Some(whole) = whole {
            self.undo_split(before, first, whole);
        }
        formed
    }

    /// Whether all lanes at the end of a block go to `head` together, or none: by a jump, or by a branch on what is the same for
    /// all lanes, as that of a loop over a shared number of turns, which may be 0.
    fn leads_all_on(&self, block: BlockId, head: BlockId) -> bool {
        match self.program.blocks[block].term {
            Terminator::Jump(to) => to == head,
            Terminator::Branch(cond, a, b) => cond.var().is_none() && (a == head || b == head),
            _ => false,
        }
    }

    /// Splits off what comes after the last push or pop of a block; returns the new block, and the old one as it was, if
    /// there was something to split.
    fn split_after_stack_moves(&mut self, id: BlockId) -> (BlockId, Option<Block>) {
        let block = &self.program.blocks[id];
        let Some(last) = block.insts.iter().rposition(|i| moves_stack(&i.kind)) else {
            return (id, None);
        };
        let mut live = IdSet::new(self.program.vars.len());
        block.term.successors().iter().for_each(|to| _ = live.union_with(&self.live_in[*to]));
        if let Terminator::Branch(cond, ..) = &block.term {
            cond.var().into_iter().for_each(|v| _ = live.insert(v));
        }
        block.insts[last + 1..].iter().rev().for_each(|inst| step_back(&inst.kind, &mut live));
        let (new, whole) = self.split_at(id, last + 1, live);
        (new, Some(whole))
    }

    /// Splits off the instructions of a block from here on, where this is live; returns the new block, and the old one as it
    /// was.
    fn split_at(&mut self, id: BlockId, at: usize, live: IdSet<VarId>) -> (BlockId, Block) {
        let new = self.program.blocks.next_id();
        let block = &mut self.program.blocks[id];
        let whole = block.clone();
        let insts = block.insts.split_off(at);
        let loc: Loc = insts.first().map_or(&block.loc, |i| &i.loc).clone();
        let term = std::mem::replace(&mut block.term, Terminator::Jump(new));
        let next: BTreeSet<BlockId> = term.successors().into_iter().collect();
        for v in live.iter() {
            let var = &mut self.program.vars[v];
            if var.class == StorageClass::Temporary {
                (var.class, var.why) = (StorageClass::Register, String::new());
            }
        }
        self.live_in.push(live);
        next.iter().for_each(|to| self.change_predecessor(*to, id, new));
        self.predecessors.push(vec![id]);
        self.region_of.push(None);
        self.program.blocks.push(Block { insts, term, loc });
        self.mention_again([id, new], &whole);
        self.split.entry(id).or_default().push(new);
        (new, whole)
    }

    /// The block that was split off stays behind, where nothing leads to it and the final order leaves it out.
    fn undo_split(&mut self, id: BlockId, new: BlockId, whole: Block) {
        self.split.entry(id).or_default().retain(|b| *b != new);
        let next: BTreeSet<BlockId> = whole.term.successors().into_iter().collect();
        next.iter().for_each(|to| self.change_predecessor(*to, new, id));
        self.predecessors[new].clear();
        self.program.blocks[new] = Block { insts: Vec::new(), term: Terminator::Halt, loc: Loc::none() };
        self.program.blocks[id] = whole.clone();
        self.mention_again([id, new], &whole);
    }

    fn change_predecessor(&mut self, of: BlockId, from: BlockId, to: BlockId) {
        self.predecessors[of].iter_mut().filter(|b| **b == from).for_each(|b| *b = to);
    }

    /// Notes where the variables of a block are that was split or put together again.
    fn mention_again(&mut self, halves: [BlockId; 2], whole: &Block) {
        for v in mentions_of(whole) {
            halves.iter().for_each(|b| _ = self.mentions[v].remove(b));
        }
        for b in halves {
            for v in mentions_of(&self.program.blocks[b]) {
                self.mentions[v].insert(b);
            }
        }
    }

    /// Makes a region of these blocks, or of a region and these blocks, and then of what follows them in a straight line.
    fn grow_on(&mut self, first: BlockId, blocks: &BTreeSet<BlockId>, old: Option<usize>) -> bool {
        let region = old.unwrap_or(self.regions.len());
        if !self.grow(first, blocks, region) {
            return false;
        }
        // By now the region's variables have names of their own, so that what follows does not make them live on.
        while let Some(next) = self.follower(region) {
            if !self.grow(first, &BTreeSet::from([next]), region) {
                break;
            }
        }
        if let Some(last) = self.last(region) {
            self.take_last(first, last, region);
        }
        true
    }

    /// A block that comes after a region, only after it, and goes straight on.
    fn follower(&self, region: usize) -> Option<BlockId> {
        self.only_after(region, |_, block| matches!(block.term, Terminator::Jump(_)) && is_legal(block))
    }

    /// A block that comes after a region, only after it, and ends in what no region has, with something before that.
    fn last(&self, region: usize) -> Option<BlockId> {
        self.only_after(region, |id, block| {
            let ends = match block.term {
                // What was split off leads to another region.
                Terminator::Jump(to) => to.index() < self.count && block.insts.iter().any(|i| moves_stack(&i.kind)),
                Terminator::Branch(cond, ..) => cond.var().is_some(),
                Terminator::PushJump { .. } | Terminator::Return | Terminator::Halt => true,
            };
            ends && id.index() < self.count && block.insts.first().is_some_and(|inst| !moves_stack(&inst.kind))
        })
    }

    fn only_after(&self, region: usize, wanted: impl Fn(BlockId, &Block) -> bool) -> Option<BlockId> {
        work::add(self.regions[region].exits.len());
        self.regions[region].exits.values().copied().find(|b| {
            *b != self.program.entry
                && self.region_of[*b].is_none()
                && self.predecessors[*b].iter().all(|p| self.region_of[*p] == Some(region))
                && wanted(*b, &self.program.blocks[*b])
        })
    }
}
