//! Elementary functions, sums and random bits that every engine shares, so that all of them agree bit for bit.
//!
//! Only IEEE 754 operations (add, subtract, multiply, divide, square root, fused multiply-add, comparison,
//! rounding to an integer) and bit operations are used, in one fixed order. The same text therefore gives the
//! same bits in the interpreter, in the vectorised kernels and on every processor; the host's `libm` is never
//! asked. NaN payloads are the one exception: compare with [`Real::to_bits64`], which knows a single NaN.
//!
//! * [`Real`]: `f64` or `f32`, with every function as a method, for one value.
//! * [`unary`], [`binary`]: the same functions over slices, compiled for AVX-512, AVX2 and the base
//!   processor, and chosen once at run time. Without the FMA instruction `mul_add` is a slow library call with
//!   the same result, so kernels and interpreters go through these ([`UnaryFn::apply`] is for one value).
//! * [`sum_iter`], [`dot_iter`], [`BlockSum`]: THE definition of a sum and of a dot product.
//! * [`log_sum`]: that of a sum of logarithms.
//! * [`philox`]: counter-based random numbers.
//!
//! In `f32` the exponential, the natural logarithms and the logistic functions are computed in `f32`; any other function is
//! the `f64` function rounded once. Accuracy is measured by the tests against
//! `pxfm` and `mpmath`; the table is in `src/vmath/README.md`.

/// `c0 + c1·x + c2·x² + …` by Horner's rule with fused multiply-adds, unrolled; in `f64` unless it says `f32:` before x.
macro_rules! horner {
    (f32: $x:expr; $($c:expr),+ $(,)?) => { horner!(@ f32 $x; $($c),+) };
    (@ $real:ident $x:expr; $c:expr) => { $c };
    (@ $real:ident $x:expr; $c:expr, $($rest:expr),+) => {
        $real::mul_add(horner!(@ $real $x; $($rest),+), $x, $c)
    };
    ($x:expr; $($c:expr),+ $(,)?) => { horner!(@ f64 $x; $($c),+) };
}

#[macro_use]
mod functions;
#[macro_use]
mod targets;

mod bits;
mod blend;
mod chain;
mod double_double;
mod error_function;
mod exp_log;
mod exp_log_single;
mod gamma;
mod hyperbolic;
mod inverse_trig;
mod log_sums;
pub mod philox;
mod power;
mod real;
mod slices;
mod sums;
mod trig;

#[cfg(test)]
mod tests;

pub use bits::{bits_equal, bits_of, byte_mask};
pub use blend::Blend;
pub use chain::{
    chain_cholesky_cotangent, chain_cholesky_tangent, chain_div, chain_dot, chain_mul, chain_mul_add, chain_solve,
};
pub use log_sums::{
    LOG_BLOCK, LogSum, log_block_sums, log_sum, log_sum_in_order, log_sums, sums_of_log1p_exp_and_inv_logit,
};
pub use real::Real;
pub use slices::{BinaryFn, Computed, SliceKernels, UnaryFn, binary, log1p_exp_and_inv_logit, unary};
pub use sums::{BLOCK, BlockSum, dot, dot_iter, dot_onto, each_block, sum, sum_iter};
