//! The table of the functions of reals. One row is one function: [`UnaryFn`](super::UnaryFn) and
//! [`BinaryFn`](super::BinaryFn), the methods of [`Real`](super::Real), the kernels over slices, and in the compiler
//! the primitive, its name in programs and the names in generated C are all made from it.

/// Calls the macro `$then` with `$with` and the table.
///
/// A row of `unary` or `binary` is a primitive of the language: its variant, the method of `Real`, how the method is
/// computed, the name of the primitive, what its derivative is, its cost (an addition is 1) and what it gives. A row of
/// `other_unary` or `other_binary` is a function that is no primitive, or part of one that takes ints as well.
///
/// A method is computed by `[native]` instructions of the processor, in `[each precision]` by a text of its own,
/// through `[f64 m]`, the function of the same name in module `m`, rounded, or as a `[periodic m near]` function of an
/// angle, whose kernel takes function `near` where no angle is large.
#[macro_export]
macro_rules! real_functions {
    ($then:ident! $with:tt) => {
        $then! {
            $with
            unary {
                Sqrt sqrt [native] "sqrt" Smooth 6 "square root, correctly rounded; NaN below 0, −0 at −0"
                Exp exp [each precision] "exp" Smooth 8 "e^x"
                Expm1 expm1 [f64 exp_log] "expm1" Smooth 10 "e^x - 1 without cancellation"
                Exp2 exp2 [f64 exp_log] "exp2" Smooth 8 "2^x, exact at integers"
                Log log [each precision] "log" Smooth 10 "natural logarithm; −∞ at 0, NaN below"
                Log1p log1p [each precision] "log1p" Smooth 12 "log(1 + x) without cancellation; −∞ at −1, NaN below"
                Log1m log1m [f64 exp_log] "log1m" Smooth 12 "log(1 - x) without cancellation; −∞ at 1, NaN above"
                Log1mExp log1m_exp [f64 exp_log] "log1m_exp" Smooth 20 "log(1 - e^x) without cancellation; −∞ at 0, NaN above"
                Log2 log2 [f64 exp_log] "log2" Smooth 10 "logarithm to base 2, exact at powers of two; −∞ at 0, NaN below"
                Log10 log10 [f64 exp_log] "log10" Smooth 10 "logarithm to base 10; −∞ at 0, NaN below"
                Cbrt cbrt [f64 power] "cbrt" Smooth 20 "cube root, with the sign of x"
                Sin sin [periodic trig sin_near] "sin" Smooth 12 "sine of an angle in radians, however large; NaN at ±∞"
                Cos cos [periodic trig cos_near] "cos" Smooth 12 "cosine of an angle in radians, however large; NaN at ±∞"
                Tan tan [periodic trig tan_near] "tan" Smooth 20 "tangent of an angle in radians, however large; NaN at ±∞"
                Asin asin [f64 inverse_trig] "asin" Smooth 16 "arc sine, in [−π/2, π/2]; NaN outside [−1, 1]"
                Acos acos [f64 inverse_trig] "acos" Smooth 16 "arc cosine, in [0, π]; NaN outside [−1, 1]"
                Atan atan [f64 inverse_trig] "atan" Smooth 16 "arc tangent, in [−π/2, π/2]"
                Sinh sinh [f64 hyperbolic] "sinh" Smooth 14 "hyperbolic sine"
                Cosh cosh [f64 hyperbolic] "cosh" Smooth 14 "hyperbolic cosine"
                Tanh tanh [f64 hyperbolic] "tanh" Smooth 12 "hyperbolic tangent"
                InvLogit inv_logit [each precision] "inv_logit" Smooth 12 "1 / (1 + e^-x)"
                Log1pExp log1p_exp [each precision] "log1p_exp" Smooth 20 "log(1 + e^x)"
                LogInvLogit log_inv_logit [each precision] "log_inv_logit" Smooth 20 "log(inv_logit(x))"
                InvCloglog inv_cloglog [f64 exp_log] "inv_cloglog" Smooth 16 "1 - e^(-e^x), the inverse of the complementary log-log function"
                Erf erf [f64 error_function] "erf" Smooth 20 "error function"
                Erfc erfc [f64 error_function] "erfc" Smooth 24 "1 - erf(x) without cancellation"
                Lgamma lgamma [f64 gamma] "lgamma" Smooth 40 "log |gamma(x)|; ∞ at 0, the negative integers and ±∞"
                Digamma digamma [f64 gamma] "digamma" Smooth 40 "derivative of lgamma; ∓∞ at ±0, NaN at the negative integers and −∞"
                Trigamma trigamma [f64 gamma] "trigamma" None 40 "second derivative of lgamma; ∞ at 0 and the negative integers, NaN at −∞"
                InvPhi inv_phi [f64 error_function] "inv_Phi" Smooth 40 "standard normal quantile; −∞ at 0, ∞ at 1, NaN outside [0, 1]"
                Phi phi [f64 error_function] "Phi" Smooth 24 "standard normal distribution function, accurate in both tails"
                Floor floor [native] "floor" Zero 1 "largest integer not above x, as a real"
                Ceil ceil [native] "ceil" Zero 1 "smallest integer not below x, as a real"
                Round round [native] "round" Zero 2 "nearest integer, halves away from zero, as a real"
                Trunc trunc [native] "trunc" Zero 1 "x without its fraction, as a real"
            }
            other_unary {
                Abs abs [native] "the absolute value"
            }
            binary {
                Pow pow [f64 power] "pow" Smooth 30 "x^y with C's special cases: x^0 = 1^y = 1 even for NaN; NaN for a negative x and a non-integer y"
                Atan2 atan2 [f64 inverse_trig] "atan2" Smooth 20 "angle of the point (y, x), in [−π, π], with C's special cases: atan2(y, x)"
                Lbeta lbeta [f64 gamma] "lbeta" Smooth 100 "log of the beta function, lgamma(x) + lgamma(y) - lgamma(x + y) without cancellation; NaN unless x, y >= 0"
                LogAddExp log_add_exp [f64 exp_log] "log_add_exp" Smooth 24 "log(e^x + e^y) without overflow; of two equal infinities the same one"
                Lmultiply lmultiply [f64 exp_log] "lmultiply" Smooth 12 "x * log(y), and 0 where both are 0"
            }
            other_binary {
                Rem rem [native] "the remainder of the truncated quotient self / other, exact, with the sign of self (C's `fmod`)"
                Min min2 [native] "the smaller one: NaN if either is NaN, and −0 is smaller than +0 (IEEE 754-2019 `minimum`)"
                Max max2 [native] "the larger one: NaN if either is NaN, and +0 is larger than −0 (IEEE 754-2019 `maximum`)"
            }
        }
    };
}
