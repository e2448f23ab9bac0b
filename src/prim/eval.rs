//! What primitives of ints and bools give, and when they trap: the one definition that the reference interpreter, constant
//! folding and the kernels share.

use super::{Arithmetic, Class, Comparison, Conversion, Identity, IntArithmetic, Logic, Prim, Selection};
use crate::types::Scalar;

/// Why a primitive has no result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// An int went past 64 bits.
    IntegerOverflow,
    /// Integer division by zero, or its remainder.
    DivisionByZero,
    /// An int raised to a negative power.
    NegativeExponent,
    /// A NaN or a real out of range where an int is wanted.
    IntegerConversion,
}

/// x ^ y; x ^ 0 is 1.
#[inline]
pub fn int_pow(x: i64, y: i64) -> Result<i64, Fault> {
    if y < 0 {
        return Err(Fault::NegativeExponent);
    }
    match (x, u32::try_from(y)) {
        (_, Ok(y)) => x.checked_pow(y),
        (0 | 1, _) => Some(x),
        (-1, _) => Some(if y % 2 == 0 { 1 } else { -1 }),
        _ => None,
    }
    .ok_or(Fault::IntegerOverflow)
}

/// x / y, truncated towards zero.
#[inline]
pub fn int_div(x: i64, y: i64) -> Result<i64, Fault> {
    if y == 0 {
        return Err(Fault::DivisionByZero);
    }
    x.checked_div(y).ok_or(Fault::IntegerOverflow)
}

/// Remainder of x / y with the sign of x; that of the least int by -1 is 0, though their quotient overflows.
#[inline]
pub fn int_rem(x: i64, y: i64) -> Result<i64, Fault> {
    if y == 0 {
        return Err(Fault::DivisionByZero);
    }
    Ok(x.wrapping_rem(y))
}

/// A real truncated towards zero. An f32 is widened before, which is exact.
#[inline]
pub fn to_int(x: f64) -> Result<i64, Fault> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    let whole = x.trunc();
    if (-LIMIT..LIMIT).contains(&whole) { Ok(whole as i64) } else { Err(Fault::IntegerConversion) }
}

/// Arithmetic of one int: `neg` and `abs`. Nothing for what takes two.
#[inline]
pub fn int_unary(op: Arithmetic, x: i64) -> Option<Result<i64, Fault>> {
    let value = match op {
        Arithmetic::Neg => x.checked_neg(),
        Arithmetic::Abs => x.checked_abs(),
        Arithmetic::Add | Arithmetic::Sub | Arithmetic::Mul | Arithmetic::Min | Arithmetic::Max => return None,
    };
    Some(value.ok_or(Fault::IntegerOverflow))
}

/// Arithmetic of two ints. Nothing for other primitives.
#[inline]
pub fn int_binary(class: Class, x: i64, y: i64) -> Option<Result<i64, Fault>> {
    let value = match class {
        Class::Arithmetic(op) => match op {
            Arithmetic::Add => x.checked_add(y),
            Arithmetic::Sub => x.checked_sub(y),
            Arithmetic::Mul => x.checked_mul(y),
            Arithmetic::Min => Some(x.min(y)),
            Arithmetic::Max => Some(x.max(y)),
            Arithmetic::Neg | Arithmetic::Abs => return None,
        },
        Class::IntArithmetic(IntArithmetic::IntDiv) => return Some(int_div(x, y)),
        Class::IntArithmetic(IntArithmetic::IntRem) => return Some(int_rem(x, y)),
        Class::IntArithmetic(IntArithmetic::IntPow) => return Some(int_pow(x, y)),
        _ => return None,
    };
    Some(value.ok_or(Fault::IntegerOverflow))
}

/// A comparison.
#[inline]
pub fn compare<T: PartialOrd>(op: Comparison, x: T, y: T) -> bool {
    match op {
        Comparison::Eq => x == y,
        Comparison::Ne => x != y,
        Comparison::Lt => x < y,
        Comparison::Le => x <= y,
        Comparison::Gt => x > y,
        Comparison::Ge => x >= y,
    }
}

/// Ints up to here in magnitude are reals of every precision.
pub const EXACT_IN_F32: u64 = 1 << 24;
/// Ints up to here in magnitude are reals exactly; one rounding then takes them to any precision.
pub const EXACT_IN_F64: u64 = 1 << 53;

/// Whether a real is the same number at every precision.
fn in_f32(x: f64) -> bool {
    f64::from(x as f32) == x
}

