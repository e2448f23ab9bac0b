//! Integer arithmetic that can trap. A loop that vectorises computes every lane, junk included, and collects a flag: whether
//! some lane may have gone wrong. Only when it is set are the active lanes computed again, one by one and exactly.

use super::call::{KernelCall, is};
use super::rows::{Flag, Operands, Out, Rows, flagged1, flagged2, multiversioned};
use crate::backend::cpu::buffer::Buffer;
use crate::prim::eval::{self, Fault};
use crate::prim::{Arithmetic, Class, Conversion, IntArithmetic, Traps};
use crate::types::DType;
use crate::vmath::Real;

/// Whether this elementwise primitive is integer arithmetic that can trap for these operands.
pub(super) fn handles<R>(call: &KernelCall<'_, R>) -> bool {
    match call.prim.row().traps {
        Traps::Always => true,
        Traps::OnInts => is(call, DType::Int),
        Traps::Never | Traps::OnEmpty => false,
    }
}

pub(super) fn run<R: Real>(call: &mut KernelCall<'_, R>, out: &mut Buffer<R>) {
    let operands = Operands::new(call);
    let to = Out::new(call, out.ints_mut(), Buffer::ints);
    let class = call.prim.class();
    match class {
        Class::Conversion(Conversion::ToInt) => {
            let a = operands.reals(0);
            if convert(a, to) < 0 {
                again(call, out, &|e, lane| eval::to_int(a.row(e).at(lane).to_f64()));
            }
        }
        Class::Arithmetic(op @ (Arithmetic::Neg | Arithmetic::Abs)) => {
            let a = operands.ints(0);
            if unary(op, a, to) < 0 {
                let exact = |x| eval::int_unary(op, x).expect("unary integer arithmetic");
                again(call, out, &|e, lane| exact(a.row(e).at(lane)));
            }
        }
        _ => {
            let (a, b) = (operands.ints(0), operands.ints(1));
            let flag = match class {
                Class::Arithmetic(op) => binary(op, a, b, to),
                Class::IntArithmetic(op) => int_binary(op, a, b, to),
                _ => unreachable!("{} is no integer arithmetic that can trap", call.prim),
            };
            if flag < 0 {
                let exact = |x, y| eval::int_binary(class, x, y).expect("binary integer arithmetic");
                again(call, out, &|e, lane| exact(a.row(e).at(lane), b.row(e).at(lane)));
            }
        }
    }
}

/// Computes the active lanes exactly. Those in which some element goes wrong trap, for the first reason in element order.
#[cold]
#[inline(never)]
fn again<R: Real>(
    call: &mut KernelCall<'_, R>,
    out: &mut Buffer<R>,
    exact: &dyn Fn(usize, usize) -> Result<i64, Fault>,
) {
    let out = out.ints_mut();
    for lane in (0..call.width).filter(|l| call.active.contains(*l)) {
        for e in 0..call.elements() {
            match exact(e, lane) {
                Ok(value) => out[e * call.width + lane] = value,
                Err(fault) => {
                    call.traps.push((lane as u32, fault.into()));
                    break;
                }
            }
        }
    }
}

/// A flag that is set for an int outside an interval; the ends are at most 2^62 in magnitude. Made of differences, which wrap
/// around only where the flag is set by the other one: a comparison would keep the loop from vectorising.
#[inline(always)]
fn outside(x: i64, least: i64, most: i64) -> Flag {
    x.wrapping_sub(least) | most.wrapping_sub(x)
}

