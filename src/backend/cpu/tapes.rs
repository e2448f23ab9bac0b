//! Tapes: stacks of values for each lane of a shard that no activation owns. They are stacks without a cached top, since
//! nothing reads a value of a tape but by popping it.

use std::sync::Arc;

use crate::backend::cpu::buffer::Buffer;
use crate::backend::cpu::codegen::abi::Stack;
use crate::backend::cpu::frame::{Frame, StackMemory};
use crate::backend::cpu::steps::Stepper;
use crate::base::{IdVec, Loc};
use crate::exec::mask::lanes_of;
use crate::exec::{Columns, StackError};
use crate::parts::{Tape, TapeId};
use crate::plan::{Arg, SlotId};
use crate::run::{MemoryBudget, Storage, TrapKind, VariableStats};
use crate::vmath::Real;

/// The tapes of a shard.
pub(super) struct Tapes<'a, R> {
    program: &'a IdVec<TapeId, Tape>,
    memory: IdVec<TapeId, StackMemory<R>>,
}

impl<'a, R: Real> Tapes<'a, R> {
    /// Empty tapes for `width` lanes, which take from a budget as they grow.
    pub(super) fn new(program: &'a IdVec<TapeId, Tape>, width: usize, budget: &Arc<MemoryBudget>) -> Self {
        let memory = program.values().map(|t| StackMemory::new(t.ty.dtype, t.ty.elements(), width, budget));
        Self { program, memory: memory.collect() }
    }
    /// Lanes start over.
    pub(super) fn reset(&mut self, lanes: &[u32]) {
        self.memory.values_mut().for_each(|m| m.reset(lanes));
    }
    /// The tapes of a lane become those of a lane of another shard.
    ///
    /// # Errors
    /// Where there is no memory; some tapes may have changed.
    pub(super) fn set_lane(&mut self, lane: usize, (from, other): (&Self, usize)) -> Result<(), StackError> {
        let mut pairs = self.memory.values_mut().zip(from.memory.values());
        pairs.try_for_each(|(to, from)| to.set_lane(lane, (from, other)))
    }
    /// Gives back the memory above the highest lane.
    pub(super) fn trim(&mut self) {
        self.memory.values_mut().for_each(StackMemory::trim);
    }
    /// Whether a tape is equally high in the active lanes of each group of lanes.
    pub(super) fn are_alike(&self, tape: TapeId, mask: &[u64], group: usize) -> bool {
        let memory = &self.memory[tape];
        let mut lanes = lanes_of(mask).map(|lane| (lane / group, memory.height(lane)));
        let Some(mut last) = lanes.next() else { return true };
        lanes.all(|lane| {
            let alike = lane.0 != last.0 || lane.1 == last.1;
            last = lane;
            alike
        })
    }
    /// Hands the memory of a tape over to a generated function. [`close`](Self::close) takes it back.
    pub(super) fn open(&mut self, tape: TapeId) -> Result<Stack, StackError> {
        self.memory[tape].open(0)
    }
    /// Makes room for one more level of a tape that was handed over when there was room for so many.
    pub(super) fn open_more(&mut self, tape: TapeId, levels: u32) -> Result<Stack, StackError> {
        self.memory[tape].open_more(levels)
    }
    /// A tape is as the function left it.
    pub(super) fn close(&mut self, tape: TapeId, stack: &Stack) {
        self.memory[tape].close(stack);
    }
    /// How many tapes there are.
    pub(super) fn count(&self) -> usize {
        self.memory.len()
    }
    /// How many values the tape of a lane has.
    pub(super) fn height(&self, tape: TapeId, lane: usize) -> usize {
        self.memory[tape].height(lane)
    }
    /// What lies above this height in a lane goes.
    pub(super) fn cut(&mut self, tape: TapeId, lane: usize, height: usize) {
        self.memory[tape].cut(lane, height);
    }
    /// What statistics say of the tapes.
    pub(super) fn statistics(&self) -> impl Iterator<Item = VariableStats> {
        self.program.values().zip(self.memory.values()).map(|(tape, memory)| VariableStats {
            name: tape.name.clone(),
            storage: Storage::Tape,
            pushes: memory.pushes(),
            bytes_pushed: memory.bytes_pushed(),
            max_stack_depth: memory.highest(),
        })
    }
}

fn push<R: Real>(
    memory: &mut StackMemory<R>,
    value: &Buffer<R>,
    broadcast: bool,
    columns: Columns<'_>,
) -> Result<(), StackError> {
    if broadcast { memory.push_value(value, columns) } else { memory.push(value, columns) }
}

impl<R: Real> Stepper<'_, R> {
    /// Puts a value on the tape of every active lane; a lane whose tape is full traps.
    pub(super) fn tape_push(&mut self, frame: &Frame<R>, tape: TapeId, value: &Arg, loc: &Loc) {
        let limit = self.env.settings.max_tape_depth;
        if self.tapes.memory[tape].highest() >= limit {
            self.trap_at_height(TrapKind::TapeLimit, loc, tape, |height| height >= limit);
        }
        let (from, columns) = (self.env.buffer(frame, value), self.active.for_stacks());
        let mut pushed = push(&mut self.tapes.memory[tape], from, value.broadcast, columns);
        // there is no memory for the highest lanes; others may have room in what there is
        while pushed.is_err() && self.active.count > 0 {
            let highest = self.active.highest(|lane| self.tapes.memory[tape].height(lane));
            self.trap_columns(&highest, TrapKind::MemoryLimit, loc);
            let (from, columns) = (self.env.buffer(frame, value), self.active.for_stacks());
            pushed = push(&mut self.tapes.memory[tape], from, value.broadcast, columns);
        }
    }

    /// Takes a value off the tape of every active lane; a lane whose tape is empty traps.
    pub(super) fn tape_pop(&mut self, frame: &mut Frame<R>, slot: SlotId, tape: TapeId, loc: &Loc) {
        let to = &mut frame.slots[slot.0 as usize];
        if self.tapes.memory[tape].pop(to, self.active.for_stacks()).is_err() {
            self.trap_at_height(TrapKind::EmptyTape, loc, tape, |height| height == 0);
            let popped = self.tapes.memory[tape].pop(to, self.active.for_stacks());
            popped.expect("lanes that have nothing to pop were taken out");
        }
    }

    /// The active lanes trap of whose number of values on a tape this holds.
    fn trap_at_height(&mut self, kind: TrapKind, loc: &Loc, tape: TapeId, holds: impl Fn(usize) -> bool) {
        let height = |column| self.tapes.memory[tape].height(self.active.lane(column));
        let columns: Vec<usize> = self.active.mask.iter().filter(|column| holds(height(*column))).collect();
        self.trap_columns(&columns, kind, loc);
    }
}
