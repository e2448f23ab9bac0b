//! The checks that follow the flow of control: temporaries are stored before they are loaded, and every stack has one
//! height on all paths into a block.

use std::collections::{BTreeMap, BTreeSet};

use super::Check;
use crate::base::{IdSet, IdVec};
use crate::parts::StorageClass;
use crate::unit::{Block, BlockEnd, BlockId, OpKind, Program, Terminator, VarId};

/// Temporaries are stored before they are loaded, on all paths from the start of their unit.
pub(super) fn temporaries<T: BlockEnd>(check: &mut Check<'_, T>) {
    let body = check.body;
    let mut before: IdVec<BlockId, IdSet<VarId>> = IdVec::filled(IdSet::new(body.vars.len()), body.blocks.len());
    for unit in body.units.values() {
        let inner: BTreeSet<BlockId> = unit.blocks.iter().skip(1).copied().collect();
        for b in &inner {
            before[*b] = IdSet::full(body.vars.len());
        }
        let mut open: BTreeSet<BlockId> = unit.blocks.iter().copied().collect();
        while let Some(from) = open.pop_first() {
            let block = &body.blocks[from];
            let mut after = before[from].clone();
            for op in &block.ops {
                if let OpKind::Store { var, .. } = op.kind {
                    after.insert(var);
                }
            }
            for to in block.term.successors().into_iter().filter(|to| inner.contains(to)) {
                if before[to].intersect_with(&after) {
                    open.insert(to);
                }
            }
        }
    }
    for (id, block) in body.blocks.iter() {
        for (i, op) in block.ops.iter().enumerate() {
            let OpKind::Load { var, .. } = op.kind else { continue };
            if body.vars[var].class == StorageClass::Temporary && !before[id].contains(var) {
                check.at = (Some(id), Some(i));
                check.report(format!("loads temporary {}, which may not be set", body.vars[var].name));
            }
        }
    }
    check.at = (None, None);
}

/// Heights of the stacks that are not at the height the function found them at.
type Heights = BTreeMap<VarId, i64>;

/// Every stack has one height on all paths into a block, callees are neutral, and functions leave every stack as they
/// found it.
pub(super) fn heights(check: &mut Check<'_, Terminator>, program: &Program) {
    let mut known: BTreeMap<BlockId, Heights> = BTreeMap::new();
    let mut open = BTreeSet::from([program.entry]);
    for block in program.body.blocks.values() {
        if let Terminator::PushJump { target, .. } = block.term {
            open.insert(target);
        }
    }
    for start in &open {
        known.insert(*start, Heights::new());
    }
    while let Some(id) = open.pop_first() {
        let block = &program.body.blocks[id];
        let mut now = known[&id].clone();
        move_stacks(check, id, block, &mut now);
        check.at = (Some(id), Some(block.ops.len()));
        if block.term == Terminator::Return {
            for (v, height) in &now {
                let name = check.name(*v);
                check.report(format!("returns with {name} at {height:+} of its height"));
            }
        }
        let callee = usize::from(matches!(block.term, Terminator::PushJump { .. }));
        for to in block.term.successors().into_iter().skip(callee) {
            let Some(other) = known.get(&to) else {
                known.insert(to, now.clone());
                open.insert(to);
                continue;
            };
            if let Some(v) = now.keys().chain(other.keys()).find(|v| now.get(v) != other.get(v)) {
                let height = |h: &Heights| h.get(v).copied().unwrap_or(0);
                let (a, b) = (height(&now), height(other));
                let name = check.name(*v);
                check.report(format!("enters {to} with {name} at {a:+}, another path with {b:+} of its height"));
            }
        }
    }
    check.at = (None, None);
}

fn move_stacks(check: &mut Check<'_, Terminator>, id: BlockId, block: &Block<Terminator>, now: &mut Heights) {
    for (i, op) in block.ops.iter().enumerate() {
        let (v, step) = match op.kind {
            OpKind::Push { stack, .. } => (stack, 1),
            OpKind::Pop { stack, .. } => (stack, -1),
            _ => continue,
        };
        let height = now.entry(v).or_insert(0);
        *height += step;
        let below = *height < 0;
        if *height == 0 {
            now.remove(&v);
        }
        if below {
            check.at = (Some(id), Some(i));
            let name = check.name(v);
            check.report(format!("pops {name}, which the function has not pushed"));
            now.remove(&v);
        }
    }
}
