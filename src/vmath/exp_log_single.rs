//! `exp`, `log` and the logistic functions of `f32`, by `f32` arithmetic: twice as many to a register as in `f64`.
//!
//! The reductions are those of `exp_log.rs`. The polynomials are our own minimax fits in `f32` coefficients: relative error
//! of e^r below 4e-9, of ln(1 + f) below 6e-9, which are 0.06 and 0.1 of half a unit in the last place.

use std::f32::consts::LOG2_E;

/// 1.5 · 2^23: adding it rounds to the nearest integer, which then stands in the low bits.
const SHIFT: f32 = 12_582_912.0;
const SHIFT_BITS: i32 = 0x4b40_0000;

/// ln 2 in two parts; multiples of the first by an exponent are exact.
const LN2_HIGH: f32 = 0.693_145_75;
const LN2_LOW: f32 = 1.428_606_8e-6;

const SIGN_BIT: u32 = 1 << 31;

/// The bits of √½ and √2, just below them.
const SQRT_HALF_BITS: u32 = 0x3f35_04f3;
const SQRT_2_BITS: u32 = 0x3fb5_04f3;

/// 2^k for −126 ≤ k ≤ 127.
#[inline(always)]
fn power_of_two(k: i32) -> f32 {
    f32::from_bits((k.wrapping_add(127) as u32) << 23)
}

/// e^x = 2^k (1 + t) for −105 ≤ x ≤ 89, and k as the bits of 1.5 · 2^23 + k; t is NaN of NaN.
#[inline(always)]
fn reduce(x: f32) -> (u32, f32) {
    let shifted = f32::mul_add(x, LOG2_E, SHIFT);
    let k = shifted - SHIFT;
    let r = f32::mul_add(k, -LN2_HIGH, x);
    let r = f32::mul_add(k, -LN2_LOW, r);
    // (e^r − 1 − r) / r² for |r| ≤ 0.3467
    let p = horner!(f32: r; 0.5, 0.166_665_35, 0.041_667_24, 0.008_367_436, 0.001_386_343);
    (shifted.to_bits(), f32::mul_add(p, r * r, r))
}

/// e^x, subnormal results included.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    let x = if x > 89.0 { 89.0 } else { x };
    let (k, t) = reduce(if x < -105.0 { -105.0 } else { x });
    let k = (k as i32).wrapping_sub(SHIFT_BITS);
    // Two factors, since 2^k itself may be no normal number.
    let k1 = k >> 1;
    let s1 = power_of_two(k1);
    f32::mul_add(t, s1, s1) * power_of_two(k.wrapping_sub(k1))
}

/// [`exp`] of −|x|: its bits, without what serves only other arguments.
#[inline(always)]
fn exp_of_minus_abs(x: f32) -> f32 {
    let x = f32::from_bits(x.to_bits() | SIGN_BIT);
    let (k, t) = reduce(if x < -105.0 { -105.0 } else { x });
    // 2^(k + 24), a normal number but for k = −151, where it is 0, as the result is.
    let s = f32::from_bits((k << 23).wrapping_add((127 + 24) << 23));
    f32::mul_add(t, s, s) * (1.0 / 16_777_216.0)
}

/// Splits a positive finite x into e and f with x = 2^e (1 + f), √½ ≤ 1 + f < √2; subnormals included.
#[inline(always)]
fn split(x: f32) -> (i32, f32) {
    let small = x < f32::MIN_POSITIVE;
    let factor = if small { 16_777_216.0 } else { 1.0 }; // 2^24
    let adjust = if small { 24 } else { 0 };
    let bits = (x * factor).to_bits();
    let e = (bits.wrapping_sub(SQRT_HALF_BITS) as i32) >> 23;
    let f = f32::from_bits(bits.wrapping_sub((e as u32) << 23)) - 1.0;
    (e - adjust, f)
}

/// e · ln 2 in two parts, the first of them exact.
#[inline(always)]
fn times_ln2(e: i32) -> [f32; 2] {
    [e as f32 * LN2_HIGH, e as f32 * LN2_LOW]
}

/// ln(1 + f) for √½ − 1 ≤ f ≤ √2 − 1, and e · ln 2 in two parts.
#[inline(always)]
fn log_split([high, low]: [f32; 2], f: f32) -> f32 {
    // (ln(1 + f) − f + f²/2) / f³
    let q = horner!(f32: f;
        0.333_333_34, -0.250_008_14, 0.200_011_03, -0.166_235, 0.142_037_32, -0.131_605_83, 0.127_510_8, -0.076_223_16);
    high + (f + f32::mul_add(f32::mul_add(q, f, -0.5), f * f, low))
}

