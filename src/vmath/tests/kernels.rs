//! Kernels against scalar functions, sums and products against their definition, draws of both precisions.

use super::{COMPUTED_IN_F32, INF, NAN};
use crate::philox::block;
use crate::*;

/// Numbers of every kind: random bits, moderate ones, and special ones.
fn inputs() -> Vec<f64> {
    let mut xs = vec![0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 8.0, INF, -INF, NAN, 5e-324, f64::MAX, f64::MIN, 1.5e9, 0.3, 7.0];
    for i in 0..240 {
        let [a, b, c, d] = block(1, 2, i);
        xs.push(f64::from_bits(u64::from(a) << 32 | u64::from(b)));
        xs.push((f64::from(c) - 2147483648.0) / 1e8);
        xs.push(f64::from(d) / 4294967296.0);
    }
    xs
}

#[test]
fn kernels_equal_the_scalar_functions_bit_for_bit() {
    let xs = inputs();
    let singles: Vec<f32> = xs.iter().map(|&x| x as f32).collect();
    let mut ys = vec![0.0; xs.len()];
    let mut single_ys = vec![0.0_f32; xs.len()];
    for &f in UnaryFn::ALL {
        unary(f, &xs, &mut ys);
        unary(f, &singles, &mut single_ys);
        for i in 0..xs.len() {
            let expected = f.reference(xs[i]);
            assert_eq!(ys[i].to_bits64(), expected.to_bits64(), "{}({:e})", f.name(), xs[i]);
            assert_eq!(f.apply(xs[i]).to_bits64(), expected.to_bits64(), "{}({:e})", f.name(), xs[i]);
            let expected = f.reference(singles[i]);
            assert_eq!(single_ys[i].to_bits64(), expected.to_bits64(), "{}({:e})", f.name(), singles[i]);
            if !COMPUTED_IN_F32.contains(&f) {
                let rounded = f.reference(f64::from(singles[i])) as f32;
                assert_eq!(single_ys[i].to_bits64(), rounded.to_bits64(), "{}({:e})", f.name(), singles[i]);
            }
        }
    }
    let reversed: Vec<f64> = xs.iter().rev().copied().collect();
    for &f in BinaryFn::ALL {
        binary(f, &xs, &reversed, &mut ys);
        for i in 0..xs.len() {
            let expected = f.reference(xs[i], reversed[i]);
            assert_eq!(ys[i].to_bits64(), expected.to_bits64(), "{}({:e}, {:e})", f.name(), xs[i], reversed[i]);
        }
    }
}

#[test]
fn the_logarithm_of_one_plus_an_exponential_has_the_bits_of_its_parts() {
    fn check<R: Real>(x: f64) {
        let x = R::from_f64(x);
        let e = UnaryFn::Exp.apply(-x.abs());
        let parts = if x < R::ZERO { R::ZERO } else { x } + UnaryFn::Log1p.apply(e);
        assert_eq!(UnaryFn::Log1pExp.apply(x).to_bits64(), parts.to_bits64(), "{x}");
    }
    let edges =
        [0.0, -0.0, 1e-320, 745.0, 746.5, 709.9, 1e300, f64::INFINITY, NAN, 0.881373587019543, 0.8813735870195429];
    let drawn = (0..200_000).map(|i| philox::normal::<f64>(9, 1, i) * [0.5, 3.0, 40.0, 400.0][i as usize % 4]);
    for x in edges.into_iter().chain(drawn).flat_map(|x| [x, -x]) {
        check::<f64>(x);
        check::<f32>(x);
    }
}

#[test]
fn two_functions_at_once_have_the_bits_of_each() {
    fn check<R: Real>(xs: &[R]) {
        let mut found = [xs.to_vec(), xs.to_vec()];
        let [first, second] = &mut found;
        log1p_exp_and_inv_logit(xs, first, second);
        let mut expected = xs.to_vec();
        for (f, found) in [UnaryFn::Log1pExp, UnaryFn::InvLogit].into_iter().zip(&found) {
            unary(f, xs, &mut expected);
            let same = |(a, b): (&R, &R)| a.to_bits64() == b.to_bits64();
            assert!(found.iter().zip(&expected).all(same), "{}", f.name());
        }
    }
    let xs: Vec<f64> = inputs().into_iter().chain((0..2000).map(|i| f64::from(i) - 1000.0)).collect();
    check(&xs);
    check(&xs.iter().map(|x| *x as f32).collect::<Vec<_>>());
}

