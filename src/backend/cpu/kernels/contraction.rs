//! Dot products and matrix products: every element is the ascending chain of fused multiply-adds within blocks of
//! [`BLOCK`], block sums added in order ([`vmath::dot`](crate::vmath)). With the matrix the same for all lanes the product
//! is one matrix product over the lanes, whose results are this very chain for every element ([`product`]). A
//! batched product is one after the other. In those of the chain rule what comes out as NaN is computed again, element
//! by element: a zero that meets what is no number makes the ordinary result NaN, so that all other results are right.

use ndarray::ArrayView2;

use super::call::{Active, KernelArg, KernelCall};
use super::product::{self, Matrix};
use super::rows::multiversioned;
use crate::backend::cpu::buffer::Buffer;
use crate::prim::Contraction;
use crate::vmath::{BLOCK, Real, chain_dot};

/// Extents of a product: `[n, k] @ [k, m]`; vectors have `n` or `m` 1.
struct Extents {
    n: usize,
    k: usize,
    m: usize,
}

impl Extents {
    /// Of operands of these shapes.
    fn of(a: &[usize], b: &[usize]) -> Self {
        let n = if a.len() == 2 { a[0] } else { 1 };
        let m = if b.len() == 2 { b[1] } else { 1 };
        Self { n, k: b[0], m }
    }
}

pub(super) fn run<R: Real>(contraction: Contraction, call: &KernelCall<'_, R>, out: &mut Buffer<R>) {
    let (a, b, w) = (&call.args[0], &call.args[1], call.width);
    let out = &mut out.reals_mut()[..call.elements() * w];
    let all = [a, b].map(Factor::new);
    let goes_on = call.accumulate;
    let (batched, chain_rule) = match contraction {
        Contraction::Dot | Contraction::MatMul => (false, None),
        Contraction::BatchMatMul => (true, None),
        Contraction::ChainDot | Contraction::ChainMatMul => (false, Some(call.active)),
        Contraction::ChainBatchMatMul => (true, Some(call.active)),
    };
    if !batched {
        return one_product(&Extents::of(&a.ty.shape, &b.ty.shape), all, (goes_on, chain_rule), w, out);
    }
    let x = Extents::of(&a.ty.shape[1..], &b.ty.shape[1..]);
    if out.is_empty() {
        return;
    }
    for (i, out) in out.chunks_exact_mut(x.n * x.m * w).enumerate() {
        let factors = [all[0].part(i, x.n * x.k, w), all[1].part(i, x.k * x.m, w)];
        one_product(&x, factors, (goes_on, chain_rule), w, out);
    }
}

