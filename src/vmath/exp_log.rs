//! Exponentials and logarithms, and the logistic functions made of them.
//!
//! `exp` and `log` follow fdlibm (Sun Microsystems, 1993) in reduction and, for `log`, in its polynomial.

use std::f64::consts::LOG2_E;

use super::double_double::{fast_two_sum, power_of_two, scale, two_product, two_sum};
use super::power::log_double;

/// 1.5 · 2^52: adding it rounds to the nearest integer, which then stands in the low bits.
pub(super) const SHIFT: f64 = 6755399441055744.0;
const SHIFT_BITS: i64 = 0x4338_0000_0000_0000;

/// ln 2 in two parts; multiples of the first by an exponent are exact.
pub(super) const LN2_HIGH: f64 = 0.6931471803691238;
pub(super) const LN2_LOW: f64 = 1.9082149292705877e-10;

/// e^(x + tail) = 2^k (1 + r + c) with |r| ≤ 0.35, for −748 ≤ x ≤ 712 and a tail below an ULP of x: (k, r, c).
#[inline(always)]
fn reduce(x: f64, tail: f64) -> (i64, f64, f64) {
    let kd = f64::mul_add(x, LOG2_E, SHIFT);
    let k = kd.to_bits() as i64 - SHIFT_BITS;
    let kd = kd - SHIFT;
    let high = f64::mul_add(kd, -LN2_HIGH, x);
    let low = kd * LN2_LOW;
    let r = high - low;
    let (r, rest) = two_sum(r, ((high - r) - low) + tail);
    let p = expm1_polynomial(r);
    (k, r, f64::mul_add(p, r * r, f64::mul_add(rest, r, rest)))
}

/// (e^r − 1 − r) / r² for |r| ≤ 0.35.
#[inline(always)]
fn expm1_polynomial(r: f64) -> f64 {
    horner!(r;
        0.5,
        0.16666666666666666,
        0.041666666666666664,
        8.333333333333333e-03,
        1.388888888888889e-03,
        1.984126984126984e-04,
        2.48015873015873e-05,
        2.7557319223985893e-06,
        2.755731922398589e-07,
        2.505210838544172e-08,
        2.08767569878681e-09,
        1.6059043836821613e-10,
    )
}

/// e^x, subnormal results included.
#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    let xc = if x > 710.0 { 710.0 } else { x };
    let xc = if xc < -746.0 { -746.0 } else { xc };
    let kd = f64::mul_add(xc, LOG2_E, SHIFT);
    let k = kd.to_bits() as i64 - SHIFT_BITS;
    let kd = kd - SHIFT;
    let r = f64::mul_add(kd, -LN2_HIGH, xc);
    let r = f64::mul_add(kd, -LN2_LOW, r);
    let t = f64::mul_add(expm1_polynomial(r), r * r, r);
    let k1 = k >> 1;
    let s1 = power_of_two(k1);
    let s2 = power_of_two(k - k1);
    let y = f64::mul_add(t, s1, s1) * s2;
    if x.is_nan() { x } else { y }
}

/// ln 2 − f64(ln 2).
const LN2_TAIL: f64 = 2.3190468138462996e-17;

/// 2^x, subnormal results included; exact at integers.
#[inline(always)]
pub(super) fn exp2(x: f64) -> f64 {
    let xc = if x > 1025.0 { 1025.0 } else { x };
    let xc = if xc < -1080.0 { -1080.0 } else { xc };
    let shifted = xc + SHIFT;
    let k = shifted.to_bits() as i64 - SHIFT_BITS;
    let part = xc - (shifted - SHIFT);
    let (r, rest) = two_product(part, std::f64::consts::LN_2);
    let c = f64::mul_add(expm1_polynomial(r), r * r, f64::mul_add(part, LN2_TAIL, rest));
    let (s, e) = fast_two_sum(1.0, r);
    let y = scale(s + (e + c), k);
    if x.is_nan() { x } else { y }
}

/// e^(high + low) · 2^shift for a double-double exponent and |shift| ≤ 2.
#[inline(always)]
pub(super) fn exp_double(high: f64, low: f64, shift: i64) -> f64 {
    let top = high > 712.0;
    let bottom = high < -748.0;
    let x = if top { 712.0 } else { high };
    let x = if bottom { -748.0 } else { x };
    let tail = if top | bottom { 0.0 } else { low };
    let (k, r, c) = reduce(x, tail);
    let (s, e) = fast_two_sum(1.0, r);
    let y = scale(s + (e + c), k + shift);
    if high.is_nan() { high } else { y }
}

/// e^x − 1 = 2^k (high + low), for −40 ≤ x ≤ 712.
#[inline(always)]
pub(super) fn expm1_reduced(x: f64) -> (i64, f64, f64) {
    let (k, r, c) = reduce(x, 0.0);
    // 1 − 2^−k is exact or, far out, too small to matter
    let one = 1.0 - scale(1.0, -k);
    let (high, e) = two_sum(one, r);
    let (high, low) = two_sum(high, c);
    (k, high, e + low)
}

