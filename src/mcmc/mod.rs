//! Layer 8: sampling from posteriors with programs written in the language, and judging what came out.

mod by_value;
mod density_text;
pub mod diagnostics;
pub mod gradient_test;
pub mod inits;
pub mod laplace;
pub mod log_prob;
pub mod optimize;
pub mod pathfinder;
mod posterior;
pub mod protocol;
mod psis;
pub mod quantities;
pub mod sampling;
pub mod simulated;
mod special;
mod streams;
