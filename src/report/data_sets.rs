//! The table of a run whose chains have many data sets: what there is of all, and where the worst is.

use std::fmt;

use rayon::prelude::*;
use serde::Serialize;

use super::element_names::{ElementName, ElementNames, is_asked_for};
use super::statistics::SamplerStatistics;
use super::stored::StoredChains;
use super::summary::{ESS_PER_CHAIN, SummaryRow, fixed, scalar_chains, significant, whole};
use crate::mcmc::protocol::DIVERGENT;
use crate::mcmc::sampling::{Draws, StoredDraws, StoredPart};
use crate::program::Error;
use crate::store::RunStore;
use crate::types::Array;

/// The summary of a run whose chains have many data sets.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct DataSetsSummary {
    /// Data sets with draws of all their chains.
    pub sets: usize,
    /// Chains of each.
    pub chains: usize,
    /// A row for each number of each parameter.
    pub rows: Vec<DataSetsRow>,
    /// Data sets with divergent transitions.
    pub divergent: usize,
    /// Data sets of which a chain failed.
    pub failed: usize,
    /// What the sampler did in all chains.
    pub sampler: SamplerStatistics,
}

/// What the posteriors of all data sets say about one number.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct DataSetsRow {
    /// Its name with indices from 1, or with labels.
    pub name: String,
    /// Its name with indices, where that has labels.
    #[serde(skip)]
    pub by_index: Option<String>,
    /// The least and the largest posterior mean.
    pub mean: (f64, f64),
    /// The least and the largest posterior standard deviation.
    pub sd: (f64, f64),
    /// The least effective sample size of the bulk, and the data set that has it.
    pub ess_bulk: (f64, usize),
    /// The largest R-hat, and the data set that has it.
    pub rhat: (f64, usize),
    /// Data sets whose chains do not agree.
    pub disagree: usize,
}

impl DataSetsSummary {
    /// Of the draws of a run with data sets.
    #[must_use]
    pub fn of_draws(draws: &Draws) -> Self {
        let whole = draws.whole_data_sets();
        let sampler = SamplerStatistics::of_draws(draws);
        let mut summary = Self::without_rows(draws, &whole, draws.statistics.get(DIVERGENT), sampler);
        let names = ElementNames::of_draws(draws);
        let rows = draws.parameters.iter().flat_map(|of| whole_rows(of, &names, &whole, summary.chains));
        summary.rows = rows.collect();
        summary
    }

    /// Of a run in a store, whose parameters are read one after the other, and in parts where they are large.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub fn of_store(stored: &StoredDraws, store: &RunStore) -> Result<Self, Error> {
        let whole = stored.draws.whole_data_sets();
        let divergent = stored.statistic(store, DIVERGENT)?;
        let sampler = SamplerStatistics::of_store(stored, store)?;
        let mut summary = Self::without_rows(&stored.draws, &whole, divergent.as_ref(), sampler);
        let names = ElementNames::of_draws(&stored.draws);
        for part in stored.parameters(store) {
            let StoredPart { name, event, first, values, .. } = part?;
            let element = |at: usize| names.in_table(name, event, first + at);
            summary.rows.extend(rows_of(&values, element, &whole, summary.chains));
        }
        Ok(summary)
    }

    /// Of chains that files have; nothing where these are of one posterior.
    #[must_use]
    pub fn of_stored(chains: &StoredChains) -> Option<Self> {
        let sets = chains.sets.as_ref()?;
        let (each, whole) = sets.whole();
        Some(Self {
            sets: whole.len(),
            chains: each,
            rows: chains.parameters.iter().flat_map(|of| whole_rows(of, &chains.names, &whole, each)).collect(),
            divergent: diverging(chains.statistics.get(DIVERGENT), &whole, each),
            failed: sets.count.saturating_sub(whole.len()),
            sampler: SamplerStatistics::of_stored(chains),
        })
    }

    fn without_rows(
        draws: &Draws,
        whole: &[(usize, usize)],
        divergent: Option<&Array>,
        sampler: SamplerStatistics,
    ) -> Self {
        let (count, each) = draws.data_sets.unwrap_or((1, draws.chains.len()));
        Self {
            sets: whole.len(),
            chains: each,
            rows: vec![],
            divergent: diverging(divergent, whole, each),
            failed: count - whole.len(),
            sampler,
        }
    }
}

/// How many of these data sets, each with the place of its first chain, have divergent transitions.
fn diverging(divergent: Option<&Array>, whole: &[(usize, usize)], each: usize) -> usize {
    let flags = divergent.map(|array| scalar_chains(array, 0)).unwrap_or_default();
    let diverges = |(_, at): &&(usize, usize)| flags.iter().skip(*at).take(each).flatten().any(|flag| *flag != 0.0);
    whole.iter().filter(diverges).count()
}

