//! The integration tests: one binary.
mod check;
mod samplers;
mod syntax;
