//! The syntax of Stan: tokens, grammar and tree.

pub mod ast;
