//! Powers, by a logarithm carried in two doubles.

use super::double_double::{divide, fast_two_sum, multiply, two_product, two_sum};
use super::exp_log::{LN2_HIGH, LN2_LOW, exp_double, split};

/// ln 2 − LN2_HIGH − LN2_LOW.
const LN2_LOWEST: f64 = 1.1612227229362532e-26;

/// The natural logarithm of a positive finite x as a double-double, relative error about 2^-68.
#[inline(always)]
pub(super) fn log_double(x: f64) -> (f64, f64) {
    let (e, f) = split(x);
    // ln(1 + f) = 2 s + s³ (2/3 + s² (2/5 + s² Q(s²))), s = f / (2 + f)
    let (d, dl) = two_sum(2.0, f);
    let (s, sl) = divide(f, 0.0, d, dl);
    let (s, sl) = fast_two_sum(s, sl);
    let (z, zl) = multiply(s, sl, s, sl);
    let (z, zl) = fast_two_sum(z, zl);
    let q = horner!(z;
        2.0 / 7.0, 2.0 / 9.0, 2.0 / 11.0, 2.0 / 13.0, 2.0 / 15.0, 2.0 / 17.0,
        2.0 / 19.0, 2.0 / 21.0, 2.0 / 23.0, 2.0 / 25.0, 2.0 / 27.0);
    let (a, al) = fast_two_sum(0.4, z * q);
    let (b, bl) = multiply(a, al - 2.2204460492503132e-17, z, zl);
    let (c, cl) = fast_two_sum(2.0 / 3.0, b);
    let cl = cl + (bl + 3.700743415417188e-17);
    let (s3, s3l) = multiply(s, sl, z, zl);
    let (g, gl) = multiply(s3, s3l, c, cl);
    let (m, ml) = fast_two_sum(2.0 * s, g);
    let ml = ml + f64::mul_add(2.0, sl, gl);
    // + e ln 2
    let (h, hl) = two_sum(e * LN2_HIGH, m);
    let (k, kl) = two_product(e, LN2_LOW);
    let (t, tl) = two_sum(h, k);
    let low = f64::mul_add(e, LN2_LOWEST, kl) + (tl + (hl + ml));
    fast_two_sum(t, low)
}

/// x^y with all of C's special cases: x^0 = 1^y = 1 even for NaN, a negative x with a non-integer y is NaN.
#[inline(always)]
pub(super) fn pow(x: f64, y: f64) -> f64 {
    let ax = x.abs();
    let (lh, ll) = log_double(ax);
    // beyond 2^66 every power but that of ±1 has over- or underflowed already
    let yc = if y > 7.378697629483821e+19 { 7.378697629483821e+19 } else { y };
    let yc = if yc < -7.378697629483821e+19 { -7.378697629483821e+19 } else { yc };
    let (ph, pl) = two_product(yc, lh);
    let z = exp_double(ph, f64::mul_add(yc, ll, pl), 0);

    let integer = y.trunc() == y;
    let half = y * 0.5;
    let odd = integer & (half.trunc() != half);
    let vanishes = (ax == 0.0) != (y < 0.0);
    let z = if (ax == 0.0) | (ax > f64::MAX) { if vanishes { 0.0 } else { f64::INFINITY } } else { z };
    let z = if odd & x.is_sign_negative() { -z } else { z };
    let undefined = ((x < 0.0) & (ax <= f64::MAX) & !integer) | x.is_nan() | y.is_nan();
    let z = if undefined { f64::NAN } else { z };
    if (y == 0.0) | (x == 1.0) { 1.0 } else { z }
}

/// The cube root, with the sign of x: e^(ln |x| / 3) in two doubles.
#[inline(always)]
pub(super) fn cbrt(x: f64) -> f64 {
    let ax = x.abs();
    let (high, low) = log_double(ax);
    let third = high / 3.0;
    let rest = f64::mul_add(-3.0, third, high);
    let y = exp_double(third, (rest + low) / 3.0, 0);
    let y = if (ax == 0.0) | (ax > f64::MAX) { ax } else { y };
    if x.is_nan() { x } else { y.copysign(x) }
}