#[test]
fn single_precision_draws_follow_the_double_ones() {
    let lanes = [3_u64; 100];
    let draws: Vec<u64> = (0..100).collect();
    let mut single = [0.0_f32; 100];
    philox::normal_slice(1, &lanes, &draws, &mut single);
    for (&draw, z) in draws.iter().zip(single) {
        assert_eq!(z, philox::normal::<f64>(1, 3, draw) as f32);
        let (u, v) = (philox::uniform::<f32>(1, 3, draw), philox::uniform::<f64>(1, 3, draw));
        assert!((f64::from(u) - v).abs() <= 2.0_f64.powi(-24));
    }
}

#[test]
fn dot_products_equal_matrixmultiply_bit_for_bit() {
    for (m, n) in [(1, 1), (3, 17), (8, 1)] {
        for k in [0, 1, 255, 256, 257, 512, 700, 1000] {
            let value = |lane, i: usize| philox::normal::<f64>(4, lane, i as u64);
            let a: Vec<f64> = (0..m * k).map(|i| value(0, i)).collect();
            let b: Vec<f64> = (0..k * n).map(|i| value(1, i)).collect();
            let mut c = vec![NAN; m * n];
            let (rs, cs) = (k as isize, n as isize);
            // SAFETY: a is m×k, b is k×n and c is m×n, all row-major and as long as that.
            unsafe {
                matrixmultiply::dgemm(m, k, n, 1.0, a.as_ptr(), rs, 1, b.as_ptr(), cs, 1, 0.0, c.as_mut_ptr(), cs, 1);
            }
            for (i, &c) in c.iter().enumerate() {
                let row = &a[i / n * k..][..k];
                let column: Vec<f64> = (0..k).map(|l| b[l * n + i % n]).collect();
                assert_eq!(dot(row, &column).to_bits(), c.to_bits(), "{m} × {k} × {n}");
                assert_eq!(dot_iter(row.iter().copied().zip(column)).to_bits(), c.to_bits());
            }
        }
    }
}

#[test]
fn sums_follow_their_definition() {
    assert_eq!(sum::<f64>(&[]).to_bits(), 0.0_f64.to_bits());
    assert_eq!(sum(&[-0.0_f64]).to_bits(), 0.0_f64.to_bits());
    for n in [1, 255, 256, 257, 512, 513, 1500] {
        let xs: Vec<f32> = (0..n).map(|i| philox::normal(4, 0, i)).collect();
        let blocks = xs.chunks(BLOCK).map(|block| block.iter().fold(0.0_f32, |a, &x| a + x));
        let expected = blocks.reduce(|a, b| a + b).expect("at least one block");
        assert_eq!(sum(&xs).to_bits(), expected.to_bits());
        let ones = vec![1.0; xs.len()];
        assert_eq!(dot(&xs, &ones).to_bits(), expected.to_bits());
    }
}

#[test]
fn sums_of_the_chain_rule_are_dot_products_where_these_are_numbers() {
    // A product that underflows leaves -0, which a later product of a zero makes +0, or leaves.
    for last in [0.0, -0.0] {
        let (x, y): ([f64; 4], [f64; 4]) = ([1e-200, last, 0.0, last], [-1e-200, -3.0, 2.0, -3.0]);
        for n in 0..=x.len() {
            let sum = chain_dot(n, None, |k| (x[k], y[k]));
            assert_eq!(sum.to_bits(), dot(&x[..n], &y[..n]).to_bits(), "{n} of {x:?}");
        }
    }
    let (x, y) = ([f64::INFINITY, 2.0, 0.0, 0.0], [0.0, 3.0, f64::NAN, f64::NEG_INFINITY]);
    assert_eq!(chain_dot(4, None, |k| (x[k], y[k])), 6.0);
}
