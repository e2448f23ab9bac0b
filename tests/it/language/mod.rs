//! The language: its checker, its syntax, its reference, what broken texts give.

pub(crate) mod check;
pub(crate) mod inputs;
pub(crate) mod mutations;
pub(crate) mod ragged;
pub(crate) mod reference;
pub(crate) mod syntax;
