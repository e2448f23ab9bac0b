//! Trigonometric functions.
//!
//! Near zero (|x| ≤ [`FAR`]) the argument is reduced by Cody and Waite's method with a three-part π/2 and fused
//! multiply-adds, in two doubles; beyond, by Payne and Hanek's with 1280 bits of 2/π, in integers. Both leave the
//! reduced argument good to more than 60 bits, so huge arguments are as accurate as small ones. The kernels on
//! [−π/4, π/4] are fdlibm's (Sun Microsystems, 1993).

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, PI};

use super::double_double::{fast_two_sum, power_of_two, two_product, two_sum};
use super::exp_log::SHIFT;

/// Up to here the branch-free reduction is used.
pub(super) const FAR: f64 = 1073741824.0; // 2^30

const FRAC_PI_2_MID: f64 = 6.123233995736766e-17;
const FRAC_PI_2_LOW: f64 = -1.4973849048591698e-33;

/// The bits of 2/π after the point, below one word of zeros.
const TWO_OVER_PI: [u64; 21] = [
    0,
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
    0xf0cfbc209af4361d,
];

/// x = q π/2 + high + low with |high| ≤ π/4 (a little more, far out); q modulo 4 is in the low bits.
struct Reduced {
    q: u64,
    high: f64,
    low: f64,
}

/// The reduction for |x| ≤ FAR; junk beyond.
#[inline(always)]
fn reduce_near(x: f64) -> Reduced {
    let kd = f64::mul_add(x, FRAC_2_PI, SHIFT);
    let q = kd.to_bits();
    let kd = kd - SHIFT;
    let r = f64::mul_add(-kd, FRAC_PI_2, x); // exact
    let (p, e) = two_product(kd, FRAC_PI_2_MID);
    let (r, rl) = two_sum(r, -p);
    let rl = f64::mul_add(-kd, FRAC_PI_2_LOW, rl - e);
    let (high, low) = fast_two_sum(r, rl);
    // a zero keeps its sign
    let high = if x == 0.0 { x } else { high };
    Reduced { q, high, low }
}

/// The reduction for finite |x| ≥ 2^30 by Payne and Hanek's method.
#[cold]
#[inline(never)]
fn reduce_far(x: f64) -> Reduced {
    if !x.is_finite() {
        return Reduced { q: 0, high: f64::NAN, low: 0.0 };
    }
    let bits = x.abs().to_bits();
    let mantissa = u128::from(bits & 0x000f_ffff_ffff_ffff | 0x0010_0000_0000_0000);
    let exponent = (bits >> 52) as i64 - 1075;
    // bits of 2/π that only add multiples of 4 are left out; the next 192 are enough
    let start = (exponent - 2 + 64) as usize;
    let (index, shift) = (start / 64, start % 64);
    let word = |i: usize| {
        let pair = u128::from(TWO_OVER_PI[index + i]) << 64 | u128::from(TWO_OVER_PI[index + i + 1]);
        u128::from((pair << shift >> 64) as u64)
    };
    // the low 192 bits of mantissa · window, in units of 2^-190
    let p0 = mantissa * word(2);
    let p1 = mantissa * word(1) + (p0 >> 64);
    let p2 = (mantissa * word(0)).wrapping_add(p1 >> 64);
    let (top, mid, low) = (p2 as u64, p1 as u64, p0 as u64);
    let mut q = top >> 62;
    let mut fraction = u128::from(top << 2 | mid >> 62) << 64 | u128::from(mid << 2 | low >> 62);
    let negative = fraction >> 127 == 1;
    if negative {
        q += 1;
        fraction = fraction.wrapping_neg();
    }
    // a multiple of π/2 is never closer than 2^-64 to a double, so the fraction is not 0
    let zeros = fraction.leading_zeros();
    let fraction = fraction << zeros;
    let high = (fraction >> 75) as f64 * power_of_two(-53 - i64::from(zeros));
    let low = (fraction >> 22 & 0x001f_ffff_ffff_ffff) as f64 * power_of_two(-106 - i64::from(zeros));
    let (p, e) = two_product(high, FRAC_PI_2);
    let (high, low) = fast_two_sum(p, f64::mul_add(low, FRAC_PI_2, f64::mul_add(high, FRAC_PI_2_MID, e)));
    let flip = negative != x.is_sign_negative();
    Reduced {
        q: if x.is_sign_negative() { q.wrapping_neg() } else { q },
        high: if flip { -high } else { high },
        low: if flip { -low } else { low },
    }
}

/// sin(x + tail) for |x| ≤ π/4.
#[inline(always)]
fn sin_kernel(x: f64, tail: f64) -> f64 {
    let z = x * x;
    let v = z * x;
    let r = horner!(z;
        0.00833333333332249, -0.0001984126982985795, 2.7557313707070068e-06,
        -2.5050760253406863e-08, 1.58969099521155e-10);
    x - ((z * (0.5 * tail - v * r) - tail) - v * -0.16666666666666632)
}

