//! The functions of the [table](crate::real_functions) over slices: one monomorphic loop for each function, type and
//! set of processor features.

use super::log_sums::{self, LogSum};
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
    /// A sum of logarithms for each column of rows; see [`log_sums`](super::log_sums).
    fn log_sum_rows(of: LogSum, x: &[Self], inv_logit: Option<&mut [Self]>, out: &mut [Self], goes_on: bool);
    /// The sums of logarithms of blocks; see [`log_block_sums`](super::log_block_sums).
    fn log_block_sums(of: LogSum, x: &[Self], inv_logit: Option<&mut [Self]>, out: &mut [Self]);
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

/// How a function is computed in each of the two precisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computed {
    /// By an instruction of the processor, or a few.
    Native,
    /// By a text for `f64` and one for `f32`.
    EachPrecision,
    /// In `f64`; in `f32` the result is rounded.
    InF64,
}

/// A kernel: the loop of a method over slices.
macro_rules! unary_kernel {
    ($real:ident $function:ident [periodic $module:ident $near:ident]) => {
        multiversioned! {
            pub(super) fn $function(x: &[$real], out: &mut [$real]) {
                let mut any_far = false;
                for (o, &x) in out.iter_mut().zip(x) {
                    *o = trig::$near(f64::from(x)) as $real;
                    any_far |= f64::from(x).abs() > trig::FAR;
                }
                if any_far {
                    for (o, &x) in out.iter_mut().zip(x) {
                        if f64::from(x).abs() > trig::FAR {
                            *o = Real::$function(x);
                        }
                    }
                }
            }
        }
    };
    ($real:ident $function:ident $computed:tt) => {
        multiversioned! {
            pub(super) fn $function(x: &[$real], out: &mut [$real]) {
                for (o, &x) in out.iter_mut().zip(x) {
                    *o = Real::$function(x);
                }
            }
        }
    };
}

macro_rules! functions {
    (
        {}
        unary { $($v1:ident $m1:ident $c1:tt $n1:literal $d1:ident $cost1:literal $doc1:literal)* }
        other_unary { $($v3:ident $m3:ident $c3:tt $doc3:literal)* }
        binary { $($v2:ident $m2:ident $c2:tt $n2:literal $d2:ident $cost2:literal $doc2:literal)* }
        other_binary { $($v4:ident $m4:ident $c4:tt $doc4:literal)* }
    ) => {
        functions! {
            unary { $($v1 $m1 $c1,)* $($v3 $m3 $c3,)* }
            binary { $($v2 $m2 $c2,)* $($v4 $m4 $c4,)* }
        }
    };
    (
        unary { $($unary:ident $unary_name:ident $computed:tt,)+ }
        binary { $($binary:ident $binary_name:ident $binary_computed:tt,)+ }
    ) => {
        /// A function of one real.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum UnaryFn {
            $(#[doc = concat!("[`Real::", stringify!($unary_name), "`].")] $unary,)+
        }

        impl UnaryFn {
            /// Every function.
            pub const ALL: &[UnaryFn] = &[$(UnaryFn::$unary,)+];

            /// The name of the method of [`Real`], and of the functions of generated C without their prefixes.
            pub fn name(self) -> &'static str {
                match self {
                    $(UnaryFn::$unary => stringify!($unary_name),)+
                }
            }

            /// How it is computed.
            pub fn computed(self) -> Computed {
                match self {
                    $(UnaryFn::$unary => functions!(@computed $computed),)+
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

            /// The name of the method of [`Real`], and of the functions of generated C without their prefixes.
            pub fn name(self) -> &'static str {
                match self {
                    $(BinaryFn::$binary => stringify!($binary_name),)+
                }
            }

            /// How it is computed.
            pub fn computed(self) -> Computed {
                match self {
                    $(BinaryFn::$binary => functions!(@computed $binary_computed),)+
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
            { $($unary $unary_name $computed,)+ } { $($binary $binary_name,)+ });
        functions!(@kernels f32 single exp_log_single
            { $($unary $unary_name $computed,)+ } { $($binary $binary_name,)+ });
    };
    (@computed [native]) => { Computed::Native };
    (@computed [each precision]) => { Computed::EachPrecision };
    (@computed [$($through_f64:tt)+]) => { Computed::InF64 };
    (
        @kernels $real:ident $module:ident $logs:ident
        { $($unary:ident $unary_name:ident $computed:tt,)+ }
        { $($binary:ident $binary_name:ident,)+ }
    ) => {
        mod $module {
            use super::*;

            $(unary_kernel!($real $unary_name $computed);)+
            multiversioned! {
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
                pub(super) fn log_sum_rows(
                    of: LogSum,
                    x: &[$real],
                    inv_logit: Option<&mut [$real]>,
                    out: &mut [$real],
                    goes_on: bool,
                ) {
                    log_sums::rows(of, x, inv_logit, out, goes_on)
                }
                pub(super) fn log_block_sums(
                    of: LogSum,
                    x: &[$real],
                    inv_logit: Option<&mut [$real]>,
                    out: &mut [$real],
                ) {
                    log_sums::blocks(of, x, inv_logit, out)
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
            fn log_sum_rows(of: LogSum, x: &[Self], inv_logit: Option<&mut [Self]>, out: &mut [Self], goes_on: bool) {
                $module::log_sum_rows(of, x, inv_logit, out, goes_on)
            }
            fn log_block_sums(of: LogSum, x: &[Self], inv_logit: Option<&mut [Self]>, out: &mut [Self]) {
                $module::log_block_sums(of, x, inv_logit, out)
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

real_functions!(functions! {});
