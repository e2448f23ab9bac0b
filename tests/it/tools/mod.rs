//! What tests share: cases in comments, ways to run a program, random programs.

pub(crate) mod cases;
pub(crate) mod data;
pub(crate) mod effort;
pub(crate) mod observed;
pub(crate) mod random_programs;
pub(crate) mod run_line;
#[cfg(unix)]
pub(crate) mod running;
pub(crate) mod toy;
