//! The logarithms of the gamma and beta functions; the first two derivatives of the former.
//!
//! Around 2, `lgamma(2 + e) / e`, and on [1, 2], `digamma(x) / (x − x0)` with x0 its positive zero, are our own
//! Chebyshev fits, made with mpmath at 60 digits; recurrences lead there from below 8, Stirling's series serves
//! above, reflection below −1/2. `trigamma` is the asymptotic series from 8 on; below, eight terms of the sum
//! Σ 1/(x + k)² lead there, all of one sign.

use std::f64::consts::PI;

use super::exp_log::{log, log1p};
use super::trig::sincospi;

/// From here Stirling's series is used.
const LARGE: f64 = 8.0;

/// sin(π a) and cos(π a) for any a ≥ 0; NaN at ∞.
#[inline(always)]
fn sincospi_any(a: f64) -> (f64, f64) {
    sincospi(f64::mul_add(-2.0, (0.5 * a).floor(), a))
}

/// What Stirling's formula for ln Γ(x) lacks, for x ≥ [`LARGE`].
#[inline(always)]
fn stirling_series(x: f64) -> f64 {
    let w = 1.0 / x;
    w * horner!(w * w;
        1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360360.0,
        1.0 / 156.0, -3617.0 / 122400.0, 43867.0 / 244188.0)
}

/// ln |Γ(x)| for x > −1/2 (and for −0).
#[inline(always)]
fn lgamma_positive(x: f64) -> f64 {
    let large = x >= LARGE;
    // x − n in [3/2, 5/2), and the product of the factors in between
    let mut t = x;
    let mut product = 1.0;
    for _ in 0..6 {
        let below = t - 1.0;
        let step = below >= 1.5;
        t = if step { below } else { t };
        product = if step { product * below } else { product };
    }
    let near_zero = x < 0.5;
    let near_one = x < 1.5;
    let e = if near_one { x - 1.0 } else { t - 2.0 };
    let e = if near_zero { x } else { e };
    let argument = if near_one { x } else { product };
    let argument = if near_zero { x.abs() * (1.0 + x) } else { argument };
    let argument = if large { x } else { argument };
    let l = log(argument);
    let at_two = horner!(e;
        0.42278433509846713, 0.3224670334241132, -0.06735230105319814, 0.02058080842778457,
        -0.0073855510286681535, 0.002890510330738737, -0.0011927539120010226, 0.0005096695248853096,
        -0.00022315475074520367, 9.945750909889392e-05, -4.4926351103833334e-05, 2.050726741605779e-05,
        -9.438458716242811e-06, 4.374374916915131e-06, -2.0449201467015115e-06, 9.578663334114758e-07,
        -4.303558760359961e-07, 2.0304806751615227e-07, -1.3412819758517287e-07, 6.379047507619774e-08);
    let small = f64::mul_add(e, at_two, if near_one { -l } else { l });
    // (ln 2π − 1) / 2
    let stirling = f64::mul_add(x - 0.5, l - 1.0, 0.4189385332046727 + stirling_series(x));
    if large { stirling } else { small }
}

/// ln |Γ(x)|; ∞ at 0, at the negative integers and at ±∞.
#[inline(always)]
pub(super) fn lgamma(x: f64) -> f64 {
    let reflect = x <= -0.5;
    let a = x.abs();
    let y = lgamma_positive(if reflect { a } else { x });
    let (s, _) = sincospi_any(a);
    let reflected = log(PI / (a * s.abs())) - y;
    let y = if reflect { reflected } else { y };
    let y = if x < -f64::MAX { f64::INFINITY } else { y };
    if x.is_nan() { x } else { y }
}

/// ln B(x, y) = ln Γ(x) + ln Γ(y) − ln Γ(x + y); ∞ where one is 0, −∞ at ∞, NaN for negative numbers. Where an argument
/// is large, what the logarithms of gamma functions have in common is left out (Stan's `lbeta`): Stirling's formula for
/// both of them and the sum, or for the larger one and the sum.
#[inline(always)]
pub(super) fn lbeta(x: f64, y: f64) -> f64 {
    let (a, b) = if x < y { (x, y) } else { (y, x) };
    let sum = a + b;
    let both_large = a >= LARGE;
    // halves, so that their sum does not overflow
    let share = (0.5 * a) / (0.5 * a + 0.5 * b);
    let (log_gamma_a, log_gamma_b) = (lgamma_positive(a), lgamma_positive(b));
    let direct = log_gamma_a + log_gamma_b - lgamma_positive(sum);
    let series = stirling_series(b) - stirling_series(sum);
    let rest = log1p(-share);
    let one_large = f64::mul_add(b - 0.5, rest, f64::mul_add(a, 1.0 - log(sum), log_gamma_a + series));
    // ln √(2π)
    let constant = 0.9189385332046727 - 0.5 * log(b) + (stirling_series(a) + series);
    let large = f64::mul_add(a - 0.5, log(share), f64::mul_add(b, rest, constant));
    let y = if b >= LARGE { one_large } else { direct };
    let y = if both_large { large } else { y };
    let y = if b > f64::MAX { f64::NEG_INFINITY } else { y };
    let y = if a == 0.0 { f64::INFINITY } else { y };
    if (a < 0.0) | a.is_nan() | b.is_nan() { f64::NAN } else { y }
}

