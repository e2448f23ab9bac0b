//! autobatch: a program-counter autobatching virtual machine.
//!
//! A user writes an ordinary program for a single example, with loops, branches and recursion; autobatch compiles it to
//! basic blocks over per-variable stacks and runs it for many batch members ([lanes](run)) at once, grouping the lanes that
//! wait at the same block. Start at [`program`].

pub mod analysis;
pub mod backend;
pub mod base;
pub mod bench;
pub mod cfg;
pub mod check;
pub mod cli;
pub mod exec;
pub mod hir;
pub mod interp;
pub mod lower;
pub mod mcmc;
pub mod parts;
pub mod pipeline;
pub mod plan;
pub mod prim;
pub mod program;
pub mod report;
pub mod run;
pub mod sampler;
pub mod stack;
pub mod syntax;
pub mod transform;
pub mod types;
pub mod unit;

/// Elementary functions, sums and random bits that every engine shares.
pub use autobatch_vmath as vmath;

pub use sampler::{Sampler, Samples};
