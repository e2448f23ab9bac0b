//! The project: the command line, benchmarks, layers, words, documents, the tutorial, the book, dependencies.

pub(crate) mod bench;
mod book;
mod browser;
pub(crate) mod cli;
mod dependencies;
pub(crate) mod documents;
mod figures;
mod init;
pub(crate) mod layers;
mod map;
mod pages;
mod tutorial;
pub(crate) mod words;
