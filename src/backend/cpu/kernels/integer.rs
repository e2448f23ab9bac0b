//! Integer arithmetic that can trap. The result is computed for every lane, junk included, and a flag collected on the way;
//! only when it is set are the lanes looked at one by one.

use super::rows::{Rows, ints, map1, map2, reals};
use super::{Call, is};
use crate::backend::cpu::buffer::Buffer;
use crate::prim::Prim;
use crate::run::TrapKind;
use crate::types::DType;
use crate::vmath::Real;
use std::cell::Cell;

/// Whether this elementwise primitive is integer arithmetic that can trap for these operands.
pub(super) fn handles<R>(call: &Call<'_, R>) -> bool {
    match call.prim {
        Prim::IntDiv | Prim::IntRem | Prim::IntPow | Prim::ToInt => true,
        Prim::Add | Prim::Sub | Prim::Mul | Prim::Neg | Prim::Abs => is(call, DType::Int),
        _ => false,
    }
}

pub(super) fn run<R: Real>(call: &mut Call<'_, R>, out: &mut Buffer<R>) {
    let len = call.elements() * call.width;
    let out = &mut out.ints_mut()[..len];
    let (w, args) = (call.width, call.args);
    if call.prim == Prim::ToInt {
        let a = reals(&args[0], w);
        let bad = Cell::new(false);
        map1(a, out, |x| note(&bad, to_int(x)));
        return report(call, bad.get(), |e, lane| to_int(a.row(e).at(lane)));
    }
    let a = ints(&args[0], w);
    match call.prim {
        Prim::Neg => unary(call, a, out, |x| wrapped(x.overflowing_neg())),
        Prim::Abs => unary(call, a, out, |x| wrapped(x.overflowing_abs())),
        Prim::Add => binary(call, a, ints(&args[1], w), out, |x, y| wrapped(x.overflowing_add(y))),
        Prim::Sub => binary(call, a, ints(&args[1], w), out, |x, y| wrapped(x.overflowing_sub(y))),
        Prim::Mul => binary(call, a, ints(&args[1], w), out, |x, y| wrapped(x.overflowing_mul(y))),
        Prim::IntDiv => binary(call, a, ints(&args[1], w), out, |x, y| divide(x, y, i64::overflowing_div)),
        Prim::IntRem => binary(call, a, ints(&args[1], w), out, |x, y| divide(x, y, i64::overflowing_rem)),
        Prim::IntPow => binary(call, a, ints(&args[1], w), out, power),
        other => unreachable!("{other} is no integer arithmetic"),
    }
}

/// A result and what is wrong with it.
type Checked = (i64, Option<TrapKind>);

#[inline(always)]
fn wrapped((value, overflow): (i64, bool)) -> Checked {
    (value, overflow.then_some(TrapKind::IntegerOverflow))
}

#[inline(always)]
fn divide(x: i64, y: i64, f: fn(i64, i64) -> (i64, bool)) -> Checked {
    if y == 0 { (0, Some(TrapKind::DivisionByZero)) } else { wrapped(f(x, y)) }
}

fn power(x: i64, y: i64) -> Checked {
    if y < 0 {
        return (0, Some(TrapKind::NegativeExponent));
    }
    let (mut base, mut rest, mut result) = (Some(x), y, 1_i64);
    while rest > 0 {
        if rest & 1 == 1 {
            match base.and_then(|b| result.checked_mul(b)) {
                Some(r) => result = r,
                None => return (0, Some(TrapKind::IntegerOverflow)),
            }
        }
        rest >>= 1;
        base = base.and_then(|b| b.checked_mul(b));
    }
    (result, None)
}

fn to_int<R: Real>(x: R) -> Checked {
    let x = x.to_f64().trunc();
    // 2^63 is the first real above the range, -2^63 is in it.
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&x);
    if fits { (x as i64, None) } else { (0, Some(TrapKind::IntegerConversion)) }
}

#[inline(always)]
fn note(bad: &Cell<bool>, (value, trap): Checked) -> i64 {
    bad.set(bad.get() | trap.is_some());
    value
}

#[inline(always)]
fn unary<R: Real>(call: &mut Call<'_, R>, a: Rows<'_, i64>, out: &mut [i64], f: impl Fn(i64) -> Checked) {
    let bad = Cell::new(false);
    map1(a, out, |x| note(&bad, f(x)));
    report(call, bad.get(), |e, lane| f(a.row(e).at(lane)));
}

#[inline(always)]
fn binary<R: Real>(
    call: &mut Call<'_, R>,
    a: Rows<'_, i64>,
    b: Rows<'_, i64>,
    out: &mut [i64],
    f: impl Fn(i64, i64) -> Checked,
) {
    let bad = Cell::new(false);
    map2(a, b, out, |x, y| note(&bad, f(x, y)));
    report(call, bad.get(), |e, lane| f(a.row(e).at(lane), b.row(e).at(lane)));
}

/// Traps the active lanes in which some element went wrong, for the first reason in element order.
#[cold]
#[inline(never)]
fn find<R: Real>(call: &mut Call<'_, R>, f: &dyn Fn(usize, usize) -> Checked) {
    for lane in 0..call.width {
        if call.active.contains(lane)
            && let Some(kind) = (0..call.elements()).find_map(|e| f(e, lane).1)
        {
            call.traps.push((lane as u32, kind));
        }
    }
}

#[inline(always)]
fn report<R: Real>(call: &mut Call<'_, R>, bad: bool, f: impl Fn(usize, usize) -> Checked) {
    if bad {
        find(call, &f);
    }
}
