//! Region formation: loops whose branches do not diverge, with the code before them that sets their counters and the
//! code after them, run as one superstep.
//!
//! A branch does not diverge if its condition is *uniform*: computed inside the region from constants, shared values and
//! other uniform variables. A counter that is set before the region is not uniform, though it may hold the same number in
//! every lane's history: lanes may enter the region at different times.

use std::collections::BTreeSet;

use crate::analysis::components::components;
use crate::analysis::stack_liveness::Liveness;
use crate::base::{IdSet, Loc};
use crate::prim::BatchRule;
use crate::stack::{Block, BlockId, InstKind, Operand, Program, Region, StorageClass, Terminator, Var, VarId, Write};

use super::layout::reorder;

/// Forms the largest regions that it finds. A program that has regions already keeps them as they are.
pub(super) fn run(program: Program) -> Program {
    if !program.regions.is_empty() {
        return program;
    }
    let order: Vec<BlockId> = program.blocks.ids().collect();
    let mut forming = Forming { program, order };
    let legal: BTreeSet<BlockId> =
        forming.program.blocks.iter().filter(|(_, block)| is_legal(block)).map(|(id, _)| id).collect();
    forming.loops_among(&legal);
    reorder(forming.program, &forming.order)
}

/// Whether a block may be in a region as far as its instructions and its kind of terminator go.
fn is_legal(block: &Block) -> bool {
    matches!(block.term, Terminator::Jump(_) | Terminator::Branch(..))
        && block.insts.iter().all(|inst| !moves_stack(&inst.kind))
}

fn moves_stack(inst: &InstKind) -> bool {
    inst.moved().is_some()
}

struct Forming {
    program: Program,
    /// The order of the blocks in the end: those that are split off come after what they are split from.
    order: Vec<BlockId>,
}

