//! Elementwise primitives that are total: real arithmetic and functions, comparisons, logic, selection, conversions.

use super::call::{KernelCall, is};
use super::rows::{Operands, Out, Rows, TILE, Tile, map1, map2, multiversioned, select};
use super::slices::unary;
use crate::backend::cpu::buffer::Buffer;
use crate::prim::{Arithmetic, Class, Comparison, Conversion, Logic, Prim, RealArithmetic, Selection};
use crate::types::DType;
use crate::vmath::{BinaryFn, Computed, Real, UnaryFn, binary, chain_div, chain_mul};

pub(super) fn run<R: Real>(call: &KernelCall<'_, R>, out: &mut Buffer<R>) {
    match call.ty.dtype {
        DType::Real => real(call, out.reals_mut()),
        DType::Bool => boolean(call, out.bools_mut()),
        DType::Int => int(call, out.ints_mut()),
    }
}

/// Whether lanes outside the mask can keep values: the loops of this file do that; the slice kernels of `vmath` do not.
pub(super) fn can_keep(prim: Prim) -> bool {
    by_rows_function(prim).is_none() && elementary_function(prim).is_none()
}

fn real<R: Real>(call: &KernelCall<'_, R>, out: &mut [R]) {
    let len = call.elements() * call.width;
    if let Some(f) = elementary_function(call.prim) {
        return elementary(f, call, &mut out[..len]);
    }
    let x = Operands::new(call);
    if let Some(f) = by_rows_function(call.prim) {
        return by_rows(f, x.reals(0), x.reals(1), call.width, &mut out[..len]);
    }
    let to = Out::new(call, out, Buffer::reals);
    match call.prim.class() {
        Class::Selection(Selection::Select) => select_reals(x.bools(0), x.reals(1), x.reals(2), to),
        Class::Conversion(Conversion::ToReal) => to_real(x.ints(0), to),
        Class::Identity(_) => copy_reals(x.reals(0), to),
        Class::Arithmetic(Arithmetic::Neg) => negated(x.reals(0), to),
        Class::Arithmetic(Arithmetic::Abs) => native_unary(UnaryFn::Abs, x.reals(0), to),
        Class::Arithmetic(op) => arithmetic(op, x.reals(0), x.reals(1), to),
        Class::RealArithmetic(op) => real_arithmetic(op, x.reals(0), x.reals(1), to),
        Class::Unary(f) => native_unary(f, x.reals(0), to),
        _ => unreachable!("{} gives no real", call.prim),
    }
}

/// A function of two reals with a slice kernel, for as many elements at once as make a tile: with few lanes the values of
/// one element would not fill a vector. Operands that are the same in all lanes are spread first.
fn by_rows<R: Real>(f: BinaryFn, a: Rows<'_, R>, b: Rows<'_, R>, w: usize, out: &mut [R]) {
    let rows = (TILE / w).max(1);
    let (mut left, mut right) = (Tile::new(), Tile::new());
    for (tile, out) in out.chunks_mut(rows * w).enumerate() {
        let (from, len) = (tile * rows, out.len());
        binary(f, a.tile(from, len, &mut left), b.tile(from, len, &mut right), out);
    }
}

/// The function of two reals whose slice kernel a primitive takes.
fn by_rows_function(prim: Prim) -> Option<BinaryFn> {
    match prim.class() {
        Class::Binary(f) => Some(f),
        Class::RealArithmetic(RealArithmetic::Rem) => Some(BinaryFn::Rem),
        _ => None,
    }
}

/// The elementary functions have slice kernels of their own, which are vectorised for the processor at hand. Those that
/// are one instruction go through the loops of this file, which can leave lanes out.
fn elementary_function(prim: Prim) -> Option<UnaryFn> {
    match prim.class() {
        Class::Unary(f) => (f.computed() != Computed::Native).then_some(f),
        _ => None,
    }
}