/// ψ(a) for a > 0.
#[inline(always)]
fn digamma_positive(a: f64) -> f64 {
    // u in [1, 2), and the sum of the reciprocals passed as one fraction
    let below_one = a < 1.0;
    let mut u = if below_one { a + 1.0 } else { a };
    let mut numerator = if below_one { -1.0 } else { 0.0 };
    let mut denominator = if below_one { a } else { 1.0 };
    for _ in 0..6 {
        let step = u >= 2.0;
        let below = u - 1.0;
        u = if step { below } else { u };
        let sum = f64::mul_add(numerator, below, denominator);
        numerator = if step { sum } else { numerator };
        denominator = if step { denominator * below } else { denominator };
    }
    let v = u - 1.5;
    let p = horner!(v;
        0.9510558760318328, -0.4236274212814606, 0.24054248424078697, -0.14840492305388092,
        0.09498872445289039, -0.06192213327548831, 0.040760833940846085, -0.026975796659787055,
        0.017907248317313294, -0.011908220105959716, 0.007927021796868154, -0.005279937255532708,
        0.003518106563802472, -0.0023454947397380833, 0.0015633696313653504, -0.0010364584817312839,
        0.0006909255761282986, -0.00048595039220036254, 0.00032395945401345196, -0.00014480643368061614,
        9.653646261410062e-05, -0.0001782188548855923, 0.00011881232908510335);
    let from_zero = (u - 1.4616321449683622) - 9.549995429965697e-17;
    let small = f64::mul_add(from_zero, p, numerator / denominator);
    let w = 1.0 / a;
    let z = w * w;
    let series = z * horner!(z;
        1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32760.0,
        1.0 / 12.0, -3617.0 / 8160.0, 43867.0 / 14364.0, -174611.0 / 6600.0);
    let large = log(a) - f64::mul_add(0.5, w, series);
    if a >= LARGE { large } else { small }
}

/// The logarithmic derivative of Γ; ∓∞ at ±0, NaN at the negative integers and at −∞.
#[inline(always)]
pub(super) fn digamma(x: f64) -> f64 {
    let a = x.abs();
    let y = digamma_positive(a);
    let (s, c) = sincospi_any(a);
    let reflected = y + 1.0 / a + PI * c / s;
    let y = if x < 0.0 { reflected } else { y };
    let y = if (x < 0.0) & ((s == 0.0) | (a > f64::MAX)) { f64::NAN } else { y };
    let y = if x == 0.0 { -1.0 / x } else { y };
    if x.is_nan() { x } else { y }
}

/// ψ′(a + 1) for a ≥ 0.
#[inline(always)]
fn trigamma_after(a: f64) -> f64 {
    let large = a >= LARGE;
    // Σ 1/(a + k)² for k from 1 to 7, two terms a division
    let square = |k: f64| (a + k) * (a + k);
    let pair = |k: f64| {
        let (p, q) = (square(k), square(k + 1.0));
        (p + q) / (p * q)
    };
    let terms = ((1.0 / square(7.0) + pair(5.0)) + pair(3.0)) + pair(1.0);
    let w = 1.0 / if large { a } else { a + LARGE };
    let w2 = w * w;
    // ψ′(1/w) = w + w²/2 + w³/6 − …
    let series = horner!(w2;
        1.0 / 6.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 5.0 / 66.0, -691.0 / 2730.0, 7.0 / 6.0,
        -3617.0 / 510.0, 43867.0 / 798.0, -174611.0 / 330.0, 854513.0 / 138.0);
    let first = if large { -0.5 } else { 0.5 };
    let tail = f64::mul_add(w2, f64::mul_add(w, series, first), w);
    if large { tail } else { tail + terms }
}

/// The second derivative of ln |Γ|; ∞ at 0 and at the negative integers, 0 at ∞, NaN at −∞.
#[inline(always)]
pub(super) fn trigamma(x: f64) -> f64 {
    let a = x.abs();
    let after = trigamma_after(a);
    let r = 1.0 / a;
    let positive = f64::mul_add(r, r, after);
    let (s, _) = sincospi_any(a);
    let t = PI / s;
    let reflected = f64::mul_add(t, t, -after);
    let y = if x < 0.0 { reflected } else { positive };
    if x.is_nan() { x } else { y }
}
