//! autobatch: a program-counter autobatching virtual machine.

pub mod base;
pub mod cfg;
pub mod hir;
pub mod parts;
pub mod prim;
pub mod run;
pub mod stack;
pub mod syntax;
pub mod types;
