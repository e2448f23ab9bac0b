//! The language: its checker, its syntax, its reference, what broken texts give; Stan programs against Stan.

pub(crate) mod check;
pub(crate) mod inputs;
pub(crate) mod models;
pub(crate) mod mutations;
pub(crate) mod posteriordb;
pub(crate) mod posteriordb_draws;
pub(crate) mod ragged;
pub(crate) mod reference;
pub(crate) mod stan_values;
pub(crate) mod syntax;
