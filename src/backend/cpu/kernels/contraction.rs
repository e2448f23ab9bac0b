//! Dot products and matrix products: every element is the ascending chain of fused multiply-adds within blocks of
//! [`BLOCK`], block sums added in order ([`vmath::dot`](crate::vmath)). With the matrix the same for all lanes the product
//! is one GEMM over the lanes, whose results are this very chain for every element (`matrixmultiply`).

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, ShapeBuilder};

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
        if !call.accumulate {
            out.fill(R::ZERO);
        }
        return;
    }
    // What the result goes on from is added to by the product itself, block after block.
    let before = if call.accumulate { R::ONE } else { R::ZERO };
    match (a.broadcast, b.broadcast) {
        (true, false) => gemm(&matrix(a, [x.n, x.k]), &matrix(b, [x.k, x.m * w]), before, out),
        (false, true) => shared_right(&x, a.buffer.reals(), &matrix(b, [x.k, x.m]), before, w, out),
        (true, true) => {
            debug_assert!(!call.accumulate, "a product of shared values is computed at once");
            gemm(&matrix(a, [x.n, x.k]), &matrix(b, [x.k, x.m]), before, &mut out[..x.n * x.m]);
            for e in (0..x.n * x.m).rev() {
                let value = out[e];
                out[e * w..(e + 1) * w].fill(value);
            }
        }
        (false, false) => by_lane(&x, reals(a, w), reals(b, w), call.accumulate, w, out),
    }
}

fn matrix<'a, R: Real>(arg: &Arg<'a, R>, [rows, columns]: [usize; 2]) -> ArrayView2<'a, R> {
    let [down, right] = arg.strides.unwrap_or([columns, 1]);
    let shape = (rows, columns).strides((down, right));
    ArrayView2::from_shape(shape, arg.buffer.reals()).expect("the operand fills its shape")
}

/// `out = before * out + a @ b`.
fn gemm<R: Real>(a: &ArrayView2<'_, R>, b: &ArrayView2<'_, R>, before: R, out: &mut [R]) {
    let mut out = ArrayViewMut2::from_shape((a.nrows(), b.ncols()), out).expect("the result fills its shape");
    general_mat_mul(R::ONE, a, b, before, &mut out);
}

/// `a[i] @ b` for every row `i` of the lanes' own `a`: the transpose of `b` times the row, which is `[k][lane]`.
fn shared_right<R: Real>(x: &Extents, a: &[R], b: &ArrayView2<'_, R>, before: R, w: usize, out: &mut [R]) {
    for (row, out) in a[..x.n * x.k * w].chunks_exact(x.k * w).zip(out.chunks_exact_mut(x.m * w)) {
        let row = ArrayView2::from_shape((x.k, w), row).expect("a row of the operand");
        let mut out = ArrayViewMut2::from_shape((x.m, w), out).expect("a row of the result");
        general_mat_mul(R::ONE, &b.t(), &row, before, &mut out);
    }
}

fn by_lane<R: Real>(x: &Extents, a: Rows<'_, R>, b: Rows<'_, R>, more: bool, w: usize, out: &mut [R]) {
    let mut block = vec![R::ZERO; w];
    for (e, out) in out.chunks_exact_mut(w).enumerate() {
        let (i, j) = (e / x.m, e % x.m);
        for start in (0..x.k).step_by(BLOCK) {
            block.fill(R::ZERO);
            for k in start..x.k.min(start + BLOCK) {
                multiply_add(a.row(i * x.k + k), b.row(k * x.m + j), &mut block);
            }
            if start == 0 && !more {
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
