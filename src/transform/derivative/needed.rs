//! Which variables the reverse sweep needs where, and which it computes again: a fixed point over the blocks, from
//! where the reverse of an instruction reads a variable on until it is set again.

use std::collections::{BTreeMap, HashSet};

use super::origins::{Origin, asked, counted, definitions};
use super::record::{Needs, Subject, Way, way_back};
use crate::base::{IdSet, IdVec, work};
use crate::cfg::{BlockId, InstKind, Operand, Terminator, VarId};
use crate::prim::{BatchRule, Effect, Prim};
use crate::types::Type;

/// A value is computed again, rather than taped, when an element costs no more than this, in additions. A push and a
/// pop move it four times through memory; beyond that is what only contractions cost.
const CHEAP_AGAIN: u64 = 60;

/// The variables that may be computed again: set once, by a cheap primitive without effect besides, and read only in
/// the same block after that. In code that runs once they are simply still there.
fn candidates(
    subject: &Subject<'_>,
    origins: &IdVec<BlockId, Origin>,
    counted: &BTreeMap<BlockId, (VarId, Operand)>,
) -> BTreeMap<VarId, usize> {
    let func = subject.func;
    let definitions = definitions(func);
    let params: HashSet<VarId> = func.params.iter().copied().collect();
    let mut found = BTreeMap::new();
    for v in func.vars.ids() {
        let [(block, at)] = definitions[v][..] else { continue };
        if params.contains(&v) || !(subject.split || subject.graph.cyclic.contains(block)) {
            continue;
        }
        let Some(inst) = func.blocks[block].insts.get(at) else { continue };
        if is_cheap(subject, &inst.kind) {
            found.insert(v, at);
        }
    }
    let mut drop_if = |v: VarId, block: BlockId| {
        if found.contains_key(&v) && definitions[v][0].0 != block {
            found.remove(&v);
        }
    };
    for (id, block) in func.blocks.iter() {
        let mut read = |o: Operand| o.var().into_iter().for_each(|v| drop_if(v, id));
        block.insts.iter().for_each(|i| i.kind.for_each_operand(&mut read));
        block.term.for_each_operand(&mut read);
    }
    let bounds = counted.values().filter_map(|(_, bound)| bound.var());
    origins.values().flat_map(asked).chain(bounds).for_each(|v| _ = found.remove(&v));
    found
}

fn is_cheap(subject: &Subject<'_>, inst: &InstKind) -> bool {
    let InstKind::Prim { dst, prim, args } = inst else { return false };
    let types: Vec<Type> = args.iter().map(|a| subject.program.operand_type(subject.func, *a)).collect();
    let ty = &subject.func.vars[*dst].ty;
    let elements = ty.elements().max(1) as u64;
    // a copy of an array with one element changed would be made again as a whole
    let whole = prim.changes_part();
    let reads_itself = args.contains(&Operand::Var(*dst));
    prim.effect(&types) != Effect::Random
        && prim.row().batch != BatchRule::Random
        && !whole
        && !reads_itself
        && prim.cost(&types, ty) <= CHEAP_AGAIN * elements
}

/// Which variables are needed where.
pub(super) struct Analysis<'a> {
    pub(super) subject: &'a Subject<'a>,
    needs: &'a IdVec<BlockId, Vec<Needs>>,
    origins: &'a IdVec<BlockId, Origin>,
    definitions: IdVec<VarId, Vec<(BlockId, usize)>>,
    /// What counters of loops are when these are over, by the block that follows.
    counted: BTreeMap<BlockId, (VarId, Operand)>,
    /// The variables that are computed again, with the instruction that does.
    pub(super) again: BTreeMap<VarId, usize>,
    /// For each variable that is computed again: the first instruction that sets what it is computed from. Beyond that
    /// it cannot be.
    until: BTreeMap<VarId, usize>,
    /// The variables needed at the start of each block, but for those that were left on tapes before.
    pub(super) at_entry: IdVec<BlockId, IdSet<VarId>>,
    /// What a sweep of its own leaves on tapes at the end of a block, before ways meet.
    pub(super) early: BTreeMap<BlockId, IdSet<VarId>>,
}