/// e^x − 1 without cancellation.
#[inline(always)]
pub(super) fn expm1(x: f64) -> f64 {
    let xc = if x > 710.0 { 710.0 } else { x };
    let xc = if xc < -40.0 { -40.0 } else { xc };
    let (k, high, low) = expm1_reduced(xc);
    let y = scale(high + low, k);
    if (x == 0.0) | x.is_nan() { x } else { y }
}

/// Splits a positive finite x into e and f with x = 2^e (1 + f), √½ ≤ 1 + f < √2; subnormals included.
#[inline(always)]
pub(super) fn split(x: f64) -> (f64, f64) {
    let small = x < f64::MIN_POSITIVE;
    let factor = if small { 1.8014398509481984e+16 } else { 1.0 }; // 2^54
    let adjust = if small { -54.0 } else { 0.0 };
    let bits = (x * factor).to_bits();
    let e = (bits.wrapping_sub(0x3fe6_a09e_667f_3bcd) as i64) >> 52;
    let f = f64::from_bits(bits.wrapping_sub((e as u64) << 52)) - 1.0;
    let ed = f64::from_bits((SHIFT_BITS as u64).wrapping_add(e as u64)) - SHIFT + adjust;
    (ed, f)
}

/// e · ln 2 + ln(1 + f) for √½ − 1 ≤ f ≤ √2 − 1, by fdlibm's polynomial; `tail` is a small addend.
#[inline(always)]
fn log_split(e: f64, f: f64, tail: f64) -> f64 {
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let hf = 0.5 * f * f;
    let t1 = w * horner!(w;
        0.3999999999940942, 0.22222198432149784, 0.15313837699209373);
    let t2 = z * horner!(w;
        0.6666666666666735, 0.2857142874366239, 0.1818357216161805, 0.14798198605116586);
    let r = t1 + t2;
    let low = f64::mul_add(e, LN2_LOW, tail);
    e * LN2_HIGH - ((hf - f64::mul_add(s, hf + r, low)) - f)
}

/// The special values of a logarithm of x; elsewhere y.
#[inline(always)]
pub(super) fn log_special(x: f64, y: f64) -> f64 {
    let y = if x == 0.0 { f64::NEG_INFINITY } else { y };
    let y = if x < 0.0 { f64::NAN } else { y };
    let y = if x.is_nan() { x } else { y };
    if x > f64::MAX { x } else { y }
}

/// The natural logarithm, subnormal arguments included; −∞ at 0, NaN below.
#[inline(always)]
pub(super) fn log(x: f64) -> f64 {
    let (e, f) = split(x);
    log_special(x, log_split(e, f, 0.0))
}

/// What x contributes to a product whose logarithm is a sum of logarithms: m and k of x = 2^k m, √½ ≤ m < √2. 0, ∞ and NaN
/// are factors themselves, with k = 0, and what is negative is NaN.
#[inline(always)]
pub(super) fn log_parts(x: f64) -> [f64; 2] {
    let (e, f) = split(x);
    let ordinary = (x > 0.0) & (x <= f64::MAX);
    let special = if x < 0.0 { f64::NAN } else { x };
    [if ordinary { 1.0 + f } else { special }, if ordinary { e } else { 0.0 }]
}

/// ln(2^k x) for a whole k.
#[inline(always)]
pub(super) fn log_scaled(x: f64, k: f64) -> f64 {
    let (e, f) = split(x);
    log_special(x, log_split(e + k, f, 0.0))
}

/// ln(1 + x) without cancellation; −∞ at −1, NaN below.
#[inline(always)]
pub(super) fn log1p(x: f64) -> f64 {
    let (e, _) = split(1.0 + x);
    // 1 + f = (1 + x) 2^−e with a single rounding; far out the inner −1 is rounded, where it does not matter
    let factor = scale(1.0, -(f64::to_bits(e + SHIFT) as i64 - SHIFT_BITS));
    let f = f64::mul_add(x, factor, factor - 1.0);
    let y = log_split(e, f, 0.0);
    let y = if x == 0.0 { x } else { y };
    let y = if x == -1.0 { f64::NEG_INFINITY } else { y };
    let y = if x < -1.0 { f64::NAN } else { y };
    let y = if x.is_nan() { x } else { y };
    if x > f64::MAX { x } else { y }
}

/// ln(1 − x) without cancellation; −∞ at 1, NaN above.
#[inline(always)]
pub(super) fn log1m(x: f64) -> f64 {
    log1p(-x)
}

/// ln(1 − e^x) without cancellation; −∞ at 0, NaN above. The two forms change places at −ln 2, where both are good
/// (Mächler,
/// *Accurately computing log(1 − exp(−|a|))*, 2012).
#[inline(always)]
pub(super) fn log1m_exp(x: f64) -> f64 {
    let (near, far) = (log(-expm1(x)), log1p(-exp(x)));
    if x < -std::f64::consts::LN_2 { far } else { near }
}

