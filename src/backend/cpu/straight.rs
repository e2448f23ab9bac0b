//! Runs the lane of a shard of one by straight code.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::{ptr, slice};

use smallvec::SmallVec;

use crate::backend::cpu::attempts::Handlers;
use crate::backend::cpu::buffer::{Buffer, Values};
use crate::backend::cpu::codegen::abi::{CodeCall, CodeTrap};
use crate::backend::cpu::codegen::{KernelOperand, KernelSource, NativeStraight, RegionExit};
use crate::backend::cpu::frame::{Frame, opened, opened_more};
use crate::backend::cpu::kernels::{self, Active, Drawn, KernelArg, KernelCall, Streams};
use crate::backend::cpu::run_unit::NoRoom;
use crate::backend::cpu::segments::told;
use crate::backend::cpu::steps::{Environment, Stepper};
use crate::backend::cpu::tapes::Tapes;
use crate::base::{Id as _, Loc};
use crate::exec::LaneStack;
use crate::parts::render;
use crate::plan::BlockId;
use crate::prim::Draw;
use crate::run::{Execution, Settings, TrapKind};
use crate::types::{Array, DType, Precision, Type};
use crate::vmath::{BinaryFn, Real, UnaryFn};

/// Whether straight code can serve: it counts nothing, and looks for no NaN.
pub(super) fn serves(settings: &Settings) -> bool {
    let counts = settings.counts_lanes() || settings.profile || settings.max_supersteps > 0;
    !counts && !settings.check_nan && settings.execution != Execution::Gather
}

/// What straight code works on, beside tapes.
pub(super) struct Lane<'s, 'a, R> {
    pub(super) frame: &'s mut Frame<R>,
    pub(super) returns: &'s mut LaneStack<u32>,
    pub(super) handlers: &'s mut Handlers<'a>,
    /// How often it may still come to the unit whose visits are counted.
    pub(super) visits: &'s mut i64,
}

/// What the function calls back for.
struct Callbacks<'t, 'a, R> {
    env: &'t Environment<'a, R>,
    native: &'t NativeStraight,
    tapes: *mut Tapes<'a, R>,
    lane: *mut Lane<'t, 'a, R>,
    /// Where kernels leave their results.
    made: *mut Buffer<R>,
    precision: Precision,
    /// The message of the lane that traps, where it has values.
    told: *mut Option<String>,
}

