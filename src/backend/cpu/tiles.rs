//! Runs groups of steps tile by tile.

use std::ffi::c_void;
use std::ops::Range;

use smallvec::SmallVec;

use crate::backend::cpu::buffer::Buffer;
use crate::backend::cpu::codegen::NativeTile;
use crate::backend::cpu::codegen::abi::TileCall;
use crate::backend::cpu::frame::Frame;
use crate::backend::cpu::kernels::{
    self, Active, KernelCall, Streams, log1p_exp_and_inv_logit, sums_of_log1p_exp_and_inv_logit,
};
use crate::backend::cpu::profile::activity_of;
use crate::backend::cpu::segments::serve;
use crate::backend::cpu::steps::{Environment, Stepper, bears_nans};
use crate::base::{Id as _, Loc};
use crate::plan::{Arg, Compute, Part, Source, TILE_BLOCK, TileResult, Tiled, TiledStep, Write};
use crate::prim::Prim;
use crate::run::{Activity, TrapKind};
use crate::types::Type;
use crate::vmath::{BLOCK, LOG_BLOCK, Real};

const _: () = assert!(
    TILE_BLOCK == BLOCK && TILE_BLOCK.is_multiple_of(LOG_BLOCK),
    "tiles of whole blocks give the bits of the whole"
);

/// A trap in a tile: the column, the step of the group, the reason, and what is told. Which of several counts is known only when all tiles
/// have run.
type Failure = (u32, usize, TrapKind, String);

