//! Random numbers by counting: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, 2011).
//!
//! A draw is a function of (seed, lane, number of the draw) and of nothing else: the seed is the key, and the
//! counter's words are the draw's number (low, high) and the lane (low, high). Each draw uses one block, so
//! draw numbers advance by one whatever is drawn.

use super::real::Real;
use super::slices::SliceKernels;
use super::{exp_log, trig};

/// The four words of the draw `draw` of lane `lane`.
#[inline(always)]
pub fn block(seed: u64, lane: u64, draw: u64) -> [u32; 4] {
    let counter = [draw as u32, (draw >> 32) as u32, lane as u32, (lane >> 32) as u32];
    philox4x32_10(counter, [seed as u32, (seed >> 32) as u32])
}

/// Philox4x32 with ten rounds.
#[inline(always)]
fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut c0, mut c1, mut c2, mut c3] = counter;
    let [mut k0, mut k1] = key;
    for _ in 0..10 {
        let p0 = 0xD251_1F53_u64 * u64::from(c0);
        let p1 = 0xCD9E_8D57_u64 * u64::from(c2);
        let n0 = (p1 >> 32) as u32 ^ c1 ^ k0;
        let n2 = (p0 >> 32) as u32 ^ c3 ^ k1;
        (c0, c1, c2, c3) = (n0, p1 as u32, n2, p0 as u32);
        k0 = k0.wrapping_add(0x9E37_79B9);
        k1 = k1.wrapping_add(0xBB67_AE85);
    }
    [c0, c1, c2, c3]
}

/// (2a + 1) 2^-53 with the upper 52 bits a of the two words: strictly between 0 and 1, every step exact.
#[inline(always)]
pub(super) fn uniform_f64(low: u32, high: u32) -> f64 {
    let a = (u64::from(low) | u64::from(high) << 32) >> 12;
    f64::from_bits(0x3ff0_0000_0000_0000 | a) - (1.0 - 0.5 * f64::EPSILON)
}

/// (2a + 1) 2^-24 with the upper 23 bits a of the word: strictly between 0 and 1, every step exact.
#[inline(always)]
pub(super) fn uniform_f32(high: u32) -> f32 {
    f32::from_bits(0x3f80_0000 | high >> 9) - (1.0 - 0.5 * f32::EPSILON)
}

/// Box and Muller's cosine from one block; always finite, at most 8.58.
#[inline(always)]
pub(super) fn normal_f64(seed: u64, lane: u64, draw: u64) -> f64 {
    let [w0, w1, w2, w3] = block(seed, lane, draw);
    let radius = (-2.0 * exp_log::log(uniform_f64(w0, w1))).sqrt();
    let (_, cosine) = trig::sincospi(2.0 * uniform_f64(w2, w3));
    radius * cosine
}

/// A uniform number strictly between 0 and 1: an odd multiple of 2^-53 in `f64`, of 2^-24 in `f32` (from the
/// leading bits of the same draw).
#[inline(always)]
pub fn uniform<R: Real>(seed: u64, lane: u64, draw: u64) -> R {
    R::uniform_of(block(seed, lane, draw))
}

/// A standard normal number by Box and Muller's method; in `f32` the `f64` one rounded.
#[inline(always)]
pub fn normal<R: Real>(seed: u64, lane: u64, draw: u64) -> R {
    R::from_f64(normal_f64(seed, lane, draw))
}

/// [`uniform`] for many lanes: `out[i]` is draw `draws[i]` of lane `lanes[i]`.
///
/// # Panics
///
/// When the lengths differ.
pub fn uniform_slice<R: SliceKernels>(seed: u64, lanes: &[u64], draws: &[u64], out: &mut [R]) {
    assert!(lanes.len() == out.len() && draws.len() == out.len(), "one lane and one draw for each output");
    R::uniform_slice(seed, lanes, draws, out);
}

/// [`normal`] for many lanes: `out[i]` is draw `draws[i]` of lane `lanes[i]`.
///
/// # Panics
///
/// When the lengths differ.
pub fn normal_slice<R: SliceKernels>(seed: u64, lanes: &[u64], draws: &[u64], out: &mut [R]) {
    assert!(lanes.len() == out.len() && draws.len() == out.len(), "one lane and one draw for each output");
    R::normal_slice(seed, lanes, draws, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_answers_of_random123_are_met() {
        let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        let cases = [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([u32::MAX; 4], [u32::MAX; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (pi, [0xa409_3822, 0x299f_31d0], [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]),
        ];
        for (counter, key, expected) in cases {
            assert_eq!(philox4x32_10(counter, key), expected);
        }
    }

    #[test]
    fn blocks_agree_with_rand_philox() {
        for i in 0..1000_u64 {
            let (seed, lane, draw) =
                (i.wrapping_mul(0x9E37_79B9_7F4A_7C15), i << 30 | i, i.wrapping_mul(0xABCD_EF01_2345));
            let counter = [draw as u32, (draw >> 32) as u32, lane as u32, (lane >> 32) as u32];
            let key = [seed as u32, (seed >> 32) as u32];
            assert_eq!(block(seed, lane, draw), rand_philox::philox4x32_10(counter, key));
        }
    }

    #[test]
    fn uniforms_stay_strictly_inside_the_unit_interval() {
        assert_eq!(uniform_f64(0, 0), 0.5 * f64::EPSILON);
        assert_eq!(uniform_f64(u32::MAX, u32::MAX), 1.0 - 0.5 * f64::EPSILON);
        assert_eq!(uniform_f32(0), 0.5 * f32::EPSILON);
        assert_eq!(uniform_f32(u32::MAX), 1.0 - 0.5 * f32::EPSILON);
    }

    #[test]
    fn moments_of_uniforms_and_normals_are_right() {
        let n = 40_000;
        let lanes: Vec<u64> = (0..n).map(|i| i % 7).collect();
        let draws: Vec<u64> = (0..n).map(|i| i / 7).collect();
        let mut u = vec![0.0_f64; n as usize];
        let mut z = u.clone();
        uniform_slice(11, &lanes, &draws, &mut u);
        normal_slice(11, &lanes, &draws, &mut z);
        let mean = |x: &[f64], p: i32| x.iter().map(|v| v.powi(p)).sum::<f64>() / n as f64;
        assert!((mean(&u, 1) - 0.5).abs() < 0.006 && (mean(&u, 2) - 1.0 / 3.0).abs() < 0.006);
        assert!(mean(&z, 1).abs() < 0.02 && (mean(&z, 2) - 1.0).abs() < 0.03 && (mean(&z, 4) - 3.0).abs() < 0.25);
        for i in 0..n as usize {
            assert_eq!(u[i], uniform::<f64>(11, lanes[i], draws[i]));
            assert_eq!(z[i].to_bits(), normal::<f64>(11, lanes[i], draws[i]).to_bits());
        }
    }
}
