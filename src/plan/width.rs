//! How many lanes a shard should have, by what its plan works on and by the machine that runs it; and how much work a
//! plan is.

use std::collections::BTreeSet;

use super::{BlockId, Body, CallPlan, CallTerminator, Plan, Slot, StepKind, TILE_BLOCK, Terminator, UnitId, bytes};
use crate::base::Id as _;

/// What a plan must know of the processor that runs it. It changes speed, never results.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TargetMachine {
    /// Bytes of cache that what a shard works on at a time may fill.
    pub cache_bytes: usize,
    /// Lanes that are computed together: a vector of them, or of threads.
    pub group: usize,
    /// Fewest lanes of a shard when the settings do not say, of which it has a multiple: the dispatch of a step is
    /// spread over so many, and a product with a shared matrix is at its full speed.
    pub least_lanes: usize,
    /// Fewest lanes of a shard whose blocks are all generated code: it takes one group of lanes after another, and a
    /// few of them spread the dispatch of a block over enough work.
    pub least_code_lanes: usize,
    /// Most lanes of a shard when the settings do not say: more would spread nothing that counts.
    pub most_lanes: usize,
}

/// A unit works on about one in so many bytes of the state, and the next one most often on others.
pub(super) const STATE_OF_UNIT: usize = 4;
/// Of a unit that outweighs all others, one in so many bytes of the state at least: the others run, too.
const LEAST_OF_CHIEF: usize = 16;

impl TargetMachine {
    /// Lanes of a shard, of a batch on so many threads, where about `planned` are best: every thread has a share, and
    /// no shard is filled to a part only in the end, which can take half as many lanes more.
    pub fn shard_width(&self, lanes: usize, planned: usize, threads: usize) -> usize {
        let share = lanes.div_ceil(threads.max(1));
        let rounds = share.saturating_add(planned / 2) / planned.max(1);
        let width = share.div_ceil(rounds.max(1));
        let whole = if width > self.group { width.next_multiple_of(self.group) } else { width };
        whole.min(lanes).max(1)
    }
    fn shard_lanes(&self, bytes_per_lane: usize) -> usize {
        let lanes = self.cache_bytes / bytes_per_lane.max(1);
        (lanes / self.least_lanes * self.least_lanes).clamp(self.least_lanes, self.most_lanes)
    }
}

impl<T> Body<T> {
    /// Bytes in one lane of the buffers that a unit uses over and over, when a real has `real_bytes`: those of a tile
    /// of the steps that run tile by tile, or where there are none, of all.
    fn bytes_of_unit(&self, unit: UnitId, real_bytes: usize) -> usize {
        // By slot, as every call asks for it: a map would take longer than a short run.
        let mut used = vec![0; self.slots.len()];
        let steps = || self.units[unit].blocks.iter().flat_map(|b| &self.blocks[*b].steps);
        let has_tiles = steps().any(|step| matches!(step.kind, StepKind::Tiled(_)));
        for step in steps() {
            match &step.kind {
                StepKind::Compute(c) if !has_tiles => {
                    c.slots().for_each(|slot| used[slot.index()] = self.slots[slot].elements);
                }
                StepKind::Tiled(group) => {
                    for slot in group.steps.iter().flat_map(|s| s.compute.slots()) {
                        // Of what has all rows, a tile is some of them.
                        let Slot { elements, tile, .. } = self.slots[slot];
                        let rows = if tile || elements % group.rows != 0 { 1 } else { group.rows };
                        used[slot.index()] = elements / rows * rows.min(TILE_BLOCK);
                    }
                }
                _ => {}
            }
        }
        let slots = self.slots.values().zip(used);
        slots.filter(|(s, _)| !s.uniform).map(|(s, elements)| bytes(s.dtype, elements, real_bytes)).sum()
    }
    /// Additions in one lane that runs every block once, if `ahead` says of all that lanes go on to later ones.
    fn work_ahead(&self, ahead: impl Fn(&T, BlockId) -> bool) -> Option<u64> {
        let once = self.blocks.iter().all(|(at, block)| ahead(&block.term, at));
        once.then(|| self.units.values().map(|u| u.cost.weight).sum())
    }
    fn heaviest_weight(&self) -> u64 {
        self.units.values().map(|u| u.cost.weight).max().unwrap_or(0)
    }
}

/// What is known of the work of one lane before it runs, in additions by the cost model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// All of it, at most; none where the program has loops or calls, so that nobody knows.
    pub total: Option<u64>,
    /// Of the heaviest unit.
    pub heaviest: u64,
}

