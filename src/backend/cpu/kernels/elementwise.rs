//! Elementwise primitives that are total: real arithmetic and functions, comparisons, logic, selection, conversions.

use super::rows::{Row, Rows, bools, ints, map1, map2, reals, select};
use super::{Call, is};
use crate::backend::cpu::buffer::Buffer;
use crate::prim::Prim;
use crate::types::DType;
use crate::vmath::{BinaryFn, Real, UnaryFn, binary, unary};

pub(super) fn run<R: Real>(call: &Call<'_, R>, out: &mut Buffer<R>) {
    let len = call.elements() * call.width;
    match call.ty.dtype {
        DType::Real => real(call, &mut out.reals_mut()[..len]),
        DType::Bool => boolean(call, &mut out.bools_mut()[..len]),
        DType::Int => int(call, &mut out.ints_mut()[..len]),
    }
}

fn real<R: Real>(call: &Call<'_, R>, out: &mut [R]) {
    let w = call.width;
    let [a, ..] = call.args else { unreachable!("elementwise primitives have operands") };
    let b = || reals(&call.args[1], w);
    match call.prim {
        Prim::Select => return select(bools(a, w), b(), reals(&call.args[2], w), out),
        Prim::ToReal => return map1(ints(a, w), out, R::from_i64),
        _ => {}
    }
    let a = reals(a, w);
    match call.prim {
        Prim::Copy | Prim::StopGradient => map1(a, out, |x| x),
        Prim::Add => map2(a, b(), out, |x, y| x + y),
        Prim::Sub => map2(a, b(), out, |x, y| x - y),
        Prim::Mul => map2(a, b(), out, |x, y| x * y),
        Prim::Div => map2(a, b(), out, |x, y| x / y),
        Prim::Min => map2(a, b(), out, R::min2),
        Prim::Max => map2(a, b(), out, R::max2),
        Prim::Pow => by_rows(BinaryFn::Pow, a, b(), w, out),
        Prim::Atan2 => by_rows(BinaryFn::Atan2, a, b(), w, out),
        Prim::Rem => by_rows(BinaryFn::Rem, a, b(), w, out),
        Prim::Neg => map1(a, out, |x| -x),
        Prim::Abs => map1(a, out, R::abs),
        Prim::Sqrt => map1(a, out, R::sqrt),
        Prim::Floor => map1(a, out, R::floor),
        Prim::Ceil => map1(a, out, R::ceil),
        Prim::Round => map1(a, out, R::round),
        Prim::Trunc => map1(a, out, R::trunc),
        _ => elementary(call, out),
    }
}

/// A function of two reals with a slice kernel: an operand that is the same in all lanes is spread first.
fn by_rows<R: Real>(f: BinaryFn, a: Rows<'_, R>, b: Rows<'_, R>, w: usize, out: &mut [R]) {
    let mut spread = Vec::new();
    for (e, out) in out.chunks_exact_mut(w).enumerate() {
        match (a.row(e), b.row(e)) {
            (Row::Lanes(a), Row::Lanes(b)) => binary(f, a, b, out),
            (Row::Lanes(a), Row::One(b)) => {
                spread.clear();
                spread.resize(w, b);
                binary(f, a, &spread, out);
            }
            (Row::One(a), b) => {
                spread.clear();
                spread.resize(2 * w, a);
                let (a, right) = spread.split_at_mut(w);
                b.copy_to(right);
                binary(f, a, right, out);
            }
        }
    }
}

/// The elementary functions have slice kernels of their own, which are vectorised for the processor at hand.
fn elementary<R: Real>(call: &Call<'_, R>, out: &mut [R]) {
    let f = match call.prim {
        Prim::Exp => UnaryFn::Exp,
        Prim::Expm1 => UnaryFn::Expm1,
        Prim::Log => UnaryFn::Log,
        Prim::Log1p => UnaryFn::Log1p,
        Prim::Sin => UnaryFn::Sin,
        Prim::Cos => UnaryFn::Cos,
        Prim::Tan => UnaryFn::Tan,
        Prim::Asin => UnaryFn::Asin,
        Prim::Acos => UnaryFn::Acos,
        Prim::Atan => UnaryFn::Atan,
        Prim::Sinh => UnaryFn::Sinh,
        Prim::Cosh => UnaryFn::Cosh,
        Prim::Tanh => UnaryFn::Tanh,
        Prim::InvLogit => UnaryFn::InvLogit,
        Prim::Log1pExp => UnaryFn::Log1pExp,
        Prim::Erf => UnaryFn::Erf,
        Prim::Erfc => UnaryFn::Erfc,
        Prim::Lgamma => UnaryFn::Lgamma,
        Prim::Digamma => UnaryFn::Digamma,
        Prim::Trigamma => UnaryFn::Trigamma,
        Prim::InvPhi => UnaryFn::InvPhi,
        Prim::Phi => UnaryFn::Phi,
        other => unreachable!("{other} has a kernel of its own"),
    };
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

fn boolean<R: Real>(call: &Call<'_, R>, out: &mut [bool]) {
    let w = call.width;
    let args = call.args;
    if call.prim == Prim::IsNan {
        return map1(reals(&args[0], w), out, R::is_nan);
    }
    if is(call, DType::Bool) {
        let a = bools(&args[0], w);
        let b = || bools(&args[1], w);
        match call.prim {
            Prim::Copy => map1(a, out, |x| x),
            Prim::Not => map1(a, out, |x| !x),
            Prim::And => map2(a, b(), out, |x, y| x & y),
            Prim::Or => map2(a, b(), out, |x, y| x | y),
            Prim::Eq => map2(a, b(), out, |x, y| x == y),
            Prim::Ne => map2(a, b(), out, |x, y| x != y),
            Prim::Select => select(a, b(), bools(&args[2], w), out),
            other => unreachable!("{other} takes no bools"),
        }
    } else if is(call, DType::Int) {
        compare(call.prim, ints(&args[0], w), ints(&args[1], w), out);
    } else {
        compare(call.prim, reals(&args[0], w), reals(&args[1], w), out);
    }
}

fn compare<T: Copy + PartialOrd>(prim: Prim, a: Rows<'_, T>, b: Rows<'_, T>, out: &mut [bool]) {
    match prim {
        Prim::Eq => map2(a, b, out, |x, y| x == y),
        Prim::Ne => map2(a, b, out, |x, y| x != y),
        Prim::Lt => map2(a, b, out, |x, y| x < y),
        Prim::Le => map2(a, b, out, |x, y| x <= y),
        Prim::Gt => map2(a, b, out, |x, y| x > y),
        Prim::Ge => map2(a, b, out, |x, y| x >= y),
        other => unreachable!("{other} is no comparison"),
    }
}

fn int<R: Real>(call: &Call<'_, R>, out: &mut [i64]) {
    let w = call.width;
    let args = call.args;
    match call.prim {
        Prim::Copy => map1(ints(&args[0], w), out, |x| x),
        Prim::BoolToInt => map1(bools(&args[0], w), out, i64::from),
        Prim::Min => map2(ints(&args[0], w), ints(&args[1], w), out, i64::min),
        Prim::Max => map2(ints(&args[0], w), ints(&args[1], w), out, i64::max),
        Prim::Select => select(bools(&args[0], w), ints(&args[1], w), ints(&args[2], w), out),
        other => unreachable!("{other} can trap and is in `integer`"),
    }
}
