//! A run that goes on with what a store has.

use std::ops::Range;
use std::path::Path;

use super::{Observer, PlannedJob, Sampling, StoredDraws, StoredProgress, StoredRun, Warn};
use crate::program::{Error, Options};
use crate::store::{RunPlan, RunStatus, RunStore};

/// What a run has come to whose draws are in a store.
#[derive(Debug)]
#[non_exhaustive]
pub struct Resumed {
    /// The store.
    pub store: RunStore,
    /// What was run of its chains.
    pub chains: Range<usize>,
    /// How it went.
    pub run: StoredRun,
    /// How far all chains are.
    pub progress: StoredProgress,
    /// What the store has of all chains; nothing where other processes run chains of it.
    pub stored: Option<StoredDraws>,
}

/// Who is told of a run: gets what is run and the draws that are there of its chains.
pub type ObserverOf<'a> = &'a dyn Fn(&Sampling, usize) -> Box<dyn Observer + 'a>;

/// Runs these chains of a store, or all, on to their end; `warn` is told what was compiled.
///
/// # Errors
/// For a store that cannot be read or written, or that another process writes, and as [`Sampling::run`].
pub fn resume(
    root: &Path,
    lanes: Option<Range<usize>>,
    options: &Options,
    (observer, warn): (ObserverOf<'_>, Warn<'_>),
) -> Result<Resumed, Error> {
    let planned = PlannedJob::load(root)?;
    let all = 0..planned.plan().chains;
    let chains = lanes.unwrap_or_else(|| all.clone());
    let mut store = RunStore::open(root, chains.clone())?;
    let options = planned.options(options, &chains);
    let job = planned.job(&chains);
    let sampling = Sampling::new(&job, |function| planned.inputs(function))?;
    let run = sampling.run_into((&mut store, chains.clone()), &planned.observed(), &options, (observer, warn))?;
    let job = planned.job(&all);
    let progress = StoredProgress::of(&store.known_states()?, &job);
    let stored = if chains == all || progress.open.is_empty() {
        let status = match (progress.open.is_empty(), run.stopped) {
            (true, _) => RunStatus::Complete,
            (false, true) => RunStatus::Interrupted,
            (false, false) => RunStatus::Running,
        };
        if chains == all {
            store.clean();
        }
        end(&store, status)?;
        Some(StoredDraws::read(&store, &job)?)
    } else {
        None
    };
    Ok(Resumed { store, chains, run, progress, stored })
}

/// Asks a store for so many iterations more of each chain; gives how many there were, and how many there are to be.
///
/// # Errors
/// As [`resume`].
pub fn ask_for_more(root: &Path, more: usize) -> Result<(usize, usize), Error> {
    let plan = RunPlan::read(root)?;
    let mut store = RunStore::open(root, 0..plan.chains)?;
    let draws = plan.draws.saturating_add(more);
    store.set_draws(draws)?;
    Ok((plan.draws, draws))
}

/// Writes how far a store is, and waits until that is on disk.
///
/// # Errors
/// Where it cannot be written.
pub fn end(store: &RunStore, status: RunStatus) -> Result<(), Error> {
    store.publish(RunStore::extents(store.all_states()?.iter()), status)?;
    store.sync();
    Ok(())
}
