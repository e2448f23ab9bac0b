//! What a store has of its run, as a run gives it.

use indexmap::IndexMap;

use super::layout::{PARAMETERS_FAILED, POSTERIOR, REACHED_DEPTH, SAMPLE_STATS, own_name};
use super::method::Method;
use super::{Axes, Draws, FailedDraws, Job, Reached, WarmupStates};
use crate::mcmc::protocol::N_LEAPFROG;
use crate::program::Error;
use crate::run::{Stats, Trap, available_memory};
use crate::store::{BlockStates, LOST, LaneProgress, RunStore, StoredArray, StoredRows};
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

/// Elements of a parameter, of all draws.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredPart<'a> {
    /// The parameter.
    pub name: &'a str,
    /// Its event shape.
    pub event: &'a [usize],
    /// The first of the elements, in row-major order.
    pub first: usize,
    /// Their values, chain × draw × element.
    pub values: Array,
    /// The draws that lack the parameter, chain · draws + draw.
    pub lost: Vec<usize>,
}

/// What a store has of a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredDraws {
    /// The draws, without their values: parameters are read by [`parameters`](Self::parameters), statistics by
    /// [`statistic`](Self::statistic), and all of it by [`whole`](Self::whole).
    pub draws: Draws,
    /// How far the chains are.
    pub progress: StoredProgress,
    /// States of warmup that all chains have, but for those that trapped.
    states: usize,
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
        let mut failed: Vec<usize> = vec![];
        let mut gradients: u64 = lanes.iter().map(|lane| lane.gradients).sum();
        for (name, array) in of_group(store, SAMPLE_STATS) {
            let see = |rows: StoredRows<'_>| match rows.data {
                ArrayData::Bool(flags) if name == PARAMETERS_FAILED => {
                    let first = rows.position * count + rows.first;
                    failed.extend((0..flags.len()).filter(|at| flags[*at]).map(|at| first + at));
                }
                ArrayData::Int(steps) => gradients += steps.iter().map(|n| *n as u64).sum::<u64>(),
                _ => {}
            };
            if name == PARAMETERS_FAILED || own_name(name) == N_LEAPFROG {
                store.each_rows(array, (&chains, count), &(0..1), see)?;
            }
        }
        failed.sort_unstable();
        let first = all.iter().find_map(|block| block.first_failure.as_ref()).map(|trap| trap.trap(0));
        let failed = first.filter(|_| !failed.is_empty()).map(|first| (failed, first));
        let range = |of: fn(&LaneProgress) -> u64| {
            let values = || chains.iter().map(|chain| of(lanes[*chain]) as usize);
            (values().min().unwrap_or(0), values().max().unwrap_or(0))
        };
        let (least, most) = range(|lane| lane.iteration);
        let points = job.starts.as_ref().filter(|_| job.data_sets.is_none()).map(distinct_rows);
        let superchains = points.filter(|n| (2..job.chains).contains(n) && method.init_radius() == 0.0);
        let draws = Draws {
            parameters: IndexMap::new(),
            statistics: IndexMap::new(),
            axes: axes_of(store),
            coords: job.coords.clone(),
            warmup_states: None,
            each_chain: vec![],
            fatal: None,
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
        Ok(Self { draws, progress, states: RunStore::extents(all.iter()).1, failed })
    }

    /// The states of warmup, where they are kept, as far as all of these chains have them.
    fn warmup_states(&self, store: &RunStore) -> Result<Option<WarmupStates>, Error> {
        let read = |array: &StoredArray| store.read(array, &self.draws.chains, self.states);
        let of_parameters = of_group(store, "warmup_posterior");
        let of_statistics = statistics_of(store, "warmup_sample_stats");
        let parameters = of_parameters.map(|(name, array)| Ok((name.to_owned(), read(array)?)));
        let statistics = of_statistics.map(|(name, array)| Ok((name.to_owned(), read(array)?)));
        let (parameters, statistics) =
            (parameters.collect::<Result<_, Error>>()?, statistics.collect::<Result<IndexMap<_, _>, Error>>()?);
        Ok((!statistics.is_empty()).then_some(WarmupStates { parameters, statistics, states: self.states }))
    }

    /// A statistic of the sampler, chain × draw; nothing where there is none of this name.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub fn statistic(&self, store: &RunStore, name: &str) -> Result<Option<Array>, Error> {
        let of = self.statistics(store).find(|(own, _)| *own == name);
        of.map(|(_, array)| store.read(array, &self.draws.chains, self.draws.draws)).transpose()
    }

    fn statistics<'a>(&self, store: &'a RunStore) -> impl Iterator<Item = (&'a str, &'a StoredArray)> {
        statistics_of(store, SAMPLE_STATS)
    }

    /// The parameters, a part of one after the other, so that no more than such a part is in memory. A part is as large as a
    /// sixteenth of the memory that is there allows, an element at least: most are whole. Who looks at the elements of one side
    /// by side takes several times as much.
    pub fn parameters<'a>(&'a self, store: &'a RunStore) -> impl Iterator<Item = Result<StoredPart<'a>, Error>> + 'a {
        self.parameters_in(store, available_memory().unwrap_or(usize::MAX) / 16)
    }

    /// The same, in parts of so many bytes, or of an element.
    pub fn parameters_in<'a>(
        &'a self,
        store: &'a RunStore,
        bytes: usize,
    ) -> impl Iterator<Item = Result<StoredPart<'a>, Error>> + 'a {
        let (chains, draws) = (&self.draws.chains[..], self.draws.draws);
        // As arrays are read.
        let of_element = (chains.len() * draws * size_of::<f64>()).max(1);
        of_group(store, POSTERIOR).flat_map(move |(name, array)| {
            let event = array.event();
            let count = (bytes / of_element).clamp(1, event.max(1));
            let failed = self.failed.as_ref();
            let lost = failed.map_or_else(|| Ok(vec![]), |(failed, _)| lost(store, array, (chains, draws), failed));
            let read = move |first: usize| {
                let elements = first..(first + count).min(event);
                let values = store.read_elements(array, (chains, draws), &elements)?;
                Ok(StoredPart { name, event: &array.shape[2..], first, values, lost: lost.clone()? })
            };
            (0..event.max(1)).step_by(count).map(read)
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
        let statistics = self.statistics(store);
        let statistics = statistics
            .map(|(name, array)| Ok((name.to_owned(), store.read(array, &self.draws.chains, self.draws.draws)?)));
        self.draws.statistics = statistics.collect::<Result<_, Error>>()?;
        let mut lost = vec![];
        let mut parameters = IndexMap::new();
        for part in self.parameters_in(store, usize::MAX) {
            let StoredPart { name, event, mut values, lost: lacks, .. } = part?;
            values.shape.truncate(2);
            values.shape.extend_from_slice(event);
            parameters.insert(name.to_owned(), values);
            lost.push((name.to_owned(), lacks));
        }
        self.draws.failed = self.failed(lost);
        self.draws.parameters = parameters;
        self.draws.warmup_states = self.warmup_states(store)?;
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

/// The statistics of the sampler among the arrays of a group, by their names here.
fn statistics_of<'a>(store: &'a RunStore, group: &'a str) -> impl Iterator<Item = (&'a str, &'a StoredArray)> {
    let arrays = of_group(store, group).filter(|(name, _)| ![REACHED_DEPTH, PARAMETERS_FAILED].contains(name));
    arrays.map(|(name, array)| (own_name(name), array))
}

/// What the axes of parameters are called, where they have names of their own.
fn axes_of(store: &RunStore) -> IndexMap<String, Axes> {
    let of = |(name, array): (&str, &StoredArray)| {
        let known =
            |(axis, called): (usize, &String)| Some(called.clone()).filter(|c| *c != format!("{name}_dim_{axis}"));
        let axes: Axes = array.axes.iter().skip(2).enumerate().map(known).collect();
        axes.iter().any(Option::is_some).then(|| (name.to_owned(), axes))
    };
    of_group(store, POSTERIOR).filter_map(of).collect()
}

/// Of draws that failed, ascending, those that lack a variable: it is NaN there, in all its elements.
fn lost(
    store: &RunStore,
    of: &StoredArray,
    (chains, draws): (&[usize], usize),
    failed: &[usize],
) -> Result<Vec<usize>, Error> {
    let event = of.event();
    let mut lost = vec![];
    store.each_rows(of, (chains, draws), &(0..event), |rows| {
        let first = rows.position * draws + rows.first;
        let is_lost = |row: usize| match rows.data {
            ArrayData::Real(values) => values[row * event..(row + 1) * event].iter().all(|x| x.is_nan()),
            ArrayData::Int(values) => values[row * event..(row + 1) * event].iter().all(|x| *x == LOST),
            ArrayData::Bool(_) => true,
        };
        let from = failed.partition_point(|at| *at < first);
        let own = failed[from..].iter().take_while(|at| **at < first + rows.draws).filter(|at| is_lost(*at - first));
        lost.extend(own);
    })?;
    lost.sort_unstable();
    Ok(lost)
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
