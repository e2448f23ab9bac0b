//! Memory of arrays in local static autobatching, where each activation has variables of its own. An array has memory
//! from when it is set first, so that one that is handed over to a call, or not met at a depth, takes none; and what
//! does not outlive a unit is there once for a function, not for each activation.

use std::sync::Arc;

use crate::backend::cpu::PADDING;
use crate::backend::cpu::buffer::Buffer;
use crate::backend::cpu::frame::{Frame, room};
use crate::base::IdVec;
use crate::exec::StackError;
use crate::plan::{Body, CallPlan, CallTerminator, FuncId, Role, SlotId, UnitId, bytes};
use crate::run::{MemoryBudget, Reservation};
use crate::types::{DType, Type};
use crate::vmath::Real;

/// An array has at least so many elements; what has fewer stays where it is.
const LARGE: usize = 8;

/// The memory of the arrays of a shard.
pub(super) struct Arrays<'a, R> {
    plan: &'a CallPlan,
    width: usize,
    funcs: IdVec<FuncId, Places<R>>,
    memory: Reservation,
}

/// Where a function has its arrays.
struct Places<R> {
    /// For each slot, whether an array is there that does not always have memory.
    large: Vec<bool>,
    /// Those of the variables that a unit reads or sets.
    used: IdVec<UnitId, Vec<usize>>,
    /// Those of the pool, with the memory that all activations use.
    pool: Vec<(usize, Buffer<R>)>,
}

impl<R: Real> Places<R> {
    fn new(body: &Body<CallTerminator>) -> Self {
        let large: Vec<bool> = body.slots.values().map(|s| !s.uniform && s.elements >= LARGE).collect();
        let used = body.units.values().map(|unit| {
            let slots = unit.stages.iter().map(|stage| stage.slot.0 as usize);
            slots.filter(|slot| large[*slot]).collect()
        });
        let used = used.collect();
        let pool = body.slots.iter().filter(|(id, s)| large[id.0 as usize] && s.role == Role::Pool);
        let pool = pool.map(|(id, _)| (id.0 as usize, Buffer::nothing())).collect();
        Self { large, used, pool }
    }
}

impl<'a, R: Real> Arrays<'a, R> {
    pub(super) fn new(plan: &'a CallPlan, width: usize, budget: &Arc<MemoryBudget>) -> Self {
        let funcs = plan.funcs.values().map(|func| Places::new(&func.body)).collect();
        Self { plan, width, funcs, memory: Reservation::of(budget) }
    }

    /// The slots of a function that its frames begin without.
    pub(super) fn left_out(&self, func: FuncId) -> &[bool] {
        &self.funcs[func].large
    }

    /// Bytes that a frame of a function begins with.
    pub(super) fn frame_bytes(&self, func: FuncId) -> usize {
        let body = &self.plan.funcs[func].body;
        let left = body.slots.values().zip(&self.funcs[func].large).filter(|(_, large)| **large);
        let left: usize = left.map(|(s, _)| bytes(s.dtype, s.elements, size_of::<R>())).sum();
        (body.bytes_per_lane(size_of::<R>()) - left).saturating_mul(self.width)
    }

    /// Whether values of a type are arrays here.
    pub(super) fn holds(ty: &Type) -> bool {
        ty.elements() >= LARGE
    }

    /// Gives a slot of a frame memory if it has none.
    ///
    /// # Errors
    /// [`StackError::NoMemory`]; nothing has changed.
    pub(super) fn ensure(&mut self, func: FuncId, frame: &mut Frame<R>, slot: usize) -> Result<(), StackError> {
        if !self.funcs[func].large[slot] || !frame.slots[slot].is_empty() {
            return Ok(());
        }
        let s = &self.plan.funcs[func].body.slots[SlotId(slot as u32)];
        frame.slots[slot] = self.made(s.dtype, room(s, frame.tile_rows, self.width))?;
        Ok(())
    }

    /// Gives a result of this type memory if it has none.
    ///
    /// # Errors
    /// [`StackError::NoMemory`].
    pub(super) fn ensure_result(&mut self, result: &mut Buffer<R>, ty: &Type) -> Result<(), StackError> {
        if Self::holds(ty) && result.is_empty() {
            *result = self.made(ty.dtype, ty.elements().saturating_mul(self.width))?;
        }
        Ok(())
    }

    fn made(&mut self, dtype: DType, len: usize) -> Result<Buffer<R>, StackError> {
        let before = self.memory.bytes();
        // What is given back later is all that the buffer has, the room behind its values included.
        let whole = bytes(dtype, len.saturating_add(PADDING), size_of::<R>());
        self.memory.resize(before.saturating_add(whole))?;
        let made = Buffer::try_slot(dtype, len);
        if made.is_err() {
            self.memory.resize(before)?;
        }
        Ok(made?)
    }

    /// A unit is about to run: what it reads and sets has memory, and the frame has the pool.
    ///
    /// # Errors
    /// [`StackError::NoMemory`].
    pub(super) fn enter(&mut self, func: FuncId, unit: UnitId, frame: &mut Frame<R>) -> Result<(), StackError> {
        for at in 0..self.funcs[func].used[unit].len() {
            let slot = self.funcs[func].used[unit][at];
            self.ensure(func, frame, slot)?;
        }
        let mut pool = std::mem::take(&mut self.funcs[func].pool);
        for (slot, buffer) in &mut pool {
            std::mem::swap(buffer, &mut frame.slots[*slot]);
        }
        let all = pool.iter().try_for_each(|(slot, _)| self.ensure(func, frame, *slot));
        self.funcs[func].pool = pool;
        all.inspect_err(|_| self.leave(func, frame))
    }

    /// The unit has run: the pool is for others.
    pub(super) fn leave(&mut self, func: FuncId, frame: &mut Frame<R>) {
        for (slot, buffer) in &mut self.funcs[func].pool {
            std::mem::swap(buffer, &mut frame.slots[*slot]);
        }
    }

    /// What a frame holds is about to go.
    pub(super) fn drop_frame(&mut self, func: FuncId, frame: &Frame<R>) {
        let large = frame.slots.iter().zip(&self.funcs[func].large).filter(|(_, large)| **large);
        let held: usize = large.map(|(buffer, _)| buffer.bytes()).sum();
        self.give_back(held);
    }

    /// What results hold is about to go.
    pub(super) fn drop_results<'r>(&mut self, results: impl Iterator<Item = (&'r Buffer<R>, &'r Type)>) {
        let held: usize = results.filter(|(_, ty)| Self::holds(ty)).map(|(buffer, _)| buffer.bytes()).sum();
        self.give_back(held);
    }

    fn give_back(&mut self, bytes: usize) {
        let left = self.memory.bytes().checked_sub(bytes).expect("no more is given back than was taken");
        self.memory.resize(left).expect("less is always there");
    }
}
