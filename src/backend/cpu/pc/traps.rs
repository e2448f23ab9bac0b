//! Lanes that trap: those that an attempt catches go back to where it was made, the slots of the others are free.

use super::{Shard, of_lanes};
use crate::backend::cpu::attempts::spoil;
use crate::exec::mask::Bits;
use crate::plan::{Attempt, BlockId, UnitId};
use crate::run::TrapKind;
use crate::vmath::Real;

impl<R: Real> Shard<'_, R> {
    /// Completes the reports of the lanes that trapped: those that an attempt catches go on, the slots of the others are free.
    pub(super) fn bury_dead(&mut self) {
        let mut short = false;
        for (lane, mut trap) in self.stepper.take_dead() {
            trap.call_depth = self.returns.height(lane);
            let returns = (0..trap.call_depth).rev().map(|depth| BlockId(self.returns.value(lane, depth)));
            trap.loc.take_place(returns.map(|ret| &self.plan.body.blocks[ret].loc));
            let attempt = if trap.kind.is_caught() { self.handlers.last(&self.returns, lane) } else { None };
            if let Some((depth, ret, attempt)) = attempt {
                self.stepper.note_caught(&mut self.caught, trap);
                self.unwind(lane, depth, attempt);
                self.waiting.add_lane(self.unit_of(ret), lane);
                continue;
            }
            short |= trap.kind == TrapKind::MemoryLimit;
            self.stepper.note_trapped(trap);
            self.occupied.remove(lane);
            self.live -= 1;
        }
        if short {
            self.trim();
        }
    }

    /// Memory ran out: what lanes held that are done goes to those that go on, here and in other shards.
    fn trim(&mut self) {
        let free = self.occupied.words().iter().enumerate().flat_map(|(i, word)| Bits(!word).map(move |b| i * 64 + b));
        self.free.clear();
        self.free.extend(free.take_while(|lane| *lane < self.width).map(|lane| lane as u32));
        self.stepper.tapes.reset(&self.free);
        self.stepper.tapes.trim();
        self.returns.reset(&self.free);
        self.returns.trim();
        for stack in &mut self.frame.stacks {
            stack.reset(&self.free);
            stack.trim();
        }
        if let Some(alone) = &mut self.alone {
            alone.trim();
        }
    }

    /// A lane goes back to a call: its stacks are as high as they were, and what the callee gives is spoilt.
    fn unwind(&mut self, lane: usize, depth: usize, attempt: &Attempt) {
        self.returns.cut(lane, depth);
        if attempt.has_heights() {
            let mut heights = self.handlers.heights(lane, depth).iter().map(|h| *h as usize);
            for (stack, height) in attempt.stacks.iter().zip(heights.by_ref()) {
                self.frame.stacks[stack.0 as usize].cut(lane, height);
            }
            for (tape, height) in attempt.tapes.iter().zip(heights) {
                self.stepper.tapes.cut(*tape, lane, height);
            }
        }
        for (slot, ty) in &attempt.results {
            spoil(&mut self.frame.slots[slot.0 as usize], ty.elements(), self.width, lane);
            if let Some(tops) = &self.stepper.tops {
                self.other.reset(self.width);
                self.other.insert(lane);
                tops.store(&mut self.frame, *slot, of_lanes(&self.other));
            }
        }
    }

    /// The run was stopped: the lanes that are not done trap where they wait.
    pub(super) fn interrupt(&mut self) {
        for (unit, lane) in self.waiting.lanes() {
            let first = self.plan.body.units[UnitId(unit as u32)].blocks[0];
            let loc = &self.plan.body.blocks[first].loc;
            let (kind, text) = (TrapKind::Interrupted, String::new());
            self.stepper.bury(lane, kind, loc, text);
        }
        self.bury_dead();
    }
}
