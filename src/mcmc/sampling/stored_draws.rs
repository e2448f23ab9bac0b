//! What a store has of its run, as a run gives it.

use indexmap::IndexMap;

use super::layout::{PARAMETERS_FAILED, REACHED_DEPTH, own_name};
use super::method::Method;
use super::{Axes, Draws, FailedDraws, Job, Reached, WarmupStates};
use crate::mcmc::protocol::N_LEAPFROG;
use crate::program::Error;
use crate::run::{Stats, Trap};
use crate::store::{BlockStates, LaneProgress, RunStore, StoredArray};
use crate::types::{Array, ArrayData};

/// How far the chains of a store are.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct StoredProgress {
    /// The chains that have not made all their draws, but for those that trapped.
    pub open: Vec<usize>,
    /// Why the others ended before their end.
    pub traps: Vec<Trap>,
    /// Draws that all chains have, but for those that trapped.
    pub draws: usize,
}

impl StoredProgress {
    /// Of the chains that have these states.
    pub(super) fn of(states: &[BlockStates], job: &Job<'_>) -> Self {
        let iterations = (job.warmup + job.draws) as u64;
        let lanes = || states.iter().flat_map(|block| &block.lanes).enumerate();
        let is_open = |lane: &LaneProgress| lane.trap.is_none() && lane.iteration < iterations;
        Self {
            open: lanes().filter(|(_, lane)| is_open(lane)).map(|(chain, _)| chain).collect(),
            traps: lanes().filter_map(|(chain, lane)| Some(lane.trap.as_ref()?.trap(chain))).collect(),
            draws: RunStore::extents(states.iter()).0,
        }
    }
}

/// What a store has of a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredDraws {
    /// The draws, without the parameters: these are read one by one, by [`parameters`](Self::parameters).
    pub draws: Draws,
    /// How far the chains are.
    pub progress: StoredProgress,
    /// Draws for which the model's `parameters` failed, chain · draws + draw, and why the first did.
    failed: Option<(Vec<usize>, Trap)>,
}

impl StoredDraws {
    /// What a store has of its run, whose job this is, as far as all chains have it; the arrays of the store are known.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub fn read(store: &RunStore, job: &Job<'_>) -> Result<Self, Error> {
        let method = Method::new(job.sampler, &job.settings, job.starts.is_some())?;
        let all = store.all_states()?;
        let lanes: Vec<_> = all.iter().flat_map(|block| &block.lanes).collect();
        let chains: Vec<usize> = (0..lanes.len()).filter(|chain| lanes[*chain].trap.is_none()).collect();
        let progress = StoredProgress::of(&all, job);
        let count = progress.draws;
        let mut statistics = IndexMap::new();
        let mut flags = None;
        for (name, array) in of_group(store, "sample_stats") {
            let read = || store.read(array, &chains, count);
            match name {
                REACHED_DEPTH => {}
                PARAMETERS_FAILED => flags = Some(read()?),
                name => drop(statistics.insert(own_name(name).to_owned(), read()?)),
            }
        }
        let flags = flags.as_ref().and_then(Array::as_bool).unwrap_or_default();
        let failed: Vec<usize> = (0..flags.len()).filter(|at| flags[*at]).collect();
        let first = all.iter().find_map(|block| block.first_failure.as_ref()).map(|trap| trap.trap(0));
        let failed = first.filter(|_| !failed.is_empty()).map(|first| (failed, first));
        let steps = statistics.get(N_LEAPFROG).and_then(Array::as_int).unwrap_or_default().iter();
        let gradients = steps.map(|n| *n as u64).sum::<u64>() + lanes.iter().map(|lane| lane.gradients).sum::<u64>();
        let range = |of: fn(&LaneProgress) -> u64| {
            let values = || chains.iter().map(|chain| of(lanes[*chain]) as usize);
            (values().min().unwrap_or(0), values().max().unwrap_or(0))
        };
        let (least, most) = range(|lane| lane.iteration);
        let points = job.starts.as_ref().filter(|_| job.data_sets.is_none()).map(distinct_rows);
        let superchains = points.filter(|n| (2..job.chains).contains(n) && method.init_radius() == 0.0);
        let draws = Draws {
            parameters: IndexMap::new(),
            statistics,
            axes: axes_of(store),
            coords: job.coords.clone(),
            warmup_states: Self::warmup_states(store, &chains)?,
            each_chain: vec![],
            draws: count,
            asked: job.draws.div_ceil(method.thin()),
            reached: Reached {
                started: chains.iter().filter(|chain| lanes[**chain].iteration > 0).count(),
                warm: chains.iter().filter(|chain| lanes[**chain].iteration >= job.warmup as u64).count(),
                finished: chains.len() - progress.open.len(),
                warmup: (least.min(job.warmup), most.min(job.warmup)),
                draws: range(|lane| lane.draws),
                iterations: chains.iter().map(|chain| lanes[*chain].iteration as usize).sum(),
                ..Reached::default()
            },
            metric: job.metric,
            inv_metrics: metrics(store, &chains)?,
            chain_seconds: chains.iter().map(|chain| lanes[*chain].seconds).collect(),
            thin: method.thin(),
            failed: None,
            traps: progress.traps.clone(),
            rejected: vec![],
            rejected_after_warmup: vec![],
            gradients,
            max_treedepth: method.max_treedepth(),
            target_accept: method.target_accept().filter(|_| job.stepsize.is_none()),
            warmup: job.warmup,
            settings: method.settings().into_iter().cloned().collect(),
            stepsize: job.stepsize,
            adapted: store.read_chains("adaptation/step_size", &chains)?.iter().filter_map(scalar).collect(),
            // Groups are equally large only with all chains.
            superchains: superchains.filter(|_| progress.traps.is_empty()),
            data_sets: job.data_sets.as_ref().map(|sets| (sets.count(), job.chains / sets.count().max(1))),
            seconds: lanes.iter().map(|lane| lane.seconds.0 + lane.seconds.1).fold(0.0, f64::max),
            stats: Stats::default(),
            chains,
        };
        Ok(Self { draws, progress, failed })
    }

    /// The states of warmup, where they are kept, as far as all of these chains have them.
    fn warmup_states(store: &RunStore, chains: &[usize]) -> Result<Option<WarmupStates>, Error> {
        let states = RunStore::extents(store.all_states()?.iter()).1;
        let read = |group: &str| -> Result<IndexMap<String, Array>, Error> {
            let arrays = of_group(store, group).filter(|(name, _)| ![REACHED_DEPTH, PARAMETERS_FAILED].contains(name));
            arrays.map(|(name, array)| Ok((own_name(name).to_owned(), store.read(array, chains, states)?))).collect()
        };
        let (parameters, statistics) = (read("warmup_posterior")?, read("warmup_sample_stats")?);
        Ok((!statistics.is_empty()).then_some(WarmupStates { parameters, statistics, states }))
    }

    /// The parameters, each with the draws that lack it, chain · draws + draw: they are read as they are asked for.
    pub fn parameters<'a>(
        &'a self,
        store: &'a RunStore,
    ) -> impl Iterator<Item = Result<(String, Array, Vec<usize>), Error>> + 'a {
        of_group(store, "posterior").map(|(name, array)| {
            let array = store.read(array, &self.draws.chains, self.draws.draws)?;
            let lost = self.failed.as_ref().map_or_else(Vec::new, |(failed, _)| lost(&array, failed));
            Ok((name.to_owned(), array, lost))
        })
    }

    /// The draws for which the model's `parameters` failed, and what each of these variables lacks.
    pub fn failed(&self, lost: Vec<(String, Vec<usize>)>) -> Option<FailedDraws> {
        let (positions, first) = self.failed.clone()?;
        let lost = lost.into_iter().filter(|(_, lost)| !lost.is_empty()).map(|(name, lost)| (vec![name], lost));
        Some(FailedDraws::new(positions, first, lost.collect()))
    }

    /// The draws with all parameters.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub fn whole(mut self, store: &RunStore) -> Result<Draws, Error> {
        let read: Vec<(String, Array, Vec<usize>)> = self.parameters(store).collect::<Result<_, _>>()?;
        let mut lost = Vec::with_capacity(read.len());
        for (name, array, lacks) in read {
            self.draws.parameters.insert(name.clone(), array);
            lost.push((name, lacks));
        }
        self.draws.failed = self.failed(lost);
        Ok(self.draws)
    }
}

