//! Inverse trigonometric functions, after fdlibm (Sun Microsystems, 1993), with selects for its branches.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

const FRAC_PI_2_LOW: f64 = 6.123233995736766e-17;
const PI_LOW: f64 = 1.2246467991473532e-16;

/// (asin √z − √z) / √z for 0 ≤ z ≤ 1/4.
#[inline(always)]
fn asin_rational(z: f64) -> f64 {
    let p = z * horner!(z;
        0.16666666666666666, -0.3255658186224009, 0.20121253213486293,
        -0.04005553450067941, 0.0007915349942898145, 3.479331075960212e-05);
    let q = horner!(z;
        1.0, -2.403394911734414, 2.0209457602335057,
        -0.6882839716054533, 0.07703815055590194);
    p / q
}

/// √z, what it lacks of the true root, and asin_rational(z), for z = (1 − |x|) / 2.
#[inline(always)]
fn outer(ax: f64) -> (f64, f64, f64) {
    let z = (1.0 - ax) * 0.5;
    let s = z.sqrt();
    let rest = f64::mul_add(-s, s, z);
    let low = if s > 0.0 { 0.5 * rest / s } else { 0.0 };
    (s, low, asin_rational(z))
}

/// The arc sine; NaN outside [−1, 1].
#[inline(always)]
pub(super) fn asin(x: f64) -> f64 {
    let ax = x.abs();
    let near = ax < 0.5;
    let inner = f64::mul_add(x, asin_rational(if near { x * x } else { 0.0 }), x);
    let (s, low, r) = outer(ax);
    // π/2 − 2 (s + low)(1 + r), the parts that are exact first
    let high = FRAC_PI_4 - 2.0 * f64::from_bits(s.to_bits() & 0xffff_ffff_0000_0000);
    let rest = s - f64::from_bits(s.to_bits() & 0xffff_ffff_0000_0000) + low;
    let tail = f64::mul_add(2.0 * s, r, f64::mul_add(2.0, rest, -FRAC_PI_2_LOW));
    let y = (FRAC_PI_4 - (tail - high)).copysign(x);
    let y = if near { inner } else { y };
    if ax > 1.0 { f64::NAN } else { y }
}

/// The arc cosine; NaN outside [−1, 1].
#[inline(always)]
pub(super) fn acos(x: f64) -> f64 {
    let ax = x.abs();
    let near = ax < 0.5;
    let r = asin_rational(if near { x * x } else { 0.0 });
    let inner = FRAC_PI_2 - (x - f64::mul_add(-x, r, FRAC_PI_2_LOW));
    let (s, low, r) = outer(ax);
    let half = s + f64::mul_add(s, r, low);
    let positive = 2.0 * half;
    let negative = PI - 2.0 * (s + (f64::mul_add(s, r, low) - 0.5 * PI_LOW));
    let y = if x > 0.0 { positive } else { negative };
    let y = if near { inner } else { y };
    if ax > 1.0 { f64::NAN } else { y }
}

/// atan(n / d) for n, d ≥ 0, not both 0 or both infinite.
#[inline(always)]
fn atan_ratio(n: f64, d: f64) -> f64 {
    let a = n / d;
    // a = tan(offset + small angle): fdlibm's four offsets
    let c0 = a < 0.4375;
    let c1 = a < 0.6875;
    let c2 = a < 1.1875;
    let c3 = a < 2.4375;
    let numerator = if c3 { a - 1.5 } else { -1.0 };
    let numerator = if c2 { a - 1.0 } else { numerator };
    let numerator = if c1 { f64::mul_add(2.0, a, -1.0) } else { numerator };
    let numerator = if c0 { a } else { numerator };
    let denominator = if c3 { f64::mul_add(1.5, a, 1.0) } else { a };
    let denominator = if c2 { a + 1.0 } else { denominator };
    let denominator = if c1 { a + 2.0 } else { denominator };
    let denominator = if c0 { 1.0 } else { denominator };
    let high = if c3 { 0.982793723247329 } else { FRAC_PI_2 };
    let high = if c2 { FRAC_PI_4 } else { high };
    let high = if c1 { 0.4636476090008061 } else { high };
    let low = if c3 { 1.3903311031230998e-17 } else { FRAC_PI_2_LOW };
    let low = if c2 { 3.061616997868383e-17 } else { low };
    let low = if c1 { 2.2698777452961687e-17 } else { low };
    let t = numerator / denominator;
    let z = t * t;
    let s = t
        * (z * horner!(z;
        0.3333333333333293, -0.19999999999876483, 0.14285714272503466,
        -0.11111110405462356, 0.09090887133436507, -0.0769187620504483,
        0.06661073137387531, -0.058335701337905735, 0.049768779946159324,
        -0.036531572744216916, 0.016285820115365782));
    let outer = high - ((s - low) - t);
    if c0 { t - s } else { outer }
}

/// The arc tangent, in [−π/2, π/2].
#[inline(always)]
pub(super) fn atan(x: f64) -> f64 {
    let y = atan_ratio(x.abs(), 1.0).copysign(x);
    if x.is_nan() { x } else { y }
}

/// The angle of the point (x, y), in [−π, π], with C's special cases for zeros and infinities.
#[inline(always)]
pub(super) fn atan2(y: f64, x: f64) -> f64 {
    let (ay, ax) = (y.abs(), x.abs());
    let both_infinite = (ay > f64::MAX) & (ax > f64::MAX);
    let both_zero = (ay == 0.0) & (ax == 0.0);
    let n = if both_infinite { 1.0 } else { ay };
    let d = if both_infinite | both_zero { 1.0 } else { ax };
    let angle = atan_ratio(n, d);
    let angle = if x.is_sign_negative() { PI - (angle - PI_LOW) } else { angle };
    let angle = angle.copysign(y);
    if x.is_nan() | y.is_nan() { f64::NAN } else { angle }
}
