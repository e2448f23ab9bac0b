//! The definition of a sum of logarithms, which takes one logarithm for many terms.
//!
//! Elements are taken in ascending order, in blocks of [`LOG_BLOCK`]. Each element gives a factor and an addend, and a
//! block multiplies the factors and adds the addends; at its end it has one logarithm. The total is the first block's
//! sum, to which the later ones are added in order, and +0 where there are no elements.
//!
//! | sum of | factor f | addend g | product, from | its step | sum of the block |
//! |---|---|---|---|---|---|
//! | log(x) | m of x = 2^k m, √½ ≤ m < √2 | k | p, 1 | p f | log(p) + ln 2 Σ g |
//! | log(1 + e^x) | e^−abs(x) | max(x, 0) | p of 1 + p, 0 | fma(p, 1 + f, f) | Σ g + log1p(p) |
//!
//! A product of so many factors neither over- nor underflows, in `f32` too. The second product leaves out its 1, so that
//! small factors keep their digits. 0, infinity and NaN are factors of their own with the addend 0, and what is negative
//! is NaN: then the product is what the logarithm of the sum is made of.

use super::real::Real;

/// The length of the blocks of a sum of logarithms.
pub const LOG_BLOCK: usize = 64;

/// What is summed over the elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogSum {
    /// The natural logarithm of each.
    Log,
    /// log(1 + e^x) of each.
    Log1pExp,
}

/// What a block begins with, what it does with an element, and what it ends with.
trait Terms {
    /// The product of nothing; as a factor it changes no product.
    fn start<R: Real>() -> R;
    /// The factor and the addend of an element.
    fn parts<R: Real>(x: R) -> [R; 2];
    /// The product with one more factor.
    fn step<R: Real>(product: R, factor: R) -> R;
    /// The sum of a block, of its product and the sum of its addends.
    fn end<R: Real>(product: R, sum: R) -> R;
}

struct Logs;
struct Log1pExps;

impl Terms for Logs {
    #[inline(always)]
    fn start<R: Real>() -> R {
        R::ONE
    }
    #[inline(always)]
    fn parts<R: Real>(x: R) -> [R; 2] {
        x.log_parts()
    }
    #[inline(always)]
    fn step<R: Real>(product: R, factor: R) -> R {
        product * factor
    }
    #[inline(always)]
    fn end<R: Real>(product: R, sum: R) -> R {
        product.log_scaled(sum)
    }
}

impl Terms for Log1pExps {
    #[inline(always)]
    fn start<R: Real>() -> R {
        R::ZERO
    }
    #[inline(always)]
    fn parts<R: Real>(x: R) -> [R; 2] {
        x.log1p_exp_parts()
    }
    #[inline(always)]
    fn step<R: Real>(product: R, factor: R) -> R {
        product.mul_add(R::ONE + factor, factor)
    }
    #[inline(always)]
    fn end<R: Real>(product: R, sum: R) -> R {
        sum + product.log1p()
    }
}

/// The sum over a slice, as it is defined: one element after the other. [`log_sum`] has these bits.
pub fn log_sum_in_order<R: Real>(of: LogSum, x: &[R]) -> R {
    match of {
        LogSum::Log => in_order::<Logs, R>(x),
        LogSum::Log1pExp => in_order::<Log1pExps, R>(x),
    }
}

fn in_order<T: Terms, R: Real>(x: &[R]) -> R {
    let block = |x: &[R]| {
        let (mut product, mut sum) = (T::start(), R::ZERO);
        for x in x {
            let [factor, addend] = T::parts(*x);
            product = T::step(product, factor);
            sum = sum + addend;
        }
        T::end(product, sum)
    };
    x.chunks(LOG_BLOCK).map(block).reduce(|total, block| total + block).unwrap_or(R::ZERO)
}

