//! Lanes that trap: those that an attempt catches wait until all lanes of its call are back.

use super::Shard;
use crate::base::{Id, Loc};
use crate::parts::TapeId;
use crate::plan::{CallTerminator, UnitId};
use crate::run::TrapKind;
use crate::vmath::Real;

impl<R: Real> Shard<'_, R> {
    /// Completes the reports of the lanes that trapped; those that an attempt catches wait until all lanes of its call are back.
    pub(super) fn bury_dead(&mut self) {
        if self.stepper.dead.is_empty() {
            return;
        }
        let call_depth = self.activations.len().saturating_sub(1);
        let mut short = false;
        for (lane, mut trap) in self.stepper.take_dead() {
            trap.call_depth = call_depth;
            let calls = self.activations.windows(2).rev().filter_map(|pair| {
                let caller = &pair[0].bodies[pair[0].current];
                match &self.plan.funcs[caller.func].body.blocks[pair[1].site].term {
                    CallTerminator::Call { loc, .. } => Some(loc),
                    _ => None,
                }
            });
            trap.loc.take_place(calls);
            let attempt = match trap.kind.is_caught() {
                true => self.activations.iter_mut().rev().find(|a| a.attempt),
                false => None,
            };
            let Some(attempt) = attempt else {
                short |= trap.kind == TrapKind::MemoryLimit;
                self.gone.push(lane as u32);
                self.stepper.note_trapped(trap);
                continue;
            };
            attempt.failed.insert(lane);
            for (tape, heights) in attempt.tapes.chunks_exact(self.width).enumerate() {
                self.stepper.tapes.cut(TapeId::new(tape), lane, heights[lane] as usize);
            }
            self.stepper.note_caught(&mut self.caught, trap);
        }
        if short {
            // What lanes held that are gone goes to those that go on, here and in other shards.
            self.stepper.tapes.reset(&self.gone);
            self.stepper.tapes.trim();
        }
    }

    /// The run was stopped: the lanes that are not done trap where they stand.
    pub(super) fn interrupt(&mut self) {
        while let Some(top) = self.activations.pop() {
            for running in &top.bodies {
                let body = &self.plan.funcs[running.func].body;
                for (unit, lane) in running.waiting.lanes() {
                    let first = body.units[UnitId(unit as u32)].blocks[0];
                    self.interrupt_lane(lane, &body.blocks[first].loc);
                }
            }
            let func = &self.plan.funcs[top.bodies[0].func];
            for lane in top.returned.iter().chain(top.failed.iter()) {
                self.interrupt_lane(lane, &func.loc);
            }
            // The activation is gone, so the ones below it count the calls of its lanes.
            for (_, mut trap) in self.stepper.take_dead() {
                trap.call_depth = self.activations.len();
                self.stepper.note_trapped(trap);
            }
        }
    }

    fn interrupt_lane(&mut self, lane: usize, loc: &Loc) {
        let (kind, text) = (TrapKind::Interrupted, String::new());
        self.stepper.bury(lane, kind, loc, text);
    }
}
