//! The scalar parameters of a run, the worst first, and what of them is drawn.

use indexmap::IndexMap;

use crate::mcmc::diagnostics::{ChainRanks, RHAT_LIMIT, Uniformity};
use crate::report::ElementNames;
use crate::report::summary::{SummaryRow, scalar_chains};
use crate::types::Array;

/// A scalar parameter with its draws.
pub(super) struct Scalar<'a> {
    pub(super) row: &'a SummaryRow,
    /// A vector a chain.
    pub(super) chains: Vec<Vec<f64>>,
}

/// Rows, the worst first: those with draws that are no numbers, then by R-hat and effective sample size, and what is constant
/// last.
pub(super) fn worst_first(rows: &[SummaryRow], enough: f64) -> Vec<&SummaryRow> {
    let weight = |row: &SummaryRow| {
        if row.not_numbers + row.infinite > 0 {
            return f64::INFINITY;
        }
        let rhat = row.rhat_nested.unwrap_or(row.rhat);
        let rhat = if row.rhat.is_nan() { 0.0 } else { (rhat - 1.0) / (RHAT_LIMIT - 1.0) };
        let least = row.ess_bulk.min(row.ess_tail);
        let few = if least.is_nan() { 0.0 } else { enough / least.max(1e-3) };
        rhat.max(few).max(0.0)
    };
    let mut sorted: Vec<&SummaryRow> = rows.iter().collect();
    sorted.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    sorted
}

/// The elements of all parameters by their names.
pub(super) struct Elements<'a>(IndexMap<String, (&'a Array, usize)>);

impl<'a> Elements<'a> {
    pub(super) fn of(parameters: &'a IndexMap<String, Array>, names: &ElementNames) -> Self {
        let of = |(name, array): (&'a String, &'a Array)| {
            let event = array.shape.get(2..).unwrap_or_default().to_vec();
            let all = 0..event.iter().product::<usize>();
            all.map(move |element| (names.element(name, &event, element), (array, element)))
        };
        Self(parameters.iter().flat_map(of).collect())
    }

    /// With its draws.
    pub(super) fn scalar(&self, row: &'a SummaryRow) -> Option<Scalar<'a>> {
        let (array, element) = self.0.get(&row.name)?;
        Some(Scalar { row, chains: scalar_chains(array, *element) })
    }

    /// The first of these rows that can be drawn: whose draws are finite, and not all equal.
    pub(super) fn drawn(&self, rows: &[&'a SummaryRow], most: usize) -> Vec<Scalar<'a>> {
        let varies = |row: &&&SummaryRow| row.not_numbers + row.infinite == 0 && row.sd > 0.0;
        rows.iter().filter(varies).take(most).filter_map(|row| self.scalar(row)).collect()
    }
}

/// The ranks of a parameter, and which chains are farthest from the others.
pub(super) struct Agreed {
    pub(super) ranks: ChainRanks,
    pub(super) uniformity: Uniformity,
    /// How far each chain goes: see [`Uniformity::reach`].
    pub(super) reach: Vec<f64>,
}

impl Agreed {
    pub(super) fn of(scalar: &Scalar<'_>) -> Option<Self> {
        let ranks = ChainRanks::of(&scalar.chains)?;
        let uniformity = ranks.uniformity();
        let reach = (0..scalar.chains.len()).map(|chain| uniformity.reach(chain)).collect();
        Some(Self { ranks, uniformity, reach })
    }

    /// The chains that go farthest, the farthest first.
    pub(super) fn farthest(&self, most: usize) -> Vec<usize> {
        let mut chains: Vec<usize> = (0..self.reach.len()).collect();
        chains.sort_by(|a, b| self.reach[*b].total_cmp(&self.reach[*a]));
        chains.truncate(most);
        chains
    }
}