impl<R: Real> Stepper<'_, R> {
    /// Runs all tiles of a group. A lane that traps in a tile goes on with junk until all tiles have run: an earlier step may
    /// trap in a later tile, and that is the trap that counts.
    /// `native`: the functions that stand for some of its steps.
    pub(super) fn tiled(&mut self, frame: &mut Frame<R>, group: &Tiled, native: &[NativeTile]) {
        if self.env.settings.stats {
            group.steps.iter().for_each(|s| self.prims[s.compute.prim as usize] += 1);
        }
        let mut failures: Vec<Failure> = Vec::new();
        for first in (0..group.rows).step_by(frame.tile_rows) {
            let rows = first..group.rows.min(first + frame.tile_rows);
            let mut i = 0;
            while let Some(step) = group.steps.get(i) {
                if let Some(native) = native.iter().find(|n| n.segment.steps.start == i)
                    && self.serves(frame, group, native, &rows)
                {
                    self.call_tile(frame, group, native, &rows);
                    self.mark(Activity::Native, &step.loc);
                    i = native.segment.steps.end;
                    continue;
                }
                let done = match group.steps.get(i + 1) {
                    // Where a NaN is born is told of each step by itself.
                    Some(next) if next.twin_of(step) && !self.env.settings.check_nan => {
                        self.twins(frame, group.rows, [step, next], &rows);
                        2
                    }
                    _ => {
                        self.tile(frame, group.rows, step, &rows);
                        1
                    }
                };
                self.mark(activity_of(&step.compute), &step.loc);
                let mut told = self.told.drain(..);
                failures.extend(self.kernel_traps.drain(..).map(|(column, kind)| {
                    let message = if kind == TrapKind::IndexOutOfRange { told.next() } else { None };
                    (column, i, kind, message.unwrap_or_default())
                }));
                i += done;
            }
        }
        for (i, step) in group.steps.iter().enumerate() {
            for (column, _, kind, message) in failures.iter().filter(|f| f.1 == i) {
                let column = *column as usize;
                if self.active.mask.contains(column) {
                    self.trap(column, *kind, &step.loc, message.clone());
                }
            }
            if self.active.count == 0 {
                return;
            }
            if step.result == TileResult::Total {
                self.store_total(frame, &step.compute, &step.loc);
            }
        }
    }

    /// Whether a function of a tile serves these rows, and is quicker than kernels: those take several rows of few lanes at
    /// once, it would compute lanes that there are not.
    fn serves(&self, frame: &Frame<R>, group: &Tiled, native: &NativeTile, rows: &Range<usize>) -> bool {
        let columns = self.active.columns();
        let fit = |&(read, extent): &(usize, usize)| {
            let (step, number) = native.segment.reads[read];
            let arg = &group.steps[step].compute.args[number];
            let indices = &self.env.buffer(frame, arg).ints()[rows.clone()];
            kernels::fit(indices, extent)
        };
        native.group > 1
            && columns.next_multiple_of(native.group) <= 2 * columns
            && serve(self.env.settings, columns)
            && native.segment.indices.iter().all(fit)
    }

    /// Calls the function of some steps for some rows.
    fn call_tile(&mut self, frame: &mut Frame<R>, group: &Tiled, native: &NativeTile, rows: &Range<usize>) {
        let columns = self.active.columns();
        let segment = &native.segment;
        let target = |c: &Compute| c.scratch.unwrap_or(c.slot).index();
        let mut stores: SmallVec<[*mut c_void; 8]> = SmallVec::new();
        for step in segment.stores.iter().map(|at| &group.steps[*at]) {
            let c = &step.compute;
            if c.prim == Prim::ScatterAdd && rows.start == 0 {
                self.begin_with(frame, c);
            }
            let slot = &mut frame.slots[target(c)];
            let values = if step.result == TileResult::Total { c.ty.elements() } else { rows.len() };
            assert!(values * columns + native.group <= slot.len() + 1, "the result of a tile has room");
            stores.push(slot.as_mut_ptr());
        }
        let mut reads: SmallVec<[*const c_void; 16]> = SmallVec::new();
        for (at, number) in &segment.reads {
            let step = &group.steps[*at];
            let (arg, part) = (&step.compute.args[*number], step.parts[*number]);
            let width = if arg.broadcast { 1 } else { columns };
            let (first, _) = place(arg, part, group.rows, rows.start, width);
            let values = if part == Part::Whole { arg.ty.elements() } else { rows.len() };
            let buffer = self.env.buffer(frame, arg);
            // The last group of lanes goes beyond the width.
            let beyond = if arg.broadcast { 0 } else { native.group - 1 };
            assert!(first + values * width + beyond <= buffer.len(), "an operand has the rows of the tile");
            let offset = first * buffer.value_size();
            let start: *const c_void = match arg.source {
                Source::Slot(slot) => frame.slots[slot.index()].as_mut_ptr().cast_const(),
                Source::Constant(constant) => self.env.constant(constant).as_ptr(),
            };
            // SAFETY: the buffer has so many values, by the assertion.
            reads.push(unsafe { start.byte_add(offset) });
        }
        let call = TileCall {
            reads: reads.as_ptr(),
            stores: stores.as_ptr(),
            rows: rows.len() as i64,
            width: columns as i64,
            goes_on: i64::from(rows.start > 0),
        };
        // SAFETY: the function was generated from this group for this width of `real`. It reads and stores rows of as many lanes as
        // the call says, in groups that begin below the width: lane buffers, which it reads so, are padded by `PADDING`
        // elements (`Buffer::try_slot`), of what all lanes share it reads single values, and it stores no more than the
        // lanes that there are. The indices of its places are in range, by `serves`. All places lie within the buffers, by
        // the assertions, and nothing else refers to these meanwhile.
        unsafe { (native.function)(&raw const call) };
        for step in segment.stores.iter().map(|at| &group.steps[*at]).filter(|step| step.result == TileResult::Rows) {
            let made = frame.take(target(&step.compute));
            self.keep_rows(frame, group.rows, &step.compute, rows, &made);
            frame.slots[target(&step.compute)] = made;
        }
    }

    /// What places are added to begins as the first operand.
    fn begin_with(&self, frame: &mut Frame<R>, c: &Compute) {
        let columns = self.active.columns();
        let target = c.scratch.unwrap_or(c.slot).index();
        let mut out = frame.take(target);
        let from = self.env.buffer(frame, &c.args[0]);
        let (to, from, len) = (out.reals_mut(), from.reals(), c.ty.elements());
        if c.args[0].broadcast {
            to.chunks_exact_mut(columns).zip(&from[..len]).for_each(|(to, value)| to.fill(*value));
        } else {
            to[..len * columns].copy_from_slice(&from[..len * columns]);
        }
        frame.slots[target] = out;
    }

    /// Stores rows of a value that is kept.
    fn keep_rows(&self, frame: &mut Frame<R>, all: usize, c: &Compute, rows: &Range<usize>, made: &Buffer<R>) {
        let columns = self.active.columns();
        let row = c.ty.elements() / all * columns;
        let masked = self.active.blend && c.write != Write::Temporary;
        let masked = masked.then(|| (columns, self.active.mask.words()));
        frame.slots[c.slot.index()].store_rows(made, rows.start * row, rows.len() * row, masked);
    }

    /// Runs a step for some of `all` rows.
    fn tile(&mut self, frame: &mut Frame<R>, all: usize, step: &TiledStep, rows: &Range<usize>) {
        let c = &step.compute;
        let target = c.scratch.unwrap_or(c.slot).0 as usize;
        let mut out = frame.take(target);
        let columns = self.active.columns();
        let parts = || c.args.iter().zip(&step.parts);
        let types: SmallVec<[Type; 4]> = parts().map(|(arg, part)| part_type(&arg.ty, *part, rows.len())).collect();
        let ty = match step.result {
            TileResult::Total => c.ty.clone(),
            TileResult::Tile | TileResult::Rows => part_type(&c.ty, Part::Rows, rows.len()),
        };
        let operands: SmallVec<[kernels::KernelArg<'_, R>; 4]> = parts()
            .zip(&types)
            .map(|((arg, part), ty)| {
                let width = if arg.broadcast { 1 } else { columns };
                if let Some(turned) = turned(self.env, columns, c, (arg, *part)) {
                    let (buffer, strides) = (turned.values(rows.start), Some([1, all]));
                    return kernels::KernelArg { buffer, ty, broadcast: true, strides };
                }
                let (first, strides) = place(arg, *part, all, rows.start, width);
                kernels::KernelArg {
                    buffer: self.env.buffer(frame, arg).values(first),
                    ty,
                    broadcast: arg.broadcast,
                    strides,
                }
            })
            .collect();
        let goes_on = step.result == TileResult::Total && rows.start > 0;
        // What `scatter_add` adds to is what it has made so far.
        let in_place = goes_on && c.prim == Prim::ScatterAdd;
        let call = KernelCall {
            prim: c.prim,
            args: &operands[usize::from(in_place)..],
            ty: &ty,
            width: columns,
            active: if self.active.is_full() { Active::All } else { Active::Mask(self.active.mask.words()) },
            keep: None,
            accumulate: goes_on,
            traps: &mut self.kernel_traps,
        };
        if in_place {
            kernels::run_in_place(call, &mut out);
        } else {
            // No step of a group draws.
            kernels::run(call, Streams { seed: 0, lanes: &[], draws: &mut [] }, &mut out);
        }
        if self.env.settings.check_nan && bears_nans(c) {
            self.find_nans(&operands, &out, &ty, &[]);
        }
        if !self.kernel_traps.is_empty() {
            self.tell((c.prim, in_place, &ty), &operands[usize::from(in_place)..], columns, &step.loc);
        }
        drop(operands);
        if step.result == TileResult::Rows {
            self.keep_rows(frame, all, c, rows, &out);
        }
        frame.slots[target] = out;
    }

    /// Runs two steps at once, for some of `all` rows: see [`TiledStep::twin_of`].
    fn twins(&mut self, frame: &mut Frame<R>, all: usize, steps: [&TiledStep; 2], rows: &Range<usize>) {
        let slots = steps.map(|s| s.compute.scratch.unwrap_or(s.compute.slot).0 as usize);
        let mut out = slots.map(|s| frame.take(s));
        let (arg, columns) = (&steps[0].compute.args[0], self.active.columns());
        let (first, _) = place(arg, steps[0].parts[0], all, rows.start, columns);
        let len = part_type(&arg.ty, Part::Rows, rows.len()).elements() * columns;
        let x = &self.env.buffer(frame, arg).values(first).reals()[..len];
        let of = |s: &TiledStep| if s.result == TileResult::Total { columns } else { len };
        let [a, b] = &mut out;
        let (a, b) = (&mut a.reals_mut()[..of(steps[0])], &mut b.reals_mut()[..of(steps[1])]);
        let goes_on = rows.start > 0;
        match steps.map(|s| s.compute.prim) {
            [Prim::Log1pExp, Prim::InvLogit] => log1p_exp_and_inv_logit(x, a, b),
            [Prim::InvLogit, Prim::Log1pExp] => log1p_exp_and_inv_logit(x, b, a),
            [Prim::SumLog1pExp, Prim::InvLogit] => sums_of_log1p_exp_and_inv_logit(x, b, a, goes_on),
            [Prim::InvLogit, Prim::SumLog1pExp] => sums_of_log1p_exp_and_inv_logit(x, a, b, goes_on),
            steps => unreachable!("{steps:?} are no twins"),
        }
        for (slot, out) in slots.into_iter().zip(out) {
            frame.slots[slot] = out;
        }
    }

    /// Puts the result for all rows where it belongs.
    fn store_total(&mut self, frame: &mut Frame<R>, c: &Compute, loc: &Loc) {
        let Some(total) = c.scratch else { return };
        let (slot, total) = (c.slot.0 as usize, total.0 as usize);
        if let Write::Push(stack) = c.write {
            self.spill(frame, stack, slot, loc);
        }
        if self.active.blend && c.write != Write::Temporary {
            let from = frame.take(total);
            frame.slots[slot].blend(&from, c.ty.elements(), self.active.columns(), self.active.mask.words());
            frame.slots[total] = from;
        } else {
            frame.slots.swap(slot, total);
        }
    }
}

