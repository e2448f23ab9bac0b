//! What primitives of ints and bools give, and when they trap: the one definition that the reference interpreter, constant
//! folding and the kernels share.

use super::Prim;
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

/// An arithmetic primitive of one int: `copy`, `neg`, `abs`. Nothing for others.
#[inline]
pub fn int_unary(prim: Prim, x: i64) -> Option<Result<i64, Fault>> {
    Some(match prim {
        Prim::Copy => Ok(x),
        Prim::Neg => x.checked_neg().ok_or(Fault::IntegerOverflow),
        Prim::Abs => x.checked_abs().ok_or(Fault::IntegerOverflow),
        _ => return None,
    })
}

/// An arithmetic primitive of two ints. Nothing for others.
#[inline]
pub fn int_binary(prim: Prim, x: i64, y: i64) -> Option<Result<i64, Fault>> {
    Some(match prim {
        Prim::Add => x.checked_add(y).ok_or(Fault::IntegerOverflow),
        Prim::Sub => x.checked_sub(y).ok_or(Fault::IntegerOverflow),
        Prim::Mul => x.checked_mul(y).ok_or(Fault::IntegerOverflow),
        Prim::IntDiv => int_div(x, y),
        Prim::IntRem => int_rem(x, y),
        Prim::IntPow => int_pow(x, y),
        Prim::Min => Ok(x.min(y)),
        Prim::Max => Ok(x.max(y)),
        _ => return None,
    })
}

/// A comparison. Nothing for other primitives.
#[inline]
pub fn compare<T: PartialOrd>(prim: Prim, x: T, y: T) -> Option<bool> {
    Some(match prim {
        Prim::Eq => x == y,
        Prim::Ne => x != y,
        Prim::Lt => x < y,
        Prim::Le => x <= y,
        Prim::Gt => x > y,
        Prim::Ge => x >= y,
        _ => return None,
    })
}

/// The value of a primitive of scalar constants, if it has one and is the same at every precision of `real`. So there is
/// none for arithmetic of reals, and none for what traps.
pub fn fold(prim: Prim, args: &[Scalar]) -> Option<Scalar> {
    use Scalar::{Bool, Int, Real};
    match (prim, args) {
        (Prim::Select, [Bool(c), x, y]) => Some(if *c { *x } else { *y }),
        (Prim::Copy, [x]) => Some(*x),
        (Prim::Not, [Bool(x)]) => Some(Bool(!x)),
        (Prim::And, [Bool(x), Bool(y)]) => Some(Bool(*x && *y)),
        (Prim::Or, [Bool(x), Bool(y)]) => Some(Bool(*x || *y)),
        (Prim::Eq, [Bool(x), Bool(y)]) => Some(Bool(x == y)),
        (Prim::Ne, [Bool(x), Bool(y)]) => Some(Bool(x != y)),
        (Prim::BoolToInt, [Bool(x)]) => Some(Int(i64::from(*x))),
        // exact in f32 as well
        (Prim::ToReal, [Int(x)]) if x.unsigned_abs() <= 1 << 24 => Some(Real(*x as f64)),
        // rounding keeps the sign and commutes with these
        (Prim::Neg, [Real(x)]) => Some(Real(-x)),
        (Prim::Abs, [Real(x)]) => Some(Real(x.abs())),
        (prim, [Int(x)]) => int_unary(prim, *x)?.ok().map(Int),
        (prim, [Int(x), Int(y)]) => match compare(prim, x, y) {
            Some(holds) => Some(Bool(holds)),
            None => int_binary(prim, *x, *y)?.ok().map(Int),
        },
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
        assert_eq!(fold(Prim::Add, &[Int(2), Int(3)]), Some(Int(5)));
        assert_eq!(fold(Prim::Add, &[Int(i64::MAX), Int(1)]), None);
        assert_eq!(fold(Prim::Add, &[Real(2.0), Real(3.0)]), None);
        assert_eq!(fold(Prim::ToReal, &[Int((1 << 24) + 1)]), None);
    }
}
