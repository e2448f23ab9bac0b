//! Runs whose draws go to a store: `sample --store`, `resume`, `merge`.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;

use crate::mcmc::sampling::{
    self, Job, Observer, POOLED_WARMUP, PlannedJob, Resumed, Sampling, StoredDraws, StoredProgress,
};
use crate::program::{Bound, Error, ErrorKind, Options};
use crate::report::{Advice, DataSetsSummary, Diagnosis, Summary};
use crate::run::Stats;
use crate::store::{BLOCK, RunPlan, RunStatus, RunStore, StoredSetting};

use super::args::{EngineArgs, range};
use super::lines::Lines;
use super::progress::Watcher;
use super::sample_args::{ChainArgs, ProgressName};
use super::show::{note_failed, show_stats, whole_names};
use super::signals::{interrupted, nothing_to_keep_yet, run_starts};
use super::{note, print, warn_of_own};

/// The exit code of a process whose chains wait for others: `EX_TEMPFAIL` of `sysexits.h`.
const TRY_AGAIN: u8 = 75;
/// Chains that are told one by one.
const MOST_TOLD: usize = 5;

#[derive(Debug, Clone, Default, Args)]
pub(super) struct StoreArgs {
    /// Write the draws to this folder while they are made, as Zarr with the names of ArviZ: `resume` goes on with it
    #[arg(long, value_name = "FOLDER.zarr")]
    pub(super) store: Option<PathBuf>,
    /// Of --store: the variables that are kept, `q` for the unconstrained state; by default all of the model's
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', requires = "store")]
    pub(super) keep: Vec<String>,
    /// Of --store: run only these of the chains, from A up to B, which is excluded; several processes, each with its own, fill
    /// a store together, and `merge` ends it
    #[arg(long, value_name = "A..B", requires = "store", value_parser = range)]
    pub(super) lanes: Option<Range<usize>>,
    /// Of --lanes with --pooled-warmup: wait so long for the chains that other processes run, at the end of each window
    #[arg(long, value_name = "SECONDS", requires = "lanes", default_value_t = 0)]
    pub(super) wait: u32,
}

#[derive(Debug, Args)]
pub(super) struct ResumeArgs {
    /// The store of the run
    #[arg(value_name = "FOLDER.zarr")]
    pub(super) store: PathBuf,
    /// Ask for so many iterations more after warmup of each chain
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "lanes")]
    pub(super) more_draws: usize,
    /// Run only these of the chains, from A up to B, which is excluded
    #[arg(long, value_name = "A..B", value_parser = range)]
    pub(super) lanes: Option<Range<usize>>,
    /// Of --lanes, where warmup is pooled: wait so long for the chains that other processes run, at the end of each window
    #[arg(long, value_name = "SECONDS", requires = "lanes", default_value_t = 0)]
    pub(super) wait: u32,
    #[command(flatten)]
    pub(super) shown: ShownArgs,
    /// Tell how far the chains are after so many iterations of the slowest; 0 tells nothing
    #[arg(long, value_name = "N")]
    pub(super) refresh: Option<usize>,
    /// How progress is shown, as of `sample`
    #[arg(long, value_enum, default_value_t = ProgressName::Auto)]
    pub(super) progress: ProgressName,
    #[command(flatten)]
    pub(super) engine: EngineArgs,
}

#[derive(Debug, Args)]
pub(super) struct MergeArgs {
    /// The store, whose chains several processes have run
    #[arg(value_name = "FOLDER.zarr")]
    pub(super) store: PathBuf,
    /// End it with the draws that all chains have, though some lack draws
    #[arg(long)]
    pub(super) partial: bool,
    #[command(flatten)]
    pub(super) shown: ShownArgs,
}

#[derive(Debug, Clone, Default, Args)]
pub(super) struct ShownArgs {
    /// Parameters that the summary shows, such as mu,theta[3], or theta[Choate] where axes have labels; all by default
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(super) summary: Vec<String>,
    /// Show no summary, which looks at all draws of every parameter: that takes its time where there are millions
    #[arg(long, conflicts_with_all = ["summary", "diagnose"])]
    pub(super) no_summary: bool,
    /// Show also which parameters go with divergent transitions, with the energy and with deep trees: what to write
    /// otherwise where the summary warns of them
    #[arg(long)]
    pub(super) diagnose: bool,
    /// Count supersteps, lanes, primitives and pushes, and print them
    #[arg(long)]
    pub(super) stats: bool,
}

