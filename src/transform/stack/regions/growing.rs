//! A region and what it takes to add blocks to it: which variables live in it alone, and which of them are uniform.
//!
//! What lives in a region alone does so in every larger one, and what is uniform stays so: it is mentioned nowhere else. So
//! only the new blocks are looked at, and of the old ones those that mention what has come to live in the region alone.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Forming, moves_stack};
use crate::analysis::stack_liveness::step_back;
use crate::base::{IdSet, work};
use crate::prim::BatchRule;
use crate::stack::{Block, BlockId, InstKind, Operand, SideEffect, StorageClass, Terminator, Var, VarId, Write};

/// A region that is being formed.
pub(super) struct Growing {
    /// Where it is entered.
    pub(super) first: BlockId,
    /// Its edges to other blocks: from which block, the how-manieth edge of it, where to.
    pub(super) exits: BTreeMap<(BlockId, usize), BlockId>,
    /// The variables that are set in it and do not live in it alone.
    open: IdSet<VarId>,
}

/// So many elements a lane that need not be kept between supersteps pay for one superstep more: to store and to load them
/// for a shard of lanes takes as long as to choose and enter a block.
const MIN_KEPT: usize = 8;

/// What is found about a region with more blocks, before it is one.
struct Found {
    exits: BTreeMap<(BlockId, usize), BlockId>,
    open: IdSet<VarId>,
    /// The variables that live in it alone and did not before.
    fresh: BTreeSet<VarId>,
    /// The variables that are uniform and were not before.
    uniform: BTreeSet<VarId>,
}

/// What the instructions of some blocks compute from what.
#[derive(Default)]
struct Flow {
    /// For each variable that is set what each instruction reads that sets it; `None` if that is not equal in all lanes whatever
    /// it reads.
    made_of: BTreeMap<VarId, Vec<Option<Vec<VarId>>>>,
    /// For each variable that is read what is computed from it.
    feeds: BTreeMap<VarId, Vec<VarId>>,
}

impl Flow {
    fn add(&mut self, block: &Block) {
        work::add(block.insts.len());
        for inst in &block.insts {
            match &inst.kind {
                InstKind::Effect(SideEffect::TapePop { dst, .. }) => self.made_of.entry(*dst).or_default().push(None),
                InstKind::Compute { dst, prim, args, .. } => {
                    let reads: Vec<VarId> = args.iter().filter_map(|a| a.var()).collect();
                    reads.iter().for_each(|v| self.feeds.entry(*v).or_default().push(*dst));
                    let reads = (prim.row().batch != BatchRule::Random).then_some(reads);
                    self.made_of.entry(*dst).or_default().push(reads);
                }
                _ => {}
            }
        }
    }
}

impl Forming {
    /// Adds blocks to a region, or makes one of them; not if a branch of theirs diverges.
    pub(super) fn grow(&mut self, first: BlockId, blocks: &BTreeSet<BlockId>, region: usize) -> bool {
        let Some(found) = self.with_more(first, blocks, region) else {
            return false;
        };
        for b in blocks {
            self.region_of[*b] = Some(region);
        }
        self.rename(&found, blocks, region);
        let Found { exits, open, .. } = found;
        let grown = Growing { first, exits, open };
        match self.regions.get_mut(region) {
            Some(old) => *old = grown,
            None => self.regions.push(grown),
        }
        true
    }

    /// Takes what a block does before it ends into a region, if enough lives in the region alone then. The end remains,
    /// a superstep of its own.
    pub(super) fn take_last(&mut self, first: BlockId, id: BlockId, region: usize) {
        let insts = &self.program.blocks[id].insts;
        let at = insts.iter().position(|inst| moves_stack(&inst.kind)).unwrap_or(insts.len());
        let mut live = self.liveness.live_at_end(&self.program, id);
        insts[at..].iter().rev().for_each(|inst| step_back(&inst.kind, &mut live));
        let before = self.regions[region].open.clone();
        let (new, whole) = self.split_at(id, at, live);
        let found = self.with_more(first, &BTreeSet::from([id]), region);
        let kept = found.into_iter().flat_map(|found| found.fresh);
        let elements: usize = kept.filter(|v| before.contains(*v)).map(|v| self.program.vars[v].ty.elements()).sum();
        if elements < MIN_KEPT || !self.grow(first, &BTreeSet::from([id]), region) {
            self.undo_split(id, new, whole);
        }
    }

    /// What becomes of a region with these blocks; `None` if a branch diverges.
    fn with_more(&self, first: BlockId, blocks: &BTreeSet<BlockId>, region: usize) -> Option<Found> {
        let inside = |b: &BlockId| blocks.contains(b) || self.region_of[*b] == Some(region);
        let old = self.regions.get(region);
        let new = blocks.iter().flat_map(|b| {
            let next = self.program.blocks[*b].term.successors();
            next.into_iter().enumerate().map(|(i, to)| ((*b, i), to))
        });
        let known = old.iter().flat_map(|r| r.exits.iter().map(|(edge, to)| (*edge, *to)));
        let exits: BTreeMap<(BlockId, usize), BlockId> = known.chain(new).filter(|(_, to)| !inside(to)).collect();
        work::add(exits.len());
        let mut border = self.live_in[first].clone();
        exits.values().for_each(|to| _ = border.union_with(&self.live_in[*to]));
        let mut open = old.map_or_else(|| IdSet::new(self.program.vars.len()), |r| r.open.clone());
        let mut fresh = open.clone();
        fresh.subtract(&border);
        open.intersect_with(&border);
        let mut fresh: BTreeSet<VarId> = fresh.iter().collect();
        for v in blocks.iter().flat_map(|b| &self.program.blocks[*b].insts).filter_map(|i| i.kind.written()) {
            if border.contains(v) {
                open.insert(v);
            } else if self.inside[v].is_none() {
                fresh.insert(v);
            }
        }
        let uniform = self.newly_uniform(&fresh, blocks, region);
        let diverges = |b: &BlockId| match self.program.blocks[*b].term {
            Terminator::Branch(Operand::Var(cond), ..) => {
                !uniform.contains(&cond) && self.inside[cond] != Some((region, true))
            }
            _ => false,
        };
        (!blocks.iter().any(diverges)).then_some(Found { exits, open, fresh, uniform })
    }

