//! The lane buffers and stacks of one set of variables.

use std::sync::Arc;

use crate::backend::cpu::PADDING;
use crate::backend::cpu::buffer::Buffer;
use crate::backend::cpu::codegen::abi::Stack;
use crate::backend::cpu::helpers;
use crate::exec::{Columns, LaneStack, Opened, StackError};
use crate::plan::{Body, Slot, TILE_BLOCK};
use crate::run::MemoryBudget;
use crate::types::DType;
use crate::vmath::Real;

/// The state of one set of variables in all lanes of a shard.
#[derive(Debug)]
pub(super) struct Frame<R> {
    /// By slot.
    pub(super) slots: Vec<Buffer<R>>,
    /// By stack.
    pub(super) stacks: Vec<StackMemory<R>>,
    /// Rows of a tile.
    pub(super) tile_rows: usize,
}

impl<R: Real> Frame<R> {
    /// Zeros for the values of all slots of a body, and empty stacks, which take from a budget as they grow.
    ///
    /// # Errors
    /// [`StackError::NoMemory`].
    pub(super) fn new<T>(body: &Body<T>, width: usize, budget: &Arc<MemoryBudget>) -> Result<Self, StackError> {
        Self::without(body, &[], width, budget)
    }
    /// The same, but for some slots, which have no memory yet.
    ///
    /// # Errors
    /// [`StackError::NoMemory`].
    pub(super) fn without<T>(
        body: &Body<T>,
        left_out: &[bool],
        width: usize,
        budget: &Arc<MemoryBudget>,
    ) -> Result<Self, StackError> {
        let tile_rows = body.tile_rows_among(helpers::threads_each(), width);
        let slot = |(at, s): (usize, &Slot)| match left_out.get(at) {
            Some(true) => Ok(Buffer::nothing()),
            _ => Ok(Buffer::try_slot(s.dtype, room(s, tile_rows, width))?),
        };
        let stacks = body.stacks.values().map(|v| {
            let ty = &body.vars[*v].ty;
            StackMemory::new(ty.dtype, ty.elements(), width, budget)
        });
        let slots = body.slots.values().enumerate().map(slot).collect::<Result<_, StackError>>()?;
        Ok(Self { slots, stacks: stacks.collect(), tile_rows })
    }
    /// Takes a buffer out of its slot; put it back.
    pub(super) fn take(&mut self, slot: usize) -> Buffer<R> {
        std::mem::replace(&mut self.slots[slot], Buffer::nothing())
    }
}

/// How many values the buffer of a slot has, the room behind them left out.
pub(super) fn room(slot: &Slot, tile_rows: usize, width: usize) -> usize {
    let values = if slot.uniform { slot.elements } else { slot.elements.saturating_mul(width) };
    let tiles = if slot.tile { tile_rows / TILE_BLOCK } else { 1 };
    values.saturating_mul(tiles)
}

/// The memory of a stack of any element type.
#[derive(Debug)]
pub(super) enum StackMemory<R> {
    Bool(LaneStack<bool>),
    Int(LaneStack<i64>),
    Real(LaneStack<R>),
}

/// Does the same for every element type.
macro_rules! each {
    ($memory:expr, $stack:ident => $body:expr) => {
        match $memory {
            StackMemory::Bool($stack) => $body,
            StackMemory::Int($stack) => $body,
            StackMemory::Real($stack) => $body,
        }
    };
}

