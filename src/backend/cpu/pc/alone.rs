//! Lanes that straight code runs, one after the other: each moves to a shard of one lane, whose values stand side by side,
//! and back where others are to go on, or all of them in groups.
//!
//! A function leaves lane buffers, stacks, tapes and return addresses as the steps would that it stands for. So a lane may
//! move whenever it waits at a unit.

use std::time::{Duration, Instant};

use super::{Shard, Way};
use crate::backend::cpu::codegen::Course;
use crate::backend::cpu::run_unit::superstep;
use crate::exec::StackError;
use crate::plan::{Role, UnitId};
use crate::vmath::Real;

/// A lane that does nothing that is counted is left after so many supersteps, to look at the clock.
const MOST_SUPERSTEPS: usize = 1 << 12;

/// A lane goes on alone.
struct Turn {
    began: Instant,
    /// When others that wait go on.
    longest: Duration,
    /// Whether it goes all its way, from its first unit on.
    is_whole: bool,
    /// How often it came to the heaviest unit.
    visits: u64,
}

impl<'a, R: Real> Shard<'a, R> {
    /// Straight code runs lanes as long as the course says so, or until all are done or the run is stopped.
    pub(super) fn run_alone(&mut self) {
        let start = Instant::now();
        let Some(mut alone) = self.alone.take().or_else(|| self.new_alone()) else {
            return self.course.without_straight();
        };
        self.course.spared(start.elapsed());
        let mut turn = None;
        while self.course.straight().is_some() && !self.stepper.env.stopped() {
            if alone.live == 0 {
                turn = self.next_turn(&mut alone);
            }
            let Some(turn) = &mut turn else { break };
            turn.visits += self.run_slice(&mut alone, turn);
            if alone.live > 0 && turn.began.elapsed() >= turn.longest {
                turn.began = Instant::now();
                // Lanes that take long take turns, those too that no shard has taken.
                self.refill_beside(alone.live);
                if self.live > 0 && self.take_lane(&mut alone, 0).is_ok() {
                    self.course.spared(turn.began.elapsed());
                }
            }
        }
        self.bring_back(&mut alone);
        self.alone = Some(alone);
    }

    /// The next lane: of this shard, or of the queue, which comes first where lanes that are half done say nothing and
    /// there is a place that it can come back to. None where there is none, or no room for it.
    fn next_turn(&mut self, alone: &mut Self) -> Option<Turn> {
        let longest = self.course.turn(Duration::ZERO);
        let whole = || Turn { began: Instant::now(), longest, is_whole: true, visits: 0 };
        if self.course.wants_whole() && self.live < self.width {
            alone.refill();
            if alone.live > 0 {
                return Some(whole());
            }
        }
        let Some(lane) = self.next_lane() else {
            alone.refill();
            return (alone.live > 0).then(whole);
        };
        let start = Instant::now();
        if alone.take_lane(self, lane).is_err() {
            self.course.without_straight();
            return None;
        }
        let (began, moved) = (Instant::now(), start.elapsed());
        self.course.spared(moved);
        Some(Turn { began, longest: self.course.turn(moved), is_whole: false, visits: 0 })
    }

    /// The lane goes on until the next look. Returns how often it came to the heaviest unit.
    fn run_slice(&mut self, alone: &mut Self, turn: &Turn) -> u64 {
        let visits = alone.slice(self.course.slice());
        let ended = alone.live == 0 && !self.stepper.env.stopped();
        if ended && !turn.is_whole && turn.visits + visits == 0 {
            self.course.was_vain(turn.began.elapsed());
        }
        if self.course.did(visits + u64::from(ended && turn.is_whole)) {
            self.course.look(self.together(alone.live));
        }
        visits
    }

    /// The lane that is alone, if there is one, goes on here.
    fn bring_back(&mut self, alone: &mut Self) {
        if !self.stepper.env.stopped() && alone.live > 0 && self.take_lane(alone, 0).is_err() {
            // There is no room for it any more but where it is.
            while alone.live > 0 && !self.stepper.env.stopped() {
                alone.slice(u64::MAX);
            }
        }
        if self.stepper.env.stopped() {
            alone.interrupt();
        }
    }

