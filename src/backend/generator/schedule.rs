//! Puts the operations of a function into loops: those that go through the same number of elements share a loop where what
//! they read is there by then, so that what is between them stays in registers.

use std::collections::HashMap;

use crate::backend::generator::functions;
use crate::backend::generator::lockstep::Lockstep;
use crate::backend::generator::ssa::{Base, Fold, Kind, LocalId, Op, OpId, Ssa, Value};
use crate::base::IdVec;
use crate::plan::{SlotId, StackId};
use crate::prim::Reduction;

/// Operations that run together, in their order.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Elements that its loop goes through; 1 for straight-line code. None for an operation that is a loop of its own.
    pub(super) turns: Option<usize>,
    pub(super) ops: Vec<OpId>,
}

/// The operations of a function in the order in which they run.
pub(super) struct Schedule {
    pub(super) groups: Vec<Group>,
    /// The locals that are read outside of the loop that makes them, or at another element.
    pub(super) kept: IdVec<LocalId, bool>,
}

/// Whether an operation takes part in a loop over elements.
fn in_loop(kind: Kind) -> bool {
    !matches!(kind, Kind::Product { .. } | Kind::Pop(_) | Kind::Spill(_))
}

/// Whether the operation reads the operand at the element that its loop is at.
fn at_same_element(op: &Op, arg: &Value, offset: usize) -> bool {
    in_loop(op.kind) && (op.turns == 1 || !arg.spread && arg.offset == offset)
}

struct Scheduler<'a> {
    ssa: &'a Ssa<'a>,
    lockstep: &'a Lockstep,
    groups: Vec<Group>,
    group_of: HashMap<OpId, usize>,
    last_trap: Option<usize>,
    /// Of each stack the group of its last operation, and how many it has had.
    stacks: HashMap<StackId, (usize, usize)>,
    /// Of a group of operations of stacks, how many each of these had before.
    before: HashMap<usize, usize>,
}

pub(super) fn schedule(ssa: &Ssa<'_>, lockstep: &Lockstep) -> Schedule {
    let mut s = Scheduler {
        ssa,
        lockstep,
        groups: Vec::new(),
        group_of: HashMap::new(),
        last_trap: None,
        stacks: HashMap::new(),
        before: HashMap::new(),
    };
    let is_store = |op: &Op| matches!(op.kind, Kind::Store(_));
    for (id, op) in ssa.ops.iter().filter(|(_, op)| !is_store(op)) {
        let first = s.earliest(op);
        s.place(id, op, first);
    }
    for (id, op) in ssa.ops.iter() {
        if let Kind::Store(slot) = op.kind {
            let first = s.earliest(op).max(s.after_reads(slot, op.turns));
            s.place(id, op, first);
        }
    }
    let mut kept = IdVec::filled(false, ssa.locals.len());
    for (id, op) in ssa.ops.iter() {
        for arg in &op.args {
            let Base::Local(l) = arg.base else { continue };
            let local = &ssa.locals[l];
            let near = |made: &OpId| {
                s.group_of[made] == s.group_of[&id]
                    && in_loop(ssa.ops[*made].kind)
                    && !matches!(ssa.ops[*made].kind, Kind::Reduce(_))
                    && at_same_element(op, arg, 0)
            };
            if local.made_by.len() > 1 || !near(&local.made_by[0]) {
                kept[l] = true;
            }
        }
    }
    // Parts of an array, and what is made all at once, have no other place.
    for (id, local) in ssa.locals.iter() {
        if local.made_by.len() > 1 || local.made_by.iter().any(|o| !in_loop(ssa.ops[*o].kind)) {
            kept[id] = true;
        }
    }
    Schedule { groups: s.groups, kept }
}

impl Scheduler<'_> {
    /// The first group in which an operation finds what it reads, and does not overtake what it must not.
    fn earliest(&self, op: &Op) -> usize {
        let mut first = 0;
        for arg in &op.args {
            let Base::Local(l) = arg.base else { continue };
            let local = &self.ssa.locals[l];
            for made in &local.made_by {
                let (maker, group) = (&self.ssa.ops[*made], self.group_of[made]);
                // An extremum begins with the first element, before its loop.
                let extremum = matches!(op.kind, Kind::Reduce(Fold::All(Reduction::MinOf | Reduction::MaxOf)));
                let whole = local.made_by.len() == 1 && in_loop(maker.kind) && !extremum;
                let together = whole
                    && in_loop(op.kind)
                    && maker.turns == op.turns
                    && (op.turns == 1 || !matches!(maker.kind, Kind::Reduce(_)) && at_same_element(op, arg, 0));
                first = first.max(if together { group } else { group + 1 });
            }
        }
        if functions::may_trap(op.kind, op.args.first().map(|a| a.dtype)) {
            // A loop over elements takes lanes out at the first element that fails, of one operation only.
            first = first.max(self.last_trap.map_or(0, |g| if op.turns > 1 { g + 1 } else { g }));
        }
        if let Kind::Pop(stack) | Kind::Spill(stack) = op.kind {
            first = first.max(self.stacks.get(&stack).map_or(0, |(g, _)| g + 1));
        }
        first
    }

    /// The first group in which a slot may be overwritten.
    fn after_reads(&self, slot: SlotId, turns: usize) -> usize {
        let mut first = 0;
        for (id, group) in &self.group_of {
            let op = &self.ssa.ops[*id];
            for arg in op.args.iter().filter(|a| a.base == Base::Slot(slot)) {
                // Loops store after they have loaded, element by element.
                let together = op.turns == turns && at_same_element(op, arg, 0);
                first = first.max(if together { *group } else { group + 1 });
            }
        }
        first
    }

    /// Whether an operation of a stack does to it what a group does to others that are equally high.
    fn in_lockstep(&self, op: &Op, group: usize) -> bool {
        let first = self.groups[group].ops.first().map(|o| self.ssa.ops[*o].kind);
        match (op.kind, first) {
            (Kind::Pop(a), Some(Kind::Pop(b))) | (Kind::Spill(a), Some(Kind::Spill(b))) => {
                let had = self.stacks.get(&a).map_or(0, |(_, n)| *n);
                self.lockstep[a] == self.lockstep[b] && self.before.get(&group) == Some(&had)
            }
            _ => false,
        }
    }

    fn place(&mut self, id: OpId, op: &Op, first: usize) {
        let turns = in_loop(op.kind).then_some(op.turns);
        let fits = |g: &Group| turns.is_some() && g.turns == turns;
        let found = (first..self.groups.len()).find(|g| fits(&self.groups[*g]) || self.in_lockstep(op, *g));
        let group = found.unwrap_or_else(|| {
            self.groups.push(Group { turns, ops: Vec::new() });
            self.groups.len() - 1
        });
        self.groups[group].ops.push(id);
        self.group_of.insert(id, group);
        if functions::may_trap(op.kind, op.args.first().map(|a| a.dtype)) {
            self.last_trap = self.last_trap.max(Some(group));
        }
        if let Kind::Pop(stack) | Kind::Spill(stack) = op.kind {
            let had = self.stacks.get(&stack).map_or(0, |(_, n)| *n);
            self.before.entry(group).or_insert(had);
            self.stacks.insert(stack, (group, had + 1));
        }
    }
}

impl Schedule {
    /// Whether a local that is kept is an array, or else a plain variable.
    pub(super) fn is_array(ssa: &Ssa<'_>, local: LocalId) -> bool {
        ssa.locals[local].elements > 1
    }
}
