//! Where the forward sweep of a function that is called leaves on tapes what its frame holds: at its end, or before, at
//! the end of the one way that needs it. What only the end of a recursion needs, as an array that it sums up, is so not
//! taped at every level.

use super::graph::Graph;
use super::needed::Analysis;
use crate::base::{IdSet, IdVec};
use crate::cfg::{BlockId, Func, Terminator, VarId};

impl Analysis<'_> {
    /// Finds what is left on tapes before the end: where ways meet from which no loop comes any more, what one of them
    /// needs and another does not, if it is neither set nor needed again afterwards.
    pub(super) fn leave_early(&mut self) {
        self.early.clear();
        if !self.subject.split {
            return;
        }
        let (func, graph) = (self.subject.func, self.subject.graph);
        let tail = tail(func, graph);
        if !tail.iter().any(|id| graph.preds[id].len() > 1) {
            return;
        }
        let touched = self.touched(&tail);
        for id in graph.order.iter().copied().filter(|id| tail.contains(*id)) {
            let preds = &graph.preds[id];
            let ends: Vec<IdSet<VarId>> = preds.iter().map(|pred| self.end(*pred)).collect();
            let Some(mut all) = ends.first().cloned() else { continue };
            ends.iter().for_each(|end| _ = all.intersect_with(end));
            let mut entry = IdSet::new(func.vars.len());
            for (pred, mut end) in preds.iter().zip(ends) {
                if preds.len() > 1 && matches!(func.blocks[*pred].term, Terminator::Jump(_)) {
                    let mut early = end.clone();
                    early.subtract(&all);
                    early.subtract(&touched[id]);
                    early.subtract(&self.subject.given);
                    if !early.is_empty() {
                        end.subtract(&early);
                        self.early.insert(*pred, early);
                    }
                }
                entry.union_with(&end);
            }
            self.at_entry[id] = entry;
        }
    }

    /// How many elements a sweep of its own leaves on tapes, where each way from a branch is as likely as the other.
    pub(super) fn left(&self) -> f64 {
        let (func, graph) = (self.subject.func, self.subject.graph);
        let elements = |left: &IdSet<VarId>| {
            let left = left.iter().filter(|v| !self.subject.given.contains(*v));
            left.map(|v| func.vars[v].ty.elements()).sum::<usize>() as f64
        };
        let tail = tail(func, graph);
        let mut often: IdVec<BlockId, f64> = IdVec::filled(1.0, func.blocks.len());
        let mut sum = elements(&self.at_end());
        for id in graph.order.iter().copied().filter(|id| tail.contains(*id)) {
            let from = |pred: &BlockId| often[*pred] / func.blocks[*pred].term.successors().len().max(1) as f64;
            if !graph.preds[id].is_empty() {
                often[id] = graph.preds[id].iter().map(from).sum::<f64>().min(1.0);
            }
            sum += self.early.get(&id).map_or(0.0, |early| often[id] * elements(early));
        }
        sum
    }

    /// What is needed at the end of a block.
    fn end(&self, id: BlockId) -> IdSet<VarId> {
        let end = self.block(id, self.at_entry[id].clone(), &mut |_, _| {});
        end.expect("what is computed again was settled")
    }

    /// The variables that are set, or needed by what stands there, from the start of a block of the tail on.
    fn touched(&self, tail: &IdSet<BlockId>) -> IdVec<BlockId, IdSet<VarId>> {
        let (func, graph) = (self.subject.func, self.subject.graph);
        let mut touched = IdVec::filled(IdSet::new(func.vars.len()), func.blocks.len());
        for id in graph.order.iter().rev().copied().filter(|id| tail.contains(*id)) {
            let block = &func.blocks[id];
            let now = self.block(id, IdSet::new(func.vars.len()), &mut |_, _| {});
            let mut now = now.expect("what is computed again was settled");
            let set = block.insts.iter().filter_map(|i| i.kind.dst()).chain(block.term.dsts().iter().copied());
            set.for_each(|v| _ = now.insert(v));
            block.term.successors().into_iter().for_each(|next| _ = now.union_with(&touched[next]));
            touched[id] = now;
        }
        touched
    }
}

/// The blocks from which no loop comes any more.
fn tail(func: &Func, graph: &Graph) -> IdSet<BlockId> {
    let mut tail = IdSet::new(func.blocks.len());
    for id in graph.order.iter().rev() {
        let leads = |next: BlockId| tail.contains(next);
        if !graph.cyclic.contains(*id) && func.blocks[*id].term.successors().into_iter().all(leads) {
            tail.insert(*id);
        }
    }
    tail
}