fn elementary<R: Real>(f: UnaryFn, call: &KernelCall<'_, R>, out: &mut [R]) {
    let arg = &call.args[0];
    let elements = call.elements();
    if !arg.broadcast {
        unary(f, &arg.buffer.reals()[..out.len()], out);
    } else {
        // Computed once for all lanes, then spread from the last element down, so that nothing is overwritten early.
        unary(f, &arg.buffer.reals()[..elements], &mut out[..elements]);
        for e in (0..elements).rev() {
            let value = out[e];
            out[e * call.width..(e + 1) * call.width].fill(value);
        }
    }
}

fn boolean<R: Real>(call: &KernelCall<'_, R>, out: &mut [bool]) {
    let x = Operands::new(call);
    let to = Out::new(call, out, Buffer::bools);
    match call.prim.class() {
        Class::Selection(Selection::Select) => select_bools(x.bools(0), x.bools(1), x.bools(2), to),
        Class::Conversion(Conversion::IsNan) => is_nan(x.reals(0), to),
        Class::Identity(_) => copy_bools(x.bools(0), to),
        Class::Logic(op) => match op {
            Logic::Not => not(x.bools(0), to),
            Logic::And => and(x.bools(0), x.bools(1), to),
            Logic::Or => or(x.bools(0), x.bools(1), to),
        },
        Class::Comparison(op) if is(call, DType::Bool) => compare_bools(op, x.bools(0), x.bools(1), to),
        Class::Comparison(op) if is(call, DType::Int) => compare_ints(op, x.ints(0), x.ints(1), to),
        Class::Comparison(op) => compare_reals(op, x.reals(0), x.reals(1), to),
        _ => unreachable!("{} gives no bool", call.prim),
    }
}

fn int<R: Real>(call: &KernelCall<'_, R>, out: &mut [i64]) {
    let x = Operands::new(call);
    let to = Out::new(call, out, Buffer::ints);
    match call.prim.class() {
        Class::Selection(Selection::Select) => select_ints(x.bools(0), x.ints(1), x.ints(2), to),
        Class::Conversion(Conversion::BoolToInt) => bool_to_int(x.bools(0), to),
        Class::Identity(_) => copy_ints(x.ints(0), to),
        Class::Arithmetic(Arithmetic::Min) => min_ints(x.ints(0), x.ints(1), to),
        Class::Arithmetic(Arithmetic::Max) => max_ints(x.ints(0), x.ints(1), to),
        _ => unreachable!("{} gives no int, or can trap and is in `integer`", call.prim),
    }
}