impl<R: Real> StackMemory<R> {
    pub(super) fn new(dtype: DType, elements: usize, width: usize, budget: &Arc<MemoryBudget>) -> Self {
        match dtype {
            DType::Bool => StackMemory::Bool(LaneStack::new(elements, width, false).padded(PADDING).within(budget)),
            DType::Int => StackMemory::Int(LaneStack::new(elements, width, 0).padded(PADDING).within(budget)),
            DType::Real => StackMemory::Real(LaneStack::new(elements, width, R::ZERO).padded(PADDING).within(budget)),
        }
    }
    pub(super) fn push(&mut self, top: &Buffer<R>, columns: Columns<'_>) -> Result<(), StackError> {
        match self {
            StackMemory::Bool(s) => s.push(top.bools(), columns),
            StackMemory::Int(s) => s.push(top.ints(), columns),
            StackMemory::Real(s) => s.push(top.reals(), columns),
        }
    }
    /// Pushes the one value that a buffer of width 1 has for all lanes.
    pub(super) fn push_value(&mut self, value: &Buffer<R>, columns: Columns<'_>) -> Result<(), StackError> {
        match self {
            StackMemory::Bool(s) => s.push_value(value.bools(), columns),
            StackMemory::Int(s) => s.push_value(value.ints(), columns),
            StackMemory::Real(s) => s.push_value(value.reals(), columns),
        }
    }
    pub(super) fn pop(&mut self, top: &mut Buffer<R>, columns: Columns<'_>) -> Result<(), StackError> {
        match self {
            StackMemory::Bool(s) => s.pop(top.bools_mut(), columns),
            StackMemory::Int(s) => s.pop(top.ints_mut(), columns),
            StackMemory::Real(s) => s.pop(top.reals_mut(), columns),
        }
    }
    /// Hands the memory over to a generated function that pushes no more than so many values in a lane, with
    /// [`PADDING`] elements behind the last level. [`close`](Self::close) takes it back.
    pub(super) fn open(&mut self, pushes: usize) -> Result<Stack, StackError> {
        each!(self, s => opened(s, pushes))
    }
    /// Makes room for one more level of what was handed over.
    pub(super) fn open_more(&mut self, levels: u32) -> Result<Stack, StackError> {
        each!(self, s => opened_more(s, levels))
    }
    pub(super) fn close(&mut self, stack: &Stack) {
        each!(self, s => s.close(stack.pushes, stack.highest));
    }
    /// The same, with the tops in its memory.
    pub(super) fn with_tops(self) -> Result<Self, StackError> {
        Ok(match self {
            StackMemory::Bool(s) => StackMemory::Bool(s.with_tops()?),
            StackMemory::Int(s) => StackMemory::Int(s.with_tops()?),
            StackMemory::Real(s) => StackMemory::Real(s.with_tops()?),
        })
    }
    pub(super) fn load_tops(&mut self, to: &mut Buffer<R>, columns: Columns<'_>) {
        match self {
            StackMemory::Bool(s) => s.load_tops(to.bools_mut(), columns),
            StackMemory::Int(s) => s.load_tops(to.ints_mut(), columns),
            StackMemory::Real(s) => s.load_tops(to.reals_mut(), columns),
        }
    }
    pub(super) fn store_tops(&mut self, from: &Buffer<R>, columns: Columns<'_>) {
        match self {
            StackMemory::Bool(s) => s.store_tops(from.bools(), columns),
            StackMemory::Int(s) => s.store_tops(from.ints(), columns),
            StackMemory::Real(s) => s.store_tops(from.reals(), columns),
        }
    }
    pub(super) fn raise(&mut self, columns: Columns<'_>) -> Result<(), StackError> {
        each!(self, s => s.raise(columns))
    }
    pub(super) fn lower(&mut self, columns: Columns<'_>) -> Result<(), StackError> {
        each!(self, s => s.lower(columns))
    }
    /// The stack of a lane becomes that of a lane of another, of the same variable or tape.
    ///
    /// # Errors
    /// Where there is no memory: nothing has changed.
    pub(super) fn set_lane(&mut self, lane: usize, from: (&Self, usize)) -> Result<(), StackError> {
        match (self, from) {
            (StackMemory::Bool(s), (StackMemory::Bool(from), other)) => s.set_lane(lane, (from, other)),
            (StackMemory::Int(s), (StackMemory::Int(from), other)) => s.set_lane(lane, (from, other)),
            (StackMemory::Real(s), (StackMemory::Real(from), other)) => s.set_lane(lane, (from, other)),
            _ => panic!("both are of one type"),
        }
    }
    pub(super) fn height(&self, lane: usize) -> usize {
        each!(self, s => s.height(lane))
    }
    /// What lies above this height in a lane goes.
    pub(super) fn cut(&mut self, lane: usize, height: usize) {
        each!(self, s => s.cut(lane, height));
    }
    pub(super) fn reset(&mut self, lanes: &[u32]) {
        each!(self, s => s.reset(lanes));
    }
    /// Gives back the memory above the highest lane.
    pub(super) fn trim(&mut self) {
        each!(self, s => s.trim());
    }
    pub(super) fn pushes(&self) -> u64 {
        each!(self, s => s.pushes())
    }
    pub(super) fn bytes_pushed(&self) -> u64 {
        each!(self, s => s.bytes_pushed())
    }
    pub(super) fn highest(&self) -> usize {
        each!(self, s => s.highest())
    }
}

/// The memory of a stack for generated code.
pub(super) fn opened<T: Copy>(stack: &mut LaneStack<T>, pushes: usize) -> Result<Stack, StackError> {
    Ok(raw(stack.open(pushes)?))
}

/// The same, with room for one more level than when it was handed over last.
pub(super) fn opened_more<T: Copy>(stack: &mut LaneStack<T>, levels: u32) -> Result<Stack, StackError> {
    Ok(raw(stack.open_more(levels)?))
}

fn raw<T>(opened: Opened<'_, T>) -> Stack {
    let Opened { memory, heights, pushes, highest, levels } = opened;
    Stack { memory: memory.as_mut_ptr().cast(), heights: heights.as_mut_ptr(), pushes, highest, levels }
}
