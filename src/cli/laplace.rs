//! `autobatch laplace`: draws from the normal approximation at a mode.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clap::{ArgAction, Args};

use crate::mcmc::laplace::laplace as approximate;
use crate::mcmc::optimize::Optimization;
use crate::mcmc::sampling::ModelSource;
use crate::program::{Error, ErrorKind, Options, Terms};
use crate::report::quantity_table;
use crate::report::stan_csv::CsvTables;

use super::args::yes_or_no;
use super::inits;
use super::lines::Lines;
use super::model::{Model, ModelArgs};
use super::search::{optima, report_failed};
use super::search_args::SearchArgs;
use super::signals::{interrupted, nothing_to_keep_yet, run_starts};
use super::{note, print};

#[derive(Debug, Args)]
pub(super) struct LaplaceArgs {
    #[command(flatten)]
    pub(super) model: ModelArgs,
    /// The mode, as `optimize` writes it, or in another form that `--init` has; without it, it is looked for by L-BFGS
    #[arg(long, value_name = "FILE.csv|.json|.npz")]
    pub(super) mode: Option<PathBuf>,
    /// Of a Stan program or a `model`: whether the density is that of the unconstrained space; as it was when the mode was found
    #[arg(long, value_name = "0|1", num_args = 0..=1, default_value = "1", default_missing_value = "1")]
    #[arg(value_parser = yes_or_no, action = ArgAction::Set)]
    pub(super) jacobian: bool,
    /// Draws
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(super) draws: usize,
    /// Without --mode: starts, which run side by side; the best is the mode
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(super) starts: usize,
    /// Without --mode: iterations of each start at most [default: 2000]
    #[arg(long, value_name = "N")]
    pub(super) iter: Option<usize>,
    #[command(flatten)]
    pub(super) search: SearchArgs,
}

/// How far from its maximum a mode may be, in standard deviations of the approximation.
const MOST_OFF: f64 = 1e-2;

pub(super) fn laplace(args: &LaplaceArgs) -> Result<ExitCode, Error> {
    let mut options = args.search.options()?;
    let _lines = Lines::of(&mut options);
    let stop = nothing_to_keep_yet();
    options.settings.stop = Some(Arc::clone(&stop));
    let file = args.search.file(args.model.files().chain(args.mode.clone()), args.starts)?;
    if args.draws == 0 {
        return Err(Error::new(ErrorKind::Option, "--draws 0: there is nothing to draw"));
    }
    // A density that is written by hand is what it computes.
    let known = super::model::is_stan(&args.model.model) || ModelSource::from(&args.model.model).knows_jacobian()?;
    let terms = Terms { constants: false, jacobian: args.jacobian || !known };
    let loaded = args.model.load(terms, options.settings.seed)?;
    run_starts();
    let mode = mode(args, &loaded, terms, &options)?;
    if stop.load(Ordering::Relaxed) {
        let message = "stopped: the mode is not known, and nothing is written";
        return Err(Error::new(ErrorKind::Interrupted, message));
    }
    let draws = approximate(&loaded.source(), terms, &mode, args.draws, &|function| loaded.inputs(function), &options)?;
    let lines = vec![
        format!("mode = {}", args.mode.as_ref().map_or(String::new(), |path| path.display().to_string())),
        format!("jacobian = {}", u8::from(args.jacobian)),
        format!("draws = {}", args.draws),
    ];
    let header = args.search.header(&args.model, "laplace", lines, &options);
    let tables = CsvTables {
        header: &header,
        statistics: &draws.statistics,
        parameters: &draws.parameters,
        chains: 1,
        rows: args.draws,
    };
    let written = file.write_tables(&tables, args.search.start.id, &options);
    print(&quantity_table(&draws.parameters, draws.failed.as_ref()));
    print(&format!(
        "\n{} draws from the normal approximation at the mode, where the log density is {}\n",
        args.draws, draws.lp_mode
    ));
    if draws.mode_off > MOST_OFF {
        let remedy = match args.mode {
            Some(_) => "write it with --sig-figs 17, and with the same --jacobian",
            None => "give a better one by --mode, or start the search elsewhere by --init",
        };
        note(&format!(
            "warning: the mode is {:.2e} standard deviations of the approximation from where its gradient points: {remedy}",
            draws.mode_off
        ));
    }
    report_failed(draws.failed.as_ref(), draws.q.shape[1]);
    written?;
    draws.fatal.map_or(Ok(()), Err)?;
    if stop.load(Ordering::Relaxed) {
        return Ok(interrupted());
    }
    Ok(ExitCode::SUCCESS)
}

/// The mode that is given, or found.
fn mode(args: &LaplaceArgs, loaded: &Model<'_>, terms: Terms, options: &Options) -> Result<Vec<f64>, Error> {
    if let Some(path) = &args.mode {
        let point = inits::last(path, loaded, options)?;
        return Ok(point.as_real().expect("starting points are reals").to_vec());
    }
    let job = args.search.optimization(loaded, (args.starts, args.iter), options)?;
    let optima = optima(&Optimization { terms, ..job }, loaded, options)?;
    let best = optima.best().expect("a search that finds no point is an error");
    if !best.stopped.converged() {
        note(&format!("warning: the mode may be none: {}", best.stopped));
    }
    Ok(best.q.clone())
}
