//! What `real` is in a run.

use std::fmt::{Debug, Display};
use std::ops::{Add, Div, Mul, Neg, Sub};

use super::blend::Blend;
use super::slices::SliceKernels;
use super::{error_function, exp_log, exp_log_single, gamma, hyperbolic, inverse_trig, philox, power, trig};

/// Declares the methods of the table.
macro_rules! methods {
    (
        {}
        unary { $($v1:ident $unary:ident $c1:tt $n1:literal $d1:ident $cost1:literal $unary_doc:literal)* }
        other_unary { $($o1:ident $other_unary:ident $oc1:tt $other_unary_doc:literal)* }
        binary { $($v2:ident $binary:ident $c2:tt $n2:literal $d2:ident $cost2:literal $binary_doc:literal)* }
        other_binary { $($o2:ident $other_binary:ident $oc2:tt $other_binary_doc:literal)* }
    ) => {
        $(#[doc = concat!("The function `", $n1, "`: ", $unary_doc, ".")] fn $unary(self) -> Self;)*
        $(#[doc = concat!("It gives ", $other_unary_doc, ".")] fn $other_unary(self) -> Self;)*
        $(#[doc = concat!("The function `", $n2, "` of self and the other: ", $binary_doc, ".")]
        fn $binary(self, other: Self) -> Self;)*
        $(#[doc = concat!("It gives ", $other_binary_doc, ".")] fn $other_binary(self, other: Self) -> Self;)*
    };
}

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
    /// The magnitude of self with the sign of `sign`, the sign of a zero included.
    fn copysign(self, sign: Self) -> Self;
    real_functions!(methods! {});

    /// The factor and the addend of self in a sum of logarithms: m and k of self = 2^k m. See [`LogSum`](super::LogSum).
    fn log_parts(self) -> [Self; 2];
    /// The natural logarithm of 2^k self, for a whole k.
    fn log_scaled(self, k: Self) -> Self;
    /// The factor and the addend of self in a sum of log(1 + e^x): exp(−|self|) and max(self, 0).
    fn log1p_exp_parts(self) -> [Self; 2];
    /// [`Real::log1p_exp_parts`] and [`Real::inv_logit`], which have an exponential in common.
    fn log1p_exp_parts_and_inv_logit(self) -> ([Self; 2], Self);

    /// The uniform number that a Philox block stands for; see [`philox::uniform`].
    fn uniform_of(block: [u32; 4]) -> Self;
}

/// Defines those that are not native.
macro_rules! implementations {
    (
        { $real:ident $own:ident }
        unary { $($v1:ident $unary:ident $c1:tt $n1:literal $d1:ident $cost1:literal $unary_doc:literal)* }
        other_unary { $($o1:ident $other_unary:ident $oc1:tt $other_unary_doc:literal)* }
        binary { $($v2:ident $binary:ident $c2:tt $n2:literal $d2:ident $cost2:literal $binary_doc:literal)* }
        other_binary { $($o2:ident $other_binary:ident $oc2:tt $other_binary_doc:literal)* }
    ) => {
        $(implementations!(@unary $real $own $unary $c1);)*
        $(implementations!(@unary $real $own $other_unary $oc1);)*
        $(implementations!(@binary $real $binary $c2);)*
    };
    (@unary $real:ident $own:ident $function:ident [native]) => {};
    (@unary $real:ident $own:ident $function:ident [each precision]) => {
        #[inline(always)]
        fn $function(self) -> Self {
            $own::$function(self)
        }
    };
    (@unary $real:ident $own:ident $function:ident [periodic $module:ident $near:ident]) => {
        implementations!(@unary $real $own $function [f64 $module]);
    };
    (@unary $real:ident $own:ident $function:ident [f64 $module:ident]) => {
        #[inline(always)]
        fn $function(self) -> Self {
            $module::$function(f64::from(self)) as $real
        }
    };
    (@binary $real:ident $function:ident [native]) => {};
    (@binary $real:ident $function:ident [f64 $module:ident]) => {
        #[inline(always)]
        fn $function(self, other: Self) -> Self {
            $module::$function(f64::from(self), f64::from(other)) as $real
        }
    };
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
            fn log_parts(self) -> [Self; 2] {
                $logs::log_parts(self)
            }
            #[inline(always)]
            fn log_scaled(self, k: Self) -> Self {
                $logs::log_scaled(self, k)
            }
            #[inline(always)]
            fn log1p_exp_parts(self) -> [Self; 2] {
                $logs::log1p_exp_parts(self)
            }
            #[inline(always)]
            fn log1p_exp_parts_and_inv_logit(self) -> ([Self; 2], Self) {
                $logs::log1p_exp_parts_and_inv_logit(self)
            }
            #[inline(always)]
            fn uniform_of(block: [u32; 4]) -> Self {
                let uniform: fn([u32; 4]) -> Self = $uniform;
                uniform(block)
            }

            real_functions!(implementations! { $real $logs });
        }
    };
}

implement_real!(f64, exp_log, |[w0, w1, _, _]| philox::uniform_f64(w0, w1));
implement_real!(f32, exp_log_single, |[_, w1, _, _]| philox::uniform_f32(w1));
