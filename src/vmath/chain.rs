//! Products and quotients of the chain rule, in which a zero wins over whatever it meets: what does not move, or is not
//! asked for, contributes nothing to a derivative. Where the plain operation gives a number, they give the same one.

use super::{BLOCK, Real};

/// `x · y`; +0 where that is no number and one of them is 0.
#[inline(always)]
pub fn chain_mul<R: Real>(x: R, y: R) -> R {
    let product = x * y;
    if product.is_nan() & ((x == R::ZERO) | (y == R::ZERO)) { R::ZERO } else { product }
}

/// `x / y`; +0 where that is no number and x is 0, or y infinite.
#[inline(always)]
pub fn chain_div<R: Real>(x: R, y: R) -> R {
    let quotient = x / y;
    if quotient.is_nan() & ((x == R::ZERO) | (y.abs() == R::INFINITY)) { R::ZERO } else { quotient }
}

/// `x · y + sum`, in one rounding; `sum` where that is no number and x or y is 0.
#[inline(always)]
pub fn chain_mul_add<R: Real>(x: R, y: R, sum: R) -> R {
    let next = x.mul_add(y, sum);
    if next.is_nan() & ((x == R::ZERO) | (y == R::ZERO)) { sum } else { next }
}

/// The dot product of so many pairs, added to `before` if there is something, in the order of [`dot`](super::dot).
pub fn chain_dot<R: Real>(n: usize, before: Option<R>, pair: impl Fn(usize) -> (R, R)) -> R {
    let mut total = before;
    for start in (0..n).step_by(BLOCK) {
        let block = (start..n.min(start + BLOCK)).fold(R::ZERO, |sum, k| {
            let (x, y) = pair(k);
            chain_mul_add(x, y, sum)
        });
        total = Some(total.map_or(block, |total| total + block));
    }
    total.unwrap_or(R::ZERO)
}

/// Solves `l @ x = b`, or `transpose(l) @ x = b`, for a lower triangular `l`; of both the elements are given.
pub fn chain_solve<R: Real>(transposed: bool, l: impl Fn(usize, usize) -> R, b: impl Fn(usize) -> R, x: &mut [R]) {
    let n = x.len();
    for step in 0..n {
        let i = if transposed { n - 1 - step } else { step };
        let known = chain_dot(step, None, |k| match transposed {
            true => (l(i + 1 + k, i), x[i + 1 + k]),
            false => (l(i, k), x[k]),
        });
        x[i] = chain_div(b(i) - known, l(i, i));
    }
}

/// Of the tangent `a` of the lower triangle of a matrix of `n` rows that of its lower triangular factor `l`, element by
/// element. Source: as of [`chain_cholesky_cotangent`].
pub fn chain_cholesky_tangent<R: Real>(
    n: usize,
    l: impl Fn(usize, usize) -> R,
    a: impl Fn(usize, usize) -> R,
    mut put: impl FnMut(usize, usize, R),
) {
    let mut x = vec![R::ZERO; n * n];
    for j in 0..n {
        for i in j..n {
            let below = chain_dot(j, None, |k| (x[i * n + k], l(j, k)));
            let beside = chain_dot(j, None, |k| (x[j * n + k], l(i, k)));
            let rest = a(i, j) - (below + beside);
            x[i * n + j] = if i == j {
                chain_div(rest * R::from_f64(0.5), l(j, j))
            } else {
                chain_div(rest - chain_mul(x[j * n + j], l(i, j)), l(j, j))
            };
            put(i, j, x[i * n + j]);
        }
    }
}

/// Of the cotangent `g` of the lower triangular factor `l` of a matrix of `n` rows that of the lower triangle of the
/// matrix, element by element.
///
/// With the symmetric s whose lower triangle, its diagonal halved, is the result, the lower triangles of `s @ l` and `g`
/// are the same; from the last column on each element is that of `g` less the products with what is known, by the
/// diagonal of `l`. Source: I. Murray, *Differentiation of the Cholesky decomposition*, arXiv:1602.07527, section 3.2.
pub fn chain_cholesky_cotangent<R: Real>(
    n: usize,
    l: impl Fn(usize, usize) -> R,
    g: impl Fn(usize, usize) -> R,
    mut put: impl FnMut(usize, usize, R),
) {
    let mut s = vec![R::ZERO; n * n];
    for j in (0..n).rev() {
        for i in (j..n).rev() {
            let known = chain_dot(n - 1 - j, None, |k| (s[i * n + j + 1 + k], l(j + 1 + k, j)));
            let x = chain_div(g(i, j) - known, l(j, j));
            (s[i * n + j], s[j * n + i]) = (x, x);
            put(i, j, if i == j { x * R::from_f64(0.5) } else { x });
        }
    }
}
