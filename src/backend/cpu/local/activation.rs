//! The calls that are active: variables of each function that runs, and results of the lanes that have returned.

use std::sync::Arc;

use crate::backend::cpu::arrays::Arrays;
use crate::backend::cpu::buffer::Buffer;
use crate::backend::cpu::frame::Frame;
use crate::backend::cpu::steps::Environment;
use crate::exec::{LaneMask, StackError, Waiting};
use crate::plan::{Arg, BlockId, CallPlan, Func, FuncId, UnitId};
use crate::run::{MemoryBudget, Reservation};
use crate::types::Type;
use crate::vmath::Real;

/// One call, for the lanes that made it together.
pub(super) struct Activation<R> {
    /// The function, and those that it has tail-called.
    pub(super) bodies: Vec<Running<R>>,
    /// The body whose lanes run.
    pub(super) current: usize,
    /// The results of the lanes that have returned.
    pub(super) results: Vec<Buffer<R>>,
    pub(super) returned: LaneMask,
    /// What the results take.
    _memory: Reservation,
    /// Whether the call is an attempt.
    pub(super) attempt: bool,
    /// The lanes whose traps it caught.
    pub(super) failed: LaneMask,
    /// Of an attempt, how many values each tape had in each lane at the call, tape after tape.
    pub(super) tapes: Vec<u32>,
    /// How many lanes made the call.
    pub(super) callers: usize,
    /// Whether these are all lanes that have values where the call came from.
    pub(super) whole: bool,
    /// Whether it may change arrays in which other lanes of the caller have values, so that all that it sets is set
    /// under the mask.
    pub(super) guest: bool,
    /// The slots of the caller and of the function that have changed places.
    pub(super) loans: Vec<(usize, usize)>,
    /// The block that called, in the current body of the activation below.
    pub(super) site: BlockId,
}

/// A function within an activation.
pub(super) struct Running<R> {
    pub(super) func: FuncId,
    pub(super) frame: Frame<R>,
    pub(super) waiting: Waiting,
    /// Lanes whose variables are here.
    pub(super) live: usize,
    /// New values of the parameters when the function tail-calls itself.
    pub(super) staged: Vec<Buffer<R>>,
    /// What all of it takes.
    pub(super) memory: Reservation,
}

