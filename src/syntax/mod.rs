//! Layer 2: tokens, grammar and the abstract syntax tree.

pub mod ast;
