//! Tops of stacks that are not cached (`--no-pass cached-tops`): they stand in the memory of the stacks. What a step
//! reads is loaded into the lane buffers of its operands before it runs, and what it writes is stored after it.

use crate::backend::cpu::frame::Frame;
use crate::backend::cpu::steps::Stepper;
use crate::base::{Id as _, Loc};
use crate::exec::{Columns, StackError};
use crate::plan::{Arg, Body, Compute, SlotId, Source, StackId, StepKind, Write};
use crate::prim::Prim;
use crate::run::{Activity, TrapKind};
use crate::vmath::Real;

/// Which slots stand for the tops of which stacks.
#[derive(Debug)]
pub(super) struct Tops {
    /// By slot.
    stacks: Vec<Option<StackId>>,
    /// By stack.
    slots: Vec<SlotId>,
}

impl Tops {
    /// The tops of a body, and the level of memory that they take in its frame.
    ///
    /// # Errors
    /// [`StackError::NoMemory`].
    pub(super) fn in_memory<T, R: Real>(body: &Body<T>, frame: &mut Frame<R>) -> Result<Self, StackError> {
        let mut stacks = vec![None; body.slots.len()];
        let mut slots = Vec::with_capacity(body.stacks.len());
        for (stack, var) in body.stacks.iter() {
            let slot = body.vars[*var].slot.expect("stacks have a slot");
            stacks[slot.index()] = Some(stack);
            slots.push(slot);
        }
        let memory = std::mem::take(&mut frame.stacks).into_iter();
        frame.stacks = memory.map(|m| m.with_tops()).collect::<Result<_, StackError>>()?;
        Ok(Self { stacks, slots })
    }

    /// Loads the top that a slot stands for, if it does, in these columns.
    pub(super) fn load<R: Real>(&self, frame: &mut Frame<R>, slot: SlotId, columns: Columns<'_>) {
        if let Some(stack) = self.stacks[slot.index()] {
            frame.stacks[stack.index()].load_tops(&mut frame.slots[slot.index()], columns);
        }
    }

    /// The reverse.
    pub(super) fn store<R: Real>(&self, frame: &mut Frame<R>, slot: SlotId, columns: Columns<'_>) {
        if let Some(stack) = self.stacks[slot.index()] {
            frame.stacks[stack.index()].store_tops(&frame.slots[slot.index()], columns);
        }
    }

    /// Calls `see` with the slots that a step reads.
    fn each_read(&self, step: &StepKind, see: &mut impl FnMut(SlotId)) {
        let mut args = |args: &[Arg]| args.iter().filter_map(slot_of).for_each(&mut *see);
        match step {
            StepKind::Compute(c) => args(&c.args),
            StepKind::Tiled(_) => self.slots.iter().copied().for_each(see),
            StepKind::Pop { .. } => {}
            StepKind::Effect(effect) => effect.reads().for_each(|a| args(std::slice::from_ref(a))),
        }
    }

    /// The same with those that it writes.
    fn each_write(&self, step: &StepKind, see: &mut impl FnMut(SlotId)) {
        match step {
            StepKind::Compute(c) if !self.saves(c) => see(c.slot),
            StepKind::Tiled(_) => self.slots.iter().copied().for_each(see),
            StepKind::Effect(effect) => effect.dst().copied().into_iter().for_each(see),
            _ => {}
        }
    }

    /// Whether a step puts the value of another variable under the top of a stack.
    fn saves(&self, c: &Compute) -> bool {
        match c.write {
            Write::Push(stack) => c.prim == Prim::Copy && c.reads_slot && self.slots[stack.index()] != c.slot,
            _ => false,
        }
    }
}

fn slot_of(arg: &Arg) -> Option<SlotId> {
    match arg.source {
        Source::Slot(slot) => Some(slot),
        Source::Constant(_) => None,
    }
}

impl<R: Real> Stepper<'_, R> {
    /// Loads the tops that a step reads, where they are not cached.
    #[inline]
    pub(super) fn load_tops(&mut self, frame: &mut Frame<R>, step: &StepKind) {
        if let Some(tops) = &self.tops {
            tops.each_read(step, &mut |slot| tops.load(frame, slot, self.active.for_stacks()));
        }
    }

    /// Loads the top that an operand of a terminator is, where it is not cached.
    #[inline]
    pub(super) fn load_top(&mut self, frame: &mut Frame<R>, arg: &Arg) {
        if let (Some(tops), Some(slot)) = (&self.tops, slot_of(arg)) {
            tops.load(frame, slot, self.active.for_stacks());
        }
    }

    /// Stores the tops that a step has written, where they are not cached.
    #[inline]
    pub(super) fn store_tops(&mut self, frame: &mut Frame<R>, step: &StepKind) {
        if let Some(tops) = &self.tops {
            tops.each_write(step, &mut |slot| tops.store(frame, slot, self.active.for_stacks()));
        }
    }

    /// Pushes in the place of a spill: the top stays where it is, one below the new one, which is stored when it is
    /// computed. A value that is saved goes there, and the top above it. Where there is no memory for the highest
    /// lanes, they trap.
    #[cold]
    pub(super) fn push_in_memory(&mut self, frame: &mut Frame<R>, stack: StackId, slot: SlotId, loc: &Loc) {
        let own = self.tops.as_ref().expect("tops are in memory").slots[stack.index()];
        let (columns, memory) = (self.active.for_stacks(), &mut frame.stacks[stack.index()]);
        if slot != own {
            memory.load_tops(&mut frame.slots[own.index()], columns);
            memory.store_tops(&frame.slots[slot.index()], columns);
        }
        while frame.stacks[stack.index()].raise(self.active.for_stacks()).is_err() && self.active.count > 0 {
            let memory = &frame.stacks[stack.index()];
            let highest = self.active.highest(|lane| memory.height(lane));
            self.trap_columns(&highest, TrapKind::MemoryLimit, loc);
        }
        if slot != own && self.active.count > 0 {
            frame.stacks[stack.index()].store_tops(&frame.slots[own.index()], self.active.for_stacks());
        }
        self.mark(Activity::Stacks, loc);
    }
}