impl<R: Real> Running<R> {
    pub(super) fn new(
        plan: &CallPlan,
        func: FuncId,
        (width, arrays): (usize, &Arrays<'_, R>),
        budget: &Arc<MemoryBudget>,
    ) -> Result<Self, StackError> {
        let body = &plan.funcs[func].body;
        let mut memory = Reservation::of(budget);
        memory.resize(arrays.frame_bytes(func))?;
        Ok(Self {
            func,
            frame: Frame::without(body, arrays.left_out(func), width, budget)?,
            waiting: Waiting::new(body.units.len(), width),
            live: 0,
            staged: Vec::new(),
            memory,
        })
    }
    /// Makes room for the new value of a parameter.
    pub(super) fn stage(&mut self, k: usize, ty: &Type, width: usize) -> Result<(), StackError> {
        while self.staged.len() <= k {
            self.staged.push(Buffer::nothing());
        }
        if self.staged[k].is_empty() {
            let bytes = bytes_of::<R>(std::iter::once(ty), width);
            self.memory.resize(self.memory.bytes().saturating_add(bytes))?;
            self.staged[k] = zeros(ty, width)?;
        }
        Ok(())
    }
    /// Lanes enter the function; its parameters are set.
    pub(super) fn enter(&mut self, func: &Func, lanes: &LaneMask) {
        let entry = func.body.blocks[BlockId(0)].unit;
        let count = lanes.count();
        self.waiting.add(entry.0 as usize, lanes.words(), count);
        self.live += count;
    }
}

impl<R: Real> Activation<R> {
    pub(super) fn new(
        plan: &CallPlan,
        func: FuncId,
        (width, arrays): (usize, &Arrays<'_, R>),
        budget: &Arc<MemoryBudget>,
    ) -> Result<Self, StackError> {
        let results = plan.funcs[func].results.iter();
        let mut memory = Reservation::of(budget);
        memory.resize(bytes_of::<R>(results.clone().filter(|ty| !Arrays::<R>::holds(ty)), width))?;
        let result = |ty| if Arrays::<R>::holds(ty) { Ok(Buffer::nothing()) } else { zeros(ty, width) };
        Ok(Self {
            _memory: memory,
            bodies: vec![Running::new(plan, func, (width, arrays), budget)?],
            current: 0,
            results: results.map(result).collect::<Result<_, _>>()?,
            returned: LaneMask::none(width),
            attempt: false,
            failed: LaneMask::none(width),
            tapes: Vec::new(),
            callers: 0,
            whole: false,
            guest: false,
            loans: Vec::new(),
            site: BlockId(0),
        })
    }
    /// The unit that runs next: the earliest of the current body, else of the first body with lanes; `None` when all
    /// lanes have returned.
    pub(super) fn next(&mut self) -> Option<UnitId> {
        let first = |body: &Running<R>| body.waiting.first();
        let unit = first(&self.bodies[self.current]).or_else(|| {
            let mut bodies = self.bodies.iter().enumerate();
            let (index, unit) = bodies.find_map(|(i, b)| first(b).map(|unit| (i, unit)))?;
            self.current = index;
            Some(unit)
        });
        unit.map(|unit| UnitId(unit as u32))
    }
    /// The body for a function that is tail-called.
    pub(super) fn body(
        &mut self,
        plan: &CallPlan,
        func: FuncId,
        arrays: (usize, &Arrays<'_, R>),
        budget: &Arc<MemoryBudget>,
    ) -> Result<usize, StackError> {
        if let Some(found) = self.bodies.iter().position(|b| b.func == func) {
            return Ok(found);
        }
        self.bodies.push(Running::new(plan, func, arrays, budget)?);
        Ok(self.bodies.len() - 1)
    }
}

/// An activation is about to go.
pub(super) fn drop_arrays<R: Real>(arrays: &mut Arrays<'_, R>, plan: &CallPlan, activation: &Activation<R>) {
    activation.bodies.iter().for_each(|running| arrays.drop_frame(running.func, &running.frame));
    let types = &plan.funcs[activation.bodies[0].func].results;
    arrays.drop_results(activation.results.iter().zip(types));
}

/// Bytes of buffers of these types for all lanes of a shard.
fn bytes_of<'t, R>(types: impl Iterator<Item = &'t Type>, width: usize) -> usize {
    let bytes = types.map(|ty| crate::plan::bytes(ty.dtype, ty.elements(), size_of::<R>()).saturating_mul(width));
    bytes.fold(0, usize::saturating_add)
}

/// Zeros of this type for all lanes of a shard.
fn zeros<R: Real>(ty: &Type, width: usize) -> Result<Buffer<R>, StackError> {
    Ok(Buffer::try_zeros(ty.dtype, ty.elements().saturating_mul(width))?)
}

/// The slot of a parameter.
pub(super) fn slot(func: &Func, param: crate::plan::VarId) -> usize {
    let slot = func.body.vars[param].slot;
    slot.expect("parameters are registers").0 as usize
}

/// Stores an operand for some lanes.
pub(super) fn store<R: Real>(
    env: &Environment<'_, R>,
    frame: &Frame<R>,
    arg: &Arg,
    to: &mut Buffer<R>,
    width: usize,
    lanes: &LaneMask,
) {
    let (from, elements) = (env.buffer(frame, arg), arg.ty.elements());
    if arg.broadcast {
        to.blend_value(from, elements, width, lanes.words());
    } else {
        to.blend(from, elements, width, lanes.words());
    }
}
