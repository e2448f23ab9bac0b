//! The integration tests: one binary.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that fails panics, and may say more")]
mod compiler;
mod engines;
mod language;
mod lsp;
mod project;
mod samplers;
mod stan;
mod tools;
