//! Sums of logarithms: kernels against the definition, special values, and how far they are from exact sums.

use super::{INF, NAN};
use crate::double_double::two_sum;
use crate::*;

const BOTH: [LogSum; 2] = [LogSum::Log, LogSum::Log1pExp];

/// Numbers of all sizes, most of them moderate; `special`: how many in a thousand are zeros, infinities, NaN, negative or
/// subnormal.
fn numbers<R: Real>(n: usize, seed: u64, special: u64) -> Vec<R> {
    let rare = [0.0, -0.0, INF, -INF, NAN, -1.0, 5e-324, 1e-310, f64::MAX, 1e-40];
    let number = |i: usize| {
        let draw = |k: u64| philox::uniform::<f64>(seed, i as u64, k);
        if draw(0) * 1000.0 < special as f64 {
            return rare[(draw(1) * rare.len() as f64) as usize];
        }
        let z = philox::normal::<f64>(seed, i as u64, 2);
        match (draw(3) * 4.0) as usize {
            0 => (z * 30.0).exp(),
            1 => z * 40.0,
            _ => z.abs() + 0.01,
        }
    };
    (0..n).map(|i| R::from_f64(number(i))).collect()
}

fn same<R: Real>(found: &[R], expected: &[R]) -> bool {
    found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| a.to_bits64() == b.to_bits64())
}

fn columns_are_sums_of_their_own<R: Real>() {
    for rows in [0, 1, 2, 63, 64, 65, 128, 129, 511, 512, 513, 700, 1100] {
        for columns in [1, 2, 3, 4, 7, 16, 21, 64, 256, 300] {
            if rows * columns > 40_000 {
                continue;
            }
            for special in [0, 2] {
                let x: Vec<R> = numbers(rows * columns, (rows + 7 * columns) as u64, special);
                let mut expected = vec![R::ZERO; x.len()];
                unary(UnaryFn::InvLogit, &x, &mut expected);
                for of in BOTH {
                    let column = |c: usize| x.iter().skip(c).step_by(columns).copied().collect::<Vec<R>>();
                    let sums: Vec<R> = (0..columns).map(|c| log_sum_in_order(of, &column(c))).collect();
                    let mut out = vec![R::NAN; columns];
                    log_sums(of, &x, &mut out, false);
                    assert!(same(&out, &sums), "{of:?} of {rows} rows of {columns}: {out:?}, not {sums:?}");
                    if rows > 64 {
                        let cut = rows.div_ceil(2).next_multiple_of(64).min(rows) * columns;
                        log_sums(of, &x[..cut], &mut out, false);
                        log_sums(of, &x[cut..], &mut out, true);
                        assert!(same(&out, &sums), "{of:?} of {rows} rows of {columns} in two parts");
                    }
                    if columns == 1 {
                        let mut blocks = vec![R::NAN; rows.div_ceil(LOG_BLOCK)];
                        log_block_sums(of, &x, None, &mut blocks);
                        let total = blocks.iter().copied().reduce(|total, block| total + block);
                        assert!(same(&[total.unwrap_or(R::ZERO)], &sums), "{of:?} of {rows} rows, block by block");
                    }
                    if of == LogSum::Log1pExp {
                        let mut inv_logit = vec![R::NAN; x.len()];
                        sums_of_log1p_exp_and_inv_logit(&x, &mut inv_logit, &mut out, false);
                        assert!(same(&out, &sums) && same(&inv_logit, &expected), "both of {rows} rows of {columns}");
                    }
                }
            }
        }
    }
}

#[test]
fn sums_of_logarithms_of_columns_have_the_bits_of_the_definition() {
    columns_are_sums_of_their_own::<f64>();
    columns_are_sums_of_their_own::<f32>();
}

#[test]
fn the_sum_of_one_logarithm_is_that_logarithm() {
    fn check<R: Real>() {
        for x in numbers::<R>(4000, 3, 100) {
            for (of, f) in [(LogSum::Log, UnaryFn::Log), (LogSum::Log1pExp, UnaryFn::Log1pExp)] {
                assert_eq!(log_sum(of, &[x]).to_bits64(), f.apply(x).to_bits64(), "{f:?} of {x}");
            }
        }
    }
    check::<f64>();
    check::<f32>();
}

