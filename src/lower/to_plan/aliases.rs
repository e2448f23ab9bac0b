//! Reshapes that need no step: what they give is their operand under another shape, and an operand names a slot with any
//! shape of as many elements.

use std::collections::BTreeSet;

use indexmap::IndexMap;

use super::{Inst, RawBlock, Read};
use crate::base::IdVec;
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
        for (at, (inst, _)) in source.insts.iter().enumerate() {
            let Inst::Compute { dst, prim: Prim::Reshape, args, .. } = inst else { continue };
            let var = &vars[*dst];
            let root = found.root(args[0]);
            let branches = source.cond.is_some_and(|c| c.var() == Some(*dst));
            let passing = var.class == StorageClass::Temporary && !elsewhere.contains(dst) && !branches;
            let same = root.var().is_none_or(|v| vars[v].uniform == var.uniform) && !var.uniform;
            if passing && same && stands(source, (at, *dst), root.var()) {
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

/// Whether the variable that the instruction at `at` sets is set there only, read after it only, and its root keeps its value
/// until then.
fn stands<T>(source: &RawBlock<T>, (at, dst): (usize, VarId), root: Option<VarId>) -> bool {
    let insts = || source.insts.iter().map(|(inst, _)| inst).enumerate();
    let reads = |inst: &Inst| inst.reads().any(|v| v == dst);
    let last = insts().rfind(|(_, inst)| reads(inst)).map_or(at, |(i, _)| i);
    let once = insts().all(|(i, inst)| i == at || inst.writes() != Some(dst));
    let after = insts().take(at + 1).all(|(_, inst)| !reads(inst));
    let kept = root.is_none() || insts().take(last + 1).skip(at + 1).all(|(_, inst)| inst.writes() != root);
    // What is saved has a slot.
    let saved = insts().any(|(_, inst)| matches!(inst, Inst::Save { value, .. } if *value == dst));
    once && after && kept && !saved && !matches!(root, Some(v) if v == dst)
}
