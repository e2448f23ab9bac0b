//! The integration tests: one binary.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that fails panics, and may say more")]
mod cases;
mod cfg;
mod check;
mod cli;
mod derivative;
mod derivative_primitives;
mod differential;
mod file_tests;
mod generator;
mod gradients;
mod inputs;
mod kernels;
mod layers;
mod machine;
mod mutations;
mod observed;
mod posteriors;
mod random_programs;
mod reference;
mod run_line;
mod samplers;
mod scheduling;
mod stack;
mod syntax;
mod tapes;
mod transitions;