    /// How many lanes go on together in groups, while so many are alone.
    pub(super) fn together(&self, alone: usize) -> usize {
        self.width.min(self.live + alone + self.queue.left())
    }

    /// A shard of one lane; none where there is no memory for it.
    fn new_alone(&self) -> Option<Box<Self>> {
        let native = self.course.straight()?.body(0);
        let by_straight = (Some(native), self.lookout.idle_too(), Course::without());
        let env = self.stepper.env;
        Shard::new(self.plan, by_straight, self.inputs, env, self.queue, 1).ok().map(Box::new)
    }

    /// Runs until units of the heaviest weight were visited so often, or no lane is left. Returns how often.
    fn slice(&mut self, visits: u64) -> u64 {
        let all = i64::try_from(visits).unwrap_or(i64::MAX);
        self.visits = all;
        for _ in 0..MOST_SUPERSTEPS {
            if self.visits <= 0 || self.stepper.env.stopped() {
                break;
            }
            let Some(unit) = self.scheduler.next(&self.waiting, self.live) else { break };
            let id = UnitId(unit as u32);
            // Straight code counts by itself.
            if Some(id) == self.heaviest && !matches!(self.ways[id], Way::Straight(_)) {
                self.visits -= 1;
            }
            superstep(self, id);
        }
        (all - self.visits.max(0)) as u64
    }

    /// The lane that goes on next: the one behind that which did last.
    fn next_lane(&mut self) -> Option<usize> {
        let last = self.last_alone;
        let lane = self.occupied.iter().find(|lane| *lane > last).or_else(|| self.occupied.iter().next())?;
        self.last_alone = lane;
        Some(lane)
    }

    /// Takes a lane of another shard of the same run into a free slot.
    ///
    /// # Errors
    /// Where there is no memory, or no free slot: nothing has changed.
    fn take_lane(&mut self, from: &mut Self, other: usize) -> Result<(), StackError> {
        let free = (0..self.width).find(|lane| !self.occupied.contains(*lane));
        let (Some(lane), Some(unit)) = (free, from.waiting.unit_of(other)) else { return Err(StackError::NoMemory) };
        if let Err(error) = self.copy_stacks(lane, (from, other)) {
            self.forget_stacks(lane);
            return Err(error);
        }
        let buffers = self.frame.slots.iter_mut().zip(&from.frame.slots);
        for ((to, from_buffer), slot) in buffers.zip(self.plan.body.slots.values()) {
            if slot.role == Role::State {
                to.set_lane((lane, self.width), from_buffer, (other, from.width), slot.elements);
            }
        }
        self.stepper.lanes.set_lane(lane, (&from.stepper.lanes, other));
        self.handlers.take_lane(lane, (&mut from.handlers, other));
        from.waiting.take_lane(unit, other);
        from.occupied.remove(other);
        from.live -= 1;
        from.forget_stacks(other);
        self.occupied.insert(lane);
        self.waiting.add_lane(unit, lane);
        self.live += 1;
        Ok(())
    }

    fn copy_stacks(&mut self, lane: usize, (from, other): (&Self, usize)) -> Result<(), StackError> {
        for (to, from) in self.frame.stacks.iter_mut().zip(&from.frame.stacks) {
            to.set_lane(lane, (from, other))?;
        }
        self.stepper.tapes.set_lane(lane, (&from.stepper.tapes, other))?;
        self.returns.set_lane(lane, (&from.returns, other))
    }

    fn forget_stacks(&mut self, lane: usize) {
        let lane = [lane as u32];
        self.frame.stacks.iter_mut().for_each(|stack| stack.reset(&lane));
        self.stepper.tapes.reset(&lane);
        self.returns.reset(&lane);
    }
}
