//! Runs groups of steps tile by tile.

use std::ops::Range;

use smallvec::SmallVec;

use crate::backend::cpu::frame::Frame;
use crate::backend::cpu::kernels::{self, Active, KernelCall, Streams};
use crate::backend::cpu::profile::activity_of;
use crate::backend::cpu::steps::{Stepper, bears_nans};
use crate::base::Loc;
use crate::plan::{Arg, Compute, Part, TILE_BLOCK, TileResult, Tiled, TiledStep, Write};
use crate::prim::Prim;
use crate::run::TrapKind;
use crate::types::Type;
use crate::vmath::{BLOCK, Real, log1p_exp_and_inv_logit};

const _: () = assert!(TILE_BLOCK == BLOCK, "tiles of whole blocks give the bits of the whole");

/// A trap in a tile: the column, the step of the group, the reason, and what is told. Which of several counts is known only when all tiles
/// have run.
type Failure = (u32, usize, TrapKind, String);

impl<R: Real> Stepper<'_, R> {
    /// Runs all tiles of a group. A lane that traps in a tile goes on with junk until all tiles have run: an earlier step may
    /// trap in a later tile, and that is the trap that counts.
    pub(super) fn tiled(&mut self, frame: &mut Frame<R>, group: &Tiled) {
        if self.env.settings.stats {
            group.steps.iter().for_each(|s| self.prims[s.compute.prim as usize] += 1);
        }
        let mut failures: Vec<Failure> = Vec::new();
        for first in (0..group.rows).step_by(frame.tile_rows) {
            let rows = first..group.rows.min(first + frame.tile_rows);
            let mut together = false;
            for (i, step) in group.steps.iter().enumerate() {
                if std::mem::take(&mut together) {
                    continue;
                }
                match group.steps.get(i + 1) {
                    // Where a NaN is born is told of each step by itself.
                    Some(next) if next.twin_of(step) && !self.env.settings.check_nan => {
                        self.twins(frame, group.rows, [step, next], &rows);
                        together = true;
                    }
                    _ => self.tile(frame, group.rows, step, &rows),
                }
                self.mark(activity_of(&step.compute), &step.loc);
                let mut told = self.told.drain(..);
                failures.extend(self.kernel_traps.drain(..).map(|(column, kind)| {
                    let message = if kind == TrapKind::IndexOutOfRange { told.next() } else { None };
                    (column, i, kind, message.unwrap_or_default())
                }));
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
            let row = c.ty.elements() / all * columns;
            let masked = self.active.blend && c.write != Write::Temporary;
            let masked = masked.then(|| (columns, self.active.mask.words()));
            frame.slots[c.slot.0 as usize].store_rows(&out, rows.start * row, rows.len() * row, masked);
        }
        frame.slots[target] = out;
    }

    /// Runs two steps at once, for some of `all` rows: see [`TiledStep::twin_of`].
    fn twins(&mut self, frame: &mut Frame<R>, all: usize, steps: [&TiledStep; 2], rows: &Range<usize>) {
        let slots = steps.map(|s| s.compute.slot.0 as usize);
        let mut out = slots.map(|s| frame.take(s));
        let (arg, columns) = (&steps[0].compute.args[0], self.active.columns());
        let (first, _) = place(arg, steps[0].parts[0], all, rows.start, columns);
        let len = part_type(&arg.ty, Part::Rows, rows.len()).elements() * columns;
        let x = &self.env.buffer(frame, arg).values(first).reals()[..len];
        let [a, b] = &mut out;
        let (a, b) = (&mut a.reals_mut()[..len], &mut b.reals_mut()[..len]);
        match steps.map(|s| s.compute.prim) {
            [Prim::Log1pExp, Prim::InvLogit] => log1p_exp_and_inv_logit(x, a, b),
            [Prim::InvLogit, Prim::Log1pExp] => log1p_exp_and_inv_logit(x, b, a),
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
