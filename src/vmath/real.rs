//! What `real` is in a run.

use std::fmt::{Debug, Display};
use std::ops::{Add, Div, Mul, Neg, Sub};

use super::blend::Blend;
use super::slices::SliceKernels;
use super::{error_function, exp_log, exp_log_single, gamma, hyperbolic, inverse_trig, philox, power, trig};

/// `f64` or `f32`, with the elementary functions; the same bits on every processor and in every engine.
///
/// All functions take NaN to NaN (except `pow`, as C says) and never panic. In `f32`, `exp`, `log`, `log1p`, `inv_logit`,
/// `log1p_exp` and `log_inv_logit` are computed in `f32`, and the others are the `f64` functions, rounded. The methods are inlined; without the FMA instruction at compile time they are slow, so call them
/// one by one through [`UnaryFn::apply`](super::UnaryFn::apply) and over slices through [`unary`](super::unary).
pub trait Real:
    Copy
    + PartialOrd
    + Default
    + Send
    + Sync
    + Debug
    + Display
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + SliceKernels
    + Blend
    + ndarray::LinalgScalar
    + 'static
{
    /// +0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Not a number.
    const NAN: Self;
    /// +∞.
    const INFINITY: Self;
    /// −∞.
    const NEG_INFINITY: Self;
    /// The largest finite number.
    const MAX: Self;
    /// The distance from 1 to the next larger number.
    const EPSILON: Self;

    /// The nearest number of this type, ties to even.
    fn from_f64(x: f64) -> Self;
    /// The same number in `f64`, exactly.
    fn to_f64(self) -> f64;
    /// The nearest number of this type, ties to even, with a single rounding.
    fn from_i64(x: i64) -> Self;
    /// The bits (zero-extended in `f32`) with one NaN for all NaNs: equal exactly when engines agree.
    fn to_bits64(self) -> u64;
    /// Whether this is a NaN.
    fn is_nan(self) -> bool;
    /// Whether this is neither infinite nor NaN.
    fn is_finite(self) -> bool;
    /// `self · a + b` with a single rounding.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// The absolute value.
    fn abs(self) -> Self;
    /// The magnitude of self with the sign of `sign`, the sign of a zero included.
    fn copysign(self, sign: Self) -> Self;
    /// The correctly rounded square root; NaN below 0, −0 at −0.
    fn sqrt(self) -> Self;
    /// The largest integer not above.
    fn floor(self) -> Self;
    /// The smallest integer not below.
    fn ceil(self) -> Self;
    /// The nearest integer, halves away from zero.
    fn round(self) -> Self;
    /// The integer part.
    fn trunc(self) -> Self;
    /// The smaller one: NaN if either is NaN, and −0 is smaller than +0 (IEEE 754-2019 `minimum`).
    fn min2(self, other: Self) -> Self;
    /// The larger one: NaN if either is NaN, and +0 is larger than −0 (IEEE 754-2019 `maximum`).
    fn max2(self, other: Self) -> Self;
    /// The exact remainder of the truncated quotient, with the sign of self (C's `fmod`).
    fn rem(self, divisor: Self) -> Self;

    /// e^x.
    fn exp(self) -> Self;
    /// e^x − 1 without cancellation.
    fn expm1(self) -> Self;
    /// The natural logarithm; −∞ at 0, NaN below.
    fn log(self) -> Self;
    /// ln(1 + x) without cancellation; −∞ at −1, NaN below.
    fn log1p(self) -> Self;
    /// The logarithm to base 2, exact at powers of two.
    fn log2(self) -> Self;
    /// The logarithm to base 10.
    fn log10(self) -> Self;
    /// The sine of an angle in radians, however large; NaN at ±∞.
    fn sin(self) -> Self;
    /// The cosine of an angle in radians, however large; NaN at ±∞.
    fn cos(self) -> Self;
    /// The tangent of an angle in radians, however large; NaN at ±∞.
    fn tan(self) -> Self;
    /// The arc sine, in [−π/2, π/2]; NaN outside [−1, 1].
    fn asin(self) -> Self;
    /// The arc cosine, in [0, π]; NaN outside [−1, 1].
    fn acos(self) -> Self;
    /// The arc tangent, in [−π/2, π/2].
    fn atan(self) -> Self;
    /// The angle of the point (x, self), in [−π, π], with C's special cases.
    fn atan2(self, x: Self) -> Self;
    /// The hyperbolic sine.
    fn sinh(self) -> Self;
    /// The hyperbolic cosine.
    fn cosh(self) -> Self;
    /// The hyperbolic tangent.
    fn tanh(self) -> Self;
    /// 1 / (1 + e^−x).
    fn inv_logit(self) -> Self;
    /// ln(1 + e^x).
    fn log1p_exp(self) -> Self;
    /// ln(inv_logit(x)).
    fn log_inv_logit(self) -> Self;
    /// self^y with C's special cases: x^0 = 1^y = 1 even for NaN; NaN for a negative x and a non-integer y.
    fn pow(self, y: Self) -> Self;
    /// The error function.
    fn erf(self) -> Self;
    /// 1 − erf x without cancellation.
    fn erfc(self) -> Self;
    /// ln |Γ(x)|; ∞ at 0, the negative integers and ±∞.
    fn lgamma(self) -> Self;
    /// The logarithmic derivative of Γ; ∓∞ at ±0, NaN at the negative integers and −∞.
    fn digamma(self) -> Self;
    /// The second derivative of ln Γ; ∞ at 0 and the negative integers, 0 at ∞, NaN at −∞.
    fn trigamma(self) -> Self;
    /// The standard normal distribution function, accurate in both tails.
    fn phi(self) -> Self;
    /// The standard normal quantile; −∞ at 0, ∞ at 1, NaN outside [0, 1].
    fn inv_phi(self) -> Self;

    /// The uniform number that a Philox block stands for; see [`philox::uniform`].
    fn uniform_of(block: [u32; 4]) -> Self;
}

