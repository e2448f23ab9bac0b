//! The checks that follow the flow of control: temporaries are stored before they are loaded, and every stack has one
//! height on all paths into a block.

use std::collections::{BTreeMap, BTreeSet};

use super::Check;
use crate::base::{IdSet, IdVec};
use crate::parts::{SideEffect, StorageClass};
use crate::unit::{Block, BlockEnd as _, BlockId, OpKind, Program, Terminator, UnitId, VarId};

/// Temporaries are of one unit, and stored before they are loaded, on all paths from its start.
pub(super) fn temporaries(check: &mut Check<'_, Terminator>) {
    let body = check.body;
    let mut home: IdVec<VarId, Option<UnitId>> = IdVec::filled(None, body.vars.len());
    let mut before: IdVec<BlockId, IdSet<VarId>> = IdVec::filled(IdSet::new(body.vars.len()), body.blocks.len());
    let all = IdSet::full(body.vars.len());
    // Into a unit of one block nothing comes from another of its blocks.
    for unit in body.units.values().filter(|unit| unit.blocks.len() > 1) {
        let inner: BTreeSet<BlockId> = unit.blocks.iter().skip(1).copied().collect();
        for b in &inner {
            before[*b] = all.clone();
        }
        let mut open: BTreeSet<BlockId> = unit.blocks.iter().copied().collect();
        while let Some(from) = open.pop_first() {
            let block = &body.blocks[from];
            let mut after = before[from].clone();
            let temporary = |v: &VarId| body.vars[*v].class == StorageClass::Temporary;
            for op in &block.ops {
                if let OpKind::Store { var, .. } = op.kind
                    && temporary(&var)
                {
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
            let Some(var) = op.kind.var().filter(|v| body.vars[*v].class == StorageClass::Temporary) else { continue };
            check.at = (Some(id), Some(i));
            let name = &body.vars[var].name;
            let unit = check.units[id];
            let first = *home[var].get_or_insert(unit.expect("every block is in a unit"));
            check.require(Some(first) == unit, || format!("temporary {name} is met in {first}, too"));
            let set = !matches!(op.kind, OpKind::Load { .. }) || before[id].contains(var);
            check.require(set, || format!("loads temporary {name}, which may not be set"));
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

/// An attempt lists the stacks and tapes that its callee, or what that calls, moves: those whose heights a trap restores.
pub(super) fn attempts(check: &mut Check<'_, Terminator>, program: &Program) {
    let blocks = &program.body.blocks;
    for (id, block) in blocks.iter() {
        let Terminator::PushJump { target, attempt: Some(attempt), .. } = &block.term else { continue };
        let (mut stacks, mut tapes) = (BTreeSet::new(), BTreeSet::new());
        let mut seen = IdSet::new(blocks.len());
        let mut open = vec![*target];
        seen.insert(*target);
        while let Some(b) = open.pop() {
            for op in &blocks[b].ops {
                match &op.kind {
                    OpKind::Push { stack, .. } | OpKind::Pop { stack, .. } => _ = stacks.insert(*stack),
                    OpKind::Effect(effect) => tapes.extend(SideEffect::tape(effect)),
                    _ => {}
                }
            }
            open.extend(blocks[b].term.successors().into_iter().filter(|to| seen.insert(*to)));
        }
        check.at = (Some(id), Some(block.ops.len()));
        for stack in stacks.into_iter().filter(|v| !attempt.stacks.contains(v)) {
            let name = check.name(stack);
            check.report(format!("the attempt does not list {name}, on which its callee pushes"));
        }
        for tape in tapes.into_iter().filter(|t| !attempt.tapes.contains(t)) {
            let name = &program.globals.tapes[tape].name;
            check.report(format!("the attempt does not list {name}, on which its callee pushes"));
        }
    }
    check.at = (None, None);
}
