//! Cholesky factors and triangular solves. Sums are chains as of a dot product.

use crate::vmath::{self, Real};

/// The lower triangular factor of a matrix of `n` rows, of which the lower triangle is read. A pivot that is not positive
/// becomes NaN, and so does what comes after it.
pub(super) fn cholesky<R: Real>(a: &[R], n: usize) -> Vec<R> {
    let mut l = vec![R::ZERO; n * n];
    for j in 0..n {
        for i in j..n {
            let known = vmath::dot(&l[i * n..i * n + j], &l[j * n..j * n + j]);
            let rest = a[i * n + j] - known;
            l[i * n + j] = if i > j {
                rest / l[j * n + j]
            } else if rest > R::ZERO {
                rest.sqrt()
            } else {
                R::NAN
            };
        }
    }
    l
}

/// The solution x of `l @ x = b`, of which `b` has `n` rows, or, `transposed`, of `transpose(l) @ x = b`; in the
/// arithmetic of the chain rule, if that is wanted. Of `l` the lower triangle is read.
pub(super) fn solve<R: Real>(l: &[R], b: &[R], n: usize, (transposed, chain_rule): (bool, bool)) -> Vec<R> {
    let columns = b.len().checked_div(n).unwrap_or(0);
    let mut x = vec![R::ZERO; b.len()];
    for column in 0..columns {
        for step in 0..n {
            let i = if transposed { n - 1 - step } else { step };
            let known = if transposed { i + 1..n } else { 0..i };
            let factors: Vec<R> = known.clone().map(|k| if transposed { l[k * n + i] } else { l[i * n + k] }).collect();
            let values: Vec<R> = known.map(|k| x[k * columns + column]).collect();
            x[i * columns + column] = (b[i * columns + column] - vmath::dot(&factors, &values)) / l[i * n + i];
        }
        if chain_rule && (0..n).any(|i| x[i * columns + column].is_nan()) {
            let mut solved = vec![R::ZERO; n];
            vmath::chain_solve(transposed, |i, k| l[i * n + k], |i| b[i * columns + column], &mut solved);
            (0..n).for_each(|i| x[i * columns + column] = solved[i]);
        }
    }
    x
}

/// Of the tangent of a matrix, or the cotangent of its factor `l`, that of the other, in the arithmetic of the chain rule.
/// Of both arguments the lower triangle is read.
pub(super) fn cholesky_derivative<R: Real>(l: &[R], of: &[R], n: usize, cotangent: bool) -> Vec<R> {
    let mut derivative = vec![R::ZERO; n * n];
    let (l, of) = (|i, k| l[i * n + k], |i, k| of[i * n + k]);
    let put = |i, k, x| derivative[i * n + k] = x;
    match cotangent {
        false => vmath::chain_cholesky_tangent(n, l, of, put),
        true => vmath::chain_cholesky_cotangent(n, l, of, put),
    }
    derivative
}
