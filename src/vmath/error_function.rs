//! The error function, the normal distribution function and its inverse.
//!
//! `erf` below 1 and the scaled tail (1 + 2z) e^(z²) erfc(z) in t = (z − 3) / (z + 3) (the form of Shepherd and
//! Laframboise, 1981) are our own Chebyshev fits, made with mpmath at 60 digits, relative error below 2e-18.
//! The inverse is algorithm AS 241 (PPND16) of Wichura, 1988.

use std::f64::consts::FRAC_1_SQRT_2;

use super::double_double::{two_product, two_sum};
use super::exp_log::{exp_double, log};

/// erf x for |x| ≤ 1.
#[inline(always)]
fn erf_small(x: f64) -> f64 {
    let z = x * x;
    let p = horner!(z;
        -0.37612638903183754, 0.11283791670955126, -0.026866170645131245, 0.005223977625442065,
        -0.0008548327023434811, 0.00012055332980539816, -1.4925650295261826e-05, 1.6462112197811115e-06,
        -1.6365792720871678e-07, 1.4806312810126733e-08, -1.2280051660773033e-09, 9.335964254377733e-11,
        -6.234670638215954e-12, 2.859015708185482e-13);
    // 2/√π − 1
    f64::mul_add(x, f64::mul_add(z, p, 0.1283791670955126), x)
}

/// erfc z for z ≥ 0.49, given z² as a double-double (so that a rounded z costs nothing).
#[inline(always)]
fn erfc_tail(z: f64, square: f64, square_low: f64) -> f64 {
    let z = if z > 28.0 { 28.0 } else { z };
    let t = (z - 3.0) / (z + 3.0);
    let p = horner!(t;
        1.2530080582697296, -0.1356211061245812, -0.04756229435345068, 0.12964515870276164,
        -0.11927366341531231, 0.06830802734396167, -0.023770514918525755, 0.002529391815994557,
        0.0018886903563243383, -0.0007798322678093783, -0.0001051597602438321, 0.00012509930361898067,
        4.94917719592702e-06, -2.010027821760931e-05, -7.300938805091438e-07, 3.4713639059084536e-06,
        3.528257297184754e-07, -6.142340842013089e-07, -1.345757565695529e-07, 9.841885063988726e-08,
        3.448928992712608e-08, -1.052429631387803e-08, -4.43334641759637e-09);
    let (d, dl) = two_sum(1.0, 2.0 * z);
    let r = p / d;
    let rl = f64::mul_add(-r, dl, f64::mul_add(-r, d, p)) / d;
    let e = exp_double(-square, -square_low, 0);
    f64::mul_add(e, r, e * rl)
}

/// x², for |x| ≤ 30, beyond which erfc is 0 or 2.
#[inline(always)]
fn square(ax: f64) -> (f64, f64, f64) {
    let z = if ax > 30.0 { 30.0 } else { ax };
    let (s, sl) = two_product(z, z);
    (z, s, sl)
}

/// The error function.
#[inline(always)]
pub(super) fn erf(x: f64) -> f64 {
    let (z, s, sl) = square(x.abs());
    let large = (1.0 - erfc_tail(z, s, sl)).copysign(x);
    let small = z < 1.0;
    let y = erf_small(if small { x } else { 0.0 });
    let y = if small { y } else { large };
    if (x == 0.0) | x.is_nan() { x } else { y }
}

/// 1 − erf x without cancellation.
#[inline(always)]
pub(super) fn erfc(x: f64) -> f64 {
    let (z, s, sl) = square(x.abs());
    let tail = erfc_tail(z, s, sl);
    let tail = if x < 0.0 { 2.0 - tail } else { tail };
    let small = z < 0.5;
    let y = 1.0 - erf_small(if small { x } else { 0.0 });
    let y = if small { y } else { tail };
    if x.is_nan() { x } else { y }
}

/// The standard normal distribution function, accurate in both tails.
#[inline(always)]
pub(super) fn phi(x: f64) -> f64 {
    let ax = if x.abs() > 40.0 { 40.0 } else { x.abs() };
    let z = ax * FRAC_1_SQRT_2;
    let (s, sl) = two_product(ax, ax);
    let tail = 0.5 * erfc_tail(z, 0.5 * s, 0.5 * sl);
    let tail = if x < 0.0 { tail } else { 1.0 - tail };
    let small = z < 0.5;
    let y = f64::mul_add(0.5, erf_small(if small { z } else { 0.0 }).copysign(x), 0.5);
    let y = if small { y } else { tail };
    if x.is_nan() { x } else { y }
}

/// The standard normal quantile: −∞ at 0, ∞ at 1, NaN outside [0, 1].
#[inline(always)]
pub(super) fn inv_phi(p: f64) -> f64 {
    let q = p - 0.5;
    let central = q.abs() <= 0.425;
    let side = if q < 0.0 { p } else { 1.0 - p };
    let root = (-log(if central { 0.25 } else { side })).sqrt();
    let far = root > 5.0;
    let r = if far { root - 5.0 } else { root - 1.6 };
    let r = if central { f64::mul_add(-q, q, 0.180625) } else { r };
    // one Horner chain whose coefficients are chosen: [central, middle, far]
    let pick = |c: [f64; 3]| {
        let outer = if far { c[2] } else { c[1] };
        if central { c[0] } else { outer }
    };
    let numerator = horner!(r;
        pick([3.3871328727963665, 1.4234371107496835, 6.657904643501103]),
        pick([133.14166789178438, 4.630337846156546, 5.463784911164114]),
        pick([1971.5909503065513, 5.769497221460691, 1.7848265399172913]),
        pick([13731.69376550946, 3.6478483247632045, 0.29656057182850487]),
        pick([45921.95393154987, 1.2704582524523684, 0.026532189526576124]),
        pick([67265.7709270087, 0.2417807251774506, 0.0012426609473880784]),
        pick([33430.57558358813, 0.022723844989269184, 2.7115555687434876e-05]),
        pick([2509.0809287301227, 0.0007745450142783414, 2.0103343992922881e-07]));
    let denominator = horner!(r;
        1.0,
        pick([42.31333070160091, 2.053191626637759, 0.599832206555888]),
        pick([687.1870074920579, 1.6763848301838038, 0.1369298809227358]),
        pick([5394.196021424751, 0.6897673349851, 0.014875361290850615]),
        pick([21213.794301586597, 0.14810397642748008, 0.0007868691311456133]),
        pick([39307.89580009271, 0.015198666563616457, 1.8463183175100548e-05]),
        pick([28729.085735721943, 0.0005475938084995345, 1.421511758316446e-07]),
        pick([5226.495278852854, 1.0507500716444169e-09, 2.0442631033899397e-15]));
    let ratio = numerator / denominator;
    let y = if central { q * ratio } else { ratio.copysign(q) };
    let y = if p == 0.0 { f64::NEG_INFINITY } else { y };
    let y = if p == 1.0 { f64::INFINITY } else { y };
    if (0.0..=1.0).contains(&p) { y } else { f64::NAN }
}
