//! Layer 3: what can be known of a program without running it. Analyses look and never change.

pub mod callgraph;
pub mod components;
pub mod dominance;
pub mod frequencies;
pub mod liveness;
pub mod stack_calls;
pub mod stack_copies;
pub mod stack_liveness;
pub mod storage;
pub mod variance;
pub mod worklist;
