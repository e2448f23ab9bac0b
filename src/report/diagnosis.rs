//! Which parameters go with what troubles a sampler: those to write otherwise.

use std::fmt;

use rayon::prelude::*;
use serde::Serialize;

use super::element_names::ElementNames;
use super::summary::{fixed, scalar_chains, whole};
use crate::mcmc::diagnostics;
use crate::mcmc::protocol::{DIVERGENT, ENERGY, TREEDEPTH};
use crate::mcmc::sampling::Draws;

/// Parameters that the text shows.
const SHOWN: usize = 10;

/// How one scalar parameter goes with trouble. What cannot be computed is NaN.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Suspect {
    /// Name with indices from 1, as in the summary.
    pub name: String,
    /// Where the draws of divergent transitions are among all of its draws: from -1, all are the smallest, to 1, all
    /// are the largest.
    pub divergent: f64,
    /// Rank correlation with the energy.
    pub energy: f64,
    /// Rank correlation with the depth of trees.
    pub treedepth: f64,
    /// Effective sample size for the bulk.
    pub ess_bulk: f64,
}

impl Suspect {
    /// The largest of the three, whatever its sign.
    fn weight(&self) -> f64 {
        [self.divergent, self.energy, self.treedepth].into_iter().map(f64::abs).fold(0.0, f64::max)
    }
}

/// How each scalar parameter goes with divergent transitions, with the energy and with the depth of trees, the worst
/// first. `Display` shows the first ten.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Diagnosis {
    /// A row for each scalar.
    pub suspects: Vec<Suspect>,
}

/// How the sampler moved in draws.
struct Moves {
    divergent: Option<Vec<f64>>,
    /// Ranks.
    energy: Option<Vec<f64>>,
    treedepth: Option<Vec<f64>>,
}

impl Moves {
    /// Without draws that are lost, chain · draws + draw, ascending.
    fn of(draws: &Draws, lost: &[usize]) -> Self {
        let statistic = |name: &str| draws.statistics.get(name).map(|array| kept(scalar_chains(array, 0), lost));
        let ranked = |name: &str| statistic(name).map(|values| ranks(&values));
        Self { divergent: statistic(DIVERGENT), energy: ranked(ENERGY), treedepth: ranked(TREEDEPTH) }
    }
}

/// The values of all chains but those of draws that are lost.
fn kept(chains: Vec<Vec<f64>>, lost: &[usize]) -> Vec<f64> {
    let all = chains.into_iter().flatten().enumerate();
    all.filter(|(position, _)| lost.binary_search(position).is_err()).map(|(_, x)| x).collect()
}

impl Diagnosis {
    /// Of the draws of a run. Draws that lack a parameter are left out of its row.
    pub fn of_draws(draws: &Draws) -> Self {
        let whole = Moves::of(draws, &[]);
        let of = |(name, lost, chains): (String, &[usize], Vec<Vec<f64>>)| {
            let ess_bulk = diagnostics::ess_bulk(&chains);
            let of_kept;
            let moves = match lost {
                [] => &whole,
                lost => {
                    of_kept = Moves::of(draws, lost);
                    &of_kept
                }
            };
            let values = kept(chains, lost);
            let ranks = (!values.iter().any(|x| x.is_nan())).then(|| ranks(&values));
            let with = |other: &Option<Vec<f64>>| {
                ranks.as_ref().zip(other.as_ref()).map_or(f64::NAN, |(a, b)| correlation(a, b))
            };
            let divergent = ranks.as_ref().zip(moves.divergent.as_ref()).map_or(f64::NAN, |(r, d)| place(r, d));
            Suspect { name, divergent, energy: with(&moves.energy), treedepth: with(&moves.treedepth), ess_bulk }
        };
        let names = &ElementNames::of_draws(draws);
        let scalars = draws.parameters.iter().flat_map(|(name, array)| {
            let event = array.shape.get(2..).unwrap_or_default();
            let lost = draws.failed.as_ref().map_or(&[][..], |failed| failed.of(name));
            let elements = 0..event.iter().product();
            elements.map(move |element| (names.element(name, event, element), lost, scalar_chains(array, element)))
        });
        let mut suspects: Vec<Suspect> = scalars.collect::<Vec<_>>().into_par_iter().map(of).collect();
        suspects.sort_by(|a, b| b.weight().total_cmp(&a.weight()));
        Self { suspects }
    }
}

/// Ranks from 1; equal values have the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for equal in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let mean = before as f64 + (equal.len() + 1) as f64 / 2.0;
        equal.iter().for_each(|i| ranks[*i] = mean);
        before += equal.len();
    }
    ranks
}

/// Pearson's correlation; NaN where one of the two does not vary.
pub(super) fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let sum = |of: &dyn Fn(f64, f64) -> f64| a.iter().zip(b).map(|(a, b)| of(a - mean_a, b - mean_b)).sum::<f64>();
    sum(&|a, b| a * b) / (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt()
}

/// Where the marked ones are among all ranks, from -1 to 1; NaN where none is marked.
fn place(ranks: &[f64], marked: &[f64]) -> f64 {
    let of: Vec<f64> = ranks.iter().zip(marked).filter(|(_, marked)| **marked != 0.0).map(|(rank, _)| *rank).collect();
    2.0 * (of.iter().sum::<f64>() / of.len() as f64 - 0.5) / ranks.len() as f64 - 1.0
}

const HEADINGS: [&str; 5] = ["", "divergent", "energy", "tree depth", "ess_bulk"];

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "What goes with trouble: where divergent transitions are among the draws of a parameter (-1 where it is \
             smallest, 1 where it is largest), and its rank correlation with energy and tree depth. What stands first is \
             what to write otherwise."
        )?;
        let cells = |s: &Suspect| {
            [s.name.clone(), fixed(s.divergent, 2), fixed(s.energy, 2), fixed(s.treedepth, 2), whole(s.ess_bulk)]
        };
        let table: Vec<[String; 5]> =
            std::iter::once(HEADINGS.map(str::to_owned)).chain(self.suspects.iter().take(SHOWN).map(cells)).collect();
        let widths: [usize; 5] =
            std::array::from_fn(|column| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
        for row in &table {
            write!(f, "{:<1$}", row[0], widths[0])?;
            for (cell, width) in row.iter().zip(widths).skip(1) {
                write!(f, "  {cell:>width$}")?;
            }
            writeln!(f)?;
        }
        match self.suspects.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => writeln!(f, "… and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_equal_values_are_equal() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, f64::INFINITY]), [2.5, 1.0, 2.5, 4.0]);
    }

    /// By hand: the largest of four has the place 2 · 3.5 / 4 - 1.
    #[test]
    fn places_and_correlations_are_those_by_hand() {
        let values = ranks(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(place(&values, &[0.0, 0.0, 0.0, 1.0]), 0.75);
        assert_eq!(place(&values, &[1.0; 4]), 0.0);
        assert!(place(&values, &[0.0; 4]).is_nan());
        assert_eq!(correlation(&values, &ranks(&[10.0, 20.0, 30.0, 50.0])), 1.0);
        assert_eq!(correlation(&values, &ranks(&[4.0, 3.0, 2.0, 1.0])), -1.0);
        assert!(correlation(&values, &[2.5; 4]).is_nan());
    }
}