impl<'a> Analysis<'a> {
    /// The analysis, in which what cannot be computed again where it is needed is not any more.
    pub(super) fn solved(
        subject: &'a Subject<'a>,
        needs: &'a IdVec<BlockId, Vec<Needs>>,
        origins: &'a IdVec<BlockId, Origin>,
    ) -> Self {
        let definitions = definitions(subject.func);
        let counted = counted(subject, origins);
        let again = candidates(subject, origins, &counted);
        let (until, at_entry) = (BTreeMap::new(), IdVec::new());
        let early = BTreeMap::new();
        let mut analysis = Self { subject, needs, origins, definitions, counted, again, until, at_entry, early };
        analysis.settle();
        if subject.split {
            analysis.save_elements();
        }
        analysis
    }

    fn settle(&mut self) {
        self.until.clear();
        for id in self.subject.func.blocks.ids() {
            self.find_until(id);
        }
        self.at_entry = loop {
            if let Some(at_entry) = self.solve() {
                break at_entry;
            }
        };
        self.leave_early();
    }

    /// What is needed at the end of the function.
    pub(super) fn at_end(&self) -> IdSet<VarId> {
        let mut blocks = self.subject.func.blocks.iter();
        let exit = blocks.find(|(_, block)| matches!(block.term, Terminator::Return(_)));
        exit.map_or(IdSet::new(self.subject.func.vars.len()), |(id, _)| {
            let end = self.block(id, self.at_entry[id].clone(), &mut |_, _| {});
            end.expect("what is computed again was settled")
        })
    }

    /// The counters that the reverse sweep sets to their bounds, by the block at the end of whose reverse it does.
    pub(super) fn counters_to_set(&self) -> BTreeMap<BlockId, (VarId, Operand)> {
        let needed = |(id, (counter, _)): &(&BlockId, &(VarId, Operand))| self.at_entry[**id].contains(*counter);
        self.counted.iter().filter(needed).map(|(id, end)| (*id, *end)).collect()
    }

    /// An array that would be left on a tape only so that a smaller part of it can be read again is not: the part is.
    fn save_elements(&mut self) {
        let Subject { func, graph, ref given, .. } = *self.subject;
        let elements = |v: VarId| func.vars[v].ty.elements();
        let mut left = self.at_end();
        self.early.values().for_each(|early| _ = left.union_with(early));
        let arrays: Vec<VarId> = left.iter().filter(|v| !func.vars[*v].ty.is_scalar() && !given.contains(*v)).collect();
        for array in arrays {
            let parts: Vec<VarId> = self
                .again
                .iter()
                .filter_map(|(v, made)| {
                    let block = self.definitions[*v][0].0;
                    let mut reads = false;
                    func.blocks[block].insts[*made].kind.for_each_operand(|o| reads |= o == Operand::Var(array));
                    (reads && elements(*v) < elements(array) && !graph.cyclic.contains(block)).then_some(*v)
                })
                .collect();
            if parts.is_empty() {
                continue;
            }
            let (before, again) = (self.left(), self.again.clone());
            parts.iter().for_each(|v| {
                self.again.remove(v);
            });
            self.settle();
            if self.left() >= before {
                self.again = again;
                self.settle();
            }
        }
    }

    /// Says of each variable of a block that is computed again up to where it can be.
    fn find_until(&mut self, id: BlockId) {
        let block = &self.subject.func.blocks[id];
        for (made, inst) in block.insts.iter().enumerate() {
            let Some(v) = inst.kind.dst().filter(|v| self.again.get(v) == Some(&made)) else { continue };
            let mut until = usize::MAX;
            inst.kind.for_each_operand(|o| {
                let Some(o) = o.var() else { return };
                until = until.min(match self.until.get(&o) {
                    Some(until) if self.again.contains_key(&o) => *until,
                    _ => {
                        let set = self.definitions[o].partition_point(|place| *place <= (id, made));
                        let next = self.definitions[o].get(set).filter(|(block, _)| *block == id);
                        next.map_or(usize::MAX, |(_, at)| *at)
                    }
                });
            });
            self.until.insert(v, until);
        }
    }