/// Runs the job of `sample` into a new store, or its part of one that other processes fill, too.
pub(super) fn sample(
    (sampling, job): (&Sampling, &Job<'_>),
    (args, chain): (&StoreArgs, &ChainArgs),
    shown: &ShownArgs,
    (options, stop): (&Options, &Arc<AtomicBool>),
) -> Result<Ran, Error> {
    let root = args.store.as_deref().expect("it is asked for");
    let keep = (!args.keep.is_empty()).then(|| args.keep.clone());
    let (plan, files) = sampling.plan(job, keep, options)?;
    check_wait(args.wait, &plan)?;
    match &args.lanes {
        Some(_) => RunStore::join_or_create(root, &plan, &files)?,
        None => RunStore::create(root, &plan, &files)?,
    }
    run(root, (args.lanes.clone(), args.wait), (shown, (chain.progress, chain.refresh)), (options, stop))
}

/// Refuses to wait for others where nobody learns from them.
fn check_wait(wait: u32, plan: &RunPlan) -> Result<(), Error> {
    if wait > 0 && plan.settings.get(POOLED_WARMUP) != Some(&StoredSetting::Bool(true)) {
        return Err(Error::new(
            ErrorKind::Option,
            "--wait: chains wait for others only where --pooled-warmup asks for it",
        ));
    }
    Ok(())
}

/// Goes on with a run that was stopped or killed, or asks for more draws.
pub(super) fn resume(args: &ResumeArgs) -> Result<ExitCode, Error> {
    let given = [
        ("--seed", args.engine.seed != 0),
        ("--real", matches!(args.engine.real, super::args::RealName::F32)),
        ("--max-stack-depth", args.engine.max_stack_depth != 10_000),
        ("--max-tape-depth", args.engine.max_tape_depth != 1 << 24),
        ("--max-supersteps", args.engine.max_supersteps != 0),
    ];
    if let Some((name, _)) = given.iter().find(|(_, given)| *given) {
        let message = format!("{name}: a run goes on as it began, with what its store says");
        return Err(Error::new(ErrorKind::Option, message));
    }
    check_wait(args.wait, &RunPlan::read(&args.store)?)?;
    let options = args.engine.options(args.shown.stats)?;
    if args.more_draws > 0 {
        let (before, draws) = sampling::ask_for_more(&args.store, args.more_draws)?;
        note(&format!("{draws} iterations after warmup of each chain, where there were {before}"));
    }
    let shown = (&args.shown, (args.progress, args.refresh));
    run(&args.store, (args.lanes.clone(), args.wait), shown, (&options, &nothing_to_keep_yet()))?.code
}

/// Ends a store whose chains several processes have run.
pub(super) fn merge(args: &MergeArgs) -> Result<ExitCode, Error> {
    let root = &args.store;
    let planned = PlannedJob::load(root)?;
    let all = 0..planned.plan().chains;
    let mut store = RunStore::open(root, all.clone())?;
    store.read_arrays()?;
    for block in store.blocks(&all)? {
        let states = store.states(&block)?;
        if let Some(why) = store.damage(&block, &states) {
            let (a, b) = (block.chains.start, block.chains.end);
            let message = format!("{why}: run `autobatch resume {} --lanes {a}..{b}`", root.display());
            return Err(Error::new(ErrorKind::Io, message));
        }
    }
    let job = planned.job(&all);
    let stored = StoredDraws::read(&store, &job)?;
    let StoredProgress { open, draws, .. } = &stored.progress;
    if !open.is_empty() && (!args.partial || *draws == 0) {
        let mut blocks: Vec<usize> = open.iter().map(|chain| chain / BLOCK).collect();
        blocks.dedup();
        let ranges = blocks.iter().map(|block| {
            let start = block * BLOCK;
            format!("--lanes {start}..{}", (start + BLOCK).min(all.end))
        });
        let partial = match draws {
            0 => "there are no draws of all chains yet".to_owned(),
            n => format!("or `merge --partial`, which ends the store with the {n} draws that all chains have"),
        };
        let (count, name) = (open.len(), root.display());
        let message = format!(
            "{count} of {} chains lack draws: run `autobatch resume {name}` with {}; {partial}",
            all.end,
            ranges.collect::<Vec<_>>().join(", ")
        );
        return Err(Error::new(ErrorKind::Input, message));
    }
    store.clean();
    sampling::end(&store, if open.is_empty() { RunStatus::Complete } else { RunStatus::Interrupted })?;
    show(root, (&store, &stored), &args.shown)
}

/// What became of a run whose draws are in a store.
pub(super) struct Ran {
    /// How the process ends.
    pub(super) code: Result<ExitCode, Error>,
    /// What was counted.
    pub(super) stats: Stats,
    /// Whether there are draws of all chains.
    pub(super) has_draws: bool,
}

/// Runs the chains of a store on.
fn run(
    root: &Path,
    (lanes, wait): (Option<Range<usize>>, u32),
    (shown, how): (&ShownArgs, (ProgressName, Option<usize>)),
    (options, stop): (&Options, &Arc<AtomicBool>),
) -> Result<Ran, Error> {
    let mut options = options.clone();
    let lines = Lines::of(&mut options);
    options.settings.stop = Some(Arc::clone(stop));
    // Numbers of chains count from 1 there.
    let first = RunPlan::read(root)?.first_lane + lanes.as_ref().map_or(0, |lanes| lanes.start as u64) + 1;
    let observer = |sampling: &Sampling, draws: usize| -> Box<dyn Observer> {
        Box::new(Watcher::new(how, first, sampling, draws))
    };
    let warn = |bound: &Bound| {
        warn_of_own(bound);
        run_starts();
    };
    let resumed = sampling::resume(root, (lanes, Duration::from_secs(wait.into())), &options, (&observer, &warn))?;
    drop(lines);
    let Resumed { store, stored, chains, run, progress, waits, .. } = &resumed;
    run.notes.iter().for_each(|line| note(&format!("warning: {line}")));
    if run.resumed > 0 {
        note(&format!("{} iterations were there already", run.resumed));
    }
    let (name, stopped) = (root.display(), stop.load(Ordering::Relaxed));
    let ended = |code, has_draws| Ran { code, stats: run.stats.clone(), has_draws };
    let Some(stored) = stored else {
        let (a, b) = (chains.start, chains.end);
        tell_traps(progress, chains);
        let own = progress.open.iter().filter(|chain| chains.contains(chain)).count();
        note(&match own {
            n if *waits => format!(
                "{n} of the chains {a}..{b} wait for what the others learn: when these have come so far, \
                 `autobatch resume {name} --lanes {a}..{b}` goes on"
            ),
            0 => format!("the chains {a}..{b} are in {name}: when all are, `autobatch merge {name}` ends it"),
            n => format!("{n} of the chains {a}..{b} lack draws: `autobatch resume {name} --lanes {a}..{b}` goes on"),
        });
        if *waits {
            return Ok(ended(Ok(ExitCode::from(TRY_AGAIN)), false));
        }
        // A chain that trapped would trap again: the task is done, and who merges is told.
        return Ok(ended(Ok(if stopped && own > 0 { interrupted() } else { ExitCode::SUCCESS }), false));
    };
    let code = show(root, (store, stored), shown);
    let has_draws = code.is_ok() && stored.draws.draws > 0;
    if code.is_err() {
        return Ok(ended(code, has_draws));
    }
    if shown.stats {
        print(&format!("\n{}", show_stats(&run.stats)));
    }
    if stopped && !progress.open.is_empty() {
        note(&format!("stopped: `autobatch resume {name}` goes on"));
        return Ok(ended(Ok(interrupted()), has_draws));
    }
    Ok(ended(code, has_draws))
}

fn tell_traps(progress: &StoredProgress, chains: &Range<usize>) {
    let traps: Vec<_> = progress.traps.iter().filter(|trap| chains.contains(&trap.position)).collect();
    for trap in traps.iter().take(MOST_TOLD) {
        note(&format!("chain {}: {}", trap.position, trap.told_with("")));
    }
    if traps.len() > MOST_TOLD {
        note(&format!("… and {} more chains", traps.len() - MOST_TOLD));
    }
}

/// Shows the summary of a store.
fn show(name: &Path, (store, stored): (&RunStore, &StoredDraws), shown: &ShownArgs) -> Result<ExitCode, Error> {
    tell_traps(&stored.progress, &(0..store.plan().chains));
    let draws = &stored.draws;
    if draws.chains.is_empty() {
        return Err(Error::new(ErrorKind::Input, "no chain is left: there are no draws"));
    }
    if draws.draws < draws.asked {
        note(&format!("{} of {} draws of each chain are there", draws.draws, draws.asked));
    }
    // A summary of one posterior says it.
    if let Some(failed) = stored.failed(vec![]).filter(|_| shown.no_summary || draws.data_sets.is_some()) {
        note_failed(&failed, draws.chains.len() * draws.draws);
    }
    if draws.draws > 0 && !shown.no_summary && draws.data_sets.is_some() {
        if shown.diagnose {
            note(&format!(
                "note: --diagnose is of one posterior: `autobatch diagnose {} --data-set 0`",
                name.display()
            ));
        }
        let mut summary = DataSetsSummary::of_store(stored, store)?;
        for name in summary.keep(&whole_names(&shown.summary)) {
            note(&format!("warning: --summary: there is no parameter `{name}`"));
        }
        print(&format!("{summary}\n"));
    } else if draws.draws > 0 && !shown.no_summary {
        let mut summary = Summary::of_store(stored, store)?;
        for name in summary.keep(&whole_names(&shown.summary)) {
            note(&format!("warning: --summary: there is no parameter `{name}`"));
        }
        // More draws are asked of the store; what else is advised is of another run.
        let asked = store.plan().draws;
        for warning in &mut summary.warnings {
            if let Some(Advice::Draws(draws)) = warning.advice {
                let more = draws.saturating_sub(asked).max(1);
                warning.command = Some(format!("autobatch resume {} --more-draws {more}", name.display()));
            }
        }
        print(&format!("{summary}\n"));
        if shown.diagnose {
            print(&format!("{}\n", Diagnosis::of_draws(&stored.clone().whole(store)?)));
        }
    }
    Ok(ExitCode::from(u8::from(!stored.progress.traps.is_empty())))
}
