//! The integration tests: one binary.
mod cfg;
mod check;
mod machine;
mod samplers;
mod stack;
mod syntax;
