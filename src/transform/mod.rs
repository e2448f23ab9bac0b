//! Layer 4: passes, from a program to a program of the same kind that does the same.

pub mod cfg;
pub mod derivative;
pub mod stack;
