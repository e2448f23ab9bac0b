//! Elementwise primitives that are total: real arithmetic and functions, comparisons, logic, selection, conversions.

use super::rows::{Operands, Out, Row, Rows, map1, map2, multiversioned, select};
use super::{Call, is};
use crate::backend::cpu::buffer::Buffer;
use crate::prim::Prim;
use crate::types::DType;
use crate::vmath::{BinaryFn, Real, UnaryFn, binary, chain_div, chain_mul, unary};

pub(super) fn run<R: Real>(call: &Call<'_, R>, out: &mut Buffer<R>) {
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

fn real<R: Real>(call: &Call<'_, R>, out: &mut [R]) {
    let len = call.elements() * call.width;
    if let Some(f) = elementary_function(call.prim) {
        return elementary(f, call, &mut out[..len]);
    }
    let x = Operands::new(call);
    if let Some(f) = by_rows_function(call.prim) {
        return by_rows(f, x.reals(0), x.reals(1), call.width, &mut out[..len]);
    }
    let to = Out::new(call, out, Buffer::reals);
    match (call.prim, call.args.len()) {
        (Prim::Select, _) => select_reals(x.bools(0), x.reals(1), x.reals(2), to),
        (Prim::ToReal, _) => to_real(x.ints(0), to),
        (prim, 1) => unary_real(prim, x.reals(0), to),
        (prim, _) => binary_real(prim, x.reals(0), x.reals(1), to),
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

/// The functions of two reals that have slice kernels of their own.
fn by_rows_function(prim: Prim) -> Option<BinaryFn> {
    Some(match prim {
        Prim::Pow => BinaryFn::Pow,
        Prim::Atan2 => BinaryFn::Atan2,
        Prim::Rem => BinaryFn::Rem,
        _ => return None,
    })
}

/// The elementary functions have slice kernels of their own, which are vectorised for the processor at hand.
fn elementary_function(prim: Prim) -> Option<UnaryFn> {
    Some(match prim {
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
        _ => return None,
    })
}

fn elementary<R: Real>(f: UnaryFn, call: &Call<'_, R>, out: &mut [R]) {
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
    let x = Operands::new(call);
    let to = Out::new(call, out, Buffer::bools);
    match (call.prim, call.args.len()) {
        (Prim::Select, _) => select_bools(x.bools(0), x.bools(1), x.bools(2), to),
        (Prim::IsNan, _) => is_nan(x.reals(0), to),
        (prim, 1) => not(prim, x.bools(0), to),
        (prim, _) if is(call, DType::Bool) => logic(prim, x.bools(0), x.bools(1), to),
        (prim, _) if is(call, DType::Int) => compare_ints(prim, x.ints(0), x.ints(1), to),
        (prim, _) => compare_reals(prim, x.reals(0), x.reals(1), to),
    }
}

fn int<R: Real>(call: &Call<'_, R>, out: &mut [i64]) {
    let x = Operands::new(call);
    let to = Out::new(call, out, Buffer::ints);
    match (call.prim, call.args.len()) {
        (Prim::Select, _) => select_ints(x.bools(0), x.ints(1), x.ints(2), to),
        (Prim::BoolToInt, _) => bool_to_int(x.bools(0), to),
        (prim, 1) => copy_ints(prim, x.ints(0), to),
        (prim, _) => extreme_ints(prim, x.ints(0), x.ints(1), to),
    }
}

multiversioned! {
    fn unary_real<R: Real>(prim: Prim, a: Rows<'_, R>, out: Out<'_, R>) {
        match prim {
            Prim::Copy | Prim::StopGradient => map1(a, out, |x| x),
            Prim::Neg => map1(a, out, |x: R| -x),
            Prim::Abs => map1(a, out, R::abs),
            Prim::Sqrt => map1(a, out, R::sqrt),
            Prim::Floor => map1(a, out, R::floor),
            Prim::Ceil => map1(a, out, R::ceil),
            Prim::Round => map1(a, out, R::round),
            Prim::Trunc => map1(a, out, R::trunc),
            other => unreachable!("{other} is no function of one real"),
        }
    }

    fn binary_real<R: Real>(prim: Prim, a: Rows<'_, R>, b: Rows<'_, R>, out: Out<'_, R>) {
        match prim {
            Prim::Add => map2(a, b, out, |x, y| x + y),
            Prim::Sub => map2(a, b, out, |x, y| x - y),
            Prim::Mul => map2(a, b, out, |x, y| x * y),
            Prim::Div => map2(a, b, out, |x, y| x / y),
            Prim::ChainMul => map2(a, b, out, chain_mul),
            Prim::ChainDiv => map2(a, b, out, chain_div),
            Prim::Min => map2(a, b, out, R::min2),
            Prim::Max => map2(a, b, out, R::max2),
            other => unreachable!("{other} is no function of two reals"),
        }
    }

    fn to_real<R: Real>(a: Rows<'_, i64>, out: Out<'_, R>) {
        map1(a, out, R::from_i64);
    }

    fn is_nan<R: Real>(a: Rows<'_, R>, out: Out<'_, bool>) {
        map1(a, out, R::is_nan);
    }

    fn not(prim: Prim, a: Rows<'_, bool>, out: Out<'_, bool>) {
        match prim {
            Prim::Copy => map1(a, out, |x| x),
            Prim::Not => map1(a, out, |x: bool| !x),
            other => unreachable!("{other} takes no bool"),
        }
    }

    fn logic(prim: Prim, a: Rows<'_, bool>, b: Rows<'_, bool>, out: Out<'_, bool>) {
        match prim {
            Prim::And => map2(a, b, out, |x, y| x & y),
            Prim::Or => map2(a, b, out, |x, y| x | y),
            Prim::Eq => map2(a, b, out, |x, y| x == y),
            Prim::Ne => map2(a, b, out, |x, y| x != y),
            other => unreachable!("{other} takes no bools"),
        }
    }

    fn compare_ints(prim: Prim, a: Rows<'_, i64>, b: Rows<'_, i64>, out: Out<'_, bool>) {
        compare(prim, a, b, out);
    }

    fn compare_reals<R: Real>(prim: Prim, a: Rows<'_, R>, b: Rows<'_, R>, out: Out<'_, bool>) {
        compare(prim, a, b, out);
    }

    fn bool_to_int(a: Rows<'_, bool>, out: Out<'_, i64>) {
        map1(a, out, i64::from);
    }

    fn copy_ints(prim: Prim, a: Rows<'_, i64>, out: Out<'_, i64>) {
        assert_eq!(prim, Prim::Copy, "{prim} can trap and is in `integer`");
        map1(a, out, |x| x);
    }

    fn extreme_ints(prim: Prim, a: Rows<'_, i64>, b: Rows<'_, i64>, out: Out<'_, i64>) {
        match prim {
            Prim::Min => map2(a, b, out, i64::min),
            Prim::Max => map2(a, b, out, i64::max),
            other => unreachable!("{other} can trap and is in `integer`"),
        }
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
fn compare<T: Copy + PartialOrd>(prim: Prim, a: Rows<'_, T>, b: Rows<'_, T>, out: Out<'_, bool>) {
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
