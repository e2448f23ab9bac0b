//! Products against the chain that defines them, for every kind of processor that the one at hand can be.

use ndarray::{ArrayView2, ShapeBuilder as _};

use super::{Matrix, by_crate, product};
use crate::backend::cpu::helpers;
use crate::vmath::{BLOCK, Real};

/// Numbers of many magnitudes, some of them special.
fn numbers<R: Real>(count: usize, seed: u64) -> Vec<R> {
    let value = |i: usize| {
        let bits =
            (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(seed).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (bits >> 11) as f64 / (1_u64 << 52) as f64 - 1.0;
        match bits >> 3 & 1023 {
            0 => -0.0,
            1 => f64::INFINITY,
            2 => 1e-40,
            _ => x * (1_u64 << (bits & 7)) as f64,
        }
    };
    (0..count).map(|i| R::from_f64(value(i))).collect()
}

/// The definition.
fn chain<R: Real>(a: &Matrix<'_, R>, b: &Matrix<'_, R>, before: Option<R>, [i, j]: [usize; 2]) -> R {
    let at = |x: &Matrix<'_, R>, i: usize, j: usize| x.values[i * x.strides[0] + j * x.strides[1]];
    let mut total = before;
    for first in (0..a.shape[1]).step_by(BLOCK) {
        let terms = first..a.shape[1].min(first + BLOCK);
        let block = terms.fold(R::ZERO, |sum, t| R::mul_add(at(a, i, t), at(b, t, j), sum));
        total = Some(total.map_or(block, |total| total + block));
    }
    total.expect("there are terms")
}

type Product<R> = dyn Fn(Matrix<'_, R>, Matrix<'_, R>, bool, &mut [R]);

fn check<R: Real>(name: &str, product: &Product<R>) {
    let rows = [1, 2, 3, 7, 12, 13, 16, 17, 31, 100, 230];
    let terms = [1, 2, 3, 5, 8, 100, 255, 256, 257, 600];
    let columns = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 31, 33, 64, 100, 257, 513];
    for (n, k, m) in rows.iter().flat_map(|n| terms.iter().flat_map(move |k| columns.map(|m| (*n, *k, m)))) {
        if n * k * m > 400_000 {
            continue;
        }
        let (a, b, start) = (numbers(n * k, 1), numbers(k * m, 2), numbers::<R>(n * m, 3));
        let b = Matrix::new(&b, [k, m]);
        for a in [Matrix::new(&a, [n, k]), Matrix::new(&a, [k, n]).transposed()] {
            for adds in [false, true] {
                let mut out = start.clone();
                product(a, b, adds, &mut out);
                // One element of every few: all places of a tile come up, and all of small products.
                for e in (0..n * m).step_by(1 + n * m / 200) {
                    let expected = chain(&a, &b, adds.then_some(start[e]), [e / m, e % m]);
                    let strides = a.strides;
                    assert_eq!(
                        out[e].to_bits64(),
                        expected.to_bits64(),
                        "{name}: [{n}, {k}] @ [{k}, {m}], strides {strides:?}, adds {adds}, element {e}",
                    );
                }
            }
        }
    }
}

#[test]
fn every_product_is_the_chain_of_its_definition() {
    check::<f64>("as chosen", &product);
    check::<f32>("as chosen", &product);
}

#[test]
fn threads_that_share_a_product_give_its_bits() {
    helpers::run(1, 3, &helpers::tests::cheap(), || {
        check::<f64>("shared", &product);
        check::<f32>("shared", &product);
        for (n, k, m) in [(40, 3000, 1), (1, 3000, 40), (1, 40, 3000), (3000, 40, 1), (40, 3000, 3), (300, 2000, 20)] {
            let (a, b, start) = (numbers::<f64>(n * k, 1), numbers(k * m, 2), numbers(n * m, 3));
            let b = Matrix::new(&b, [k, m]);
            for a in [Matrix::new(&a, [n, k]), Matrix::new(&a, [k, n]).transposed()] {
                for adds in [false, true] {
                    let [mut shared, mut whole] = [start.clone(), start.clone()];
                    product(a, b, adds, &mut shared);
                    super::alone(a, b, adds, &mut whole);
                    let same = shared.iter().zip(&whole).all(|(a, b)| a.to_bits64() == b.to_bits64());
                    assert!(same, "[{n}, {k}] @ [{k}, {m}], strides {:?}, adds {adds}", a.strides);
                }
            }
        }
    });
}

#[test]
#[cfg(target_arch = "x86_64")]
fn every_instruction_set_gives_the_same_product() {
    for level in super::micro::Level::available() {
        let name = format!("{level:?}");
        let double = level.kernels::<f64>().expect("there are tiles");
        check::<f64>(&name, &|a, b, adds, out| super::blocked::product(double, a, b, adds, out));
        let single = level.kernels::<f32>().expect("there are tiles");
        check::<f32>(&name, &|a, b, adds, out| super::blocked::product(single, a, b, adds, out));
    }
}

#[test]
fn the_crate_computes_the_chain_too() {
    check::<f64>("matrixmultiply", &by_crate);
    check::<f32>("matrixmultiply", &by_crate);
}

#[test]
fn products_beyond_one_block_of_columns_and_rows_are_right() {
    for (n, k, m) in [(700, 60, 9), (5, 300, 1100), (400, 257, 40)] {
        let (a, b) = (numbers::<f64>(n * k, 1), numbers(k * m, 2));
        let (a, b) = (Matrix::new(&a, [n, k]), Matrix::new(&b, [k, m]));
        let (mut ours, mut theirs) = (vec![0.0; n * m], vec![0.0; n * m]);
        product(a, b, false, &mut ours);
        by_crate(a, b, false, &mut theirs);
        assert!(ours.iter().zip(&theirs).all(|(a, b)| a.to_bits64() == b.to_bits64()), "[{n}, {k}] @ [{k}, {m}]");
    }
}

/// A column that was cut out of a wider matrix, or turned around, is what a vector is.
#[test]
fn an_axis_of_one_element_has_the_usual_stride() {
    let values = [1.0, 2.0, 3.0, 4.0];
    for along in [1, 4, 100] {
        let column = ArrayView2::from_shape((4, 1).strides((1, along)), &values).unwrap();
        assert_eq!(Matrix::of(&column).strides, [1, 1]);
    }
    let row = ArrayView2::from_shape((1, 4).strides((1, 1)), &values).unwrap();
    assert_eq!(Matrix::of(&row).strides, [4, 1]);
}
