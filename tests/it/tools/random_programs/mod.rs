//! Random terminating well-typed programs of the language, and how a failing one is made small.

mod expressions;
mod functions;
mod generator;
mod minimise;
mod program;
mod rng;
mod statements;

pub(crate) use generator::{CONSTRUCTS, generate};
pub(crate) use minimise::minimise;
pub(crate) use program::Program;
pub(crate) use rng::Rng;
