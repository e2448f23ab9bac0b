//! One lane after another: for operands that no kernel takes for many lanes together. The plan tells which these are.

use super::call::{Active, KernelArg, KernelCall, Streams};
use crate::backend::cpu::buffer::{Buffer, Values};
use crate::vmath::Real;

/// Runs the primitive for each active lane by itself.
pub(super) fn run<R: Real>(call: &mut KernelCall<'_, R>, out: &mut Buffer<R>) {
    let (w, elements) = (call.width, call.elements());
    let mut one = Buffer::zeros(call.ty.dtype, elements);
    for lane in 0..w {
        if !call.active.contains(lane) {
            if let Some(keep) = &call.keep {
                place(&keep.values.extract(elements, w, lane), out, w, lane);
            }
            continue;
        }
        let owned: Vec<Option<Buffer<R>>> =
            (call.args.iter()).map(|a| (!a.broadcast).then(|| of_lane(a, w, lane))).collect();
        let args: Vec<KernelArg<'_, R>> = (call.args.iter().zip(&owned))
            .map(|(a, own)| match own {
                Some(own) => KernelArg { buffer: own.values(0), broadcast: true, ..*a },
                None => *a,
            })
            .collect();
        let mut traps = Vec::new();
        let single = KernelCall { args: &args, width: 1, active: Active::All, keep: None, traps: &mut traps, ..*call };
        super::run(single, Streams { seed: 0, lanes: &[0], draws: &mut [0] }, &mut one);
        match traps.first() {
            Some((_, kind)) => call.traps.push((lane as u32, *kind)),
            None => place(&one, out, w, lane),
        }
    }
}

/// The value of an operand in one lane.
fn of_lane<R: Real>(arg: &KernelArg<'_, R>, width: usize, lane: usize) -> Buffer<R> {
    fn column<T: Copy>(values: &[T], elements: usize, width: usize, lane: usize) -> Vec<T> {
        (0..elements).map(|e| values[e * width + lane]).collect()
    }
    let n = arg.ty.elements();
    match arg.buffer {
        Values::Bool(v) => Buffer::Bool(column(v, n, width, lane).into()),
        Values::Int(v) => Buffer::Int(column(v, n, width, lane).into()),
        Values::Real(v) => Buffer::Real(column(v, n, width, lane).into()),
    }
}

/// Puts the values of one lane into its column.
fn place<R: Real>(one: &Buffer<R>, out: &mut Buffer<R>, width: usize, lane: usize) {
    fn column<T: Copy>(from: &[T], to: &mut [T], width: usize, lane: usize) {
        from.iter().enumerate().for_each(|(e, x)| to[e * width + lane] = *x);
    }
    match (one, out) {
        (Buffer::Bool(from), Buffer::Bool(to)) => column(from, to, width, lane),
        (Buffer::Int(from), Buffer::Int(to)) => column(from, to, width, lane),
        (Buffer::Real(from), Buffer::Real(to)) => column(from, to, width, lane),
        _ => unreachable!("the result has the type of the call"),
    }
}
