//! Programs of Stan: what the checker says about them.

pub(crate) mod check;