/// The sum over a slice.
pub fn log_sum<R: Real>(of: LogSum, x: &[R]) -> R {
    let mut out = [R::ZERO];
    log_sums(of, x, &mut out, false);
    out[0]
}

/// For each column of a matrix, which stands row after row with as many columns as `out` has, the sum over the rows.
/// `goes_on`: the blocks are added to what is in `out`.
///
/// # Panics
///
/// When the rows are not whole.
pub fn log_sums<R: Real>(of: LogSum, x: &[R], out: &mut [R], goes_on: bool) {
    assert!(out.is_empty() || x.len().is_multiple_of(out.len()), "whole rows");
    R::log_sum_rows(of, x, None, out, goes_on);
}

/// The sums of each block of [`LOG_BLOCK`] elements of a slice, which [`log_sum`] adds up in their order; with `inv_logit`,
/// which only those of log(1 + e^x) have, that function of each element.
///
/// # Panics
///
/// When there is not one of `out` for each block, or `inv_logit` has another length than `x`.
pub fn log_block_sums<R: Real>(of: LogSum, x: &[R], inv_logit: Option<&mut [R]>, out: &mut [R]) {
    assert_eq!(x.len().div_ceil(LOG_BLOCK), out.len(), "a sum for each block");
    assert!(inv_logit.as_ref().is_none_or(|out| out.len() == x.len()), "slices of equal length");
    R::log_block_sums(of, x, inv_logit, out);
}

/// [`log_sums`] of log(1 + e^x), and `inv_logit` of each element, which have an exponential in common.
///
/// # Panics
///
/// When the rows are not whole, or `inv_logit` has another length than `x`.
pub fn sums_of_log1p_exp_and_inv_logit<R: Real>(x: &[R], inv_logit: &mut [R], out: &mut [R], goes_on: bool) {
    assert!(out.is_empty() || x.len().is_multiple_of(out.len()), "whole rows");
    assert_eq!(x.len(), inv_logit.len(), "slices of equal length");
    R::log_sum_rows(LogSum::Log1pExp, x, Some(inv_logit), out, goes_on);
}

/// Elements whose parts stand in the first cache.
const AT_ONCE: usize = 1024;
/// Most columns that go through the rows together.
const MOST_COLUMNS: usize = 256;
/// Blocks of one column that are multiplied side by side: one chain alone waits for each of its products.
const SIDE_BY_SIDE: usize = 8;

/// [`log_sums`], inlined into functions for several sets of processor features.
#[inline(always)]
pub(super) fn rows<R: Real>(of: LogSum, x: &[R], inv_logit: Option<&mut [R]>, out: &mut [R], goes_on: bool) {
    match of {
        LogSum::Log => rows_of(Logs, x, None, out, goes_on),
        LogSum::Log1pExp => rows_of(Log1pExps, x, inv_logit, out, goes_on),
    }
}

/// [`log_block_sums`], inlined into such functions.
#[inline(always)]
pub(super) fn blocks<R: Real>(of: LogSum, x: &[R], inv_logit: Option<&mut [R]>, out: &mut [R]) {
    let mut out = out.iter_mut();
    let take = |sum: R| *out.next().expect("a sum for each block") = sum;
    match of {
        LogSum::Log => column(Logs, x, None, take),
        LogSum::Log1pExp => column(Log1pExps, x, inv_logit, take),
    }
}

