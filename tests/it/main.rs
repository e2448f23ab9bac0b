//! The integration tests: one binary.
mod cfg;
mod check;
mod samplers;
mod syntax;
