//! The functions over slices: one monomorphic loop for each function, type and set of processor features.

use multiversion::multiversion;

use super::real::Real;
use super::sums::dot_from;
use super::{exp_log, exp_log_single, philox, trig};

/// The functions of each type over slices, behind [`unary`], [`binary`] and [`philox`].
pub trait SliceKernels: Sized {
    /// `out[i] = f(x[i])` over the common length.
    fn unary_slice(f: UnaryFn, x: &[Self], out: &mut [Self]);
    /// `out[i] = f(x[i], y[i])` over the common length.
    fn binary_slice(f: BinaryFn, x: &[Self], y: &[Self], out: &mut [Self]);
    /// `log1p_exp` and `inv_logit` over the common length.
    fn log1p_exp_and_inv_logit_slices(x: &[Self], log1p_exp: &mut [Self], inv_logit: &mut [Self]);
    /// The dot product of slices of one length, its blocks added to `total` if there is one.
    fn dot_slices(a: &[Self], b: &[Self], total: Option<Self>) -> Self;
    /// Uniform numbers over the common length.
    fn uniform_slice(seed: u64, lanes: &[u64], draws: &[u64], out: &mut [Self]);
    /// Standard normal numbers over the common length.
    fn normal_slice(seed: u64, lanes: &[u64], draws: &[u64], out: &mut [Self]);
}

/// `out[i] = f(x[i])`: the bits of the method of [`Real`], at vector speed.
///
/// # Panics
///
/// When the lengths differ.
pub fn unary<R: SliceKernels>(f: UnaryFn, x: &[R], out: &mut [R]) {
    assert_eq!(x.len(), out.len(), "{} takes slices of equal length", f.name());
    R::unary_slice(f, x, out);
}

/// `out[i] = f(x[i], y[i])`: the bits of the method of [`Real`], at vector speed.
///
/// # Panics
///
/// When the lengths differ.
pub fn binary<R: SliceKernels>(f: BinaryFn, x: &[R], y: &[R], out: &mut [R]) {
    assert!(x.len() == out.len() && y.len() == out.len(), "{} takes slices of equal length", f.name());
    R::binary_slice(f, x, y, out);
}

/// The functions `log1p_exp` and `inv_logit` of the same values, in less time than one after the other: the bits of [`unary`].
///
/// # Panics
///
/// When the lengths differ.
pub fn log1p_exp_and_inv_logit<R: SliceKernels>(x: &[R], log1p_exp: &mut [R], inv_logit: &mut [R]) {
    assert!(x.len() == log1p_exp.len() && x.len() == inv_logit.len(), "slices of equal length");
    R::log1p_exp_and_inv_logit_slices(x, log1p_exp, inv_logit);
}

/// Compiles each function for AVX-512, AVX2 with FMA, and the base processor.
macro_rules! multiversioned {
    ($($item:item)+) => {
        $(
            #[multiversion(targets(
                "x86_64+avx512f+avx512dq+avx512bw+avx512vl+avx2+fma",
                "x86_64+avx2+fma",
            ))]
            $item
        )+
    };
}

