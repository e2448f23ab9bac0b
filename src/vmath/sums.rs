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

/// The sum of a slice: `sum_iter`'s bits.
pub fn sum<R: Real>(x: &[R]) -> R {
    sum_iter(x.iter().copied())
}

/// The dot product of two slices of equal length: `dot_iter`'s bits, with the processor's FMA instruction.
///
/// # Panics
///
/// When the lengths differ.
pub fn dot<R: Real>(a: &[R], b: &[R]) -> R {
    assert_eq!(a.len(), b.len(), "a dot product takes slices of equal length");
    R::dot_slices(a, b)
}