/// 1 − e^(−e^x).
#[inline(always)]
pub(super) fn inv_cloglog(x: f64) -> f64 {
    -expm1(-exp(x))
}

/// x · ln y, and 0 where both are 0.
#[inline(always)]
pub(super) fn lmultiply(x: f64, y: f64) -> f64 {
    let product = x * log(y);
    if (x == 0.0) & (y == 0.0) { 0.0 } else { product }
}

/// A logarithm to another base, given 1 / ln(base) as a double-double.
#[inline(always)]
fn log_to_base(x: f64, inverse: f64, inverse_low: f64) -> f64 {
    let (high, low) = log_double(x);
    let (p, e) = two_product(high, inverse);
    let y = p + f64::mul_add(high, inverse_low, f64::mul_add(low, inverse, e));
    log_special(x, y)
}

/// The logarithm to base 2; exact at powers of two.
#[inline(always)]
pub(super) fn log2(x: f64) -> f64 {
    log_to_base(x, LOG2_E, 2.0355273740931033e-17)
}

/// The logarithm to base 10.
#[inline(always)]
pub(super) fn log10(x: f64) -> f64 {
    log_to_base(x, std::f64::consts::LOG10_E, 1.098319650216765e-17)
}

/// 1 / (1 + e^−x).
#[inline(always)]
pub(super) fn inv_logit(x: f64) -> f64 {
    let e = exp(-x.abs());
    let numerator = if x < 0.0 { e } else { 1.0 };
    numerator / (1.0 + e)
}

/// [`exp`] of x ≤ 0: its bits, without what serves only other arguments.
#[inline(always)]
fn exp_nonpositive(x: f64) -> f64 {
    let xc = if x < -746.0 { -746.0 } else { x };
    let shifted = f64::mul_add(xc, LOG2_E, SHIFT);
    let kd = shifted - SHIFT;
    let r = f64::mul_add(kd, -LN2_HIGH, xc);
    let r = f64::mul_add(kd, -LN2_LOW, r);
    let t = f64::mul_add(expm1_polynomial(r), r * r, r);
    // 2^(k + 54), which is a normal number: k, in the low bits of the shifted number, is −1076 at least.
    let s = f64::from_bits((shifted.to_bits() << 52).wrapping_add((1023 + 54) << 52));
    f64::mul_add(t, s, s) * 5.551115123125783e-17 // 2^-54
}

/// [`log1p`] of 0 ≤ x ≤ 1: its bits, without what serves only other arguments.
#[inline(always)]
fn log1p_of_fraction(x: f64) -> f64 {
    // Where `split` changes the exponent, just below √2; x may be NaN.
    let above = 1.0 + x >= f64::from_bits(0x3ff6_a09e_667f_3bcd);
    let e = if above { 1.0 } else { 0.0 };
    let factor = if above { 0.5 } else { 1.0 };
    log_split(e, f64::mul_add(x, factor, factor - 1.0), 0.0)
}

/// ln(1 + e^x): max(x, 0) + log1p(exp(−|x|)).
#[inline(always)]
pub(super) fn log1p_exp(x: f64) -> f64 {
    let positive = if x < 0.0 { 0.0 } else { x };
    positive + log1p_of_fraction(exp_nonpositive(-x.abs()))
}

/// ln(e^x + e^y): the larger one + log1p(exp(−|x − y|)).
#[inline(always)]
pub(super) fn log_add_exp(x: f64, y: f64) -> f64 {
    let (larger, smaller) = if x >= y { (x, y) } else { (y, x) };
    // Equal infinities have no difference.
    let distance = if x == y { 0.0 } else { larger - smaller };
    larger + log1p_of_fraction(exp_nonpositive(-distance))
}

/// [`log1p_exp`] and [`inv_logit`], which have an exponential in common.
#[inline(always)]
pub(super) fn log1p_exp_and_inv_logit(x: f64) -> (f64, f64) {
    let e = exp_nonpositive(-x.abs());
    let (positive, numerator) = if x < 0.0 { (0.0, e) } else { (x, 1.0) };
    (positive + log1p_of_fraction(e), numerator / (1.0 + e))
}

/// The parts of [`log1p_exp`]: exp(−|x|) and max(x, 0).
#[inline(always)]
pub(super) fn log1p_exp_parts(x: f64) -> [f64; 2] {
    [exp_nonpositive(-x.abs()), if x < 0.0 { 0.0 } else { x }]
}

/// [`log1p_exp_parts`] and [`inv_logit`], which have an exponential in common.
#[inline(always)]
pub(super) fn log1p_exp_parts_and_inv_logit(x: f64) -> ([f64; 2], f64) {
    let [e, positive] = log1p_exp_parts(x);
    ([e, positive], if x < 0.0 { e } else { 1.0 } / (1.0 + e))
}

/// ln(1 / (1 + e^−x)).
#[inline(always)]
pub(super) fn log_inv_logit(x: f64) -> f64 {
    -log1p_exp(-x)
}