macro_rules! functions {
    (
        unary { $($unary:ident $unary_name:ident,)+ }
        trigonometric { $($trig:ident $trig_name:ident $near:ident,)+ }
        binary { $($binary:ident $binary_name:ident,)+ }
    ) => {
        /// A function of one real.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum UnaryFn {
            $(#[doc = concat!("[`Real::", stringify!($unary_name), "`].")] $unary,)+
            $(#[doc = concat!("[`Real::", stringify!($trig_name), "`].")] $trig,)+
        }

        impl UnaryFn {
            /// Every function.
            pub const ALL: &[UnaryFn] = &[$(UnaryFn::$unary,)+ $(UnaryFn::$trig,)+];

            /// The name of the method of [`Real`].
            pub fn name(self) -> &'static str {
                match self {
                    $(UnaryFn::$unary => stringify!($unary_name),)+
                    $(UnaryFn::$trig => stringify!($trig_name),)+
                }
            }

            /// The function of one value, with the processor's FMA instruction.
            pub fn apply<R: Real>(self, x: R) -> R {
                let mut out = [R::ZERO];
                R::unary_slice(self, &[x], &mut out);
                out[0]
            }

            /// The method of [`Real`] itself: what the kernels are compared with.
            #[cfg(test)]
            pub(super) fn reference<R: Real>(self, x: R) -> R {
                match self {
                    $(UnaryFn::$unary => Real::$unary_name(x),)+
                    $(UnaryFn::$trig => Real::$trig_name(x),)+
                }
            }
        }

        /// A function of two reals.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum BinaryFn {
            $(#[doc = concat!("[`Real::", stringify!($binary_name), "`].")] $binary,)+
        }

        impl BinaryFn {
            /// Every function.
            pub const ALL: &[BinaryFn] = &[$(BinaryFn::$binary,)+];

            /// The name of the method of [`Real`].
            pub fn name(self) -> &'static str {
                match self {
                    $(BinaryFn::$binary => stringify!($binary_name),)+
                }
            }

            /// The function of two values, with the processor's FMA instruction.
            pub fn apply<R: Real>(self, x: R, y: R) -> R {
                let mut out = [R::ZERO];
                R::binary_slice(self, &[x], &[y], &mut out);
                out[0]
            }

            /// The method of [`Real`] itself: what the kernels are compared with.
            #[cfg(test)]
            pub(super) fn reference<R: Real>(self, x: R, y: R) -> R {
                match self {
                    $(BinaryFn::$binary => Real::$binary_name(x, y),)+
                }
            }
        }

        functions!(@kernels f64 double exp_log
            { $($unary $unary_name,)+ } { $($trig $trig_name $near,)+ } { $($binary $binary_name,)+ });
        functions!(@kernels f32 single exp_log_single
            { $($unary $unary_name,)+ } { $($trig $trig_name $near,)+ } { $($binary $binary_name,)+ });
    };
    (
        @kernels $real:ident $module:ident $logs:ident
        { $($unary:ident $unary_name:ident,)+ }
        { $($trig:ident $trig_name:ident $near:ident,)+ }
        { $($binary:ident $binary_name:ident,)+ }
    ) => {
        mod $module {
            use super::*;

            multiversioned! {
                $(pub(super) fn $unary_name(x: &[$real], out: &mut [$real]) {
                    for (o, &x) in out.iter_mut().zip(x) {
                        *o = Real::$unary_name(x);
                    }
                })+
                $(pub(super) fn $trig_name(x: &[$real], out: &mut [$real]) {
                    let mut any_far = false;
                    for (o, &x) in out.iter_mut().zip(x) {
                        *o = trig::$near(f64::from(x)) as $real;
                        any_far |= f64::from(x).abs() > trig::FAR;
                    }
                    if any_far {
                        for (o, &x) in out.iter_mut().zip(x) {
                            if f64::from(x).abs() > trig::FAR {
                                *o = Real::$trig_name(x);
                            }
                        }
                    }
                })+
                $(pub(super) fn $binary_name(x: &[$real], y: &[$real], out: &mut [$real]) {
                    for ((o, &x), &y) in out.iter_mut().zip(x).zip(y) {
                        *o = Real::$binary_name(x, y);
                    }
                })+
                pub(super) fn log1p_exp_and_inv_logit(x: &[$real], first: &mut [$real], second: &mut [$real]) {
                    for ((a, b), &x) in first.iter_mut().zip(second).zip(x) {
                        (*a, *b) = $logs::log1p_exp_and_inv_logit(x);
                    }
                }
                pub(super) fn dot(a: &[$real], b: &[$real], total: Option<$real>) -> $real {
                    dot_from(a, b, total)
                }
                pub(super) fn uniform(seed: u64, lanes: &[u64], draws: &[u64], out: &mut [$real]) {
                    for ((o, &lane), &draw) in out.iter_mut().zip(lanes).zip(draws) {
                        *o = philox::uniform(seed, lane, draw);
                    }
                }
                pub(super) fn normal(seed: u64, lanes: &[u64], draws: &[u64], out: &mut [$real]) {
                    for ((o, &lane), &draw) in out.iter_mut().zip(lanes).zip(draws) {
                        *o = philox::normal(seed, lane, draw);
                    }
                }
            }
        }

        impl SliceKernels for $real {
            fn unary_slice(f: UnaryFn, x: &[Self], out: &mut [Self]) {
                match f {
                    $(UnaryFn::$unary => $module::$unary_name(x, out),)+
                    $(UnaryFn::$trig => $module::$trig_name(x, out),)+
                }
            }
            fn binary_slice(f: BinaryFn, x: &[Self], y: &[Self], out: &mut [Self]) {
                match f {
                    $(BinaryFn::$binary => $module::$binary_name(x, y, out),)+
                }
            }
            fn log1p_exp_and_inv_logit_slices(x: &[Self], log1p_exp: &mut [Self], inv_logit: &mut [Self]) {
                $module::log1p_exp_and_inv_logit(x, log1p_exp, inv_logit)
            }
            fn dot_slices(a: &[Self], b: &[Self], total: Option<Self>) -> Self {
                $module::dot(a, b, total)
            }
            fn uniform_slice(seed: u64, lanes: &[u64], draws: &[u64], out: &mut [Self]) {
                $module::uniform(seed, lanes, draws, out)
            }
            fn normal_slice(seed: u64, lanes: &[u64], draws: &[u64], out: &mut [Self]) {
                $module::normal(seed, lanes, draws, out)
            }
        }
    };
}

functions! {
    unary {
        Abs abs,
        Sqrt sqrt,
        Floor floor,
        Ceil ceil,
        Round round,
        Trunc trunc,
        Exp exp,
        Expm1 expm1,
        Log log,
        Log1p log1p,
        Log2 log2,
        Log10 log10,
        Asin asin,
        Acos acos,
        Atan atan,
        Sinh sinh,
        Cosh cosh,
        Tanh tanh,
        InvLogit inv_logit,
        Log1pExp log1p_exp,
        LogInvLogit log_inv_logit,
        Erf erf,
        Erfc erfc,
        Lgamma lgamma,
        Digamma digamma,
        Trigamma trigamma,
        Phi phi,
        InvPhi inv_phi,
    }
    trigonometric {
        Sin sin sin_near,
        Cos cos cos_near,
        Tan tan tan_near,
    }
    binary {
        Pow pow,
        Atan2 atan2,
        Rem rem,
        Min min2,
        Max max2,
    }
}