impl Forming {
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
            |b: &BlockId| *b == self.program.entry || self.predecessors(*b).iter().any(|from| !nodes.contains(from));
        nodes.iter().copied().filter(entered).collect()
    }

    /// The blocks with an edge, a call or a return to a block.
    fn predecessors(&self, to: BlockId) -> Vec<BlockId> {
        (self.program.blocks.iter())
            .filter(|(_, block)| block.term.successors().contains(&to))
            .map(|(id, _)| id)
            .collect()
    }

    /// Makes a region of a loop, if its branches do not diverge.
    fn form(&mut self, head: BlockId, nodes: &BTreeSet<BlockId>) -> bool {
        let outside: Vec<BlockId> = (self.predecessors(head).into_iter()).filter(|b| !nodes.contains(b)).collect();
        let before = match outside[..] {
            [before] if head != self.program.entry && self.leads_all_on(before, head) => Some(before),
            _ => None,
        };
        let Some(before) = before else {
            return self.finish(head, nodes.clone(), None);
        };
        let earlier = (self.program.regions.iter()).position(|r| r.blocks.contains(&before));
        if let Some(earlier) = earlier {
            let region = &self.program.regions[earlier].blocks;
            let first = region[0];
            let all = nodes.iter().chain(region).copied().collect();
            return self.finish(first, all, Some(earlier));
        }
        let (first, whole) = self.split_after_stack_moves(before);
        let mut all = nodes.clone();
        all.insert(first);
        let formed = self.finish(first, all, None);
        if !formed && let Some(whole) = whole {
            self.undo_split(before, whole);
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
        let new = self.program.blocks.next_id();
        let block = &mut self.program.blocks[id];
        let Some(last) = block.insts.iter().rposition(|i| moves_stack(&i.kind)) else {
            return (id, None);
        };
        let whole = block.clone();
        let insts = block.insts.split_off(last + 1);
        let loc: Loc = insts.first().map_or(&block.loc, |i| &i.loc).clone();
        let term = std::mem::replace(&mut block.term, Terminator::Jump(new));
        self.program.blocks.push(Block { insts, term, loc });
        let position = self.position(id);
        self.order.insert(position + 1, new);
        (new, Some(whole))
    }

    /// The block that was split off stays behind, where nothing leads to it and the final order leaves it out.
    fn undo_split(&mut self, id: BlockId, whole: Block) {
        let position = self.position(id);
        let unused = self.order.remove(position + 1);
        self.program.blocks[unused] = Block { insts: Vec::new(), term: Terminator::Halt, loc: Loc::none() };
        self.program.blocks[id] = whole;
    }

    fn position(&self, id: BlockId) -> usize {
        (self.order.iter().position(|b| *b == id)).expect("every block that is used has its place")
    }

    /// Makes a region of these blocks, in the place of region `old`, and then of what follows them in a straight line.
    fn finish(&mut self, first: BlockId, mut blocks: BTreeSet<BlockId>, old: Option<usize>) -> bool {
        if !self.replace_region(first, &blocks, old) {
            return false;
        }
        let region = old.unwrap_or(self.program.regions.len() - 1);
        // By now the region's variables have names of their own, so that what follows does not make them live on.
        while let Some(next) = self.follower(&blocks) {
            blocks.insert(next);
            if !self.replace_region(first, &blocks, Some(region)) {
                break;
            }
        }
        true
    }

    fn replace_region(&mut self, first: BlockId, blocks: &BTreeSet<BlockId>, old: Option<usize>) -> bool {
        let local = self.local(first, blocks);
        let uniform = self.uniform(blocks, local.clone());
        let diverges = |b: &BlockId| match self.program.blocks[*b].term {
            Terminator::Branch(Operand::Var(cond), ..) => !uniform.contains(cond),
            _ => false,
        };
        if blocks.iter().any(diverges) {
            return false;
        }
        self.rename(blocks, &local, &uniform);
        let rest = blocks.iter().copied().filter(|b| *b != first);
        let region = Region { blocks: std::iter::once(first).chain(rest).collect() };
        match old {
            Some(old) => self.program.regions[old] = region,
            None => self.program.regions.push(region),
        }
        true
    }

    /// A block that comes after these, only after these, and goes straight on.
    fn follower(&self, blocks: &BTreeSet<BlockId>) -> Option<BlockId> {
        let leaves = blocks.iter().flat_map(|b| self.program.blocks[*b].term.successors());
        leaves.into_iter().find(|b| {
            let block = &self.program.blocks[*b];
            !blocks.contains(b)
                && *b != self.program.entry
                && is_legal(block)
                && matches!(block.term, Terminator::Jump(_))
                && !(self.program.regions.iter()).any(|r| r.blocks.contains(b))
                && self.predecessors(*b).iter().all(|p| blocks.contains(p))
        })
    }

    /// The variables that are set inside these blocks and whose values neither come in nor go out.
    fn local(&self, first: BlockId, blocks: &BTreeSet<BlockId>) -> IdSet<VarId> {
        let liveness = Liveness::of(&self.program);
        let mut border = liveness.live_in(first).clone();
        for to in blocks.iter().flat_map(|b| self.program.blocks[*b].term.successors()).filter(|b| !blocks.contains(b))
        {
            border.union_with(liveness.live_in(to));
        }
        let mut local = IdSet::new(self.program.vars.len());
        for b in blocks {
            for v in self.program.blocks[*b].insts.iter().filter_map(|i| i.kind.written()) {
                if !border.contains(v) {
                    local.insert(v);
                }
            }
        }
        local
    }

    /// Of these variables those that are uniform: the largest set that is computed from itself, constants and shared values.
    fn uniform(&self, blocks: &BTreeSet<BlockId>, mut uniform: IdSet<VarId>) -> IdSet<VarId> {
        loop {
            let before = uniform.clone();
            for inst in blocks.iter().flat_map(|b| &self.program.blocks[*b].insts) {
                if let InstKind::TapePop { dst, .. } = inst.kind {
                    uniform.remove(dst);
                }
                if let InstKind::Compute { dst, prim, args, .. } = &inst.kind {
                    let mut reads = args.iter().filter_map(|a| a.var());
                    if prim.row().batch == BatchRule::Random || reads.any(|v| !uniform.contains(v)) {
                        uniform.remove(*dst);
                    }
                }
            }
            if uniform == before {
                return uniform;
            }
        }
    }

    /// Gives the local variables names of their own, where they are used elsewhere too, and marks the uniform ones.
    fn rename(&mut self, blocks: &BTreeSet<BlockId>, local: &IdSet<VarId>, uniform: &IdSet<VarId>) {
        let elsewhere = self.used_outside(blocks);
        for v in local.iter() {
            let own = if elsewhere.contains(v) { self.variable_like(v) } else { v };
            for b in blocks {
                self.replace(*b, v, own);
            }
            let var = &mut self.program.vars[own];
            var.class = StorageClass::Temporary;
            var.uniform = uniform.contains(v);
            var.why = if var.uniform {
                "equal in all lanes inside one region, which runs as one superstep".to_owned()
            } else {
                "lives only inside one region, which runs as one superstep".to_owned()
            };
        }
    }

    fn used_outside(&self, blocks: &BTreeSet<BlockId>) -> IdSet<VarId> {
        let mut used = IdSet::new(self.program.vars.len());
        for port in self.program.inputs.iter().chain(&self.program.outputs) {
            used.insert(port.var);
        }
        for (id, block) in self.program.blocks.iter() {
            if blocks.contains(&id) {
                continue;
            }
            for inst in &block.insts {
                inst.kind.for_each_operand(|o| {
                    if let Some(v) = o.var() {
                        used.insert(v);
                    }
                });
                if let Some(v) = inst.kind.written() {
                    used.insert(v);
                }
            }
            if let Terminator::Branch(Operand::Var(v), ..) = block.term {
                used.insert(v);
            }
        }
        used
    }

    fn variable_like(&mut self, v: VarId) -> VarId {
        let Var { name, ty, .. } = self.program.vars[v].clone();
        let taken = |name: &str| self.program.vars.values().any(|var| var.name == name);
        let name = (2..).map(|n| format!("{name}#{n}")).find(|name| !taken(name)).expect("names do not run out");
        self.program.vars.push(Var { name, ty, class: StorageClass::Temporary, uniform: false, why: String::new() })
    }

    /// Puts `new`, which is no stack, in the place of `old`.
    fn replace(&mut self, block: BlockId, old: VarId, new: VarId) {
        let block = &mut self.program.blocks[block];
        let change = |o: &mut Operand| {
            if o.var() == Some(old) {
                *o = Operand::Var(new);
            }
        };
        for inst in &mut block.insts {
            inst.kind.for_each_operand_mut(change);
            if let Some(dst) = inst.kind.overwritten_mut()
                && *dst == old
            {
                *dst = new;
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
