//! Attempts: lanes that trap in the callee go on where the call returns to, their results NaN, 0 or `false`.

use crate::backend::cpu::buffer::Buffer;
use crate::backend::cpu::steps::Stepper;
use crate::base::{Id, IdVec};
use crate::exec::LaneStack;
use crate::parts::TapeId;
use crate::plan::{Attempt, BlockId, Plan, Terminator};
use crate::run::{AllCaught, Trap};
use crate::vmath::Real;

/// Gives a lane the value of what could not be computed: NaN, 0 or `false` for each element.
pub(super) fn spoil<R: Real>(buffer: &mut Buffer<R>, elements: usize, width: usize, lane: usize) {
    let places = (0..elements).map(|e| e * width + lane);
    match buffer {
        Buffer::Bool(v) => places.for_each(|at| v[at] = false),
        Buffer::Int(v) => places.for_each(|at| v[at] = 0),
        Buffer::Real(v) => places.for_each(|at| v[at] = R::NAN),
    }
}

/// The attempts of a plan, and how high stacks and tapes were when those that are active were called.
pub(super) struct Handlers<'a> {
    /// By the block that they return to.
    by_return: IdVec<BlockId, Option<&'a Attempt>>,
    /// Whether there is any.
    any: bool,
    /// For each lane, of attempts whose heights matter: the heights, how many they are, and how many return addresses lie
    /// below that of the call. Those that have returned are dropped when the next one comes.
    records: Vec<Vec<u32>>,
}

impl<'a> Handlers<'a> {
    pub(super) fn new(plan: &'a Plan, width: usize) -> Self {
        let mut by_return = IdVec::filled(None, plan.body.blocks.len());
        let (mut any, mut heights) = (false, false);
        for block in plan.body.blocks.values() {
            if let Terminator::PushJump { ret, attempt: Some(attempt), .. } = &block.term {
                by_return[*ret] = Some(attempt);
                any = true;
                heights |= attempt.has_heights();
            }
        }
        Self { by_return, any, records: vec![Vec::new(); if heights { width } else { 0 }] }
    }

    /// Lanes start over.
    pub(super) fn reset(&mut self, lanes: &[u32]) {
        if !self.records.is_empty() {
            lanes.iter().for_each(|lane| self.records[*lane as usize].clear());
        }
    }

    /// What was noted of a lane becomes that of a lane of another shard, where nothing is left of it.
    pub(super) fn take_lane(&mut self, lane: usize, (from, other): (&mut Self, usize)) {
        if !self.records.is_empty() {
            self.records[lane] = std::mem::take(&mut from.records[other]);
        }
    }

    /// How many heights matter to the attempt that returns to a block.
    pub(super) fn noted(&self, ret: BlockId) -> usize {
        self.by_return[ret].map_or(0, |attempt| attempt.stacks.len() + attempt.tapes.len())
    }

    /// A lane calls: `depth` return addresses lie below that of the call.
    pub(super) fn record(&mut self, lane: usize, depth: usize, heights: impl Iterator<Item = usize>) {
        let records = &mut self.records[lane];
        drop_from(records, depth);
        let before = records.len();
        records.extend(heights.map(|h| h as u32));
        records.extend([(records.len() - before) as u32, depth as u32]);
    }

    /// The attempt that a lane was called under last: how many return addresses lie below that of the call, where it returns to,
    /// and what it takes to get there.
    pub(super) fn last(&self, returns: &LaneStack<u32>, lane: usize) -> Option<(usize, BlockId, &'a Attempt)> {
        if !self.any {
            return None;
        }
        (0..returns.height(lane)).rev().find_map(|depth| {
            let ret = BlockId(returns.value(lane, depth));
            self.by_return[ret].map(|attempt| (depth, ret, attempt))
        })
    }

    /// The heights that were noted when a lane made the call with so many return addresses below its own.
    pub(super) fn heights(&mut self, lane: usize, depth: usize) -> &[u32] {
        let records = &mut self.records[lane];
        drop_from(records, depth + 1);
        let end = records.len() - 2;
        debug_assert_eq!(records[end + 1] as usize, depth, "the call was noted");
        &records[end - records[end] as usize..end]
    }
}

/// Drops the records of calls with at least so many return addresses below their own.
fn drop_from(records: &mut Vec<u32>, depth: usize) {
    while let [.., count, at] = records[..]
        && at as usize >= depth
    {
        records.truncate(records.len() - 2 - count as usize);
    }
}

impl<R: Real> Stepper<'_, R> {
    /// The lanes that trapped since the last look, with their reports: those that no attempt catches go back to `traps`.
    pub(super) fn take_dead(&mut self) -> Vec<(usize, Trap)> {
        let dead = std::mem::take(&mut self.dead);
        let new = self.traps.split_off(self.traps.len() - dead.len());
        dead.into_iter().zip(new).collect()
    }

    /// An attempt caught a trap.
    pub(super) fn note_caught(&self, caught: &mut AllCaught, trap: Trap) {
        self.env.sink.caught(&trap);
        caught.note(trap);
    }

    /// No attempt catches a trap.
    pub(super) fn note_trapped(&mut self, trap: Trap) {
        self.env.sink.trapped(&trap);
        self.traps.push(trap);
    }

    /// How many values each tape has in each lane, tape after tape.
    pub(super) fn tape_heights(&self, width: usize) -> impl Iterator<Item = u32> {
        let of_tape = move |t| (0..width).map(move |lane| self.tapes.height(TapeId::new(t), lane) as u32);
        (0..self.tapes.count()).flat_map(of_tape)
    }
}
