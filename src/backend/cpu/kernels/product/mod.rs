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

use crate::backend::cpu::helpers;
use crate::vmath::{BLOCK, Real, dot, dot_onto};

/// Rows, or columns where there is one row, of a part are a multiple of this, as many as tiles have.
const ROWS: usize = 16;
/// Elements that are read in the time of an addition, which reads two and stores one.
const READ: usize = 2;
/// Multiplications in the time of an addition, of elements that are in registers.
const FLOPS: usize = 8;
/// Sums of blocks are this much less than the elements that they are sums of: a sixteenth.
const FEW: usize = BLOCK / 16;

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
    /// So many of its rows, from `first` on. The strides stay, also along an axis that has one element then.
    fn rows(self, first: usize, count: usize) -> Self {
        Self { values: &self.values[first * self.strides[0]..], shape: [count, self.shape[1]], ..self }
    }
    /// So many of its columns, from `first` on.
    fn columns(self, first: usize, count: usize) -> Self {
        Self { values: &self.values[first * self.strides[1]..], shape: [self.shape[0], count], ..self }
    }
    fn view(&self) -> ArrayView2<'a, R> {
        let shape = (self.shape[0], self.shape[1]).strides((self.strides[0], self.strides[1]));
        ArrayView2::from_shape(shape, self.values).expect("the matrix lies within its values")
    }
}

/// `out = a @ b`, or `out = out + a @ b`, block after block, where it `adds`. `out` stands row after row. No extent is 0.
/// A large product is made by all threads of the run that have nothing else to do.
pub(super) fn product<R: Real>(a: Matrix<'_, R>, b: Matrix<'_, R>, adds: bool, out: &mut [R]) {
    let ([n, terms], m) = (a.shape, b.shape[1]);
    let out = &mut out[..n * m];
    let additions = ((n + m) * terms / READ).max(n * terms * m / FLOPS);
    let (rows, blocks) = (n.div_ceil(ROWS), terms.div_ceil(BLOCK));
    let in_rows = a.strides[1] == 1 && rows >= blocks;
    let most = if n > 1 { rows.max(blocks) } else { blocks.max(m / ROWS) };
    match helpers::parts(additions, most) {
        1 => alone(a, b, adds, out),
        parts if blocks >= parts && n * m <= FEW * (n + m) && !in_rows => by_blocks(a, b, adds, out, parts),
        parts if rows > 1 => {
            let rows = n.div_ceil(parts).next_multiple_of(ROWS);
            helpers::each_piece(out, rows * m, |first, out| alone(a.rows(first / m, out.len() / m), b, adds, out));
        }
        _ if n > 1 => alone(a, b, adds, out),
        parts => {
            let columns = m.div_ceil(parts).next_multiple_of(ROWS);
            helpers::each_piece(out, columns, |first, out| alone(a, b.columns(first, out.len()), adds, out));
        }
    }
}

/// Up to how many columns a product is quickest with the rows of the left matrix as the vector axis and in a row, so that a
/// copy that stands column after column pays: in f64 no more than one, since a tile of more goes through as many pages as
/// there are terms, and waiting for those costs more than turning rows in registers.
pub(in crate::backend::cpu) fn most_columns_of_rows<R: Real>() -> usize {
    #[cfg(target_arch = "x86_64")]
    if let (Some(kernels), 4) = (micro::chosen::<R>(), size_of::<R>()) {
        return kernels.few.len() + 1;
    }
    1
}

/// By blocks of terms, whose sums are added in their order.
fn by_blocks<R: Real>(a: Matrix<'_, R>, b: Matrix<'_, R>, adds: bool, out: &mut [R], parts: usize) {
    let (terms, size) = (a.shape[1], out.len());
    let blocks = terms.div_ceil(BLOCK);
    let mut sums = vec![R::ZERO; blocks * size];
    helpers::each_piece(&mut sums, blocks.div_ceil(parts) * size, |first, sums| {
        for (number, out) in sums.chunks_exact_mut(size).enumerate() {
            let first = (first / size + number) * BLOCK;
            let count = BLOCK.min(terms - first);
            alone(a.columns(first, count), b.rows(first, count), false, out);
        }
    });
    let mut sums = sums.chunks_exact(size);
    if !adds && let Some(first) = sums.next() {
        out.copy_from_slice(first);
    }
    for sums in sums {
        out.iter_mut().zip(sums).for_each(|(out, sum)| *out = *out + *sum);
    }
}

/// The product, by this thread.
fn alone<R: Real>(a: Matrix<'_, R>, b: Matrix<'_, R>, adds: bool, out: &mut [R]) {
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
