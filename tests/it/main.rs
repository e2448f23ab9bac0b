//! The integration tests: one binary.
mod cases;
mod cfg;
mod check;
mod layers;
mod machine;
mod reference;
mod run;
mod samplers;
mod stack;
mod syntax;
