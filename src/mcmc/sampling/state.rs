//! The record of all that a chain goes on with, as words.

use std::ops::Range;

use super::Metric;
use crate::mcmc::protocol::{AVERAGING, STATE, WINDOW};
use crate::types::Type;

/// The types of the fields of a state, in their order.
#[derive(Debug)]
pub(super) struct StateForm(Vec<Type>);

impl StateForm {
    /// Of chains with so many coordinates.
    pub(super) fn new(d: usize, metric: Metric) -> Self {
        let rows = if metric == Metric::Dense { d } else { 1 };
        let shape = |name: &str, rank: usize| match (name, rank) {
            (_, 0) => vec![],
            (AVERAGING, _) => vec![4],
            (WINDOW, _) => vec![2],
            (_, 1) => vec![d],
            _ => vec![rows, d],
        };
        Self(STATE.fields.iter().map(|(name, dtype, rank)| Type::new(*dtype, shape(name, *rank))).collect())
    }

    /// The types.
    pub(super) fn types(&self) -> &[Type] {
        &self.0
    }

    /// Words of a state.
    pub(super) fn words(&self) -> usize {
        self.0.iter().map(Type::elements).sum()
    }

    /// The words of a field.
    pub(super) fn place(&self, name: &str) -> Range<usize> {
        let at = STATE.fields.iter().position(|(field, ..)| *field == name).expect("it is a field of the protocol");
        let first = self.0[..at].iter().map(Type::elements).sum();
        first..first + self.0[at].elements()
    }
}
