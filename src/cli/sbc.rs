//! `autobatch sbc`: simulation-based calibration of a model and a sampler.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clap::Args;
use indexmap::IndexMap;

use super::args::{EngineArgs, count};
use super::lines::Lines;
use super::model::{DataArgs, Model, SAMPLED};
use super::page::check_page;
use super::progress::Watcher;
use super::sample_args::ProgressName;
use super::sample_job::all_chains;
use super::signals::{interrupted, nothing_to_keep_yet, run_starts};
use super::{check_place, note, print, spares, warn_of_own};
use crate::mcmc::sampling::{Job, Observer as _, SamplerSettings, Sampling, THIN};
use crate::mcmc::simulated::simulate;
use crate::program::io::{NamedValues, write_arrays, write_atomically};
use crate::program::{Error, ErrorKind};
use crate::report::{CalibratedQuantity, Calibration};
use crate::types::{Array, Precision};

/// Of so many draws one is ranked, where nobody says otherwise: ranks want draws that are near to independent.
const EACH: &str = "10";

#[derive(Debug, Args)]
pub(super) struct SbcArgs {
    /// The model: exports `log_density`, `parameters`, and `simulate`, which draws parameters from the prior and data by them
    pub(super) model: PathBuf,
    #[command(flatten)]
    pub(super) data: DataArgs,
    /// What draws parameters and data, where that is not the model: exports `simulate`; of a Stan program its generated
    /// quantities
    #[arg(long, value_name = "FILE.ab|.stan")]
    pub(super) simulator: Option<PathBuf>,
    /// Data sets that are drawn, each of which has chains of its own
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = count)]
    pub(super) simulations: usize,
    /// Chains of each data set
    #[arg(long, default_value_t = 1, value_parser = count)]
    pub(super) chains: usize,
    /// Warmup iterations of each chain
    #[arg(long, default_value_t = 500, value_parser = count)]
    pub(super) warmup: usize,
    /// Iterations of each chain after warmup; one of ten is ranked, or of as many as --set thin=N says
    #[arg(long, default_value_t = 1000, value_parser = count)]
    pub(super) draws: usize,
    /// The sampler; std/nuts.ab by default
    #[arg(long, value_name = "FILE.ab")]
    pub(super) sampler: Option<PathBuf>,
    /// Sets something of the sampler, such as target_accept=0.95; may be given several times
    #[arg(long, value_name = "NAME=VALUE", allow_hyphen_values = true)]
    pub(super) set: Vec<String>,
    /// Quantities that are ranked; all by default that the simulator and the model both have
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(super) quantities: Vec<String>,
    /// Write the ranks to this file, data set × event shape, and what was drawn
    #[arg(long, value_name = "FILE.npz|.json")]
    pub(super) output: Option<PathBuf>,
    /// Write a page with the distribution functions of the ranks and their bands
    #[arg(long, value_name = "FILE.html")]
    pub(super) report: Option<PathBuf>,
    /// How progress is shown
    #[arg(long, value_enum, default_value_t = ProgressName::Auto)]
    pub(super) progress: ProgressName,
    #[command(flatten)]
    pub(super) engine: EngineArgs,
}

pub(super) fn sbc(args: &SbcArgs) -> Result<ExitCode, Error> {
    let mut options = args.engine.options(false)?;
    let settings = checked(args)?;
    let lines = Lines::of(&mut options);
    let stop = nothing_to_keep_yet();
    let simulator = args.simulator.as_ref().unwrap_or(&args.model);
    let drawn = {
        let loaded = Model::load(simulator, &args.data, SAMPLED, options.settings.seed)?;
        simulate(&loaded.source(), args.simulations, |function| loaded.all_inputs(function), &options)?
    };
    if let Some(name) = args.quantities.iter().find(|name| !drawn.contains_key(*name)) {
        let message = format!("--quantities: the simulator gives no `{name}`");
        return Err(Error::new(ErrorKind::Option, message));
    }
    let values = NamedValues::of(simulator.display().to_string(), drawn.clone());
    let loaded = Model::load_sets(&args.model, &args.data, Some(&values), SAMPLED, options.settings.seed)?;
    let job = Job {
        sampler: args.sampler.as_deref(),
        chains: all_chains(args.chains, loaded.sets.as_ref())?,
        warmup: args.warmup,
        draws: args.draws,
        settings,
        data_sets: loaded.sets.clone(),
        ..Job::new(loaded.source())
    };
    let sampling = Sampling::new(&job, |density| loaded.all_inputs(density))?;
    warn_of_own(&sampling.bound(&options)?);
    note(&format!("memory: {}", sampling.memory(&options)?));
    run_starts();
    options.settings.stop = Some(Arc::clone(&stop));
    let progress = Watcher::new((args.progress, None), 1, &sampling, 0);
    let draws = sampling.run(&options, &progress)?;
    progress.finished(&draws.reached);
    drop(lines);
    if stop.load(Ordering::Relaxed) {
        note("stopped: ranks are of chains that have all their draws, so there are none");
        return Ok(interrupted());
    }
    if let Some(trap) = draws.traps.first() {
        note(&format!("chain {}: {}", trap.position, trap.told_with("")));
    }
    let mut ranked = drawn.clone();
    ranked.retain(|name, _| args.quantities.is_empty() || args.quantities.contains(name));
    let calibration = Calibration::of(&draws, &ranked)?;
    print(&calibration.to_string());
    write(args, &calibration, drawn)?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses what makes no sense before anything is drawn; gives the settings of the sampler.
fn checked(args: &SbcArgs) -> Result<SamplerSettings, Error> {
    if args.simulations == 0 || args.chains == 0 || args.draws == 0 {
        return Err(Error::new(ErrorKind::Option, "--simulations, --chains and --draws are 1 or more"));
    }
    let others = [Some(&args.model), args.simulator.as_ref(), args.sampler.as_ref()];
    let read: Vec<PathBuf> = args.data.files().chain(others.into_iter().flatten().cloned()).collect();
    if let Some(path) = &args.output {
        check_place("--output", path)?;
        spares(read.clone(), std::slice::from_ref(path), "--output")?;
    }
    if let Some(path) = &args.report {
        check_page(path, "--report")?;
        spares(read, std::slice::from_ref(path), "--report")?;
    }
    let settings = args.set.iter().try_fold(SamplerSettings::new(), |settings, text| settings.with_text(text))?;
    match settings.get(THIN) {
        Some(_) => Ok(settings),
        None => settings.with_text(&format!("{THIN}={EACH}")),
    }
}

/// Writes the files that are asked for.
fn write(args: &SbcArgs, calibration: &Calibration, drawn: IndexMap<String, Array>) -> Result<(), Error> {
    if let Some(path) = &args.output {
        let ranks = |quantity: &CalibratedQuantity| {
            let ranks: Vec<i64> = quantity.ranks.iter().map(|rank| *rank as i64).collect();
            (format!("rank.{}", quantity.name), Array::int([ranks.len()], ranks))
        };
        let mut arrays: IndexMap<String, Array> = calibration.quantities.iter().map(ranks).collect();
        arrays.extend(drawn.into_iter().map(|(name, array)| (format!("drawn.{name}"), array)));
        write_arrays(path, &arrays, &IndexMap::new(), Precision::F64)?;
        note(&format!("written to {}", path.display()));
    }
    if let Some(path) = &args.report {
        let page = calibration.page(&format!("Calibration of {}", args.model.display()));
        write_atomically(path, |writer| writer.write_all(page.as_bytes()))?;
        note(&format!("written to {}", path.display()));
    }
    Ok(())
}