multiversioned! {
    fn unary(op: Arithmetic, a: Rows<'_, i64>, out: Out<'_, i64>) -> Flag {
        match op {
            // Only the least int has the sign of its negative.
            Arithmetic::Neg => flagged1(a, out, |x| (x.wrapping_neg(), x & x.wrapping_neg())),
            Arithmetic::Abs => flagged1(a, out, |x| (x.wrapping_abs(), x & x.wrapping_neg())),
            Arithmetic::Add | Arithmetic::Sub | Arithmetic::Mul => unreachable!("of two ints"),
            Arithmetic::Min | Arithmetic::Max => unreachable!("it cannot trap"),
        }
    }

    fn binary(op: Arithmetic, a: Rows<'_, i64>, b: Rows<'_, i64>, out: Out<'_, i64>) -> Flag {
        match op {
            Arithmetic::Add => flagged2(a, b, out, |x, y| {
                let sum = x.wrapping_add(y);
                (sum, (x ^ sum) & (y ^ sum))
            }),
            Arithmetic::Sub => flagged2(a, b, out, |x, y| {
                let difference = x.wrapping_sub(y);
                (difference, (x ^ y) & (x ^ difference))
            }),
            Arithmetic::Mul => multiply(a, b, out),
            Arithmetic::Neg | Arithmetic::Abs => unreachable!("of one int"),
            Arithmetic::Min | Arithmetic::Max => unreachable!("it cannot trap"),
        }
    }

    fn int_binary(op: IntArithmetic, a: Rows<'_, i64>, b: Rows<'_, i64>, out: Out<'_, i64>) -> Flag {
        match op {
            IntArithmetic::IntDiv => match b.value() {
                Some(y) if y > 0 && y.count_ones() == 1 => flagged1(a, out, |x| (shifted_quotient(x, y), 0)),
                _ => flagged2(a, b, out, |x, y| {
                    let (x, y, flag) = small(x, y);
                    (whole((x / y).trunc()), flag)
                }),
            },
            IntArithmetic::IntRem => match b.value() {
                Some(y) if y > 0 && y.count_ones() == 1 => {
                    let shift = y.trailing_zeros();
                    flagged1(a, out, |x| (x.wrapping_sub(shifted_quotient(x, y) << shift), 0))
                }
                _ => flagged2(a, b, out, |x, y| {
                    let (x, y, flag) = small(x, y);
                    // Products of ints up to 2^51 over one of them: exact.
                    (whole(x - (x / y).trunc() * y), flag)
                }),
            },
            IntArithmetic::IntPow => match b.value() {
                // One exponent for all lanes. The magnitude as a real is right to 63 roundings: far from 2^63 where the
                // flag is not set.
                Some(y @ 0..64) => flagged1(a, out, |x| {
                    let (mut power, mut magnitude) = (1_i64, 1.0_f64);
                    for _ in 0..y {
                        power = power.wrapping_mul(x);
                        magnitude *= x as f64;
                    }
                    (power, -i64::from(magnitude.abs() >= (1_u64 << 62) as f64))
                }),
                // Exponents below 0 and above: exactly, one by one.
                _ => flagged2(a, b, out, |_, _| (0, -1)),
            },
        }
    }

    fn convert<R: Real>(a: Rows<'_, R>, out: Out<'_, i64>) -> Flag {
        flagged1(a, out, |x: R| {
            let x = x.to_f64().trunc();
            // Magnitudes are in the order of their bits, and NaNs above all.
            let magnitude = x.abs().to_bits() as i64;
            (whole(x), outside(magnitude, 0, (SMALL as f64).to_bits() as i64 - 1))
        })
    }
}

#[inline(always)]
fn multiply(a: Rows<'_, i64>, b: Rows<'_, i64>, out: Out<'_, i64>) -> Flag {
    match (a.value(), b.value()) {
        (Some(c), None) => scale(b, c, out),
        (_, Some(c)) => scale(a, c, out),
        _ => flagged2(a, b, out, |x, y| {
            let factor = |x| outside(x, i64::from(i32::MIN), i64::from(i32::MAX));
            (x.wrapping_mul(y), factor(x) | factor(y))
        }),
    }
}

/// Multiplies by a constant: the products that fit are those of an interval.
#[inline(always)]
fn scale(a: Rows<'_, i64>, c: i64, out: Out<'_, i64>) -> Flag {
    let (least, most) = match c {
        0 | 1 => return flagged1(a, out, |x| (x.wrapping_mul(c), 0)),
        -1 => return flagged1(a, out, |x| (x.wrapping_neg(), x & x.wrapping_neg())),
        2.. => (i64::MIN / c, i64::MAX / c),
        _ => (i64::MAX / c, i64::MIN / c),
    };
    flagged1(a, out, |x| (x.wrapping_mul(c), outside(x, least, most)))
}

/// x / y truncated towards zero, for y a power of two.
#[inline(always)]
fn shifted_quotient(x: i64, y: i64) -> i64 {
    // A negative x is rounded up by adding y - 1, which cannot overflow.
    x.wrapping_add((x >> 63) & (y - 1)) >> y.trailing_zeros()
}

/// Ints below this in magnitude are divided as f64. Both are exact then, and the quotient of two of them, if it is no int,
/// is farther from the next int than rounding moves it (by 1 / |y|, where half a unit in the last place is below
/// |x| / |y| · 2⁻⁵³), so that truncating it gives the quotient of the ints.
const SMALL: i64 = 1 << 51;

/// The f64 whose bits have the ints from -2^51 to 2^51 as offsets: 1.5 · 2^52.
const MAGIC: f64 = 6_755_399_441_055_744.0;

/// Two ints as f64, and whether they are not small, or the second is zero. Vectorises where the processor has no conversion.
#[inline(always)]
fn small(x: i64, y: i64) -> (f64, f64, Flag) {
    let real = |x: i64| f64::from_bits((x as u64).wrapping_add(MAGIC.to_bits())) - MAGIC;
    let large = |x: i64| outside(x, 1 - SMALL, SMALL - 1);
    // The sign of y or of -y is set unless y is zero.
    (real(x), real(y), large(x) | large(y) | !(y | y.wrapping_neg()))
}

/// A small whole f64 as an int. Others give junk.
#[inline(always)]
fn whole(x: f64) -> i64 {
    (x + MAGIC).to_bits().wrapping_sub(MAGIC.to_bits()) as i64
}
