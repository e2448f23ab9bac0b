//! The compiler: representations, passes, derivatives, what compilation takes.

pub(crate) mod cfg;
pub(crate) mod compile_time;
pub(crate) mod derivative;
pub(crate) mod derivative_primitives;
pub(crate) mod derivative_random;
pub(crate) mod derivative_singular;
pub(crate) mod gradients;
pub(crate) mod shared_code;
pub(crate) mod stack;
pub(crate) mod units;
pub(crate) mod vectorize;
