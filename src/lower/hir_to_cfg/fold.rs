//! The constants that specialisation must know, because types and shared values depend on them: ints, bools, and reals
//! only where the result is exact in every precision. All other constants are folded later, by the interpreter.

use crate::cfg::Operand;
use crate::prim::{Prim, eval};
use crate::types::Scalar;

/// The value of a primitive of constants, if it is one of those and does not trap.
pub(super) fn fold(prim: Prim, args: &[Operand]) -> Option<Scalar> {
    let constant = |a: &Operand| {
        if let Operand::Const(c) = a { Some(*c) } else { None }
    };
    let constants: Vec<Scalar> = args.iter().map(constant).collect::<Option<_>>()?;
    match constants[..] {
        [x] if prim == Prim::Copy => Some(x),
        [Scalar::Int(x)] => unary_int(prim, x),
        [Scalar::Int(x), Scalar::Int(y)] => binary_int(prim, x, y),
        [Scalar::Real(x)] if prim == Prim::Neg => Some(Scalar::Real(-x)),
        [Scalar::Bool(x)] => match prim {
            Prim::Not => Some(Scalar::Bool(!x)),
            Prim::BoolToInt => Some(Scalar::Int(i64::from(x))),
            _ => None,
        },
        [Scalar::Bool(x), Scalar::Bool(y)] => match prim {
            Prim::And => Some(Scalar::Bool(x && y)),
            Prim::Or => Some(Scalar::Bool(x || y)),
            Prim::Eq => Some(Scalar::Bool(x == y)),
            Prim::Ne => Some(Scalar::Bool(x != y)),
            _ => None,
        },
        [Scalar::Bool(c), x, y] if prim == Prim::Select => Some(if c { x } else { y }),
        _ => None,
    }
}

/// Ints up to here are reals exactly; then one rounding takes them to any precision.
const EXACT: u64 = 1 << 53;

fn unary_int(prim: Prim, x: i64) -> Option<Scalar> {
    match prim {
        Prim::Neg => x.checked_neg().map(Scalar::Int),
        Prim::Abs => x.checked_abs().map(Scalar::Int),
        Prim::ToReal if x.unsigned_abs() <= EXACT => Some(Scalar::Real(x as f64)),
        _ => None,
    }
}

fn binary_int(prim: Prim, x: i64, y: i64) -> Option<Scalar> {
    let int = |value: Option<i64>| value.map(Scalar::Int);
    let bool = |value| Some(Scalar::Bool(value));
    match prim {
        Prim::Add => int(x.checked_add(y)),
        Prim::Sub => int(x.checked_sub(y)),
        Prim::Mul => int(x.checked_mul(y)),
        Prim::IntDiv => int(x.checked_div(y)),
        Prim::IntRem => eval::int_rem(x, y).ok().map(Scalar::Int),
        Prim::Min => int(Some(x.min(y))),
        Prim::Max => int(Some(x.max(y))),
        Prim::Eq => bool(x == y),
        Prim::Ne => bool(x != y),
        Prim::Lt => bool(x < y),
        Prim::Le => bool(x <= y),
        Prim::Gt => bool(x > y),
        Prim::Ge => bool(x >= y),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_trap_is_left_to_run_time() {
        let int = |i| Operand::Const(Scalar::Int(i));
        assert_eq!(fold(Prim::Add, &[int(2), int(3)]), Some(Scalar::Int(5)));
        assert_eq!(fold(Prim::Add, &[int(i64::MAX), int(1)]), None);
        assert_eq!(fold(Prim::IntDiv, &[int(1), int(0)]), None);
        assert_eq!(fold(Prim::IntRem, &[int(i64::MIN), int(0)]), None);
        assert_eq!(fold(Prim::IntRem, &[int(i64::MIN), int(-1)]), Some(Scalar::Int(0)));
        assert_eq!(fold(Prim::Neg, &[int(i64::MIN)]), None);
        assert_eq!(fold(Prim::ToReal, &[int((1 << 53) + 1)]), None);
    }

    #[test]
    fn reals_are_not_computed() {
        let real = |r| Operand::Const(Scalar::Real(r));
        assert_eq!(fold(Prim::Neg, &[real(2.0)]), Some(Scalar::Real(-2.0)));
        assert_eq!(fold(Prim::Add, &[real(2.0), real(3.0)]), None);
    }
}
