//! A run that goes on with what a store has.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{Observer, PlannedJob, Sampling, StoredDraws, StoredProgress, StoredRun, Warn};
use crate::program::{Error, ErrorKind, Options};
use crate::store::{RunPlan, RunStatus, RunStore};

/// How often it is looked whether other chains have come so far.
const LOOKS: Duration = Duration::from_millis(200);

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
    /// Whether chains wait for what others learn, which other processes run.
    pub waits: bool,
    /// What the store has of all chains; nothing where other processes run chains of it.
    pub stored: Option<StoredDraws>,
}

/// Who is told of a run: gets what is run and the draws that are there of its chains.
pub type ObserverOf<'a> = &'a dyn Fn(&Sampling, usize) -> Box<dyn Observer + 'a>;

/// Runs these chains of a store, or all, on to their end; `warn` is told what was compiled. Where warmup is pooled, chains
/// wait so long for those that other processes run.
///
/// # Errors
/// For a store that cannot be read or written, or that another process writes, and as [`Sampling::run`].
pub fn resume(
    root: &Path,
    (lanes, patience): (Option<Range<usize>>, Duration),
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
    let there: u64 = store.known_states()?.iter().flat_map(|block| &block.lanes).map(|lane| lane.draws).sum();
    let observer = &*observer(&sampling, there as usize);
    let wave = |store: &mut RunStore, warn: Warn<'_>| {
        sampling.run_into((store, chains.clone()), &planned.observed(), &options, (observer, warn))
    };
    let mut run = wave(&mut store, warn)?;
    while !run.stopped && (run.can_go_on || wait_for_others(&sampling, &store, &chains, (patience, &options))?) {
        let next = wave(&mut store, &|_| ())?;
        if next.can_go_on && next.iterations == next.resumed {
            return Err(Error::new(
                ErrorKind::Entry,
                "pooled_warmup: the chain does not tell its state where a window ends",
            ));
        }
        let mut notes = run.notes;
        notes.extend(next.notes);
        let mut stats = next.stats;
        stats.add(run.stats);
        run = StoredRun { resumed: run.resumed, notes, stats, ..next };
    }
    // Also of one that waited for others.
    run.stopped |= is_stopped(&options);
    observer.finished(&run.reached);
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
    // What was stored stays, and can be read.
    if let Some(fatal) = run.fatal.take() {
        return Err(fatal);
    }
    let waits = sampling.pools() && !run.stopped && progress.open.iter().any(|chain| chains.contains(chain));
    Ok(Resumed { store, chains, run, progress, waits, stored })
}

/// Waits for what chains learn that other processes run; gives whether some of these can go on.
fn wait_for_others(
    sampling: &Sampling,
    store: &RunStore,
    chains: &Range<usize>,
    (patience, options): (Duration, &Options),
) -> Result<bool, Error> {
    if !sampling.pools() || patience.is_zero() {
        return Ok(false);
    }
    let states: Vec<_> = store.blocks(chains)?.iter().map(|block| store.states(block)).collect::<Result<_, _>>()?;
    if !states.iter().flat_map(|block| &block.lanes).any(|lane| sampling.waits(lane)) {
        return Ok(false);
    }
    let start = Instant::now();
    while start.elapsed() < patience && !is_stopped(options) {
        if sampling.can_go_on(store, &states)? {
            return Ok(true);
        }
        std::thread::sleep(LOOKS);
    }
    Ok(false)
}

fn is_stopped(options: &Options) -> bool {
    options.settings.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
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
