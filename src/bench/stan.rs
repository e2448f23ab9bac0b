//! A Stan program of a user in a comparison: what its warmup learns, and the files that peers read.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::mcmc::protocol::Q;
use crate::mcmc::sampling::{Draws, Job, Observer, Reached, Sampling};
use crate::program::io::write_atomically;
use crate::program::{Error, ErrorKind, Options, StanModel, Terms};
use crate::types::Array;

use super::protocol::StanFiles;

/// Chains that learn the step size and the metric, and whose last states become starting points.
const CHAINS: usize = 16;
/// How many of them a comparison waits for. From Stan's random starts a chain may stay far from all others, with a
/// trajectory of a thousand steps in each iteration: whoever waits for it measures nothing for hours, and what it learns
/// is left out of the medians anyway.
const ENOUGH: usize = CHAINS / 2;
/// A Stan program with its data, and what its warmup learnt.
#[derive(Debug)]
pub(super) struct Adapted {
    pub(super) model: StanModel,
    files: StanFiles,
    /// The median of the chains' step sizes.
    pub(super) stepsize: f64,
    /// States after warmup, row by row.
    pub(super) starts: Array,
}

impl Adapted {
    /// Translates a program, which is given with its folders of included files and its data, and runs so many iterations of
    /// warmup as `options` say, until there are `most` starting points.
    ///
    /// # Errors
    /// For a program or data with errors, and where no chain gets to the end of its warmup.
    pub(super) fn new(
        (program, include, data): (&Path, &[PathBuf], Option<&Path>),
        folder: &Path,
        warmup: usize,
        most: usize,
        options: &Options,
    ) -> Result<Self, Error> {
        let model = StanModel::load_with(program, &StanModel::read_data(data)?, Terms::default(), (include, 0))?;
        let job = Job { chains: CHAINS, warmup, draws: most.div_ceil(ENOUGH), ..Job::new(&model) };
        let sampling = Sampling::new(&job, |density| Ok(model.inputs().restricted_to(density.signature())))?;
        let draws = until_enough(&sampling, options)?;
        if draws.adapted.is_empty() {
            let why = draws.traps.first().map_or_else(|| "it was interrupted".to_owned(), |trap| trap.kind.to_string());
            return Err(Error::new(ErrorKind::Input, format!("{}: no warmup came to its end: {why}", model.name())));
        }
        let data = match data {
            Some(path) => path.to_owned(),
            None => {
                let path = folder.join("no-data.json");
                write_atomically(&path, |file| std::io::Write::write_all(file, b"{}"))?;
                path
            }
        };
        let files = StanFiles {
            file: absolute(program),
            include: include.iter().map(|folder| absolute(folder)).collect(),
            data: absolute(&data),
            inv_metric: pooled_metric(&draws),
        };
        let stepsize = median(draws.adapted.clone());
        Ok(Adapted { model, files, stepsize, starts: rows(&draws.parameters[Q], most) })
    }

    /// What peers are told.
    pub(super) fn files(&self) -> StanFiles {
        self.files.clone()
    }

    /// The diagonal of the inverse metric.
    pub(super) fn inv_metric(&self) -> Array {
        Array::real([self.files.inv_metric.len()], self.files.inv_metric.clone())
    }
}

/// The draws of the first chains that are through.
fn until_enough(sampling: &Sampling, options: &Options) -> Result<Draws, Error> {
    let waits = Waits { enough: Arc::new(AtomicBool::new(false)), stop: options.settings.stop.clone() };
    // What it compiles is ended by the flag of the comparison, and kept for the run.
    sampling.bound(options)?.prepare(options)?;
    let mut options = options.clone();
    options.settings.stop = Some(Arc::clone(&waits.enough));
    sampling.run_unconstrained(&options, &waits)
}

/// Ends a run when enough chains are through.
#[derive(Debug)]
struct Waits {
    enough: Arc<AtomicBool>,
    /// Ends the comparison.
    stop: Option<Arc<AtomicBool>>,
}

impl Observer for Waits {
    fn draw(&self) {}
    fn watches(&self) -> bool {
        true
    }
    fn moved(&self, reached: &Reached) {
        let stopped = self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        if stopped || reached.finished >= ENOUGH {
            self.enough.store(true, Ordering::Relaxed);
        }
    }
}

/// A path that means the same from another folder.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The median of the chains' variances, coordinate by coordinate: a chain that went astray does not count.
fn pooled_metric(draws: &Draws) -> Vec<f64> {
    let chains: Vec<&[f64]> = draws.inv_metrics.iter().filter_map(Array::as_real).collect();
    let dimension = chains.first().map_or(0, |metric| metric.len());
    (0..dimension).map(|i| median(chains.iter().map(|metric| metric[i]).collect())).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// So many states of chain × draw × dimension, each chain's in turn; where there are fewer, from the first one on again.
fn rows(states: &Array, most: usize) -> Array {
    let (chains, draws, dimension) = (states.shape[0], states.shape[1], states.shape[2]);
    let values = states.as_real().expect("a state is real");
    let row = |i: usize| (i % chains) * draws + (i / chains) % draws;
    let all = (0..most).flat_map(|i| &values[row(i) * dimension..(row(i) + 1) * dimension]).copied().collect();
    Array::real([most, dimension], all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starting_points_take_turns_among_chains() {
        let states = Array::real([2, 2, 1], vec![1.0, 2.0, 3.0, 4.0]);
        assert_eq!(rows(&states, 5), Array::real([5, 1], vec![1.0, 3.0, 2.0, 4.0, 1.0]));
    }
}