    /// The variables needed at the start of each block. Nothing when a variable cannot be computed again that was taken
    /// to be where others had been decided already; it is none of them now.
    fn solve(&mut self) -> Option<IdVec<BlockId, IdSet<VarId>>> {
        let Subject { func, graph, .. } = *self.subject;
        let mut at_entry = IdVec::filled(IdSet::new(func.vars.len()), func.blocks.len());
        let mut seen = IdSet::new(func.blocks.len());
        let mut changed = true;
        while changed {
            changed = false;
            for id in &graph.order {
                let end = loop {
                    match self.block(*id, at_entry[*id].clone(), &mut |_, _| {}) {
                        Ok(end) => break end,
                        Err(not_again) => {
                            self.again.remove(&not_again);
                            self.until.remove(&not_again);
                            self.find_until(*id);
                            if seen.contains(*id) {
                                return None;
                            }
                        }
                    }
                };
                seen.insert(*id);
                for next in func.blocks[*id].term.successors() {
                    changed |= at_entry[next].union_with(&end);
                }
            }
        }
        Some(at_entry)
    }

    /// From the variables needed at the start of a block to those needed at its end; `save` gets each variable that is
    /// set while its old value is needed.
    pub(super) fn block(
        &self,
        id: BlockId,
        mut needed: IdSet<VarId>,
        save: &mut dyn FnMut(usize, VarId),
    ) -> Result<IdSet<VarId>, VarId> {
        let block = &self.subject.func.blocks[id];
        work::add(block.insts.len() + 1);
        let mut walked = IdSet::new(self.subject.func.vars.len());
        if let Some((counter, bound)) = self.counted.get(&id)
            && needed.contains(*counter)
        {
            needed.remove(*counter);
            bound.var().into_iter().for_each(|v| _ = needed.insert(v));
        }
        asked(&self.origins[id]).for_each(|v| {
            needed.insert(v);
        });
        for (at, needs) in self.needs[id].iter().enumerate() {
            let dst = block.insts.get(at).and_then(|i| i.kind.dst());
            let late = at == block.insts.len() && (self.subject.restores_late)(id);
            for v in &needs.before {
                // what comes back late is set already
                self.leaves(id, *v, at + usize::from(late), (&mut needed, &mut walked))?;
            }
            let again = dst.is_some_and(|d| self.again.contains_key(&d));
            if needs.result && again {
                dst.into_iter().try_for_each(|d| self.leaves(id, d, at, (&mut needed, &mut walked)))?;
            }
            if let Some(dst) = dst {
                if needed.contains(dst) {
                    save(at, dst);
                    match way_back(self.subject, block.insts.get(at), dst) {
                        // the way back starts from the new value, which so is needed in its turn
                        Way::Inverse => {}
                        Way::Element(_) => self.element_indices(id, at, (&mut needed, &mut walked))?,
                        Way::Whole => needed.remove(dst),
                    }
                }
                if needs.result && !again {
                    needed.insert(dst);
                }
            }
            if at == block.insts.len() {
                for dst in block.term.dsts() {
                    if needed.contains(*dst) {
                        save(at, *dst);
                        needed.remove(*dst);
                    }
                }
            }
        }
        Ok(needed)
    }

    /// The indices of an element that is saved are needed to put it back.
    fn element_indices(&self, id: BlockId, at: usize, (needed, walked): Sets<'_>) -> Result<(), VarId> {
        if let InstKind::Prim { dst, prim: Prim::SetIndex, args } = &self.subject.func.blocks[id].insts[at].kind
            && args[0] == Operand::Var(*dst)
        {
            args[2..]
                .iter()
                .filter_map(|a| a.var())
                .try_for_each(|v| self.leaves(id, v, at, (&mut *needed, &mut *walked)))?;
        }
        Ok(())
    }

    /// A variable is read by the reverse of instruction `at`: it is needed, or what it is computed from again is.
    fn leaves(&self, block: BlockId, v: VarId, at: usize, (needed, walked): Sets<'_>) -> Result<(), VarId> {
        if !self.again.contains_key(&v) {
            needed.insert(v);
            return Ok(());
        }
        if self.until[&v] < at {
            return Err(v);
        }
        let insts = &self.subject.func.blocks[block].insts;
        let mut work = vec![v];
        while let Some(v) = work.pop() {
            match self.again.get(&v) {
                None => {
                    needed.insert(v);
                }
                // What it is computed from was found needed for an earlier instruction, and is not set up to this one.
                Some(_) if !walked.insert(v) => {}
                Some(made) => insts[*made].kind.for_each_operand(|o| work.extend(o.var())),
            }
        }
        Ok(())
    }
}

/// The variables that are needed, and those whose operands were followed already.
type Sets<'s> = (&'s mut IdSet<VarId>, &'s mut IdSet<VarId>);
