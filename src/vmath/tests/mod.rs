//! Accuracy against `pxfm` and `mpmath`, special values, kernels against scalars, sums against `matrixmultiply`.

mod accuracy;
mod kernels;
mod log_sums;
mod special_values;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// The functions that `f32` does not take from `f64`.
const COMPUTED_IN_F32: [crate::UnaryFn; 6] = {
    use crate::UnaryFn::*;
    [Exp, Log, Log1p, InvLogit, Log1pExp, LogInvLogit]
};

/// The distance of two numbers in units of the last place; 0 for two NaNs, huge for one.
fn ulps(a: f64, b: f64) -> u64 {
    if a.is_nan() || b.is_nan() {
        return if a.is_nan() && b.is_nan() { 0 } else { u64::MAX };
    }
    let order = |x: f64| {
        let bits = x.to_bits() as i64;
        i128::from(if bits < 0 { i64::MIN - bits } else { bits })
    };
    (order(a) - order(b)).unsigned_abs() as u64
}
