//! The definition of a sum and of a dot product.
//!
//! Elements are taken in ascending order, in blocks of [`BLOCK`]. Within a block an accumulator starts at +0 and
//! every element is added to it: `block = block + x` for a sum, `block = fma(a, b, block)` for a dot product.
//! The total is the first block's sum, to which the later ones are added in order: `total = total + block`. An
//! empty sum is +0. This is exactly what `matrixmultiply` computes for every element of a product, whatever the
//! shapes and layouts, so that matrix products need no definition of their own.

use super::real::Real;

/// The length of the blocks of a sum.
pub const BLOCK: usize = 256;

/// A sum in the making: [`push`](BlockSum::push) its terms in ascending order.
#[derive(Clone, Copy, Debug)]
pub struct BlockSum<R> {
    total: R,
    block: R,
    pushed: usize,
}

impl<R: Real> BlockSum<R> {
    /// The empty sum.
    pub fn new() -> Self {
        BlockSum { total: R::ZERO, block: R::ZERO, pushed: 0 }
    }

    /// Adds the next term.
    #[inline(always)]
    pub fn push(&mut self, x: R) {
        self.next_block();
        self.block = self.block + x;
    }

    /// Adds the next term, the product `a · b`, with a single rounding.
    #[inline(always)]
    pub fn push_product(&mut self, a: R, b: R) {
        self.next_block();
        self.block = a.mul_add(b, self.block);
    }

    /// The sum of the terms so far.
    #[inline(always)]
    pub fn total(&self) -> R {
        if self.pushed <= BLOCK { self.block } else { self.total + self.block }
    }

    /// Makes room for one more term.
    #[inline(always)]
    fn next_block(&mut self) {
        if self.pushed > 0 && self.pushed.is_multiple_of(BLOCK) {
            self.total = self.total();
            self.block = R::ZERO;
        }
        self.pushed += 1;
    }
}

impl<R: Real> Default for BlockSum<R> {
    fn default() -> Self {
        BlockSum::new()
    }
}

/// The sum of the terms, in their order.
pub fn sum_iter<R: Real>(terms: impl IntoIterator<Item = R>) -> R {
    let mut sum = BlockSum::new();
    for x in terms {
        sum.push(x);
    }
    sum.total()
}

/// The sum of the products of the pairs, in their order.
pub fn dot_iter<R: Real>(pairs: impl IntoIterator<Item = (R, R)>) -> R {
    let mut sum = BlockSum::new();
    for (a, b) in pairs {
        sum.push_product(a, b);
    }
    sum.total()
}

/// How many blocks of a slice are summed side by side: one chain alone waits for each of its additions.
const SIDE_BY_SIDE: usize = 4;

/// Calls `f` with the sum of each block of the slices, in order; `step` adds a pair to the sum of its block.
#[inline(always)]
fn block_sums<R: Real>(a: &[R], b: &[R], step: impl Fn(R, R, R) -> R, mut f: impl FnMut(R)) {
    let b = &b[..a.len()];
    let whole = a.len() / (SIDE_BY_SIDE * BLOCK) * (SIDE_BY_SIDE * BLOCK);
    let many = |x| <[R]>::chunks_exact(x, SIDE_BY_SIDE * BLOCK);
    for (a, b) in many(&a[..whole]).zip(many(&b[..whole])) {
        let ([a, b], mut sums) = ([a, b].map(|x| x.as_chunks::<BLOCK>().0), [R::ZERO; SIDE_BY_SIDE]);
        let ([a0, a1, a2, a3], [b0, b1, b2, b3]) = (a, b) else { unreachable!("four blocks") };
        for i in 0..BLOCK {
            sums[0] = step(a0[i], b0[i], sums[0]);
            sums[1] = step(a1[i], b1[i], sums[1]);
            sums[2] = step(a2[i], b2[i], sums[2]);
            sums[3] = step(a3[i], b3[i], sums[3]);
        }
        sums.into_iter().for_each(&mut f);
    }
    for (a, b) in a[whole..].chunks(BLOCK).zip(b[whole..].chunks(BLOCK)) {
        f(a.iter().zip(b).fold(R::ZERO, |sum, (x, y)| step(*x, *y, sum)));
    }
}

/// The sums of the blocks of a slice, in order.
pub fn each_block<R: Real>(x: &[R], f: impl FnMut(R)) {
    block_sums(x, x, |x, _, sum| sum + x, f);
}

/// `total`, to which the dot products of the blocks are added in order; without it the first of them begins.
#[inline(always)]
pub(super) fn dot_from<R: Real>(a: &[R], b: &[R], total: Option<R>) -> R {
    let mut total = total;
    block_sums(a, b, |x, y, sum| x.mul_add(y, sum), |block| total = Some(total.map_or(block, |t| t + block)));
    total.unwrap_or(R::ZERO)
}

/// The sum of a slice: `sum_iter`'s bits.
pub fn sum<R: Real>(x: &[R]) -> R {
    let mut total = None;
    each_block(x, |block| total = Some(total.map_or(block, |t: R| t + block)));
    total.unwrap_or(R::ZERO)
}

/// The dot product of two slices of equal length: `dot_iter`'s bits, with the processor's FMA instruction.
///
/// # Panics
///
/// When the lengths differ.
pub fn dot<R: Real>(a: &[R], b: &[R]) -> R {
    assert_eq!(a.len(), b.len(), "a dot product takes slices of equal length");
    R::dot_slices(a, b, None)
}

/// `total` and the dot product of two slices of equal length, whose blocks are added to it in order.
///
/// # Panics
///
/// When the lengths differ.
pub fn dot_onto<R: Real>(a: &[R], b: &[R], total: R) -> R {
    assert_eq!(a.len(), b.len(), "a dot product takes slices of equal length");
    R::dot_slices(a, b, Some(total))
}
