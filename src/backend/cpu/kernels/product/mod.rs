//! The product of two matrices: every element is the ascending chain of fused multiply-adds within blocks of [`BLOCK`](crate::vmath::BLOCK),
//! block sums added in order, whatever the shapes, the layout and the processor.
//!
//! On x86-64 with AVX2 and FMA, kernels of our own ([`blocked`]) are 1.1 to 5 times as fast as the crate `matrixmultiply`,
//! most with few columns. Elsewhere, and where the environment variable `AUTOBATCH_GEMM` says so, the crate runs.
//! `AUTOBATCH_GEMM` is read once: `avx512` or `avx2` (where the processor has it), or `matrixmultiply`; anything else is the
//! best there is.

#[cfg(target_arch = "x86_64")]
mod blocked;
#[cfg(target_arch = "x86_64")]
mod micro;
#[cfg(test)]
mod tests;

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, ShapeBuilder};

use crate::vmath::{Real, dot, dot_onto};

/// A matrix in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matrix<'a, R> {
    /// From the first element on; there may be more values than the matrix has.
    pub(super) values: &'a [R],
    /// Rows and columns.
    pub(super) shape: [usize; 2],
    /// How far one row is from the next, and one column.
    pub(super) strides: [usize; 2],
}

impl<'a, R> Matrix<'a, R> {
    /// A matrix that stands row after row.
    pub(super) fn new(values: &'a [R], shape: [usize; 2]) -> Self {
        Self { values, shape, strides: [shape[1], 1] }
    }
    /// A view whose elements lie side by side in memory, row after row or column after column.
    pub(super) fn of(view: &ArrayView2<'a, R>) -> Self {
        let values = view.to_slice_memory_order().expect("the elements of the matrix lie side by side");
        let shape = [view.nrows(), view.ncols()];
        // An axis of one element may have any stride in a view; the kernels look for those of matrices.
        let stride = |axis: usize, usual: usize| if shape[axis] == 1 { usual } else { view.strides()[axis] as usize };
        let strides = [stride(0, shape[1]), stride(1, 1)];
        Self { values, shape, strides }
    }
    /// Its transpose.
    pub(super) fn transposed(self) -> Self {
        let ([n, m], [down, along]) = (self.shape, self.strides);
        Self { shape: [m, n], strides: [along, down], ..self }
    }
    fn view(&self) -> ArrayView2<'a, R> {
        let shape = (self.shape[0], self.shape[1]).strides((self.strides[0], self.strides[1]));
        ArrayView2::from_shape(shape, self.values).expect("the matrix lies within its values")
    }
}

/// `out = a @ b`, or `out = out + a @ b`, block after block, where it `adds`. `out` stands row after row. No extent is 0.
pub(super) fn product<R: Real>(a: Matrix<'_, R>, b: Matrix<'_, R>, adds: bool, out: &mut [R]) {
    let terms = a.shape[1];
    if a.shape[0] * b.shape[1] == 1 && a.strides[1] == 1 && b.strides[0] == 1 {
        let (a, b) = (&a.values[..terms], &b.values[..terms]);
        out[0] = if adds { dot_onto(a, b, out[0]) } else { dot(a, b) };
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if let (Some(kernels), true) = (micro::chosen(), blocked::takes(&a, &b)) {
        return blocked::product(kernels, a, b, adds, out);
    }
    by_crate(a, b, adds, out);
}

/// The same by `matrixmultiply`.
fn by_crate<R: Real>(a: Matrix<'_, R>, b: Matrix<'_, R>, adds: bool, out: &mut [R]) {
    let shape = (a.shape[0], b.shape[1]);
    let mut out = ArrayViewMut2::from_shape(shape, out).expect("the result fills its shape");
    let before = if adds { R::ONE } else { R::ZERO };
    general_mat_mul(R::ONE, &a.view(), &b.view(), before, &mut out);
}