impl Plan {
    /// Bytes that a lane takes, its draws, number and steps included, when a real has `real_bytes`.
    pub(super) fn bytes_per_lane(&self, real_bytes: usize) -> usize {
        self.body.bytes_per_lane(real_bytes) + 3 * size_of::<u64>()
    }
    /// Lanes of a shard when the settings do not say: as many as keep what a unit works on within the cache of the
    /// machine, as many as it has least or a multiple. That is a quarter of the state; but where one unit that runs
    /// again and again weighs more than all others together, lanes are taken to spend their time in it, and it is what
    /// that one uses, or a tile of it (a sixteenth of the state at least). Small enough to stay in the cache, large
    /// enough to spread the dispatch of a step, and what a product reads of a shared matrix, over many lanes.
    pub fn shard_lanes(&self, real_bytes: usize) -> usize {
        self.body.machine.shard_lanes(self.working_set(real_bytes))
    }
    /// Bytes in one lane that are worked on at a time: see [`Self::shard_lanes`].
    pub(super) fn working_set(&self, real_bytes: usize) -> usize {
        let state = self.bytes_per_lane(real_bytes);
        match self.chief_unit() {
            Some(unit) => self.body.bytes_of_unit(unit, real_bytes).max(state / LEAST_OF_CHIEF),
            None => state / STATE_OF_UNIT,
        }
    }
    /// The unit that weighs more than all others together, where there is one and it runs again and again, or once as
    /// all do.
    pub(super) fn chief_unit(&self) -> Option<UnitId> {
        let units = &self.body.units;
        let total: u64 = units.values().map(|u| u.cost.weight).sum();
        let (chief, _) = units.iter().find(|(_, u)| u.cost.weight > total - u.cost.weight)?;
        (self.work().total.is_some() || self.is_entered_again(chief)).then_some(chief)
    }
    /// Whether a way leads from a unit back to it; a return is taken to lead to after any call.
    fn is_entered_again(&self, unit: UnitId) -> bool {
        let blocks = &self.body.blocks;
        let after_calls = || {
            blocks.values().filter_map(|b| match b.term {
                Terminator::PushJump { ret, .. } => Some(ret),
                _ => None,
            })
        };
        let follow = |block: BlockId, ahead: &mut Vec<BlockId>| match &blocks[block].term {
            Terminator::Jump(to) => ahead.push(*to),
            Terminator::Branch(_, yes, no) => ahead.extend([*yes, *no]),
            Terminator::PushJump { target, ret, .. } => ahead.extend([*target, *ret]),
            Terminator::Return => ahead.extend(after_calls()),
            Terminator::Halt => {}
        };
        let (mut seen, mut ahead) = (BTreeSet::new(), Vec::new());
        self.body.units[unit].blocks.iter().for_each(|b| follow(*b, &mut ahead));
        ahead.retain(|b| !self.body.contains(unit, *b) || !self.body.units[unit].region);
        while let Some(block) = ahead.pop() {
            if self.body.contains(unit, block) {
                return true;
            }
            if seen.insert(block) {
                follow(block, &mut ahead);
            }
        }
        false
    }
    /// Lanes of a shard where all that computes is generated code, which has less to spread: as many as keep the whole
    /// state within the cache, in whole groups, between the limits of the machine.
    pub fn shard_lanes_of_code(&self, real_bytes: usize) -> usize {
        let TargetMachine { cache_bytes, group, least_code_lanes, most_lanes, .. } = self.body.machine;
        let lanes = cache_bytes / self.bytes_per_lane(real_bytes).max(1);
        (lanes / group * group).clamp(least_code_lanes, most_lanes)
    }
    /// What is known of the work of one lane.
    pub fn work(&self) -> Work {
        let total = self.body.work_ahead(|term, at| match term {
            Terminator::Jump(to) => *to > at,
            Terminator::Branch(_, yes, no) => *yes > at && *no > at,
            Terminator::PushJump { .. } => false,
            Terminator::Return | Terminator::Halt => true,
        });
        Work { total, heaviest: self.body.heaviest_weight() }
    }
}

impl CallPlan {
    /// Lanes of a shard when the settings do not say, within the machine's limits as in [`Plan::shard_lanes`], but that
    /// one activation of every function counts, and all of it: of a function that runs most is in use.
    pub fn shard_lanes(&self, real_bytes: usize) -> usize {
        let bodies = self.funcs.values().map(|f| f.body.bytes_per_lane(real_bytes));
        let machine = self.funcs[self.entry].body.machine;
        machine.shard_lanes(bodies.sum::<usize>() + 3 * size_of::<u64>())
    }
    /// What is known of the work of one lane.
    pub fn work(&self) -> Work {
        let total = self.funcs[self.entry].body.work_ahead(|term, at| match term {
            CallTerminator::Jump(to) => *to > at,
            CallTerminator::Branch(_, yes, no) => *yes > at && *no > at,
            CallTerminator::Call { .. } | CallTerminator::TailCall { .. } => false,
            CallTerminator::Return(..) => true,
        });
        let heaviest = self.funcs.values().map(|f| f.body.heaviest_weight()).max();
        Work { total, heaviest: heaviest.unwrap_or(0) }
    }
}