#[test]
fn special_terms_make_special_sums() {
    fn check<R: Real>() {
        let sum = |of, x: &[f64]| log_sum(of, &x.iter().map(|x| R::from_f64(*x)).collect::<Vec<R>>()).to_f64();
        let log = |x: &[f64]| sum(LogSum::Log, x);
        let one_and_zeros = |zero| [vec![1.0; 70], vec![zero; 2], vec![3.0; 3]].concat();
        assert_eq!(log(&[]).to_bits(), 0);
        assert_eq!(log(&one_and_zeros(0.0)), -INF);
        assert_eq!(log(&one_and_zeros(-0.0)), -INF);
        assert_eq!(log(&one_and_zeros(INF)), INF);
        // Two negative numbers have a positive product.
        assert!(log(&one_and_zeros(-2.0)).is_nan());
        assert!(log(&one_and_zeros(-INF)).is_nan());
        assert!(log(&one_and_zeros(NAN)).is_nan());
        assert!(log(&[0.0, INF]).is_nan());
        assert!(log(&[vec![0.0], vec![1.0; 80], vec![INF]].concat()).is_nan());
        assert_eq!(log(&[1.0; 100]).to_bits(), 0);
        let exp = |x: &[f64]| sum(LogSum::Log1pExp, x);
        assert_eq!(exp(&[]).to_bits(), 0);
        assert_eq!(exp(&[-INF; 3]).to_bits(), 0);
        assert_eq!(exp(&[0.5, INF, -INF]), INF);
        assert!(exp(&[0.5, NAN, INF]).is_nan());
        assert_eq!(exp(&[1000.0; 130]), 130_000.0);
    }
    check::<f64>();
    check::<f32>();
    let smallest = [5e-324; 64];
    assert_eq!(log_sum(LogSum::Log, &smallest), -1074.0 * 64.0 * std::f64::consts::LN_2);
    // 2^−149 · 2^127 · …
    assert_eq!(log_sum(LogSum::Log, &[1e-45_f32, 2.0_f32.powi(127), 4_194_304.0]), 0.0);
}

/// The sum of terms that are right to the last place, in two doubles.
fn exact(terms: impl Iterator<Item = f64>) -> f64 {
    let (high, low) = terms.fold((0.0, 0.0), |(high, low), x| {
        let (sum, rest) = two_sum(high, x);
        (sum, low + rest)
    });
    high + low
}

/// What is summed, which terms that are, and of which numbers.
type Case = (LogSum, UnaryFn, fn(f64) -> f64, &'static [fn(f64) -> f64]);

const CASES: [Case; 2] = [
    // Also such whose logarithms are near 0, and of both signs.
    (LogSum::Log, UnaryFn::Log, pxfm::f_log, &[|z| z.exp(), |z| 1.0 + 1e-3 * z, |z| (100.0 * z).exp()]),
    (
        LogSum::Log1pExp,
        UnaryFn::Log1pExp,
        |x| x.max(0.0) + pxfm::f_log1p(pxfm::f_exp(-x.abs())),
        &[|z| z, |z| 5.0 * z - 3.0, |z| z - 30.0, |z| z + 30.0],
    ),
];

/// The largest errors of a sum, and of the sum of the rounded terms, in units of 2^-52 times the sum of the magnitudes
/// of the terms; of logarithms of x each counts for 1 at least, since x is a factor that may be near 1.
fn largest_errors((of, f, term, _): Case, n: usize, number: fn(f64) -> f64) -> [f64; 2] {
    let mut largest = [0.0_f64; 2];
    for seed in 0..400 {
        let x: Vec<f64> = (0..n).map(|i| number(philox::normal(seed, i as u64, 9))).collect();
        let terms: Vec<f64> = x.iter().map(|x| term(*x)).collect();
        let least = if of == LogSum::Log { 1.0 } else { 0.0 };
        let unit = f64::EPSILON * terms.iter().map(|t| t.abs().max(least)).sum::<f64>();
        let mut plain = x.clone();
        unary(f, &x, &mut plain);
        let right = exact(terms.into_iter());
        for (largest, found) in largest.iter_mut().zip([log_sum(of, &x), sum(&plain)]) {
            *largest = largest.max((found - right).abs() / unit);
        }
    }
    largest
}

#[test]
fn sums_of_logarithms_are_as_near_as_the_readme_says() {
    for case in CASES {
        for n in [2, 20, 64, 1000, 10_000] {
            for number in case.3 {
                let [found, plain] = largest_errors(case, n, *number);
                eprintln!("{:?} of {n}: {found:.3}; the sum of the logarithms: {plain:.3}", case.0);
                assert!(found <= if case.0 == LogSum::Log { 1.0 } else { 8.0 });
            }
        }
    }
}