impl<'a, R: Real> Stepper<'a, R> {
    /// Takes the lane, which is active, from the first block of a unit as far as straight code goes, or until it has come to
    /// the unit whose visits are counted as often as it may. Returns the exit, or none where it trapped. `loc`: where the
    /// unit stands.
    ///
    /// # Errors
    /// Where there is no memory to begin with; nothing was done.
    pub(super) fn call_straight<'s>(
        &mut self,
        mut lane: Lane<'s, 'a, R>,
        native: &'s NativeStraight,
        (entry, loc): (BlockId, &Loc),
    ) -> Result<Option<RegionExit>, NoRoom> {
        let (region, settings) = (&native.segment.region, self.env.settings);
        self.calls.forget();
        self.calls.stacks.clear();
        for tape in &region.tapes {
            self.calls.stacks.push(self.tapes.open(*tape).map_err(|_| NoRoom)?);
        }
        for stack in &native.segment.stacks {
            self.calls.stacks.push(lane.frame.stacks[stack.index()].open(0).map_err(|_| NoRoom)?);
        }
        self.calls.stacks.push(opened(lane.returns, 0).map_err(|_| NoRoom)?);
        let width = self.active.columns();
        self.find(lane.frame, (&region.slots, &region.constants), width, 0);
        self.calls.have_scratch(region.scratch, settings.get_memory()).map_err(|_| NoRoom)?;
        let never = 0;
        let byte = |flag: &Option<Arc<AtomicBool>>| {
            flag.as_ref().map_or(&raw const never, |flag| flag.as_ptr().cast_const().cast())
        };
        let common = self.arguments(width, 0);
        let most = native.segment.kernels.iter().map(|op| op.ty.elements()).max().unwrap_or(0);
        let mut made = Buffer::try_zeros(DType::Real, most).map_err(|_| NoRoom)?;
        let mut message = None;
        let (made, told_here) = (&raw mut made, &raw mut message);
        let (tapes, precision) = (&raw mut self.tapes, settings.precision);
        let env = self.env;
        let mut callbacks = Callbacks { env, native, tapes, lane: &raw mut lane, made, precision, told: told_here };
        let mut call = CodeCall {
            tape_limit: u32::try_from(settings.max_tape_depth).unwrap_or(u32::MAX),
            deepest: u32::try_from(settings.max_stack_depth).unwrap_or(u32::MAX),
            grow: Some(grow::<R>),
            tapes: (&raw mut callbacks).cast(),
            stop: byte(&settings.stop),
            ended: byte(&settings.ended),
            scratch: self.calls.scratch_memory(),
            entry: entry.index() as i64,
            visits: *lane.visits,
            note: Some(note::<R>),
            map1: Some(map1::<R>),
            map2: Some(map2::<R>),
            twins: Some(twins::<R>),
            sum_and_map: Some(sum_and_map::<R>),
            random: Some(random::<R>),
            kernel: Some(kernel::<R>),
            tell: Some(tell::<R>),
            ..common
        };
        // SAFETY: the function was generated from this plan for this width of `real`. It reads and writes the elements that
        // its lane has of the slots that it names, constants, and of the tapes, stacks and return addresses that it is called
        // with, at levels for which there is room or `grow` has made some, and `stop` and `ended`, bytes that others may
        // set at any time, atomically. `entry` is one of its blocks. It traps the lane once at most, for which `find` has made
        // room. Nothing else refers to this memory meanwhile, but for what it calls.
        unsafe { (native.function)(&raw mut call) };
        *lane.visits = call.visits;
        let mut opened = self.calls.stacks.iter();
        for (tape, raw) in region.tapes.iter().zip(opened.by_ref()) {
            self.tapes.close(*tape, raw);
        }
        for (stack, raw) in native.segment.stacks.iter().zip(opened.by_ref()) {
            lane.frame.stacks[stack.index()].close(raw);
        }
        if let Some(raw) = opened.next() {
            lane.returns.close(raw.pushes, raw.highest);
        }
        if call.trapped > 0 {
            let CodeTrap { lane, site, index } = self.calls.traps[0];
            let site = &region.sites[site as usize];
            let text = match (message, site.extent) {
                (Some(text), _) => text,
                (None, Some(extent)) => told(site, extent, index),
                (None, None) => site.text.clone(),
            };
            self.trap(lane as usize, site.kind, &site.loc, text);
        }
        if call.stopped != 0 {
            self.trap_all(TrapKind::Interrupted, loc);
        }
        Ok((self.active.count > 0).then(|| region.exits[call.left as usize]))
    }
}

/// Makes room for one more value: on a tape, a stack, or that of return addresses, in this order. 0 where there is no memory.
unsafe extern "C" fn grow<R: Real>(call: *mut CodeCall, at: i64) -> i32 {
    // SAFETY: the function hands on what it was called with: `call_straight` keeps the call and all that the callbacks refer to
    // alive, and nobody else uses it meanwhile. The number is one of what it was called with.
    let (callbacks, stack) = unsafe {
        let callbacks = &*(*call).tapes.cast::<Callbacks<'_, '_, R>>();
        (callbacks, &mut *(*call).stacks.add(at as usize))
    };
    // SAFETY: as above.
    let (tapes, lane) = unsafe { (&mut *callbacks.tapes, &mut *callbacks.lane) };
    let segment = &callbacks.native.segment;
    let of_stacks = at as usize - segment.region.tapes.len().min(at as usize);
    let more = match (segment.region.tapes.get(at as usize), segment.stacks.get(of_stacks)) {
        (Some(tape), _) => tapes.open_more(*tape, stack.levels),
        (None, Some(id)) => lane.frame.stacks[id.index()].open_more(stack.levels),
        (None, None) => opened_more(lane.returns, stack.levels),
    };
    match more {
        Ok(more) => {
            (stack.memory, stack.heights, stack.levels) = (more.memory, more.heights, more.levels);
            1
        }
        Err(_) => 0,
    }
}