/// The value of a primitive of scalar constants, if it has one and is the same at every precision of `real`. So there is
/// none for arithmetic of reals, and none for what traps. An int above `exact` in magnitude is not made a real.
pub fn fold(prim: Prim, args: &[Scalar], exact: u64) -> Option<Scalar> {
    use Scalar::{Bool, Int, Real};
    match (prim.class(), args) {
        (Class::Selection(Selection::Select), [Bool(c), x, y]) => Some(if *c { *x } else { *y }),
        (Class::Identity(Identity::Copy), [x]) => Some(*x),
        (Class::Logic(Logic::Not), [Bool(x)]) => Some(Bool(!x)),
        (Class::Logic(Logic::And), [Bool(x), Bool(y)]) => Some(Bool(*x && *y)),
        (Class::Logic(Logic::Or), [Bool(x), Bool(y)]) => Some(Bool(*x || *y)),
        (Class::Comparison(op), [Bool(x), Bool(y)]) => Some(Bool(compare(op, x, y))),
        (Class::Comparison(op), [Int(x), Int(y)]) => Some(Bool(compare(op, x, y))),
        (Class::Conversion(Conversion::BoolToInt), [Bool(x)]) => Some(Int(i64::from(*x))),
        (Class::Conversion(Conversion::ToReal), [Int(x)]) if x.unsigned_abs() <= exact => Some(Real(*x as f64)),
        // Comparisons by size would do as well; but what they merge where nothing can fail, such as the bounds of a
        // uniform number, costs NUTS a fifth more supersteps on eight schools.
        (Class::Comparison(op @ (Comparison::Eq | Comparison::Ne)), [Real(x), Real(y)]) if in_f32(*x) && in_f32(*y) => {
            Some(Bool(compare(op, x, y)))
        }
        // rounding keeps the sign and commutes with these
        (Class::Arithmetic(Arithmetic::Neg), [Real(x)]) => Some(Real(-x)),
        (Class::Arithmetic(Arithmetic::Abs), [Real(x)]) => Some(Real(x.abs())),
        (Class::Arithmetic(op), [Int(x)]) => int_unary(op, *x)?.ok().map(Int),
        (class, [Int(x), Int(y)]) => int_binary(class, *x, *y)?.ok().map(Int),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_ints() {
        assert_eq!(int_pow(0, 0), Ok(1));
        assert_eq!(int_pow(-1, i64::MAX), Ok(-1));
        assert_eq!(int_pow(-2, 63), Ok(i64::MIN));
        assert_eq!(int_pow(2, 63), Err(Fault::IntegerOverflow));
        assert_eq!(int_pow(2, i64::MAX), Err(Fault::IntegerOverflow));
        assert_eq!(int_pow(1, -1), Err(Fault::NegativeExponent));
    }

    #[test]
    fn conversions_trap_outside_of_64_bits() {
        assert_eq!(to_int(-1.9), Ok(-1));
        assert_eq!(to_int(-9_223_372_036_854_775_808.0), Ok(i64::MIN));
        assert_eq!(to_int(9_223_372_036_854_775_808.0), Err(Fault::IntegerConversion));
        assert_eq!(to_int(f64::NAN), Err(Fault::IntegerConversion));
    }

    #[test]
    fn only_what_no_precision_changes_is_folded() {
        use Scalar::{Int, Real};
        assert_eq!(fold(Prim::Add, &[Int(2), Int(3)], EXACT_IN_F32), Some(Int(5)));
        assert_eq!(fold(Prim::Add, &[Int(i64::MAX), Int(1)], EXACT_IN_F32), None);
        assert_eq!(fold(Prim::Add, &[Real(2.0), Real(3.0)], EXACT_IN_F32), None);
        assert_eq!(fold(Prim::Eq, &[Real(0.0), Real(-0.0)], EXACT_IN_F32), Some(Scalar::Bool(true)));
        assert_eq!(fold(Prim::Ne, &[Real(0.5), Real(f64::NAN)], EXACT_IN_F32), None);
        // In f32 these are one number.
        assert_eq!(fold(Prim::Eq, &[Real(1.0), Real(1.0 + 1e-12)], EXACT_IN_F32), None);
        let real = |x: i64, exact| fold(Prim::ToReal, &[Int(x)], exact);
        assert_eq!((real((1 << 24) + 1, EXACT_IN_F32), real(1 << 24, EXACT_IN_F32)), (None, Some(Real(16_777_216.0))));
        assert_eq!((real((1 << 53) + 1, EXACT_IN_F64), real(3 - (1 << 53), EXACT_IN_F64).is_some()), (None, true));
        assert_eq!(fold(Prim::IntDiv, &[Int(1), Int(0)], EXACT_IN_F32), None);
        assert_eq!(fold(Prim::IntRem, &[Int(i64::MIN), Int(0)], EXACT_IN_F32), None);
        assert_eq!(fold(Prim::IntRem, &[Int(i64::MIN), Int(-1)], EXACT_IN_F32), Some(Int(0)));
        assert_eq!(fold(Prim::Neg, &[Int(i64::MIN)], EXACT_IN_F32), None);
        assert_eq!(fold(Prim::Neg, &[Real(2.0)], EXACT_IN_F32), Some(Real(-2.0)));
    }
}
