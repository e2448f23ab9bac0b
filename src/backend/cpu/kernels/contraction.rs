//! Dot products and matrix products: every element is the ascending chain of fused multiply-adds within blocks of
//! [`BLOCK`], block sums added in order ([`vmath::dot`](crate::vmath)). With the matrix the same for all lanes the product
//! is one GEMM over the lanes, whose results are this very chain for every element (`matrixmultiply`).

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2};

use super::rows::{Row, Rows, reals};
use super::{Arg, Call};
use crate::backend::cpu::buffer::Buffer;
use crate::vmath::{BLOCK, Real};

/// Extents of a product: `[n, k] @ [k, m]`; vectors have `n` or `m` 1.
struct Extents {
    n: usize,
    k: usize,
    m: usize,
}

impl Extents {
    fn of<R>(a: &Arg<'_, R>, b: &Arg<'_, R>) -> Self {
        let n = if a.ty.shape.len() == 2 { a.ty.shape[0] } else { 1 };
        let m = if b.ty.shape.len() == 2 { b.ty.shape[1] } else { 1 };
        Self { n, k: b.ty.shape[0], m }
    }
}

pub(super) fn run<R: Real>(call: &Call<'_, R>, out: &mut Buffer<R>) {
    let (a, b, w) = (&call.args[0], &call.args[1], call.width);
    let x = Extents::of(a, b);
    let out = &mut out.reals_mut()[..x.n * x.m * w];
    if x.k == 0 || out.is_empty() {
        return out.fill(R::ZERO);
    }
    match (a.broadcast, b.broadcast) {
        (true, false) => {
            gemm((a.buffer.reals(), [x.n, x.k]), (&b.buffer.reals()[..x.k * x.m * w], [x.k, x.m * w]), out);
        }
        (false, true) => shared_right(&x, a.buffer.reals(), b.buffer.reals(), w, out),
        (true, true) => {
            gemm((a.buffer.reals(), [x.n, x.k]), (b.buffer.reals(), [x.k, x.m]), &mut out[..x.n * x.m]);
            for e in (0..x.n * x.m).rev() {
                let value = out[e];
                out[e * w..(e + 1) * w].fill(value);
            }
        }
        (false, false) => by_lane(&x, reals(a, w), reals(b, w), w, out),
    }
}

type Matrix<'a, R> = (&'a [R], [usize; 2]);

fn gemm<R: Real>(a: Matrix<'_, R>, b: Matrix<'_, R>, out: &mut [R]) {
    let shape = (a.1[0], b.1[1]);
    let a = ArrayView2::from_shape(a.1, &a.0[..a.1[0] * a.1[1]]).expect("the operand fills its shape");
    let b = ArrayView2::from_shape(b.1, &b.0[..b.1[0] * b.1[1]]).expect("the operand fills its shape");
    let mut out = ArrayViewMut2::from_shape(shape, out).expect("the result fills its shape");
    general_mat_mul(R::ONE, &a, &b, R::ZERO, &mut out);
}

/// `a[i] @ b` for every row `i` of the lanes' own `a`: the transpose of `b` times the row, which is `[k][lane]`.
fn shared_right<R: Real>(x: &Extents, a: &[R], b: &[R], w: usize, out: &mut [R]) {
    let b = ArrayView2::from_shape((x.k, x.m), &b[..x.k * x.m]).expect("the operand fills its shape");
    for (row, out) in a[..x.n * x.k * w].chunks_exact(x.k * w).zip(out.chunks_exact_mut(x.m * w)) {
        let row = ArrayView2::from_shape((x.k, w), row).expect("a row of the operand");
        let mut out = ArrayViewMut2::from_shape((x.m, w), out).expect("a row of the result");
        general_mat_mul(R::ONE, &b.t(), &row, R::ZERO, &mut out);
    }
}

fn by_lane<R: Real>(x: &Extents, a: Rows<'_, R>, b: Rows<'_, R>, w: usize, out: &mut [R]) {
    let mut block = vec![R::ZERO; w];
    for (e, out) in out.chunks_exact_mut(w).enumerate() {
        let (i, j) = (e / x.m, e % x.m);
        for start in (0..x.k).step_by(BLOCK) {
            block.fill(R::ZERO);
            for k in start..x.k.min(start + BLOCK) {
                multiply_add(a.row(i * x.k + k), b.row(k * x.m + j), &mut block);
            }
            if start == 0 {
                out.copy_from_slice(&block);
            } else {
                out.iter_mut().zip(&block).for_each(|(o, b)| *o = *o + *b);
            }
        }
    }
}

fn multiply_add<R: Real>(a: Row<'_, R>, b: Row<'_, R>, sum: &mut [R]) {
    match (a, b) {
        (Row::Lanes(a), Row::Lanes(b)) => {
            sum.iter_mut().zip(a).zip(b).for_each(|((s, a), b)| *s = a.mul_add(*b, *s));
        }
        (Row::Lanes(x), Row::One(y)) | (Row::One(y), Row::Lanes(x)) => {
            sum.iter_mut().zip(x).for_each(|(s, x)| *s = x.mul_add(y, *s));
        }
        (Row::One(a), Row::One(b)) => sum.iter_mut().for_each(|s| *s = a.mul_add(b, *s)),
    }
}
