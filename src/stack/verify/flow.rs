//! The checks that follow the flow of control: temporaries are set before they are read, and every stack has one height on
//! all paths into a block.

use std::collections::{BTreeMap, BTreeSet};

use super::{Check, Position};
use crate::base::{IdSet, IdVec};
use crate::stack::{Block, BlockId, InstKind, Program, StorageClass, Terminator, VarId};

/// Temporaries are set before they are read on all paths from the start of their superstep.
pub(super) fn temporaries(check: &mut Check<'_>) {
    let program = check.program;
    let set = set_before(program);
    for (id, block) in program.blocks.iter() {
        let mut now = set[id].clone();
        let unset = |now: &IdSet<VarId>, v: VarId| program.vars[v].class == StorageClass::Temporary && !now.contains(v);
        for (i, inst) in block.insts.iter().enumerate() {
            check.at(id, Some(i));
            inst.kind.for_each_operand(|o| {
                if let Some(v) = o.var().filter(|v| unset(&now, *v)) {
                    let name = check.name(v);
                    check.report(format!("reads temporary {name}, which may not be set"));
                }
            });
            now.extend_written(&inst.kind);
        }
        if let Terminator::Branch(cond, ..) = block.term
            && let Some(v) = cond.var().filter(|v| unset(&now, *v))
        {
            check.at(id, Some(block.insts.len()));
            let name = check.name(v);
            check.report(format!("reads temporary {name}, which may not be set"));
        }
    }
    check.place = Position::default();
}

trait Written {
    fn extend_written(&mut self, inst: &InstKind);
}

impl Written for IdSet<VarId> {
    fn extend_written(&mut self, inst: &InstKind) {
        if let Some(v) = inst.written() {
            self.insert(v);
        }
    }
}

/// The variables that are set in the same superstep on every path to the start of each block.
fn set_before(program: &Program) -> IdVec<BlockId, IdSet<VarId>> {
    let none = IdSet::new(program.vars.len());
    let all = IdSet::full(program.vars.len());
    let mut before = IdVec::filled(none, program.blocks.len());
    for region in &program.regions {
        let inner: BTreeSet<BlockId> = region.blocks.iter().skip(1).copied().collect();
        for b in &inner {
            before[*b] = all.clone();
        }
        let mut open: BTreeSet<BlockId> = region.blocks.iter().copied().collect();
        while let Some(from) = open.pop_first() {
            let block: &Block = &program.blocks[from];
            let mut after = before[from].clone();
            for inst in &block.insts {
                after.extend_written(&inst.kind);
            }
            for to in block.term.successors().into_iter().filter(|to| inner.contains(to)) {
                if before[to].intersect_with(&after) {
                    open.insert(to);
                }
            }
        }
    }
    before
}

/// Heights of the stacks that are not at the height the function found them at.
type Heights = BTreeMap<VarId, i64>;

/// Every stack has one height on all paths into a block, callees are neutral, and functions leave every stack as they
/// found it.
pub(super) fn heights(check: &mut Check<'_>) {
    let program = check.program;
    let mut known: BTreeMap<BlockId, Heights> = BTreeMap::new();
    let mut open = BTreeSet::from([program.entry]);
    for block in program.blocks.values() {
        if let Terminator::PushJump { target, .. } = block.term {
            open.insert(target);
        }
    }
    for start in &open {
        known.insert(*start, Heights::new());
    }
    while let Some(id) = open.pop_first() {
        let block = &program.blocks[id];
        let mut now = known[&id].clone();
        move_stacks(check, id, block, &mut now);
        check.at(id, Some(block.insts.len()));
        if block.term == Terminator::Return {
            for (v, height) in &now {
                let name = check.name(*v);
                check.report(format!("returns with {name} at {height:+} of its height"));
            }
        }
        let callee = usize::from(matches!(block.term, Terminator::PushJump { .. }));
        for to in block.term.successors().into_iter().skip(callee) {
            match known.get(&to) {
                None => {
                    known.insert(to, now.clone());
                    open.insert(to);
                }
                Some(other) => {
                    let v = (now.keys().chain(other.keys())).find(|v| now.get(v) != other.get(v));
                    if let Some(v) = v {
                        let height = |h: &Heights| h.get(v).copied().unwrap_or(0);
                        let (a, b) = (height(&now), height(other));
                        let name = check.name(*v);
                        check
                            .report(format!("enters {to} with {name} at {a:+}, another path with {b:+} of its height"));
                    }
                }
            }
        }
    }
    check.place = Position::default();
}

fn move_stacks(check: &mut Check<'_>, id: BlockId, block: &Block, now: &mut Heights) {
    for (i, inst) in block.insts.iter().enumerate() {
        let Some((v, step)) = inst.kind.moved() else {
            continue;
        };
        let height = now.entry(v).or_insert(0);
        *height += step;
        let below = *height < 0;
        if *height == 0 {
            now.remove(&v);
        }
        if below {
            check.at(id, Some(i));
            let name = check.name(v);
            check.report(format!("pops {name}, which the function has not pushed"));
            now.remove(&v);
        }
    }
}