/// cos(x + tail) for |x| ≤ π/4.
#[inline(always)]
fn cos_kernel(x: f64, tail: f64) -> f64 {
    let z = x * x;
    let r = z * horner!(z;
        0.0416666666666666, -0.001388888888887411, 2.480158728947673e-05,
        -2.7557314351390663e-07, 2.087572321298175e-09, -1.1359647557788195e-11);
    let hz = 0.5 * z;
    let w = 1.0 - hz;
    w + (((1.0 - w) - hz) + (z * r - x * tail))
}

#[inline(always)]
fn sin_reduced(reduced: &Reduced) -> f64 {
    let s = sin_kernel(reduced.high, reduced.low);
    let c = cos_kernel(reduced.high, reduced.low);
    let y = if reduced.q & 1 == 0 { s } else { c };
    if reduced.q & 2 == 0 { y } else { -y }
}

#[inline(always)]
fn cos_reduced(reduced: &Reduced) -> f64 {
    let s = sin_kernel(reduced.high, reduced.low);
    let c = cos_kernel(reduced.high, reduced.low);
    let y = if reduced.q & 1 == 0 { c } else { s };
    if reduced.q.wrapping_add(1) & 2 == 0 { y } else { -y }
}

#[inline(always)]
fn tan_reduced(reduced: &Reduced) -> f64 {
    let s = sin_kernel(reduced.high, reduced.low);
    let c = cos_kernel(reduced.high, reduced.low);
    let even = reduced.q & 1 == 0;
    let numerator = if even { s } else { -c };
    let denominator = if even { c } else { s };
    numerator / denominator
}

/// sin x for |x| ≤ FAR, without a branch; junk beyond.
#[inline(always)]
pub(super) fn sin_near(x: f64) -> f64 {
    sin_reduced(&reduce_near(x))
}

/// cos x for |x| ≤ FAR, without a branch; junk beyond.
#[inline(always)]
pub(super) fn cos_near(x: f64) -> f64 {
    cos_reduced(&reduce_near(x))
}

/// tan x for |x| ≤ FAR, without a branch; junk beyond.
#[inline(always)]
pub(super) fn tan_near(x: f64) -> f64 {
    tan_reduced(&reduce_near(x))
}

/// The sine; NaN at ±∞.
#[inline(always)]
pub(super) fn sin(x: f64) -> f64 {
    if x.abs() > FAR { sin_far(x) } else { sin_near(x) }
}

/// The cosine; NaN at ±∞.
#[inline(always)]
pub(super) fn cos(x: f64) -> f64 {
    if x.abs() > FAR { cos_far(x) } else { cos_near(x) }
}

/// The tangent; NaN at ±∞.
#[inline(always)]
pub(super) fn tan(x: f64) -> f64 {
    if x.abs() > FAR { tan_far(x) } else { tan_near(x) }
}

#[cold]
#[inline(never)]
fn sin_far(x: f64) -> f64 {
    sin_reduced(&reduce_far(x))
}

#[cold]
#[inline(never)]
fn cos_far(x: f64) -> f64 {
    cos_reduced(&reduce_far(x))
}

#[cold]
#[inline(never)]
fn tan_far(x: f64) -> f64 {
    tan_reduced(&reduce_far(x))
}

/// sin(π x) and cos(π x) for |x| < 2^50: the reduction to [−1/4, 1/4] is exact, then Taylor sums in t = π r.
#[inline(always)]
pub(super) fn sincospi(x: f64) -> (f64, f64) {
    let kd = f64::mul_add(x, 2.0, SHIFT);
    let q = kd.to_bits();
    let kd = kd - SHIFT;
    let r = f64::mul_add(kd, -0.5, x);
    let t = r * PI;
    let tl = f64::mul_add(r, PI, -t);
    let tl = f64::mul_add(r, 1.2246467991473532e-16, tl);
    let z = t * t;
    let p = horner!(z;
        -0.16666666666666666, 8.333333333333333e-03, -1.984126984126984e-04, 2.7557319223985893e-06,
        -2.505210838544172e-08, 1.6059043836821613e-10, -7.647163731819816e-13, 2.8114572543455206e-15);
    let c = horner!(z;
        0.041666666666666664, -1.388888888888889e-03, 2.48015873015873e-05, -2.755731922398589e-07,
        2.08767569878681e-09, -1.1470745597729725e-11, 4.779477332387385e-14);
    let hz = 0.5 * z;
    let w = 1.0 - hz;
    let ct = w + (((1.0 - w) - hz) + f64::mul_add(z * z, c, -t * tl));
    let st = t + f64::mul_add(p * z, t, f64::mul_add(tl, -hz, tl));
    let odd = q & 1 != 0;
    let a = if odd { ct } else { st };
    let b = if odd { st } else { ct };
    let sine = if q & 2 != 0 { -a } else { a };
    let cosine = if q.wrapping_add(1) & 2 != 0 { -b } else { b };
    (sine, cosine)
}