    /// Of these variables, and of those that are computed from them, the ones that are uniform: the largest set that is computed
    /// from itself, constants, shared values and what is uniform already.
    fn newly_uniform(&self, fresh: &BTreeSet<VarId>, blocks: &BTreeSet<BlockId>, region: usize) -> BTreeSet<VarId> {
        let mut flow = Flow::default();
        blocks.iter().for_each(|b| flow.add(&self.program.blocks[*b]));
        let mut looked_at = blocks.clone();
        let mut uniform = fresh.clone();
        let mut reached: Vec<VarId> = fresh.iter().copied().collect();
        while let Some(v) = reached.pop() {
            for b in self.mentions[v].iter().filter(|b| self.region_of[**b] == Some(region)) {
                if looked_at.insert(*b) {
                    flow.add(&self.program.blocks[*b]);
                }
            }
            let computed = flow.feeds.get(&v).into_iter().flatten();
            reached.extend(computed.filter(|to| self.inside[**to] == Some((region, false)) && uniform.insert(**to)));
        }
        let mut open: VecDeque<VarId> = uniform.iter().copied().collect();
        while let Some(v) = open.pop_front() {
            work::add(1);
            let is_uniform = |r: &VarId| uniform.contains(r) || self.inside[*r] == Some((region, true));
            let equal = |reads: &Option<Vec<VarId>>| reads.as_ref().is_some_and(|reads| reads.iter().all(is_uniform));
            let stays = flow.made_of.get(&v).is_none_or(|all| all.iter().all(equal));
            if !stays && uniform.remove(&v) {
                open.extend(flow.feeds.get(&v).into_iter().flatten().filter(|to| uniform.contains(to)));
            }
        }
        uniform
    }

    /// Gives the variables that live in a region alone names of their own, where they are used elsewhere too, and marks the
    /// uniform ones. The blocks are in the region already.
    fn rename(&mut self, found: &Found, blocks: &BTreeSet<BlockId>, region: usize) {
        let mut new_names: BTreeMap<VarId, VarId> = BTreeMap::new();
        let mut touched = blocks.clone();
        for v in &found.fresh {
            let is_inside = |b: &BlockId| self.region_of[*b] == Some(region);
            let elsewhere = self.ports.contains(v) || !self.mentions[*v].iter().all(is_inside);
            let here: Vec<BlockId> = self.mentions[*v].iter().copied().filter(is_inside).collect();
            touched.extend(&here);
            let own = if elsewhere { self.variable_like(*v) } else { *v };
            if own != *v {
                here.iter().for_each(|b| _ = self.mentions[*v].remove(b));
                self.mentions[own].extend(here);
            }
            new_names.insert(*v, own);
            self.inside[own] = Some((region, false));
        }
        for b in touched {
            self.replace(b, &new_names);
        }
        let own = |v: &VarId| new_names.get(v).copied().unwrap_or(*v);
        found.uniform.iter().for_each(|v| self.inside[own(v)] = Some((region, true)));
        for v in found.fresh.iter().chain(&found.uniform).map(own) {
            let uniform = self.inside[v] == Some((region, true));
            let var = &mut self.program.vars[v];
            var.class = StorageClass::Temporary;
            var.uniform = uniform;
            var.why = if uniform {
                "equal in all lanes inside one region, which runs as one superstep".to_owned()
            } else {
                "lives only inside one region, which runs as one superstep".to_owned()
            };
        }
    }

    fn variable_like(&mut self, v: VarId) -> VarId {
        let Var { name, ty, .. } = self.program.vars[v].clone();
        let name = self.names.numbered(&format!("{name}#"), 2);
        self.mentions.push(BTreeSet::new());
        self.inside.push(None);
        self.program.vars.push(Var { name, ty, class: StorageClass::Temporary, uniform: false, why: String::new() })
    }

    /// Puts variables, which are no stacks, in the place of others.
    fn replace(&mut self, block: BlockId, new: &BTreeMap<VarId, VarId>) {
        let block = &mut self.program.blocks[block];
        work::add(block.insts.len());
        let change = |o: &mut Operand| {
            if let Some(now) = o.var().and_then(|v| new.get(&v)) {
                *o = Operand::Var(*now);
            }
        };
        for inst in &mut block.insts {
            inst.kind.for_each_operand_mut(change);
            if let Some(dst) = inst.kind.overwritten_mut()
                && let Some(now) = new.get(dst)
            {
                *dst = *now;
                if let InstKind::Compute { write, .. } = &mut inst.kind {
                    *write = Write::Set;
                }
            }
        }
        if let Terminator::Branch(cond, ..) = &mut block.term {
            change(cond);
        }
    }
}
