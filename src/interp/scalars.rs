//! Elementwise primitives of scalars.

use super::value::{Elem, FITS};
use crate::prim::{Arithmetic, Class, Conversion, Logic, Prim, RealArithmetic, eval};
use crate::run::TrapKind;
use crate::vmath::{Real, UnaryFn, chain_div, chain_mul};

/// The function of reals that a primitive is, where `vmath` has it.
pub(super) fn unary_fn(prim: Prim) -> Option<UnaryFn> {
    match prim.class() {
        Class::Unary(f) => Some(f),
        Class::Arithmetic(Arithmetic::Abs) => Some(UnaryFn::Abs),
        _ => None,
    }
}

/// A primitive of one scalar.
#[inline]
pub(super) fn unary<R: Real>(prim: Prim, x: Elem<R>) -> Result<Elem<R>, TrapKind> {
    Ok(match prim.class() {
        Class::Identity(_) => x,
        Class::Arithmetic(op) => match (x, op) {
            (Elem::Int(x), op) => Elem::Int(eval::int_unary(op, x).expect(FITS)?),
            (Elem::Real(x), Arithmetic::Neg) => Elem::Real(-x),
            (Elem::Real(x), Arithmetic::Abs) => Elem::Real(x.abs()),
            _ => unreachable!("{FITS}"),
        },
        Class::Unary(UnaryFn::Sqrt) => Elem::Real(x.real().sqrt()),
        Class::Unary(f) => Elem::Real(f.apply(x.real())),
        Class::Logic(Logic::Not) => Elem::Bool(!x.bool()),
        Class::Conversion(conversion) => match conversion {
            Conversion::ToReal => Elem::Real(R::from_i64(x.int())),
            Conversion::ToInt => Elem::Int(eval::to_int(x.real().to_f64())?),
            Conversion::BoolToInt => Elem::Int(i64::from(x.bool())),
            Conversion::IsNan => Elem::Bool(x.real().is_nan()),
        },
        Class::Logic(Logic::And | Logic::Or)
        | Class::RealArithmetic(_)
        | Class::IntArithmetic(_)
        | Class::Binary(_)
        | Class::Comparison(_)
        | Class::Selection(_) => unreachable!("{FITS}: {prim} takes more than one"),
        Class::Movement(_) | Class::Contraction(_) | Class::Triangular(_) | Class::Reduction(_) | Class::Draw(_) => {
            unreachable!("{FITS}: {prim} is not elementwise")
        }
    })
}

/// A primitive of two scalars.
#[inline]
pub(super) fn binary<R: Real>(prim: Prim, x: Elem<R>, y: Elem<R>) -> Result<Elem<R>, TrapKind> {
    Ok(match (prim.class(), x, y) {
        (Class::Comparison(op), Elem::Int(x), Elem::Int(y)) => Elem::Bool(eval::compare(op, x, y)),
        (Class::Comparison(op), Elem::Real(x), Elem::Real(y)) => Elem::Bool(eval::compare(op, x, y)),
        (Class::Comparison(op), Elem::Bool(x), Elem::Bool(y)) => Elem::Bool(eval::compare(op, x, y)),
        (Class::Logic(Logic::And), Elem::Bool(x), Elem::Bool(y)) => Elem::Bool(x & y),
        (Class::Logic(Logic::Or), Elem::Bool(x), Elem::Bool(y)) => Elem::Bool(x | y),
        (class, Elem::Int(x), Elem::Int(y)) => Elem::Int(eval::int_binary(class, x, y).expect(FITS)?),
        (_, Elem::Real(x), Elem::Real(y)) => Elem::Real(real_binary(prim, x, y)),
        _ => unreachable!("{FITS}"),
    })
}

/// A primitive of two reals with a real result.
#[inline]
pub(super) fn real_binary<R: Real>(prim: Prim, x: R, y: R) -> R {
    match prim.class() {
        Class::Arithmetic(op) => match op {
            Arithmetic::Add => x + y,
            Arithmetic::Sub => x - y,
            Arithmetic::Mul => x * y,
            Arithmetic::Min => x.min2(y),
            Arithmetic::Max => x.max2(y),
            Arithmetic::Neg | Arithmetic::Abs => unreachable!("{FITS}: {prim} takes one"),
        },
        Class::RealArithmetic(op) => match op {
            RealArithmetic::Div => x / y,
            RealArithmetic::Rem => x.rem(y),
            RealArithmetic::ChainMul => chain_mul(x, y),
            RealArithmetic::ChainDiv => chain_div(x, y),
        },
        Class::Binary(f) => f.apply(x, y),
        Class::Identity(_)
        | Class::Unary(_)
        | Class::IntArithmetic(_)
        | Class::Comparison(_)
        | Class::Logic(_)
        | Class::Selection(_)
        | Class::Conversion(_)
        | Class::Movement(_)
        | Class::Contraction(_)
        | Class::Triangular(_)
        | Class::Reduction(_)
        | Class::Draw(_) => unreachable!("{FITS}: {prim} does not make a real of two"),
    }
}
