//! Layer 8: sampling from posteriors with programs written in the language, and judging what came out.

pub mod diagnostics;
pub mod gradient_test;
pub mod log_prob;
pub mod protocol;
pub mod sampling;
mod special;