/// The natural logarithm, subnormal arguments included; −∞ at 0, NaN below.
#[inline(always)]
pub(super) fn log(x: f32) -> f32 {
    let (e, f) = split(x);
    log_special(x, log_split(times_ln2(e), f))
}

/// What x contributes to a product whose logarithm is a sum of logarithms, as in `exp_log.rs`.
#[inline(always)]
pub(super) fn log_parts(x: f32) -> [f32; 2] {
    let (e, f) = split(x);
    let ordinary = (x > 0.0) & (x <= f32::MAX);
    let special = if x < 0.0 { f32::NAN } else { x };
    [if ordinary { 1.0 + f } else { special }, if ordinary { e as f32 } else { 0.0 }]
}

/// ln(2^k x) for a whole k.
#[inline(always)]
pub(super) fn log_scaled(x: f32, k: f32) -> f32 {
    let (e, f) = split(x);
    let e = e as f32 + k;
    log_special(x, log_split([e * LN2_HIGH, e * LN2_LOW], f))
}

/// y, but the logarithm of x where that is 0, infinite, negative or NaN.
#[inline(always)]
fn log_special(x: f32, y: f32) -> f32 {
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    let y = if x < 0.0 { f32::NAN } else { y };
    if x <= f32::MAX { y } else { x }
}

/// ln(1 + x) without cancellation; −∞ at −1, NaN below.
#[inline(always)]
pub(super) fn log1p(x: f32) -> f32 {
    let above = 1.0 + x;
    let (e, _) = split(above);
    // 1 + f = (1 + x) 2^−e with a single rounding; 2^−e in two factors, as it may be no normal number
    let k = -e;
    let factor = power_of_two(k >> 1) * power_of_two(k - (k >> 1));
    let y = log_split(times_ln2(e), f32::mul_add(x, factor, factor - 1.0));
    // ln(1 + x) has the sign of x: this keeps the sign of a zero
    log_special(above, y).copysign(x)
}

/// [`log1p`] of 0 ≤ x ≤ 1: its bits, without what serves only other arguments.
#[inline(always)]
fn log1p_of_fraction(x: f32) -> f32 {
    // Where `split` changes the exponent; x may be NaN.
    let above = 1.0 + x >= f32::from_bits(SQRT_2_BITS);
    let ln2 = if above { [LN2_HIGH, LN2_LOW] } else { [0.0, 0.0] };
    log_split(ln2, if above { f32::mul_add(x, 0.5, -0.5) } else { x })
}

/// 1 / (1 + e^−x).
#[inline(always)]
pub(super) fn inv_logit(x: f32) -> f32 {
    let e = exp_of_minus_abs(x);
    let numerator = if x < 0.0 { e } else { 1.0 };
    numerator / (1.0 + e)
}

/// ln(1 + e^x): max(x, 0) + log1p(exp(−|x|)).
#[inline(always)]
pub(super) fn log1p_exp(x: f32) -> f32 {
    log1p_exp_and_inv_logit(x).0
}

/// [`log1p_exp`] and [`inv_logit`], which have an exponential in common.
#[inline(always)]
pub(super) fn log1p_exp_and_inv_logit(x: f32) -> (f32, f32) {
    let e = exp_of_minus_abs(x);
    let (positive, numerator) = if x < 0.0 { (0.0, e) } else { (x, 1.0) };
    (positive + log1p_of_fraction(e), numerator / (1.0 + e))
}

/// The parts of [`log1p_exp`]: exp(−|x|) and max(x, 0).
#[inline(always)]
pub(super) fn log1p_exp_parts(x: f32) -> [f32; 2] {
    [exp_of_minus_abs(x), if x < 0.0 { 0.0 } else { x }]
}

/// [`log1p_exp_parts`] and [`inv_logit`], which have an exponential in common.
#[inline(always)]
pub(super) fn log1p_exp_parts_and_inv_logit(x: f32) -> ([f32; 2], f32) {
    let [e, positive] = log1p_exp_parts(x);
    ([e, positive], if x < 0.0 { e } else { 1.0 } / (1.0 + e))
}

/// ln(1 / (1 + e^−x)).
#[inline(always)]
pub(super) fn log_inv_logit(x: f32) -> f32 {
    -log1p_exp(-x)
}
