//! `autobatch pathfinder`: draws from the best normal approximations along paths to modes.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clap::{ArgAction, Args};

use crate::mcmc::pathfinder::{Pathfinder, PathfinderDraws};
use crate::program::{Error, ErrorKind, Terms};
use crate::report::stan_csv::CsvTables;
use crate::report::{aligned, quantity_table};

use super::args::yes_or_no;
use super::lines::Lines;
use super::model::ModelArgs;
use super::search::{Starts, report_failed, report_traps, tell_why};
use super::search_args::SearchArgs;
use super::signals::{interrupted, nothing_to_keep_yet, run_starts};
use super::{note, print};

/// Beyond this shape of the tail importance weights cannot mend the approximation.
const LARGEST_K: f64 = 0.7;
/// Paths that the report has a line for.
const SHOWN: usize = 10;

#[derive(Debug, Args)]
pub(super) struct PathfinderArgs {
    #[command(flatten)]
    pub(super) model: ModelArgs,
    /// Paths, which run side by side
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(super) num_paths: usize,
    /// Draws of each path
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(super) num_draws: usize,
    /// Draws that are resampled of those of all paths
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(super) num_psis_draws: usize,
    /// Draws that the evidence lower bound of each iteration is estimated with
    #[arg(long, value_name = "N", default_value_t = 25)]
    pub(super) num_elbo_draws: usize,
    /// Iterations of each path at most [default: 1000]
    #[arg(long, visible_alias = "iter", value_name = "N")]
    pub(super) max_lbfgs_iters: Option<usize>,
    /// Whether the draws are resampled by Pareto-smoothed importance weights; else those of all paths are given
    #[arg(long, value_name = "0|1", num_args = 0..=1, default_value = "1", default_missing_value = "1")]
    #[arg(value_parser = yes_or_no, action = ArgAction::Set)]
    pub(super) psis_resample: bool,
    #[command(flatten)]
    pub(super) search: SearchArgs,
}

pub(super) fn pathfinder(args: &PathfinderArgs) -> Result<ExitCode, Error> {
    let mut options = args.search.options()?;
    let _lines = Lines::of(&mut options);
    let stop = nothing_to_keep_yet();
    options.settings.stop = Some(Arc::clone(&stop));
    let file = args.search.file(args.model.files(), args.num_paths)?;
    let loaded = args.model.load(Terms { constants: true, jacobian: true }, options.settings.seed)?;
    let job = Pathfinder {
        num_paths: args.num_paths,
        num_draws: args.num_draws,
        num_psis_draws: args.num_psis_draws,
        num_elbo_draws: args.num_elbo_draws,
        history_size: args.search.tolerances.history_size,
        psis_resample: args.psis_resample,
        points: args.search.start.points(&loaded, args.num_paths, &options)?,
        settings: args.search.settings(args.max_lbfgs_iters)?,
    };
    run_starts();
    let ran = job.run(&loaded.source(), &|function| loaded.inputs(function), &options);
    if ran.as_ref().is_err_and(|error| error.kind() == ErrorKind::Input) {
        let starts = Starts::new(job.points.as_ref(), &job.settings);
        tell_why(&loaded, Terms { constants: true, jacobian: true }, &starts, &options);
    }
    let draws = ran?;
    report_traps("path", &draws.traps);
    let rows = draws.q.shape[1];
    let lines = vec![
        format!("num_psis_draws = {}", args.num_psis_draws),
        format!("num_paths = {}", args.num_paths),
        format!("psis_resample = {}", u8::from(args.psis_resample)),
        format!("max_lbfgs_iters = {}", args.max_lbfgs_iters.unwrap_or(1000)),
        format!("num_draws = {}", args.num_draws),
        format!("num_elbo_draws = {}", args.num_elbo_draws),
        format!("history_size = {}", args.search.tolerances.history_size),
    ];
    let header = args.search.header(&args.model, "pathfinder", lines, &options);
    let tables =
        CsvTables { header: &header, statistics: &draws.statistics, parameters: &draws.parameters, chains: 1, rows };
    let written = file.write_tables(&tables, args.search.start.id, &options);
    print(&quantity_table(&draws.parameters, draws.failed.as_ref()));
    print(&format!("\n{}\n{rows} draws\n", paths(&draws)));
    warn(args, &draws);
    written?;
    draws.fatal.map_or(Ok(()), Err)?;
    if stop.load(Ordering::Relaxed) {
        return Ok(interrupted());
    }
    Ok(ExitCode::SUCCESS)
}

fn warn(args: &PathfinderArgs, draws: &PathfinderDraws) {
    let good = draws.paths.iter().filter(|path| path.elbo.is_finite()).count();
    if good < args.num_paths {
        note(&format!("warning: only {good} of {} paths have an approximation", args.num_paths));
    }
    if let Some(k) = draws.pareto_k.filter(|k| *k > LARGEST_K) {
        note(&format!(
            "warning: Pareto k is {k:.2}, above {LARGEST_K}: resampling did not mend the approximation, which may \
             be poor; as starts of `sample --init` the draws may serve"
        ));
    }
    report_failed(draws.failed.as_ref(), draws.q.shape[1]);
}

/// A line for each path, those with the largest evidence lower bounds first.
fn paths(draws: &PathfinderDraws) -> String {
    let mut sorted: Vec<_> = draws.paths.iter().collect();
    sorted.sort_by(|a, b| b.elbo.total_cmp(&a.elbo));
    let heads = ["path", "ELBO", "best iteration", "iterations", "evaluations", "stopped"].map(str::to_owned);
    let lines = sorted.iter().take(SHOWN).map(|path| {
        let stopped = path.stopped.to_string();
        let stopped = stopped.strip_prefix("Convergence detected: ").unwrap_or(&stopped).to_owned();
        [
            (path.path + 1).to_string(),
            format!("{:.3}", path.elbo),
            path.best_iteration.to_string(),
            path.iterations.to_string(),
            path.evaluations.to_string(),
            stopped,
        ]
    });
    let mut text = aligned(&std::iter::once(heads).chain(lines).collect::<Vec<_>>());
    if sorted.len() > SHOWN {
        text += &format!("… and {} more\n", sorted.len() - SHOWN);
    }
    text
}