/// The product; of the chain rule, with the lanes that count, if these are told.
fn one_product<R: Real>(
    x: &Extents,
    factors: [Factor<'_, R>; 2],
    (goes_on, chain_rule): (bool, Option<Active<'_>>),
    w: usize,
    out: &mut [R],
) {
    let Some(active) = chain_rule else { return extents_product(x, factors, goes_on, w, out) };
    let before = if goes_on { out.to_vec() } else { Vec::new() };
    extents_product(x, factors, goes_on, w, out);
    if out.iter().fold(false, |any, x| any | x.is_nan()) {
        again(x, factors, &before, active, w, out);
    }
}

/// Computes what is NaN again, in the arithmetic of the chain rule. `before`: what it is added to, if anything.
#[cold]
fn again<R: Real>(x: &Extents, [a, b]: [Factor<'_, R>; 2], before: &[R], active: Active<'_>, w: usize, out: &mut [R]) {
    for (at, value) in out.iter_mut().enumerate().filter(|(_, value)| value.is_nan()) {
        let (e, lane) = (at / w, at % w);
        if active.contains(lane) {
            let (i, j) = (e / x.m, e % x.m);
            let pair = |k: usize| (a.at([i, k], x.k, (lane, w)), b.at([k, j], x.m, (lane, w)));
            *value = chain_dot(x.k, before.get(at).copied(), pair);
        }
    }
}

/// An operand: its values, whether they are the same in all lanes, and how they stand if not row after row.
#[derive(Clone, Copy)]
struct Factor<'a, R> {
    values: &'a [R],
    common: bool,
    strides: Option<[usize; 2]>,
}

impl<'a, R: Real> Factor<'a, R> {
    fn new(arg: &KernelArg<'a, R>) -> Self {
        Self { values: arg.buffer.reals(), common: arg.broadcast, strides: arg.strides }
    }
    /// The `i`-th of matrices of so many elements.
    fn part(self, i: usize, elements: usize, w: usize) -> Self {
        let size = if self.common { elements } else { elements * w };
        Self { values: &self.values[i * size..], ..self }
    }
    /// The element at a place of a matrix of so many columns, in one of so many lanes.
    fn at(&self, [row, column]: [usize; 2], columns: usize, (lane, w): (usize, usize)) -> R {
        match (self.common || w == 1, self.strides) {
            (true, Some([down, right])) => self.values[row * down + column * right],
            (true, None) => self.values[row * columns + column],
            (false, _) => self.values[(row * columns + column) * w + lane],
        }
    }
    fn matrix(&self, shape: [usize; 2]) -> Matrix<'a, R> {
        let matrix = Matrix::new(self.values, shape);
        Matrix { strides: self.strides.unwrap_or(matrix.strides), ..matrix }
    }
}

/// The product; added to what is in `out`, block after block, when it goes on from there.
fn extents_product<R: Real>(x: &Extents, [a, b]: [Factor<'_, R>; 2], goes_on: bool, w: usize, out: &mut [R]) {
    if x.k == 0 || out.is_empty() {
        if !goes_on {
            out.fill(R::ZERO);
        }
        return;
    }
    match (a.common, b.common) {
        // In a single lane everything is a matrix.
        _ if w == 1 => product::product(a.matrix([x.n, x.k]), b.matrix([x.k, x.m]), goes_on, out),
        (true, false) => product::product(a.matrix([x.n, x.k]), b.matrix([x.k, x.m * w]), goes_on, out),
        (false, true) => shared_right(x, a.values, b.matrix([x.k, x.m]), goes_on, w, out),
        (true, true) => {
            debug_assert!(!goes_on, "a product of shared values is computed at once");
            product::product(a.matrix([x.n, x.k]), b.matrix([x.k, x.m]), goes_on, &mut out[..x.n * x.m]);
            for e in (0..x.n * x.m).rev() {
                let value = out[e];
                out[e * w..(e + 1) * w].fill(value);
            }
        }
        (false, false) => by_lane(x, [a.values, b.values], goes_on, w, out),
    }
}

/// `out = a @ b`, row after row, or added to what is there: the matrix product of the machine, for those who measure it.
///
/// # Panics
///
/// When the extents do not fit one another.
pub fn gemm<R: Real>(a: &ArrayView2<'_, R>, b: &ArrayView2<'_, R>, adds: bool, out: &mut [R]) {
    product::product(Matrix::of(a), Matrix::of(b), adds, out);
}

/// `a[i] @ b` for every row `i` of the lanes' own `a`: the transpose of `b` times the row, which is `[k][lane]`.
fn shared_right<R: Real>(x: &Extents, a: &[R], b: Matrix<'_, R>, goes_on: bool, w: usize, out: &mut [R]) {
    for (row, out) in a[..x.n * x.k * w].chunks_exact(x.k * w).zip(out.chunks_exact_mut(x.m * w)) {
        product::product(b.transposed(), Matrix::new(row, [x.k, w]), goes_on, out);
    }
}

multiversioned! {
    /// Every lane its own factors.
    fn by_lane<R: Real>(x: &Extents, factors: [&[R]; 2], goes_on: bool, w: usize, out: &mut [R]) {
        for (e, out) in out.chunks_exact_mut(w).enumerate() {
            let mut lane = 0;
            while lane + 16 <= w {
                dots_of_lanes::<16, R>(x, e, factors, goes_on, (out, lane));
                lane += 16;
            }
            while lane + 4 <= w {
                dots_of_lanes::<4, R>(x, e, factors, goes_on, (out, lane));
                lane += 4;
            }
            for lane in lane..w {
                dots_of_lanes::<1, R>(x, e, factors, goes_on, (out, lane));
            }
        }
    }
}

/// Element `e` of the product in `N` lanes: sums that stay in registers.
#[inline(always)]
fn dots_of_lanes<const N: usize, R: Real>(
    x: &Extents,
    e: usize,
    [a, b]: [&[R]; 2],
    goes_on: bool,
    (out, lane): (&mut [R], usize),
) {
    let (w, i, j) = (out.len(), e / x.m, e % x.m);
    let out = &mut out[lane..][..N];
    for start in (0..x.k).step_by(BLOCK) {
        let mut sums = [R::ZERO; N];
        for k in start..x.k.min(start + BLOCK) {
            let a = &a[(i * x.k + k) * w + lane..][..N];
            let b = &b[(k * x.m + j) * w + lane..][..N];
            for l in 0..N {
                sums[l] = a[l].mul_add(b[l], sums[l]);
            }
        }
        if start > 0 || goes_on {
            for l in 0..N {
                sums[l] = out[l] + sums[l];
            }
        }
        out.copy_from_slice(&sums);
    }
}