#[inline(always)]
fn rows_of<T: Terms, R: Real>(terms: T, x: &[R], mut inv_logit: Option<&mut [R]>, out: &mut [R], goes_on: bool) {
    let columns = out.len();
    if columns == 1 {
        let (out, mut goes_on) = (&mut out[0], goes_on);
        if !goes_on {
            *out = R::ZERO;
        }
        return column(terms, x, inv_logit, |block| {
            *out = if goes_on { *out + block } else { block };
            goes_on = true;
        });
    }
    if !goes_on {
        out.fill(R::ZERO);
    }
    let (at_once, most_columns) = (AT_ONCE.min(x.len()), MOST_COLUMNS.min(columns));
    let mut scratch = vec![R::ZERO; 2 * at_once + 2 * most_columns];
    let (factors, rest) = scratch.split_at_mut(at_once);
    let (addends, rest) = rest.split_at_mut(at_once);
    let (products, sums) = rest.split_at_mut(most_columns);
    for first in (0..columns).step_by(most_columns) {
        let width = most_columns.min(columns - first);
        let most = at_once / width;
        let (products, sums) = (&mut products[..width], &mut sums[..width]);
        for (number, block) in x.chunks(LOG_BLOCK * columns).enumerate() {
            products.fill(T::start());
            sums.fill(R::ZERO);
            let rows = block.len() / columns;
            for row in (0..rows).step_by(most) {
                let some = most.min(rows - row);
                let at = (number * LOG_BLOCK + row) * columns + first;
                // Rows that are whole stand in a row.
                let runs = if width == columns { 1 } else { some };
                let run = some * width / runs;
                for i in 0..runs {
                    let (from, to) = (at + i * columns, i * run);
                    let to = [&mut factors[to..][..run], &mut addends[to..][..run]];
                    parts::<T, R>(&x[from..][..run], inv_logit.as_deref_mut().map(|out| &mut out[from..][..run]), to);
                }
                multiply::<T, R>([&factors[..some * width], &addends[..some * width]], [&mut *products, &mut *sums]);
            }
            end::<T, R>(products, sums);
            let begins = number == 0 && !goes_on;
            for (out, block) in out[first..][..width].iter_mut().zip(&*products) {
                *out = if begins { *block } else { *out + *block };
            }
        }
    }
}

/// The sums of some blocks, in the places of their products.
#[inline(always)]
fn end<T: Terms, R: Real>(products: &mut [R], sums: &[R]) {
    for (product, sum) in products.iter_mut().zip(sums) {
        *product = T::end(*product, *sum);
    }
}

/// The factors and addends of some elements.
#[inline(always)]
fn parts<T: Terms, R: Real>(x: &[R], inv_logit: Option<&mut [R]>, [factors, addends]: [&mut [R]; 2]) {
    match inv_logit {
        Some(inv_logit) => {
            for (((x, factor), addend), out) in x.iter().zip(factors).zip(addends).zip(inv_logit) {
                ([*factor, *addend], *out) = x.log1p_exp_parts_and_inv_logit();
            }
        }
        None => {
            for ((x, factor), addend) in x.iter().zip(factors).zip(addends) {
                [*factor, *addend] = T::parts(*x);
            }
        }
    }
}

/// Takes rows of factors and addends to what their columns have.
#[inline(always)]
fn multiply<T: Terms, R: Real>(parts: [&[R]; 2], [products, sums]: [&mut [R]; 2]) {
    let width = products.len();
    let mut lane = 0;
    while lane + 16 <= width {
        multiply_lanes::<16, T, R>(parts, (width, lane), [products, sums]);
        lane += 16;
    }
    while lane + 4 <= width {
        multiply_lanes::<4, T, R>(parts, (width, lane), [products, sums]);
        lane += 4;
    }
    for lane in lane..width {
        multiply_lanes::<1, T, R>(parts, (width, lane), [products, sums]);
    }
}

/// The same for `N` columns, whose products stay in registers.
#[inline(always)]
fn multiply_lanes<const N: usize, T: Terms, R: Real>(
    [factors, addends]: [&[R]; 2],
    (width, lane): (usize, usize),
    [products, sums]: [&mut [R]; 2],
) {
    let (products, sums) = (&mut products[lane..][..N], &mut sums[lane..][..N]);
    let (mut product, mut sum) = ([R::ZERO; N], [R::ZERO; N]);
    product.copy_from_slice(products);
    sum.copy_from_slice(sums);
    for (factors, addends) in factors.chunks_exact(width).zip(addends.chunks_exact(width)) {
        let (factors, addends) = (&factors[lane..][..N], &addends[lane..][..N]);
        for i in 0..N {
            product[i] = T::step(product[i], factors[i]);
            sum[i] = sum[i] + addends[i];
        }
    }
    products.copy_from_slice(&product);
    sums.copy_from_slice(&sum);
}

