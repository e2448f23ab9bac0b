//! `autobatch optimize`: the maximum of a log density, from one start or from many at once.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clap::{ArgAction, Args, ValueEnum};
use indexmap::IndexMap;

use crate::mcmc::optimize::{Algorithm, Optima, Optimization};
use crate::program::{Error, Terms};
use crate::report::stan_csv::CsvTables;
use crate::report::{aligned, element_name};
use crate::types::{Array, Scalar};

use super::args::yes_or_no;
use super::lines::Lines;
use super::model::ModelArgs;
use super::print;
use super::search::{optima as search, report_failed};
use super::search_args::SearchArgs;
use super::signals::{interrupted, nothing_to_keep_yet, run_starts};

/// Starts that the report has a line for.
const SHOWN: usize = 10;

#[derive(Debug, Args)]
pub(super) struct OptimizeArgs {
    #[command(flatten)]
    pub(super) model: ModelArgs,
    /// How the maximum is looked for
    #[arg(long, value_enum, default_value_t = AlgorithmName::Lbfgs)]
    pub(super) algorithm: AlgorithmName,
    /// Of a Stan program or a `model`: whether the density is that of the unconstrained space, with the Jacobian of the transforms
    /// (a maximum a posteriori there); else it is that of the parameters (the penalised maximum likelihood)
    #[arg(long, value_name = "0|1", num_args = 0..=1, default_value = "0", default_missing_value = "1")]
    #[arg(value_parser = yes_or_no, action = ArgAction::Set)]
    pub(super) jacobian: bool,
    /// Starts, which run side by side
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) starts: usize,
    /// Iterations of each start at most [default: 2000]
    #[arg(long, value_name = "N")]
    pub(super) iter: Option<usize>,
    #[command(flatten)]
    pub(super) search: SearchArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum AlgorithmName {
    /// Quasi-Newton with a short history
    Lbfgs,
    /// Quasi-Newton with the whole inverse Hessian
    Bfgs,
    /// Newton's method, with Hessians by differences of gradients
    Newton,
}

impl From<AlgorithmName> for Algorithm {
    fn from(name: AlgorithmName) -> Self {
        match name {
            AlgorithmName::Lbfgs => Algorithm::Lbfgs,
            AlgorithmName::Bfgs => Algorithm::Bfgs,
            AlgorithmName::Newton => Algorithm::Newton,
        }
    }
}

pub(super) fn optimize(args: &OptimizeArgs) -> Result<ExitCode, Error> {
    let mut options = args.search.options()?;
    let _lines = Lines::of(&mut options);
    let stop = nothing_to_keep_yet();
    options.settings.stop = Some(Arc::clone(&stop));
    let file = args.search.file(args.model.files(), args.starts)?;
    let terms = Terms { constants: false, jacobian: args.jacobian };
    let loaded = args.model.load(terms, options.settings.seed)?;
    let job = args.search.optimization(&loaded, (args.starts, args.iter), &options)?;
    run_starts();
    let optima = search(&Optimization { algorithm: args.algorithm.into(), terms, ..job }, &loaded, &options)?;
    let header = args.search.header(&args.model, "optimize", lines(args, &optima), &options);
    let n = optima.all.len();
    let statistics = IndexMap::from([
        ("lp".to_owned(), Array::real([1, n], optima.all.iter().map(|o| o.lp).collect())),
        ("converged".to_owned(), Array::int([1, n], optima.all.iter().map(|o| o.stopped.0).collect())),
    ]);
    let tables =
        CsvTables { header: &header, statistics: &statistics, parameters: &optima.parameters, chains: 1, rows: n };
    let written = file.write_tables(&tables, args.search.start.id, &options);
    print(&report(&optima));
    report_failed(optima.failed.as_ref(), n);
    written?;
    optima.fatal.clone().map_or(Ok(()), Err)?;
    if stop.load(Ordering::Relaxed) {
        return Ok(interrupted());
    }
    let converged = optima.best().is_some_and(|best| best.stopped.converged());
    Ok(ExitCode::from(u8::from(!converged)))
}

/// What can be set, as CmdStan's comments tell it.
fn lines(args: &OptimizeArgs, optima: &Optima) -> Vec<String> {
    let algorithm = Algorithm::from(args.algorithm);
    let mut lines = vec![format!("algorithm = {}", algorithm.name())];
    if algorithm != Algorithm::Newton {
        lines.push(format!("  {}", algorithm.name()));
        let told = optima.settings.iter().filter(|s| s.name.starts_with("tol_") || s.name == "init_alpha");
        lines.extend(told.map(|s| format!("    {} = {}", s.name, s.value)));
    }
    if algorithm == Algorithm::Lbfgs {
        lines.push(format!("    history_size = {}", args.search.tolerances.history_size));
    }
    lines.push(format!("jacobian = {}", u8::from(args.jacobian)));
    // cmdstanpy asks for it, and for nothing that would tell of several starts.
    lines.push("save_iterations = false (Default)".to_owned());
    lines.extend(optima.settings.iter().filter(|s| s.name == "iter").map(|s| format!("iter = {}", s.value)));
    lines.push(format!("starts = {}", args.starts));
    lines
}

/// The best point, and what became of each start.
fn report(optima: &Optima) -> String {
    let Some(best) = optima.best() else { return String::new() };
    let last = optima.all.len() - 1;
    let mut rows = vec![[String::new(), "mode".to_owned()], ["lp__".to_owned(), number(best.lp)]];
    for (name, array) in &optima.parameters {
        let event = &array.shape[2..];
        let size: usize = event.iter().product();
        rows.extend((0..size).map(|at| {
            let value = match array.get(last * size + at) {
                Scalar::Real(x) => number(x),
                Scalar::Int(i) => i.to_string(),
                Scalar::Bool(b) => b.to_string(),
            };
            [element_name(name, event, at), value]
        }));
    }
    let mut text = aligned(&rows);
    if optima.all.len() > 1 {
        let heads = ["start", "lp__", "|gradient|", "iterations", "gradients", "stopped"].map(str::to_owned);
        let lines = optima.all.iter().rev().take(SHOWN).map(|o| {
            let stopped = o.stopped.to_string();
            let stopped = stopped.strip_prefix("Convergence detected: ").unwrap_or(&stopped).to_owned();
            [
                o.start.to_string(),
                number(o.lp),
                format!("{:.2e}", o.gradient_norm),
                o.iterations.to_string(),
                o.gradients.to_string(),
                stopped,
            ]
        });
        text += &format!("\n{}", aligned(&std::iter::once(heads).chain(lines).collect::<Vec<_>>()));
        if optima.all.len() > SHOWN {
            text += &format!("… and {} more\n", optima.all.len() - SHOWN);
        }
        let near = |lp: f64| (best.lp - lp).abs() <= 1e-4 * best.lp.abs().max(1.0);
        let same = optima.all.iter().filter(|o| near(o.lp)).count();
        let converged = optima.all.iter().filter(|o| o.stopped.converged()).count();
        text += &format!(
            "\n{} starts: {converged} converged, {same} of them to the best log density within a ten-thousandth\n",
            optima.all.len()
        );
    } else {
        text += &format!(
            "\n{} iterations, {} gradients, |gradient| = {:.2e}\n{}\n",
            best.iterations, best.gradients, best.gradient_norm, best.stopped
        );
    }
    text
}

fn number(x: f64) -> String {
    crate::report::stan_csv::general(x, 6)
}
