//! Reductions of the elements of each lane, in the order of the elements.

use super::rows::{Row, Rows, bools, ints, reals};
use super::{Call, is};
use crate::backend::cpu::buffer::Buffer;
use crate::prim::Prim;
use crate::run::TrapKind;
use crate::types::DType;
use crate::vmath::{BLOCK, Real};

pub(super) fn run<R: Real>(call: &mut Call<'_, R>, out: &mut Buffer<R>) {
    let (w, args, more) = (call.width, call.args, call.accumulate);
    let n = args[0].ty.elements();
    match (call.prim, args[0].ty.dtype) {
        (Prim::Any, _) => fold_from(bools(&args[0], w), n, &mut out.bools_mut()[..w], false, more, |a, x| a | x),
        (Prim::All, _) => fold_from(bools(&args[0], w), n, &mut out.bools_mut()[..w], true, more, |a, x| a & x),
        (Prim::MinOf | Prim::MaxOf, _) if n == 0 => call.trap_where(TrapKind::EmptyReduction, |_| true),
        (_, DType::Int) => int(call, n, &mut out.ints_mut()[..w]),
        (Prim::Sum, _) => sum(reals(&args[0], w), n, &mut out.reals_mut()[..w], more),
        (Prim::Prod, _) => fold_from(reals(&args[0], w), n, &mut out.reals_mut()[..w], R::ONE, more, |a, x| a * x),
        (Prim::MinOf, _) => fold_first(reals(&args[0], w), n, &mut out.reals_mut()[..w], more, R::min2),
        (Prim::MaxOf, _) => fold_first(reals(&args[0], w), n, &mut out.reals_mut()[..w], more, R::max2),
        (other, _) => unreachable!("{other} is no reduction"),
    }
}

fn int<R: Real>(call: &mut Call<'_, R>, n: usize, out: &mut [i64]) {
    debug_assert!(is(call, DType::Int));
    let x = ints(&call.args[0], call.width);
    match call.prim {
        Prim::MinOf => fold_first(x, n, out, call.accumulate, i64::min),
        Prim::MaxOf => fold_first(x, n, out, call.accumulate, i64::max),
        Prim::Sum => checked(call, x, n, out, 0, i64::checked_add),
        Prim::Prod => checked(call, x, n, out, 1, i64::checked_mul),
        other => unreachable!("{other} is no reduction of ints"),
    }
}

fn checked<R: Real>(
    call: &mut Call<'_, R>,
    x: Rows<'_, i64>,
    n: usize,
    out: &mut [i64],
    start: i64,
    f: fn(i64, i64) -> Option<i64>,
) {
    for (lane, out) in out.iter_mut().enumerate() {
        let start = if call.accumulate { *out } else { start };
        match (0..n).try_fold(start, |a, e| f(a, x.row(e).at(lane))) {
            Some(value) => *out = value,
            None if call.active.contains(lane) => call.traps.push((lane as u32, TrapKind::IntegerOverflow)),
            None => {}
        }
    }
}

#[inline(always)]
fn step<T: Copy>(out: &mut [T], row: Row<'_, T>, f: impl Fn(T, T) -> T) {
    match row {
        Row::Lanes(row) => out.iter_mut().zip(row).for_each(|(o, x)| *o = f(*o, *x)),
        Row::One(x) => out.iter_mut().for_each(|o| *o = f(*o, x)),
    }
}

#[inline(always)]
fn fold<T: Copy>(x: Rows<'_, T>, elements: std::ops::Range<usize>, out: &mut [T], start: T, f: impl Fn(T, T) -> T) {
    out.fill(start);
    elements.for_each(|e| step(out, x.row(e), &f));
}

/// Folds from `start`, or, with `more`, from what is in `out`.
#[inline(always)]
fn fold_from<T: Copy>(x: Rows<'_, T>, n: usize, out: &mut [T], start: T, more: bool, f: impl Fn(T, T) -> T) {
    if !more {
        out.fill(start);
    }
    (0..n).for_each(|e| step(out, x.row(e), &f));
}

/// Folds from the first element on, or, with `more`, from what is in `out`.
#[inline(always)]
fn fold_first<T: Copy>(x: Rows<'_, T>, n: usize, out: &mut [T], more: bool, f: impl Fn(T, T) -> T) {
    if !more {
        x.row(0).copy_to(out);
    }
    (usize::from(!more)..n).for_each(|e| step(out, x.row(e), &f));
}

/// Ascending sums of blocks of [`BLOCK`] elements, added in order: [`vmath::sum`](crate::vmath) in every lane. With `more`
/// they are added to what is in `out`.
fn sum<R: Real>(x: Rows<'_, R>, n: usize, out: &mut [R], more: bool) {
    if n <= BLOCK && !more {
        return fold(x, 0..n, out, R::ZERO, |a, x| a + x);
    }
    let mut block = vec![R::ZERO; out.len()];
    if !more {
        out.fill(R::ZERO);
    }
    for start in (0..n).step_by(BLOCK) {
        fold(x, start..n.min(start + BLOCK), &mut block, R::ZERO, |a, x| a + x);
        out.iter_mut().zip(&block).for_each(|(o, b)| *o = *o + *b);
    }
}
