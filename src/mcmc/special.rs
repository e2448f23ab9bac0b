//! The two inverse distribution functions that the diagnostics need: normal and beta.

/// Inverse of the standard normal distribution function: Wichura's AS 241 (PPND16), relative error about 1e-16.
/// NaN outside of `0..=1`.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * polynomial(&CENTRE_NUMERATOR, r) / polynomial(&CENTRE_DENOMINATOR, r);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    if tail == 0.0 {
        return q.signum() * f64::INFINITY;
    }
    let r = (-tail.ln()).sqrt();
    let magnitude = if r <= 5.0 {
        polynomial(&MIDDLE_NUMERATOR, r - 1.6) / polynomial(&MIDDLE_DENOMINATOR, r - 1.6)
    } else {
        polynomial(&FAR_NUMERATOR, r - 5.0) / polynomial(&FAR_DENOMINATOR, r - 5.0)
    };
    q.signum() * magnitude
}

/// `coefficients[0] + coefficients[1] x + …` by Horner's rule.
fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c)
}

const CENTRE_NUMERATOR: [f64; 8] = [
    3.387_132_872_796_366_5,
    133.141_667_891_784_38,
    1_971.590_950_306_551_3,
    13_731.693_765_509_46,
    45_921.953_931_549_87,
    67_265.770_927_008_7,
    33_430.575_583_588_13,
    2_509.080_928_730_122_7,
];
const CENTRE_DENOMINATOR: [f64; 8] = [
    1.0,
    42.313_330_701_600_91,
    687.187_007_492_057_9,
    5_394.196_021_424_751,
    21_213.794_301_586_597,
    39_307.895_800_092_71,
    28_729.085_735_721_943,
    5_226.495_278_852_854,
];
const MIDDLE_NUMERATOR: [f64; 8] = [
    1.423_437_110_749_683_5,
    4.630_337_846_156_546,
    5.769_497_221_460_691,
    3.647_848_324_763_204_5,
    1.270_458_252_452_368_4,
    0.241_780_725_177_450_6,
    0.022_723_844_989_269_184,
    7.745_450_142_783_414e-4,
];
const MIDDLE_DENOMINATOR: [f64; 8] = [
    1.0,
    2.053_191_626_637_759,
    1.676_384_830_183_803_8,
    0.689_767_334_985_1,
    0.148_103_976_427_480_08,
    0.015_198_666_563_616_457,
    5.475_938_084_995_345e-4,
    1.050_750_071_644_416_9e-9,
];
const FAR_NUMERATOR: [f64; 8] = [
    6.657_904_643_501_103,
    5.463_784_911_164_114,
    1.784_826_539_917_291_3,
    0.296_560_571_828_504_87,
    0.026_532_189_526_576_124,
    0.001_242_660_947_388_078_4,
    2.711_555_568_743_487_6e-5,
    2.010_334_399_292_288_1e-7,
];
const FAR_DENOMINATOR: [f64; 8] = [
    1.0,
    0.599_832_206_555_888,
    0.136_929_880_922_735_8,
    0.014_875_361_290_850_615,
    7.868_691_311_456_133e-4,
    1.846_318_317_510_054_7e-5,
    1.421_511_758_316_446e-7,
    2.044_263_103_389_939_8e-15,
];

/// The `p`-quantile of the Beta(`a`, `b`) distribution by bisection, to 1e-14; NaN unless `a` and `b` are positive and finite.
pub(crate) fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    let positive = |x: f64| x > 0.0 && x.is_finite();
    if !positive(a) || !positive(b) || !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while high - low > 1e-14 {
        let middle = 0.5 * (low + high);
        if beta_distribution(middle, a, b) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The regularised incomplete beta function, by its continued fraction on the side where that converges fast.
fn beta_distribution(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let log_front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p();
    if x < (a + 1.0) / (a + b + 2.0) {
        log_front.exp() / a * beta_fraction(x, a, b)
    } else {
        1.0 - log_front.exp() / b * beta_fraction(1.0 - x, b, a)
    }
}

/// Lentz's method on the continued fraction of the incomplete beta function (DLMF 8.17.22).
fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    let away_from_zero = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    // O(sqrt(max(a, b))) terms are needed; the bound only keeps strange arguments from hanging.
    for m in 1..100_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut last_factor = 1.0;
        for term in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + term * d);
            c = away_from_zero(1.0 + term / c);
            last_factor = c * d;
            value *= last_factor;
        }
        if (last_factor - 1.0_f64).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// Log gamma for positive arguments: Lanczos with g = 7 and nine terms.
fn ln_gamma(x: f64) -> f64 {
    const LANCZOS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let shifted = x + 7.5;
    let series = (1_u8..9).fold(LANCZOS[0], |sum, i| sum + LANCZOS[usize::from(i)] / (x + f64::from(i)));
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * shifted.ln() - shifted + series.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance * expected.abs(), "{found} is not {expected}");
    }

    // scipy 1.17.1: stats.norm.ppf
    #[test]
    fn normal_quantiles_are_those_of_scipy() {
        for (p, z) in [
            (0.5, 0.0),
            (0.3, -0.524_400_512_708_040_9),
            (0.01, -2.326_347_874_040_841),
            (0.999, 3.090_232_306_167_813_5),
            (1e-14, -7.650_628_092_935_268),
        ] {
            close(normal_quantile(p), z, 1e-13);
        }
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert!(normal_quantile(f64::NAN).is_nan());
    }

    // scipy 1.17.1: stats.beta.ppf
    #[test]
    fn beta_quantiles_are_those_of_scipy() {
        for (p, a, b, x) in BETA_CASES {
            close(beta_quantile(p, a, b), x, 1e-9);
        }
        assert!(beta_quantile(0.5, f64::NAN, 1.0).is_nan());
    }
    const BETA_CASES: [(f64, f64, f64, f64); 3] = [
        (0.158_655_3, 20.0, 361.0, 0.041_150_500_418_415_71),
        (0.841_344_7, 4_501.5, 501.0, 0.904_093_467_677_267_4),
        (0.841_344_7, 1.2, 1.8, 0.680_919_747_738_925),
    ];
}
