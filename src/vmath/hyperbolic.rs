//! Hyperbolic functions, from e^x − 1 carried in two doubles.

use super::double_double::{divide, power_of_two, two_sum};
use super::exp_log::{exp_double, expm1_reduced};

/// e^x − 1 as a double-double, for 0 ≤ x ≤ 50.
#[inline(always)]
fn expm1_double(x: f64) -> (f64, f64) {
    let (k, high, low) = expm1_reduced(x);
    let s = power_of_two(k);
    (high * s, low * s)
}

/// The hyperbolic tangent.
#[inline(always)]
pub(super) fn tanh(x: f64) -> f64 {
    let ax = x.abs();
    let ax = if ax > 22.0 { 22.0 } else { ax };
    let (t, tl) = expm1_double(2.0 * ax);
    let (d, dl) = two_sum(2.0, t);
    let (q, ql) = divide(t, tl, d, dl + tl);
    let y = (q + ql).copysign(x);
    if (x == 0.0) | x.is_nan() { x } else { y }
}

/// The hyperbolic sine.
#[inline(always)]
pub(super) fn sinh(x: f64) -> f64 {
    let ax = x.abs();
    let near = if ax > 22.0 { 22.0 } else { ax };
    let (t, tl) = expm1_double(near);
    let (d, dl) = two_sum(1.0, t);
    let (q, ql) = divide(t, tl, d, dl + tl);
    let (s, e) = two_sum(t, q);
    let small = 0.5 * (s + (e + (tl + ql)));
    let y = if ax > 22.0 { exp_double(ax, 0.0, -1) } else { small };
    let y = y.copysign(x);
    if (x == 0.0) | x.is_nan() { x } else { y }
}

/// The hyperbolic cosine.
#[inline(always)]
pub(super) fn cosh(x: f64) -> f64 {
    let half = exp_double(x.abs(), 0.0, -1);
    half + 0.25 / half
}