/// The arrays along draws of a group.
fn of_group<'a>(store: &'a RunStore, group: &'a str) -> impl Iterator<Item = (&'a str, &'a StoredArray)> {
    store.of_draws().iter().filter_map(move |array| {
        let (of, name) = array.path.split_once('/')?;
        (of == group).then_some((name, array))
    })
}

/// What the axes of parameters are called, where they have names of their own.
fn axes_of(store: &RunStore) -> IndexMap<String, Axes> {
    let of = |(name, array): (&str, &StoredArray)| {
        let known =
            |(axis, called): (usize, &String)| Some(called.clone()).filter(|c| *c != format!("{name}_dim_{axis}"));
        let axes: Axes = array.axes.iter().skip(2).enumerate().map(known).collect();
        axes.iter().any(Option::is_some).then(|| (name.to_owned(), axes))
    };
    of_group(store, "posterior").filter_map(of).collect()
}

/// Of draws that failed those that lack a variable: it is NaN there, in all its elements.
fn lost(array: &Array, failed: &[usize]) -> Vec<usize> {
    let size: usize = array.shape[2..].iter().product();
    let is_lost = |at: &usize| match &array.data {
        ArrayData::Real(values) => values[at * size..(at + 1) * size].iter().all(|x| x.is_nan()),
        // An int that is lost makes all of them reals.
        ArrayData::Int(_) => false,
        ArrayData::Bool(_) => true,
    };
    failed.iter().copied().filter(is_lost).collect()
}

/// The inverse metrics at the end of warmup, of chains that have come so far: 1 × dimension, or dimension × dimension.
fn metrics(store: &RunStore, chains: &[usize]) -> Result<Vec<Array>, Error> {
    let mut all = store.read_chains("adaptation/inv_metric", chains)?;
    all.retain(|metric| metric.as_real().is_some_and(|values| !values.iter().any(|x| x.is_nan())));
    for metric in all.iter_mut().filter(|metric| metric.shape.len() == 1) {
        metric.shape.insert(0, 1);
    }
    Ok(all)
}

fn scalar(array: &Array) -> Option<f64> {
    array.as_real()?.first().copied().filter(|value| !value.is_nan())
}

/// How many different rows stand one after the other.
fn distinct_rows(rows: &Array) -> usize {
    let width = rows.shape[1].max(1);
    let rows: Vec<&[f64]> = rows.as_real().unwrap_or_default().chunks(width).collect();
    1 + rows.windows(2).filter(|pair| pair[0] != pair[1]).count()
}