/// The lane makes an attempt, which returns to this block: notes how high its stacks and tapes are, with so many return
/// addresses below its own.
unsafe extern "C" fn note<R: Real>(call: *mut CodeCall, ret: u32, depth: u32, heights: *const u32) {
    // SAFETY: as in `grow`.
    let handlers = unsafe {
        let callbacks = &*(*call).tapes.cast::<Callbacks<'_, '_, R>>();
        &mut *ptr::from_mut((*callbacks.lane).handlers)
    };
    let count = handlers.noted(BlockId(ret));
    // SAFETY: the function was generated with the heights of the stacks and tapes of this attempt.
    let heights = unsafe { slice::from_raw_parts(heights, count) };
    handlers.record(0, depth as usize, heights.iter().map(|h| *h as usize));
}

/// A function of each of `n` reals, which stand elsewhere than the results.
unsafe extern "C" fn map1<R: Real>(f: i64, x: *const c_void, out: *mut c_void, n: i64) {
    // SAFETY: the function was generated for this width of `real`, with arrays that have so many elements.
    let (x, out) = unsafe {
        (slice::from_raw_parts(x.cast::<R>(), n as usize), slice::from_raw_parts_mut(out.cast::<R>(), n as usize))
    };
    kernels::unary(UnaryFn::ALL[f as usize], x, out);
}

/// The same of two.
unsafe extern "C" fn map2<R: Real>(f: i64, x: *const c_void, y: *const c_void, out: *mut c_void, n: i64) {
    // SAFETY: as in `map1`.
    let (x, y, out) = unsafe {
        let [x, y] = [x, y].map(|from| slice::from_raw_parts(from.cast::<R>(), n as usize));
        (x, y, slice::from_raw_parts_mut(out.cast::<R>(), n as usize))
    };
    kernels::binary(BinaryFn::ALL[f as usize], x, y, out);
}

/// The functions `log1p_exp` and `inv_logit` of each of `n` reals.
unsafe extern "C" fn twins<R: Real>(x: *const c_void, log1p_exp: *mut c_void, inv_logit: *mut c_void, n: i64) {
    // SAFETY: as in `map1`.
    let (x, log1p_exp, inv_logit) = unsafe {
        let [a, b] = [log1p_exp, inv_logit].map(|to| slice::from_raw_parts_mut(to.cast::<R>(), n as usize));
        (slice::from_raw_parts(x.cast::<R>(), n as usize), a, b)
    };
    kernels::log1p_exp_and_inv_logit(x, log1p_exp, inv_logit);
}

/// The sum of `log1p_exp` of `n` reals, and `inv_logit` of each.
unsafe extern "C" fn sum_and_map<R: Real>(x: *const c_void, sum: *mut c_void, inv_logit: *mut c_void, n: i64) {
    // SAFETY: as in `map1`; `sum` is one real.
    let (x, sum, inv_logit) = unsafe {
        let inv_logit = slice::from_raw_parts_mut(inv_logit.cast::<R>(), n as usize);
        (slice::from_raw_parts(x.cast::<R>(), n as usize), slice::from_raw_parts_mut(sum.cast::<R>(), 1), inv_logit)
    };
    kernels::sums_of_log1p_exp_and_inv_logit(x, inv_logit, sum, false);
}

