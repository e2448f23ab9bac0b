//! The file of one chain.

use std::io::{self, Write};

use indexmap::IndexMap;

use super::header::CsvRun;
use super::number::general;
use crate::mcmc::protocol::{ACCEPT_STAT, DIVERGENT, ENERGY, LP, N_LEAPFROG, STEPSIZE, TREEDEPTH};
use crate::mcmc::sampling::{Draws, Metric};
use crate::types::{Array, Scalar};

/// Significant digits, as CmdStan has them where nobody says otherwise.
pub const DEFAULT_DIGITS: usize = 8;
/// The most significant digits: with 17 a number reads back as the same number.
pub const MOST_DIGITS: usize = 18;

/// What the sampler tells of a draw, in the order of the columns.
const STATISTICS: [&str; 7] = [LP, ACCEPT_STAT, STEPSIZE, TREEDEPTH, N_LEAPFROG, DIVERGENT, ENERGY];

/// A chain of a run as a file.
#[derive(Clone, Copy, Debug)]
pub struct CsvChain<'a> {
    /// The run.
    pub run: &'a CsvRun,
    /// Its draws.
    pub draws: &'a Draws,
    /// The place of the chain in the arrays of the draws.
    pub chain: usize,
    /// Its number, from 1.
    pub id: u64,
}

impl CsvChain<'_> {
    /// Writes the file, whose name is `file`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write, file: &str) -> io::Result<()> {
        let Self { run, draws, chain, id } = *self;
        for line in run.lines(draws, id, file) {
            writeln!(out, "# {line}")?;
        }
        let columns = Columns::new(&draws.statistics, &draws.parameters);
        writeln!(out, "{}", columns.names().join(","))?;
        if let Some(warmup) = &draws.warmup_states {
            Columns::new(&warmup.statistics, &warmup.parameters).rows(out, (chain, warmup.states), run.digits)?;
        }
        if !run.is_fixed_param() {
            self.adaptation(out)?;
        }
        columns.rows(out, (chain, draws.draws), run.digits)?;
        let (warmup, sampling) = draws.chain_seconds.get(chain).copied().unwrap_or_default();
        writeln!(out, "# ")?;
        writeln!(out, "#  Elapsed Time: {} seconds (Warm-up)", general(warmup, 3))?;
        writeln!(out, "#                {} seconds (Sampling)", general(sampling, 3))?;
        writeln!(out, "#                {} seconds (Total)", general(warmup + sampling, 3))?;
        writeln!(out, "# ")
    }

    /// What warmup learnt.
    fn adaptation(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { run, draws, chain, .. } = *self;
        let stepsize = draws.adapted.get(chain).copied().or(draws.stepsize).unwrap_or(f64::NAN);
        writeln!(out, "# Adaptation terminated")?;
        writeln!(out, "# Step size = {}", general(stepsize, run.digits))?;
        writeln!(
            out,
            "# {}",
            match draws.metric {
                Metric::Unit => "No free parameters for unit metric",
                Metric::Diagonal => "Diagonal elements of inverse mass matrix:",
                Metric::Dense => "Elements of inverse mass matrix:",
            }
        )?;
        let metric = draws.inv_metrics.get(chain).filter(|_| draws.metric != Metric::Unit);
        let Some((metric, values)) = metric.and_then(|metric| Some((metric, metric.as_real()?))) else {
            return Ok(());
        };
        for row in values.chunks(metric.shape[1].max(1)) {
            let row: Vec<String> = row.iter().map(|v| general(*v, run.digits)).collect();
            writeln!(out, "# {}", row.join(", "))?;
        }
        Ok(())
    }
}

/// The columns of a file: arrays chain × draw × event shape, each with its name and its elements in the order of columns.
pub(super) struct Columns<'a>(Vec<(String, &'a Array, Vec<usize>)>);

impl<'a> Columns<'a> {
    pub(super) fn new(statistics: &'a IndexMap<String, Array>, parameters: &'a IndexMap<String, Array>) -> Self {
        let known = STATISTICS.iter().filter_map(|name| Some((*name, statistics.get(*name)?)));
        // Of a sampler of the user's own.
        let others = statistics.iter().map(|(name, array)| (name.as_str(), array));
        let others = others.filter(|(name, array)| array.shape.len() == 2 && !STATISTICS.contains(name));
        Self::in_order(known.chain(others), parameters)
    }

    /// Those of statistics in the order in which they are given, then the parameters.
    pub(super) fn in_order<'n>(
        statistics: impl Iterator<Item = (&'n str, &'a Array)>,
        parameters: &'a IndexMap<String, Array>,
    ) -> Self {
        let statistics = statistics.map(|(name, array)| (format!("{name}__"), array));
        // Parts of structs and tuples are called as Stan calls those of tuples; in names of Stan's they are already.
        let called = |name: &String| if name.contains(':') { name.clone() } else { name.replace('.', ":") };
        let parameters = parameters.iter().map(|(name, array)| (called(name), array));
        let all = statistics.chain(parameters);
        Self(all.map(|(name, array)| (name, array, column_major(&array.shape[2..]))).collect())
    }

    /// `theta.1.2`: indices from 1.
    pub(super) fn names(&self) -> Vec<String> {
        let named = |(name, array, elements): &(String, &Array, Vec<usize>)| -> Vec<String> {
            let event = &array.shape[2..];
            let index = |element: usize| -> String {
                let mut rest = element;
                let indices: Vec<usize> = event
                    .iter()
                    .rev()
                    .map(|extent| {
                        let index = rest % extent + 1;
                        rest /= extent;
                        index
                    })
                    .collect();
                indices.iter().rev().map(|i| format!(".{i}")).collect()
            };
            elements.iter().map(|element| format!("{name}{}", index(*element))).collect()
        };
        self.0.iter().flat_map(named).collect()
    }

    pub(super) fn rows(&self, out: &mut dyn Write, (chain, draws): (usize, usize), digits: usize) -> io::Result<()> {
        let mut line = String::new();
        for draw in 0..draws {
            line.clear();
            for (_, array, elements) in &self.0 {
                let first = (chain * draws + draw) * elements.len();
                for element in elements {
                    line += &shown(array.get(first + element), digits);
                    line.push(',');
                }
            }
            line.pop();
            writeln!(out, "{line}")?;
        }
        Ok(())
    }
}

fn shown(value: Scalar, digits: usize) -> String {
    match value {
        Scalar::Bool(b) => u8::from(b).to_string(),
        Scalar::Int(i) => i.to_string(),
        Scalar::Real(r) => general(r, digits),
    }
}

/// The elements of an array, by their place in row-major order, with the first index fastest.
fn column_major(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    let place = |mut at: usize| {
        shape.iter().zip(&strides).fold(0, |place, (extent, stride)| {
            let index = at % extent;
            at /= extent;
            place + index * stride
        })
    };
    (0..shape.iter().product()).map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::column_major;

    #[test]
    fn the_first_index_is_the_fastest() {
        assert_eq!(column_major(&[2, 3]), [0, 3, 1, 4, 2, 5]);
        assert_eq!(column_major(&[2, 2, 2]), [0, 4, 2, 6, 1, 5, 3, 7]);
        assert_eq!(column_major(&[]), [0]);
        assert_eq!(column_major(&[0, 3]), [0usize; 0]);
    }
}