macro_rules! implement_real {
    ($real:ident, $logs:ident, $uniform:expr) => {
        impl Real for $real {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const NAN: Self = $real::NAN;
            const INFINITY: Self = $real::INFINITY;
            const NEG_INFINITY: Self = $real::NEG_INFINITY;
            const MAX: Self = $real::MAX;
            const EPSILON: Self = $real::EPSILON;

            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $real
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn from_i64(x: i64) -> Self {
                x as $real
            }
            #[inline(always)]
            fn to_bits64(self) -> u64 {
                let x = if self.is_nan() { $real::NAN } else { self };
                u64::from(x.to_bits())
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                self != self
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                $real::is_finite(self)
            }
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                $real::mul_add(self, a, b)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $real::abs(self)
            }
            #[inline(always)]
            fn copysign(self, sign: Self) -> Self {
                $real::copysign(self, sign)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $real::sqrt(self)
            }
            #[inline(always)]
            fn floor(self) -> Self {
                $real::floor(self)
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                $real::ceil(self)
            }
            #[inline(always)]
            fn round(self) -> Self {
                $real::round(self)
            }
            #[inline(always)]
            fn trunc(self) -> Self {
                $real::trunc(self)
            }
            #[inline(always)]
            fn min2(self, other: Self) -> Self {
                // equal numbers differ at most in the sign of a zero: keep a minus; a sum of NaN is NaN
                let equal = $real::from_bits(self.to_bits() | other.to_bits());
                let rest = if self == other { equal } else { self + other };
                let rest = if other < self { other } else { rest };
                if self < other { self } else { rest }
            }
            #[inline(always)]
            fn max2(self, other: Self) -> Self {
                let equal = $real::from_bits(self.to_bits() & other.to_bits());
                let rest = if self == other { equal } else { self + other };
                let rest = if other > self { other } else { rest };
                if self > other { self } else { rest }
            }
            #[inline(always)]
            fn rem(self, divisor: Self) -> Self {
                self % divisor
            }
            #[inline(always)]
            fn atan2(self, x: Self) -> Self {
                inverse_trig::atan2(f64::from(self), f64::from(x)) as $real
            }
            #[inline(always)]
            fn pow(self, y: Self) -> Self {
                power::pow(f64::from(self), f64::from(y)) as $real
            }
            #[inline(always)]
            fn uniform_of(block: [u32; 4]) -> Self {
                let uniform: fn([u32; 4]) -> Self = $uniform;
                uniform(block)
            }

            implement_real!(@direct $logs: exp log log1p inv_logit log1p_exp log_inv_logit);
            implement_real!(@through_f64 $real,
                exp_log: expm1 log2 log10;
                trig: sin cos tan;
                inverse_trig: asin acos atan;
                hyperbolic: sinh cosh tanh;
                error_function: erf erfc phi inv_phi;
                gamma: lgamma digamma trigamma;
            );
        }
    };
    (@direct $module:ident: $($function:ident)+) => {
        $(
            #[inline(always)]
            fn $function(self) -> Self {
                $module::$function(self)
            }
        )+
    };
    (@through_f64 $real:ident, $($module:ident: $($function:ident)+;)+) => {
        $($(
            #[inline(always)]
            fn $function(self) -> Self {
                $module::$function(f64::from(self)) as $real
            }
        )+)+
    };
}

implement_real!(f64, exp_log, |[w0, w1, _, _]| philox::uniform_f64(w0, w1));
implement_real!(f32, exp_log_single, |[_, w1, _, _]| philox::uniform_f32(w1));
