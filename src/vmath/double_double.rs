//! Sums and products with their rounding errors, and powers of two.

/// `a + b` and the rounding error of that sum (Knuth): exact for all finite sums.
#[inline(always)]
pub(super) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let bb = s - a;
    (s, (a - (s - bb)) + (b - bb))
}

/// `a + b` and its rounding error (Dekker), where |a| ≥ |b| or a is 0.
#[inline(always)]
pub(super) fn fast_two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    (s, b - (s - a))
}

/// `a · b` and its rounding error: exact unless the error underflows.
#[inline(always)]
pub(super) fn two_product(a: f64, b: f64) -> (f64, f64) {
    let p = a * b;
    (p, f64::mul_add(a, b, -p))
}

/// The quotient of two double-doubles, about 2^-102 relative error.
#[inline(always)]
pub(super) fn divide(ah: f64, al: f64, bh: f64, bl: f64) -> (f64, f64) {
    let q = ah / bh;
    let rest = f64::mul_add(-q, bh, ah) + f64::mul_add(-q, bl, al);
    (q, rest / bh)
}

/// The product of two double-doubles, about 2^-102 relative error, not normalised.
#[inline(always)]
pub(super) fn multiply(ah: f64, al: f64, bh: f64, bl: f64) -> (f64, f64) {
    let (p, e) = two_product(ah, bh);
    (p, f64::mul_add(ah, bl, f64::mul_add(al, bh, e)))
}

/// 2^k for −1022 ≤ k ≤ 1023.
#[inline(always)]
pub(super) fn power_of_two(k: i64) -> f64 {
    f64::from_bits(((k + 1023) as u64) << 52)
}

/// `x · 2^k` for |k| ≤ 2000, rounded once where the result is normal (twice where it is subnormal).
#[inline(always)]
pub(super) fn scale(x: f64, k: i64) -> f64 {
    let k1 = k >> 1;
    x * power_of_two(k1) * power_of_two(k - k1)
}
