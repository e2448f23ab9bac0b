//! Fourier transforms, as products with known matrices, so that they have derivatives like any others. A length that is a
//! product n = a b is taken apart (Cooley and Tukey 1965): transforms of length a, factors, transforms of length b.

use super::super::{Result, Tracer};
use crate::base::Span;
use crate::stan::syntax::ast::BinaryOp;
use crate::stan::value::{Kind, Val};
use crate::types::Array;

/// The length up to which one product makes the transform.
const MOST_AT_ONCE: usize = 16;

/// exp(−2πi k / n) for these k, as a matrix with so many columns.
fn roots(n: usize, shape: [usize; 2], exponents: impl Iterator<Item = usize>) -> Val {
    let angles: Vec<f64> = exponents.map(|k| -2.0 * std::f64::consts::PI * (k % n) as f64 / n as f64).collect();
    let part = |f: fn(f64) -> f64| Val::known(Kind::MATRIX, Array::real(shape, angles.iter().map(|x| f(*x)).collect()));
    Val::complex(part(f64::cos), part(f64::sin))
}

/// The largest divisor that is no larger than the root; 1 of a prime.
fn divisor(n: usize) -> usize {
    (1..=n.isqrt()).rev().find(|a| n.is_multiple_of(*a)).unwrap_or(1)
}

impl Tracer<'_> {
    /// The transform of a vector, or the inverse one, which is the conjugate of that of the conjugate, over n.
    pub(super) fn fourier(&mut self, span: Span, z: &Val, inverse: bool) -> Result<Val> {
        let (kind, shape) = (z.kind, z.shape.clone());
        let n = z.len();
        let row = z.pick(Kind::MATRIX.complex(), vec![1, n], 0..n);
        let made = self.fourier_of_rows(span, &row, inverse)?;
        Ok(made.pick(kind, shape, 0..n))
    }

    /// The transform of the rows, then of the columns.
    pub(super) fn fourier_of_matrix(&mut self, span: Span, z: &Val, inverse: bool) -> Result<Val> {
        let mut made = z.clone();
        for _ in 0..2 {
            made = self.fourier_of_rows(span, &made, inverse)?;
            made = self.transpose(span, &made)?;
        }
        Ok(made)
    }

    fn fourier_of_rows(&mut self, span: Span, z: &Val, inverse: bool) -> Result<Val> {
        if z.len() == 0 {
            return Ok(z.clone());
        }
        if !inverse {
            return self.transformed_rows(span, z);
        }
        let n = Val::real(z.shape[1] as f64);
        let conjugate = self.conjugate(span, z)?;
        let made = self.transformed_rows(span, &conjugate)?;
        let made = self.conjugate(span, &made)?;
        self.each_part(&made, |t, part| t.infix(span, "/", part, &n))
    }

    fn transformed_rows(&mut self, span: Span, z: &Val) -> Result<Val> {
        let (rows, n) = (z.shape[0], z.shape[1]);
        let a = divisor(n);
        if n <= MOST_AT_ONCE || a == 1 {
            let matrix = roots(n, [n, n], (0..n).flat_map(|j| (0..n).map(move |k| j * k)));
            return self.complex_product(span, BinaryOp::Multiply, z, &matrix);
        }
        let b = n / a;
        let matrix = Kind::MATRIX.complex();
        // Rows of what is b apart, one for each row and j2 < b.
        let apart = (0..rows).flat_map(|r| (0..b).flat_map(move |j2| (0..a).map(move |j1| r * n + j1 * b + j2)));
        let short = z.pick(matrix, vec![rows * b, a], apart);
        let short = self.transformed_rows(span, &short)?;
        let factors = (0..rows).flat_map(|_| (0..b).flat_map(|j2| (0..a).map(move |k1| j2 * k1)));
        let turned = self.times(span, &short, &roots(n, [rows * b, a], factors))?;
        // Rows over j2, one for each row and k1 < a.
        let beside = (0..rows).flat_map(|r| (0..a).flat_map(move |k1| (0..b).map(move |j2| (r * b + j2) * a + k1)));
        let long = turned.pick(matrix, vec![rows * a, b], beside);
        let long = self.transformed_rows(span, &long)?;
        // The number k1 + a k2 of a row.
        let places = (0..rows).flat_map(|r| (0..n).map(move |k| (r * a + k % a) * b + k / a));
        Ok(long.pick(matrix, vec![rows, n], places))
    }
}
