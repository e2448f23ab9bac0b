//! The integration tests: one binary.
mod samplers;
mod syntax;
