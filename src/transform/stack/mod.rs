//! Passes over the stack program.
