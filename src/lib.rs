//! autobatch: a program-counter autobatching virtual machine.

pub mod base;
pub mod syntax;
pub mod types;
