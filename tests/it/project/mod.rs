//! The project: the command line, benchmarks, layers, words, documents, the tutorial.

pub(crate) mod bench;
mod browser;
pub(crate) mod cli;
pub(crate) mod documents;
mod figures;
mod init;
pub(crate) mod layers;
mod map;
mod tutorial;
pub(crate) mod words;