/// `n` draws of a lane, from this one on.
unsafe extern "C" fn random<R: Real>(draw: i64, seed: u64, lane: u64, first: i64, out: *mut c_void, n: i64) {
    // SAFETY: as in `map1`.
    let out = unsafe { slice::from_raw_parts_mut(out.cast::<R>(), n as usize) };
    // A position is one number, and none of these.
    let drawn = if draw == Draw::RandomNormal as i64 { Drawn::Normal } else { Drawn::Uniform };
    kernels::draws_of_lane(drawn, seed, lane, first as u64, out);
}

/// Runs the kernel of an operation of the segment, for one lane.
unsafe extern "C" fn kernel<R: Real>(
    call: *mut CodeCall,
    number: i64,
    operands: *const *const c_void,
    out: *mut c_void,
) {
    // SAFETY: as in `grow`; nobody else uses the buffer, and it is no operand.
    let (op, made, env) = unsafe {
        let callbacks = &*(*call).tapes.cast::<Callbacks<'_, '_, R>>();
        (&callbacks.native.segment.kernels[number as usize], &mut *callbacks.made, callbacks.env)
    };
    let operand = |i: usize| {
        let KernelOperand { ty, is } = &op.args[i];
        let (broadcast, in_columns) = (false, || Some([1, ty.shape[0]]));
        let turned = match (is, &op.args[..]) {
            (KernelSource::Shared(matrix), [_, right]) if i == 0 => env.turned_in(op.prim, *matrix, [ty, &right.ty]),
            _ => None,
        };
        if let Some(turned) = turned {
            return KernelArg { buffer: turned.values(0), ty, broadcast, strides: in_columns() };
        }
        // SAFETY: the function was generated for this width of `real` and this operation, with arrays of as many elements as
        // its operands have.
        let values = unsafe { slice::from_raw_parts((*operands.add(i)).cast::<R>(), ty.elements()) };
        let strides = if matches!(is, KernelSource::TransposeOf(_)) { in_columns() } else { None };
        KernelArg { buffer: Values::Real(values), ty, broadcast, strides }
    };
    let args: SmallVec<[KernelArg<'_, R>; 2]> = (0..op.args.len()).map(operand).collect();
    let mut traps = Vec::new();
    let (width, active, keep, accumulate) = (1, Active::All, None, false);
    let call =
        KernelCall { prim: op.prim, args: &args, ty: &op.ty, width, active, keep, accumulate, traps: &mut traps };
    kernels::run(call, Streams { seed: 0, lanes: &[], draws: &mut [] }, made);
    debug_assert!(traps.is_empty(), "it traps no lane");
    let n = op.ty.elements();
    // SAFETY: the result has an array of as many elements.
    let out = unsafe { slice::from_raw_parts_mut(out.cast::<R>(), n) };
    out.copy_from_slice(&made.values(0).reals()[..n]);
}

/// Renders a message for the lane, which traps next.
unsafe extern "C" fn tell<R: Real>(call: *mut CodeCall, number: i64, values: *const *const c_void) {
    // SAFETY: as in `grow`; nobody else uses the text meanwhile.
    let (message, precision, told) = unsafe {
        let callbacks = &*(*call).tapes.cast::<Callbacks<'_, '_, R>>();
        (&callbacks.native.segment.messages[number as usize], callbacks.precision, &mut *callbacks.told)
    };
    let value = |(i, ty): (usize, &Type)| {
        let (shape, n) = (ty.shape.iter().copied(), ty.elements());
        // SAFETY: the function was generated for this width of `real` and this message, with arrays of as many elements as
        // its values have, which are ints or reals.
        unsafe {
            let from = *values.add(i);
            match ty.dtype {
                DType::Int => Array::int(shape, slice::from_raw_parts(from.cast::<i64>(), n).to_vec()),
                _ => {
                    Array::real(shape, slice::from_raw_parts(from.cast::<R>(), n).iter().map(|x| x.to_f64()).collect())
                }
            }
        }
    };
    *told = Some(render(&message.texts, message.args.iter().enumerate().map(value), precision));
}