fn whole_rows(
    (name, array): (&String, &Array),
    names: &ElementNames,
    whole: &[(usize, usize)],
    each: usize,
) -> Vec<DataSetsRow> {
    rows_of(array, |element| names.in_table(name, &array.shape[2..], element), whole, each)
}

/// The rows of elements that have these names.
fn rows_of(
    array: &Array,
    name: impl Fn(usize) -> ElementName + Sync,
    whole: &[(usize, usize)],
    each: usize,
) -> Vec<DataSetsRow> {
    let row = |element: usize| row_of(name(element), &scalar_chains(array, element), whole, each);
    (0..array.shape[2..].iter().product()).into_par_iter().filter_map(row).collect()
}

impl DataSetsSummary {
    /// Keeps the rows of these parameters, `mu` or `theta[3]`, all where there are no names; gives the names that there are not.
    pub fn keep(&mut self, names: &[String]) -> Vec<String> {
        let is = |row: &DataSetsRow, name: &str| is_asked_for((&row.name, row.by_index.as_deref()), name);
        let missing = names.iter().filter(|name| !self.rows.iter().any(|row| is(row, name))).cloned().collect();
        if !names.is_empty() {
            self.rows.retain(|row| names.iter().any(|name| is(row, name)));
        }
        missing
    }
}

fn row_of(name: ElementName, chains: &[Vec<f64>], whole: &[(usize, usize)], each: usize) -> Option<DataSetsRow> {
    let rows: Vec<(usize, SummaryRow)> =
        whole.iter().map(|(set, at)| (*set, SummaryRow::of("", &chains[*at..at + each]))).collect();
    rows.first()?;
    let range = |of: fn(&SummaryRow) -> f64| {
        rows.iter().map(|(_, row)| of(row)).fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)))
    };
    let at = |of: fn(&SummaryRow) -> f64, better: fn(f64, f64) -> bool| {
        let mut worst = (f64::NAN, rows[0].0);
        for (set, row) in &rows {
            let x = of(row);
            if !x.is_nan() && (worst.0.is_nan() || better(worst.0, x)) {
                worst = (x, *set);
            }
        }
        worst
    };
    Some(DataSetsRow {
        name: name.shown,
        by_index: name.by_index,
        mean: range(|row| row.mean),
        sd: range(|row| row.sd),
        ess_bulk: at(|row| row.ess_bulk, |worst, x| x < worst),
        rhat: at(|row| row.rhat, |worst, x| x > worst),
        disagree: rows.iter().filter(|(_, row)| !row.chains_agree).count(),
    })
}

impl fmt::Display for DataSetsSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heading = ["", "mean: least", "most", "sd: least", "most", "ess_bulk: least", "in", "r_hat: most", "in"];
        let cells = |row: &DataSetsRow| {
            [
                row.name.clone(),
                significant(row.mean.0, 4),
                significant(row.mean.1, 4),
                significant(row.sd.0, 4),
                significant(row.sd.1, 4),
                whole(row.ess_bulk.0),
                row.ess_bulk.1.to_string(),
                fixed(row.rhat.0, 3),
                row.rhat.1.to_string(),
            ]
        };
        let table: Vec<[String; 9]> =
            std::iter::once(heading.map(str::to_owned)).chain(self.rows.iter().map(cells)).collect();
        let width = |column: usize| table.iter().map(|cells| cells[column].chars().count()).max().unwrap_or(0);
        for cells in &table {
            write!(f, "{:<1$}", cells[0], width(0))?;
            for (column, cell) in cells.iter().enumerate().skip(1) {
                write!(f, "  {cell:>width$}", width = width(column))?;
            }
            writeln!(f)?;
        }
        let s = |n: usize| if n == 1 { "" } else { "s" };
        writeln!(f, "\n{} data set{}, {} chain{} of each", self.sets, s(self.sets), self.chains, s(self.chains))?;
        write!(f, "{}", self.sampler)?;
        let mut warn = |n: usize, what: &str| match n {
            0 => Ok(()),
            n => writeln!(f, "warning: {n} of {} data sets {what}", self.sets + self.failed),
        };
        warn(self.failed, "have no draws of all their chains: they are left out")?;
        warn(self.divergent, "have divergent transitions")?;
        let enough = ESS_PER_CHAIN * self.chains.clamp(1, 4) as f64;
        for row in &self.rows {
            if row.disagree > 0 {
                let (name, n, (rhat, set)) = (&row.name, row.disagree, row.rhat);
                let told = fixed(rhat, 3);
                writeln!(
                    f,
                    "warning: the chains of {n} data set{} do not agree on {name}: R-hat {told} in data set {set}",
                    s(n)
                )?;
            }
            if row.ess_bulk.0 < enough {
                let ((least, set), name) = (row.ess_bulk, &row.name);
                let least = whole(least);
                writeln!(
                    f,
                    "warning: the effective sample size of {name} is {least} in data set {set}, below {enough}: longer --draws"
                )?;
            }
        }
        Ok(())
    }
}
