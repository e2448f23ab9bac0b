//! Programs of Stan: their syntax, and what the checker says about them.

pub(crate) mod check;
pub(crate) mod syntax;
