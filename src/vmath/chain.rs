//! Products and quotients of the chain rule, in which a zero wins over whatever it meets: what does not move, or is not asked
//! for, contributes nothing to a derivative. Where the plain operation gives a number, they give the same one.

use super::Real;

/// `x · y`; +0 where that is no number and one of them is 0.
#[inline(always)]
pub fn chain_mul<R: Real>(x: R, y: R) -> R {
    let product = x * y;
    if product.is_nan() & ((x == R::ZERO) | (y == R::ZERO)) { R::ZERO } else { product }
}

/// `x / y`; +0 where that is no number and x is 0, or y infinite.
#[inline(always)]
pub fn chain_div<R: Real>(x: R, y: R) -> R {
    let quotient = x / y;
    if quotient.is_nan() & ((x == R::ZERO) | (y.abs() == R::INFINITY)) { R::ZERO } else { quotient }
}