/// The type of a part of an operand for so many rows.
fn part_type(ty: &Type, part: Part, rows: usize) -> Type {
    let mut ty = ty.clone();
    match part {
        Part::Whole => {}
        Part::Tile | Part::Rows => ty.shape[0] = rows,
        Part::Columns | Part::Transposed => ty.shape[1] = rows,
    }
    ty
}

/// The first value of the part of an operand that begins at row `first` of `all`, and how a matrix stands there.
fn place(arg: &Arg, part: Part, all: usize, first: usize, width: usize) -> (usize, Option<[usize; 2]>) {
    match part {
        Part::Whole | Part::Tile => (0, None),
        Part::Rows => (first * (arg.ty.elements() / all) * width, None),
        Part::Columns => (first, Some([all, 1])),
        Part::Transposed => (first * arg.ty.shape[0], Some([1, arg.ty.shape[0]])),
    }
}

/// The matrix of a product with a vector of few lanes column after column, if that is quicker and there is memory.
fn turned<'e, R: Real>(
    env: &'e Environment<'_, R>,
    columns: usize,
    c: &Compute,
    (arg, part): (&Arg, Part),
) -> Option<&'e Buffer<R>> {
    match (arg.source, &c.args[..]) {
        (Source::Constant(matrix), [_, right])
            if columns <= kernels::most_columns_of_rows::<R>() && arg.broadcast && part == Part::Rows =>
        {
            env.turned_in(c.prim, matrix, [&arg.ty, &right.ty])
        }
        _ => None,
    }
}