/// One column: by few blocks, or many. `take` gets the sum of each, in their order.
#[inline(always)]
fn column<T: Terms, R: Real>(_: T, x: &[R], inv_logit: Option<&mut [R]>, take: impl FnMut(R)) {
    match x.len() {
        0..=LOG_BLOCK => abreast::<1, LOG_BLOCK, T, R>(x, inv_logit, take),
        n if n <= 4 * LOG_BLOCK => abreast::<4, { 4 * LOG_BLOCK }, T, R>(x, inv_logit, take),
        _ => abreast::<SIDE_BY_SIDE, { SIDE_BY_SIDE * LOG_BLOCK }, T, R>(x, inv_logit, take),
    }
}

/// Four blocks from number `first` on.
#[inline(always)]
fn four_blocks<R>(parts: &[R], first: usize) -> [&[R; LOG_BLOCK]; 4] {
    [0, 1, 2, 3].map(|block| parts[(first + block) * LOG_BLOCK..].first_chunk().expect("a whole block"))
}

/// `BLOCKS` blocks, which have `MANY` elements, side by side.
#[inline(always)]
fn abreast<const BLOCKS: usize, const MANY: usize, T: Terms, R: Real>(
    x: &[R],
    mut inv_logit: Option<&mut [R]>,
    mut take: impl FnMut(R),
) {
    let [mut factors, mut addends] = [[R::ZERO; MANY]; 2];
    for (number, x) in x.chunks(MANY).enumerate() {
        let inv_logit = inv_logit.as_deref_mut().map(|out| &mut out[number * MANY..][..x.len()]);
        parts::<T, R>(x, inv_logit, [&mut factors[..x.len()], &mut addends[..x.len()]]);
        let (mut products, mut sums) = ([T::start::<R>(); BLOCKS], [R::ZERO; BLOCKS]);
        if BLOCKS == 1 {
            for (factor, addend) in factors[..x.len()].iter().zip(&addends) {
                products[0] = T::step(products[0], *factor);
                sums[0] = sums[0] + *addend;
            }
        } else {
            // Factors of the start change no product, and addends of 0 no sum.
            factors[x.len()..].fill(T::start());
            addends[x.len()..].fill(R::ZERO);
            // Four at a time, as many as stay in registers.
            for first in (0..x.len().div_ceil(LOG_BLOCK)).step_by(4) {
                let of = |parts| four_blocks::<R>(parts, first);
                let ([f0, f1, f2, f3], [a0, a1, a2, a3]) = (of(&factors), of(&addends));
                let (mut p, mut s) = ([T::start::<R>(); 4], [R::ZERO; 4]);
                for i in 0..LOG_BLOCK {
                    p[0] = T::step(p[0], f0[i]);
                    p[1] = T::step(p[1], f1[i]);
                    p[2] = T::step(p[2], f2[i]);
                    p[3] = T::step(p[3], f3[i]);
                    s[0] = s[0] + a0[i];
                    s[1] = s[1] + a1[i];
                    s[2] = s[2] + a2[i];
                    s[3] = s[3] + a3[i];
                }
                products[first..][..4].copy_from_slice(&p);
                sums[first..][..4].copy_from_slice(&s);
            }
        }
        let blocks = x.len().div_ceil(LOG_BLOCK);
        // In arrays of their own, since those of the loop are to stay in registers.
        let (mut ends, sums) = (products, sums);
        end::<T, R>(&mut ends[..blocks], &sums);
        ends[..blocks].iter().for_each(|block| take(*block));
    }
}
