//! The integration tests: one binary.
mod cases;
mod cfg;
mod check;
mod differential;
mod generator;
mod layers;
mod machine;
mod observed;
mod random_programs;
mod reference;
mod run;
mod run_files;
mod run_line;
mod samplers;
mod scheduling;
mod stack;
mod syntax;
