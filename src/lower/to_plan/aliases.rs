//! Reshapes that need no step: what they give is their operand under another shape, and an operand names a slot with any
//! shape of as many elements.

use std::collections::BTreeSet;

use indexmap::IndexMap;

use super::{Inst, RawBlock, Read};
use crate::base::{IdVec, work};
use crate::parts::StorageClass;
use crate::plan::{Var, VarId};
use crate::prim::Prim;

/// The temporaries of a block that stand for another variable, or a shared value.
#[derive(Default)]
pub(super) struct Aliases {
    roots: IndexMap<VarId, Read>,
}

impl Aliases {
    /// Finds them. `elsewhere`: the temporaries that are met in other blocks of the unit.
    pub(super) fn of<T>(source: &RawBlock<T>, vars: &IdVec<VarId, Var>, elsewhere: &BTreeSet<VarId>) -> Self {
        let mut found = Self::default();
        let mut uses: Option<IndexMap<VarId, Uses>> = None;
        for (at, (inst, _)) in source.insts.iter().enumerate() {
            let Inst::Compute { dst, prim: Prim::Reshape, args, .. } = inst else { continue };
            let var = &vars[*dst];
            let root = found.root(args[0]);
            let branches = source.cond.is_some_and(|c| c.var() == Some(*dst));
            let passing = var.class == StorageClass::Temporary && !elsewhere.contains(dst) && !branches;
            let same = root.var().is_none_or(|v| vars[v].uniform == var.uniform) && !var.uniform;
            if !passing || !same {
                continue;
            }
            let uses = uses.get_or_insert_with(|| Uses::of(source));
            if stands(uses, (at, *dst), root.var()) {
                found.roots.insert(*dst, root);
            }
        }
        found
    }
    /// What an operand stands for: itself, if it is no alias.
    pub(super) fn root(&self, read: Read) -> Read {
        read.var().and_then(|v| self.roots.get(&v)).copied().unwrap_or(read)
    }
    /// Whether an instruction is a reshape that needs no step.
    pub(super) fn covers(&self, inst: &Inst) -> bool {
        matches!(inst, Inst::Compute { dst, .. } if self.roots.contains_key(dst))
    }
    /// The variables that an instruction reads, and those that they stand for.
    pub(super) fn reads<'a>(&'a self, inst: &'a Inst) -> impl Iterator<Item = VarId> + 'a {
        inst.reads().flat_map(|v| {
            let root = self.roots.get(&v).and_then(|r| r.var());
            [Some(v), root].into_iter().flatten()
        })
    }
}

/// Where a variable is met in a block, in the order of the instructions.
#[derive(Default)]
struct Uses {
    reads: Vec<usize>,
    writes: Vec<usize>,
    saved: bool,
}

impl Uses {
    fn of<T>(source: &RawBlock<T>) -> IndexMap<VarId, Uses> {
        let mut uses: IndexMap<VarId, Uses> = IndexMap::new();
        for (at, (inst, _)) in source.insts.iter().enumerate() {
            work::add(1);
            inst.reads().for_each(|v| uses.entry(v).or_default().reads.push(at));
            inst.writes().into_iter().for_each(|v| uses.entry(v).or_default().writes.push(at));
            if let Inst::Save { value, .. } = inst {
                uses.entry(*value).or_default().saved = true;
            }
        }
        uses
    }
}

/// Whether the variable that the instruction at `at` sets is set there only, read after it only, and its root keeps its value
/// until then.
fn stands(uses: &IndexMap<VarId, Uses>, (at, dst): (usize, VarId), root: Option<VarId>) -> bool {
    let own = &uses[&dst];
    let last = own.reads.last().map_or(at, |last| *last);
    let once = own.writes == [at];
    let after = own.reads.first().is_none_or(|first| *first > at);
    let writes = root.and_then(|root| uses.get(&root)).map_or(&[][..], |root| &root.writes);
    let kept = writes.get(writes.partition_point(|write| *write <= at)).is_none_or(|write| *write > last);
    // What is saved has a slot.
    once && after && kept && !own.saved && root != Some(dst)
}
