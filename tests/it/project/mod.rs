//! The project: the command line, benchmarks, layers, words, documents.

pub(crate) mod bench;
pub(crate) mod cli;
pub(crate) mod documents;
pub(crate) mod layers;
pub(crate) mod words;
