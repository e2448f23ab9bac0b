//! autobatch: a program-counter autobatching virtual machine.

pub mod analysis;
pub mod backend;
pub mod base;
pub mod cfg;
pub mod check;
pub mod exec;
pub mod hir;
pub mod interp;
pub mod lower;
pub mod mcmc;
pub mod parts;
pub mod plan;
pub mod prim;
pub mod program;
pub mod report;
pub mod run;
pub mod stack;
pub mod syntax;
pub mod transform;
pub mod types;
pub mod vmath;
