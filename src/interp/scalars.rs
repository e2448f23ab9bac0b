//! Elementwise primitives of scalars.

use super::value::{Elem, FITS};
use crate::prim::Prim;
use crate::prim::eval;
use crate::run::TrapKind;
use crate::vmath::{BinaryFn, Real, UnaryFn, chain_div, chain_mul};

/// The function of reals that a primitive is, where `vmath` has it.
pub(super) fn unary_fn(prim: Prim) -> Option<UnaryFn> {
    Some(match prim {
        Prim::Abs => UnaryFn::Abs,
        Prim::Sqrt => UnaryFn::Sqrt,
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
        Prim::Floor => UnaryFn::Floor,
        Prim::Ceil => UnaryFn::Ceil,
        Prim::Round => UnaryFn::Round,
        Prim::Trunc => UnaryFn::Trunc,
        _ => return None,
    })
}

/// A primitive of one scalar.
#[inline]
pub(super) fn unary<R: Real>(prim: Prim, x: Elem<R>) -> Result<Elem<R>, TrapKind> {
    Ok(match (prim, x) {
        (Prim::Copy | Prim::StopGradient, x) => x,
        (Prim::Not, Elem::Bool(x)) => Elem::Bool(!x),
        (Prim::BoolToInt, Elem::Bool(x)) => Elem::Int(i64::from(x)),
        (Prim::ToReal, Elem::Int(x)) => Elem::Real(R::from_i64(x)),
        (prim, Elem::Int(x)) => Elem::Int(eval::int_unary(prim, x).expect(FITS)?),
        (Prim::ToInt, Elem::Real(x)) => Elem::Int(eval::to_int(x.to_f64())?),
        (Prim::IsNan, Elem::Real(x)) => Elem::Bool(x.is_nan()),
        (Prim::Neg, Elem::Real(x)) => Elem::Real(-x),
        (Prim::Sqrt, Elem::Real(x)) => Elem::Real(x.sqrt()),
        (prim, Elem::Real(x)) => Elem::Real(unary_fn(prim).expect(FITS).apply(x)),
        _ => unreachable!("{FITS}"),
    })
}

/// A primitive of two scalars.
#[inline]
pub(super) fn binary<R: Real>(prim: Prim, x: Elem<R>, y: Elem<R>) -> Result<Elem<R>, TrapKind> {
    Ok(match (x, y) {
        (Elem::Int(x), Elem::Int(y)) => match eval::compare(prim, x, y) {
            Some(holds) => Elem::Bool(holds),
            None => Elem::Int(eval::int_binary(prim, x, y).expect(FITS)?),
        },
        (Elem::Real(x), Elem::Real(y)) => match eval::compare(prim, x, y) {
            Some(holds) => Elem::Bool(holds),
            None => Elem::Real(real_binary(prim, x, y)),
        },
        (Elem::Bool(x), Elem::Bool(y)) => Elem::Bool(match prim {
            Prim::And => x & y,
            Prim::Or => x | y,
            Prim::Eq => x == y,
            Prim::Ne => x != y,
            _ => unreachable!("{FITS}"),
        }),
        _ => unreachable!("{FITS}"),
    })
}

/// A primitive of two reals with a real result.
#[inline]
pub(super) fn real_binary<R: Real>(prim: Prim, x: R, y: R) -> R {
    match prim {
        Prim::Add => x + y,
        Prim::Sub => x - y,
        Prim::Mul => x * y,
        Prim::Div => x / y,
        Prim::ChainMul => chain_mul(x, y),
        Prim::ChainDiv => chain_div(x, y),
        Prim::Min => x.min2(y),
        Prim::Max => x.max2(y),
        Prim::Rem => x.rem(y),
        Prim::Pow => BinaryFn::Pow.apply(x, y),
        Prim::Atan2 => BinaryFn::Atan2.apply(x, y),
        _ => unreachable!("{FITS}"),
    }
}
