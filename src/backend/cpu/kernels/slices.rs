//! Functions of slices, long ones by all threads of the run that have nothing else to do.

use crate::backend::cpu::helpers;
use crate::vmath::{self, BinaryFn, LOG_BLOCK, LogSum, Real, UnaryFn};

/// What a function of an element costs at least, in additions.
const FUNCTION: usize = 4;
/// Elements of a piece are a multiple of this: blocks of logarithms that are multiplied side by side, and whole vectors.
const PIECE: usize = 8 * LOG_BLOCK;

/// How many elements each thread is to take at a time, where several are to take some of `n`.
fn piece(n: usize) -> Option<usize> {
    if n < 2 * PIECE {
        return None;
    }
    match helpers::parts(n.saturating_mul(FUNCTION), n / PIECE) {
        1 => None,
        parts => Some(n.div_ceil(parts).next_multiple_of(PIECE)),
    }
}

/// [`vmath::unary`].
pub(in crate::backend::cpu) fn unary<R: Real>(f: UnaryFn, x: &[R], out: &mut [R]) {
    match piece(x.len()) {
        None => vmath::unary(f, x, out),
        Some(values) => helpers::each_piece(out, values, |at, out| vmath::unary(f, &x[at..][..out.len()], out)),
    }
}

/// [`vmath::binary`].
pub(in crate::backend::cpu) fn binary<R: Real>(f: BinaryFn, x: &[R], y: &[R], out: &mut [R]) {
    let make = |at: usize, out: &mut [R]| vmath::binary(f, &x[at..][..out.len()], &y[at..][..out.len()], out);
    match piece(x.len()) {
        None => make(0, out),
        Some(values) => helpers::each_piece(out, values, make),
    }
}

/// [`vmath::log1p_exp_and_inv_logit`].
pub(in crate::backend::cpu) fn log1p_exp_and_inv_logit<R: Real>(x: &[R], log1p_exp: &mut [R], inv_logit: &mut [R]) {
    let Some(values) = piece(x.len()) else { return vmath::log1p_exp_and_inv_logit(x, log1p_exp, inv_logit) };
    helpers::each_two_pieces((log1p_exp, values), (inv_logit, values), |number, log1p_exp, inv_logit| {
        vmath::log1p_exp_and_inv_logit(&x[number * values..][..inv_logit.len()], log1p_exp, inv_logit);
    });
}

/// [`vmath::log_sums`].
pub(super) fn log_sums<R: Real>(of: LogSum, x: &[R], out: &mut [R], goes_on: bool) {
    let ([total], Some(values)) = (&mut *out, piece(x.len())) else { return vmath::log_sums(of, x, out, goes_on) };
    let mut sums = vec![R::ZERO; x.len().div_ceil(LOG_BLOCK)];
    helpers::each_piece(&mut sums, values / LOG_BLOCK, |at, sums| {
        let x = &x[at * LOG_BLOCK..];
        vmath::log_block_sums(of, &x[..x.len().min(values)], None, sums);
    });
    add_up(&sums, total, goes_on);
}

/// [`vmath::sums_of_log1p_exp_and_inv_logit`].
pub(in crate::backend::cpu) fn sums_of_log1p_exp_and_inv_logit<R: Real>(
    x: &[R],
    inv_logit: &mut [R],
    out: &mut [R],
    goes_on: bool,
) {
    let ([total], Some(values)) = (&mut *out, piece(x.len())) else {
        return vmath::sums_of_log1p_exp_and_inv_logit(x, inv_logit, out, goes_on);
    };
    let mut sums = vec![R::ZERO; x.len().div_ceil(LOG_BLOCK)];
    helpers::each_two_pieces((inv_logit, values), (&mut sums, values / LOG_BLOCK), |number, inv_logit, sums| {
        let x = &x[number * values..][..inv_logit.len()];
        vmath::log_block_sums(LogSum::Log1pExp, x, Some(inv_logit), sums);
    });
    add_up(&sums, total, goes_on);
}

/// The sums of blocks in their order.
fn add_up<R: Real>(sums: &[R], total: &mut R, goes_on: bool) {
    let (first, rest) = sums.split_first().expect("a piece has blocks");
    let start = if goes_on { *total + *first } else { *first };
    *total = rest.iter().fold(start, |total, sum| total + *sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces_have_the_bits_of_the_whole<R: Real>() {
        for n in [2 * PIECE - 1, 2 * PIECE, 5 * PIECE + 77] {
            let x: Vec<R> = (0..n).map(|i| R::from_f64((i * 37 % 1001) as f64 * 0.02 - 10.0)).collect();
            let bits = |x: &[R]| x.iter().map(|x| x.to_bits64()).collect::<Vec<u64>>();
            let [mut a, mut b, mut c, mut d] = std::array::from_fn(|_| vec![R::ZERO; n]);
            unary(UnaryFn::Exp, &x, &mut a);
            vmath::unary(UnaryFn::Exp, &x, &mut b);
            assert_eq!(bits(&a), bits(&b));
            binary(BinaryFn::Pow, &b, &x, &mut c);
            vmath::binary(BinaryFn::Pow, &b, &x, &mut d);
            assert_eq!(bits(&c), bits(&d));
            log1p_exp_and_inv_logit(&x, &mut a, &mut c);
            vmath::log1p_exp_and_inv_logit(&x, &mut b, &mut d);
            assert_eq!([bits(&a), bits(&c)], [bits(&b), bits(&d)]);
            for goes_on in [false, true] {
                let [mut by_pieces, mut whole] = [[R::from_f64(0.3)]; 2];
                sums_of_log1p_exp_and_inv_logit(&x, &mut c, &mut by_pieces, goes_on);
                vmath::sums_of_log1p_exp_and_inv_logit(&x, &mut d, &mut whole, goes_on);
                assert_eq!([bits(&by_pieces), bits(&c)], [bits(&whole), bits(&d)]);
                for of in [LogSum::Log, LogSum::Log1pExp] {
                    log_sums(of, &b, &mut by_pieces, goes_on);
                    vmath::log_sums(of, &b, &mut whole, goes_on);
                    assert_eq!(bits(&by_pieces), bits(&whole), "{of:?} of {n}");
                }
            }
        }
    }

    #[test]
    fn threads_that_share_a_slice_give_its_bits() {
        helpers::run(1, 3, &helpers::tests::cheap(), || {
            assert!(piece(2 * PIECE).is_some());
            pieces_have_the_bits_of_the_whole::<f64>();
            pieces_have_the_bits_of_the_whole::<f32>();
        });
    }
}