multiversioned! {
    fn native_unary<R: Real>(f: UnaryFn, a: Rows<'_, R>, out: Out<'_, R>) {
        match f {
            UnaryFn::Abs => map1(a, out, R::abs),
            UnaryFn::Sqrt => map1(a, out, R::sqrt),
            UnaryFn::Floor => map1(a, out, R::floor),
            UnaryFn::Ceil => map1(a, out, R::ceil),
            UnaryFn::Round => map1(a, out, R::round),
            UnaryFn::Trunc => map1(a, out, R::trunc),
            other => unreachable!("{} is no native function", other.name()),
        }
    }

    fn copy_reals<R: Real>(a: Rows<'_, R>, out: Out<'_, R>) {
        map1(a, out, |x| x);
    }

    fn negated<R: Real>(a: Rows<'_, R>, out: Out<'_, R>) {
        map1(a, out, |x: R| -x);
    }

    fn arithmetic<R: Real>(op: Arithmetic, a: Rows<'_, R>, b: Rows<'_, R>, out: Out<'_, R>) {
        match op {
            Arithmetic::Add => map2(a, b, out, |x, y| x + y),
            Arithmetic::Sub => map2(a, b, out, |x, y| x - y),
            Arithmetic::Mul => map2(a, b, out, |x, y| x * y),
            Arithmetic::Min => map2(a, b, out, R::min2),
            Arithmetic::Max => map2(a, b, out, R::max2),
            Arithmetic::Neg | Arithmetic::Abs => unreachable!("of one real"),
        }
    }

    fn real_arithmetic<R: Real>(op: RealArithmetic, a: Rows<'_, R>, b: Rows<'_, R>, out: Out<'_, R>) {
        match op {
            RealArithmetic::Div => map2(a, b, out, |x, y| x / y),
            RealArithmetic::ChainMul => map2(a, b, out, chain_mul),
            RealArithmetic::ChainDiv => map2(a, b, out, chain_div),
            RealArithmetic::Rem => unreachable!("it has a slice kernel"),
        }
    }

    fn to_real<R: Real>(a: Rows<'_, i64>, out: Out<'_, R>) {
        map1(a, out, R::from_i64);
    }

    fn is_nan<R: Real>(a: Rows<'_, R>, out: Out<'_, bool>) {
        map1(a, out, R::is_nan);
    }

    fn copy_bools(a: Rows<'_, bool>, out: Out<'_, bool>) {
        map1(a, out, |x| x);
    }

    fn not(a: Rows<'_, bool>, out: Out<'_, bool>) {
        map1(a, out, |x: bool| !x);
    }

    fn and(a: Rows<'_, bool>, b: Rows<'_, bool>, out: Out<'_, bool>) {
        map2(a, b, out, |x, y| x & y);
    }

    fn or(a: Rows<'_, bool>, b: Rows<'_, bool>, out: Out<'_, bool>) {
        map2(a, b, out, |x, y| x | y);
    }

    fn compare_bools(op: Comparison, a: Rows<'_, bool>, b: Rows<'_, bool>, out: Out<'_, bool>) {
        compare(op, a, b, out);
    }

    fn compare_ints(op: Comparison, a: Rows<'_, i64>, b: Rows<'_, i64>, out: Out<'_, bool>) {
        compare(op, a, b, out);
    }

    fn compare_reals<R: Real>(op: Comparison, a: Rows<'_, R>, b: Rows<'_, R>, out: Out<'_, bool>) {
        compare(op, a, b, out);
    }

    fn bool_to_int(a: Rows<'_, bool>, out: Out<'_, i64>) {
        map1(a, out, i64::from);
    }

    fn copy_ints(a: Rows<'_, i64>, out: Out<'_, i64>) {
        map1(a, out, |x| x);
    }

    fn min_ints(a: Rows<'_, i64>, b: Rows<'_, i64>, out: Out<'_, i64>) {
        map2(a, b, out, i64::min);
    }

    fn max_ints(a: Rows<'_, i64>, b: Rows<'_, i64>, out: Out<'_, i64>) {
        map2(a, b, out, i64::max);
    }

    fn select_reals<R: Real>(c: Rows<'_, bool>, a: Rows<'_, R>, b: Rows<'_, R>, out: Out<'_, R>) {
        select(c, a, b, out);
    }

    fn select_ints(c: Rows<'_, bool>, a: Rows<'_, i64>, b: Rows<'_, i64>, out: Out<'_, i64>) {
        select(c, a, b, out);
    }

    fn select_bools(c: Rows<'_, bool>, a: Rows<'_, bool>, b: Rows<'_, bool>, out: Out<'_, bool>) {
        select(c, a, b, out);
    }
}

#[inline(always)]
fn compare<T: Copy + PartialOrd>(op: Comparison, a: Rows<'_, T>, b: Rows<'_, T>, out: Out<'_, bool>) {
    match op {
        Comparison::Eq => map2(a, b, out, |x, y| x == y),
        Comparison::Ne => map2(a, b, out, |x, y| x != y),
        Comparison::Lt => map2(a, b, out, |x, y| x < y),
        Comparison::Le => map2(a, b, out, |x, y| x <= y),
        Comparison::Gt => map2(a, b, out, |x, y| x > y),
        Comparison::Ge => map2(a, b, out, |x, y| x >= y),
    }
}
