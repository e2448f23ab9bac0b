//! `autobatch report`: a run on one page.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::mcmc::sampling::Draws;
use crate::program::io::write_atomically;
use crate::program::{Error, ErrorKind, Options};
use crate::report::{ElementNames, RunPage, StoredChains, Summary};
use crate::types::Precision;

use super::args::SampleArgs;
use super::{check_place, note, spares, stan_files, trace};

#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    /// The files of the chains of a run, or the one that has all
    #[arg(required = true, value_name = "FILE.csv|.npz|.json|.zarr")]
    pub(super) files: Vec<PathBuf>,
    /// Of a run with many data sets: the one to show, counted from 0
    #[arg(long, value_name = "K")]
    pub(super) data_set: Option<usize>,
    /// Write the page to this file
    #[arg(short, long, value_name = "FILE.html")]
    pub(super) output: PathBuf,
    /// What stands above it; by default the name of the model, or of the file
    #[arg(long)]
    pub(super) title: Option<String>,
    /// Show the lanes of a run that was traced to this file, too
    #[arg(long, value_name = "FILE.json|.json.gz")]
    pub(super) trace: Option<PathBuf>,
    /// Show what was observed, too, where the files have it
    #[arg(long)]
    pub(super) observed_data: bool,
}

/// Makes the page of files.
pub(super) fn report(args: &ReportArgs) -> Result<ExitCode, Error> {
    check_page(&args.output, "--output")?;
    let read = args.files.iter().chain(&args.trace).cloned();
    spares(read, std::slice::from_ref(&args.output), "--output")?;
    let timeline = args.trace.as_deref().map(trace::read).transpose()?;
    let chains = stan_files::read_one(&args.files, args.data_set)?;
    if args.observed_data && chains.observed.is_empty() {
        note("warning: --observed-data: the files have no observed data");
    }
    let summary = Summary::of_stored(&chains);
    let title = args.title.clone().unwrap_or_else(|| title(&chains, &args.files[0]));
    let partial = chains.state.told(chains.draws);
    let mut facts = facts(&chains, &args.files);
    facts.extend(args.data_set.map(|set| ("Data set".to_owned(), set.to_string())));
    let page = RunPage {
        observed: args.observed_data.then_some(&chains.observed).filter(|all| !all.is_empty()),
        timeline: timeline.as_ref(),
        ..RunPage::of_stored((&title, &facts), partial.as_deref(), &chains, &summary)
    };
    write(&args.output, &page)?;
    Ok(ExitCode::SUCCESS)
}

/// The page of a store, with the lanes of its run where that was traced.
pub(super) fn of_store(path: &Path, store: &Path, trace: Option<&Path>) -> Result<(), Error> {
    let (files, output, trace) = (vec![store.to_owned()], path.to_owned(), trace.map(Path::to_owned));
    report(&ReportArgs { files, data_set: None, output, title: None, trace, observed_data: false }).map(drop)
}

/// The page of a run that was just made.
pub(super) fn of_run(
    path: &Path,
    args: &SampleArgs,
    draws: &Draws,
    options: &Options,
    summary: &Summary,
) -> Result<(), Error> {
    let model = args.model.as_deref().unwrap_or(Path::new(""));
    let title = model.file_stem().unwrap_or_default().to_string_lossy();
    let precision = match options.settings.precision {
        Precision::F32 => "f32",
        Precision::F64 => "f64",
    };
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let mut facts = vec![fact("Model", model.display().to_string())];
    facts.extend(args.data.data.as_ref().map(|data| fact("Data", data.display().to_string())));
    facts.extend(args.sampler.as_ref().map(|sampler| fact("Sampler", sampler.display().to_string())));
    facts.extend([
        fact("Chains", args.chains.to_string()),
        fact("Warmup, then draws", format!("{}, then {}", draws.warmup, args.draws)),
        fact("Seed", options.settings.seed.to_string()),
        fact("Engine", format!("{}, {precision}", format!("{:?}", options.engine).to_lowercase())),
        fact("Time", format!("{:.2} s, {} gradients", draws.seconds, draws.gradients)),
        fact("Written by", format!("autobatch {}", env!("CARGO_PKG_VERSION"))),
    ]);
    let partial = (draws.draws < draws.asked).then(|| {
        format!(
            "the run was stopped before its end: this is of {} draws of each chain, of {}",
            draws.draws, draws.asked
        )
    });
    let numbers: Vec<usize> = draws.chains.iter().map(|chain| chain + args.chain.id as usize).collect();
    let page = RunPage {
        title: &title,
        facts: &facts,
        partial: partial.as_deref(),
        summary,
        parameters: &draws.parameters,
        names: &ElementNames::new(draws.axes.clone(), draws.coords.clone()),
        statistics: &draws.statistics,
        stepsizes: &draws.adapted,
        numbers: &numbers,
        observed: None,
        stats: Some(&draws.stats),
        timeline: draws.stats.timeline.as_ref(),
    };
    write(path, &page)
}

/// Refuses a page that cannot be written, before there is one.
///
/// # Errors
/// With the option that names it.
pub(super) fn check_page(path: &Path, option: &str) -> Result<(), Error> {
    if !path.extension().is_some_and(|e| e == "html" || e == "htm") {
        let message = format!("{option} {}: the name must end in .html", path.display());
        return Err(Error::new(ErrorKind::Option, message));
    }
    check_place(option, path)
}

fn write(path: &Path, page: &RunPage<'_>) -> Result<(), Error> {
    let text = page.render();
    write_atomically(path, |out| {
        use std::io::Write as _;
        out.write_all(text.as_bytes())
    })?;
    note(&format!("report written to {}", path.display()));
    Ok(())
}

fn title(chains: &StoredChains, file: &Path) -> String {
    let model = chains.config.get("model").map(|model| model.trim_end_matches("_model").to_owned());
    model.unwrap_or_else(|| file.file_stem().unwrap_or_default().to_string_lossy().into_owned())
}

/// What files tell of a run.
fn facts(chains: &StoredChains, files: &[PathBuf]) -> Vec<(String, String)> {
    let read = match files {
        [one] => one.display().to_string(),
        [first, .., last] => format!("{} … {}", first.display(), last.display()),
        [] => String::new(),
    };
    let told = |key: &str, name: &str| {
        let value = chains.config.get(key).filter(|value| !value.is_empty())?;
        Some((name.to_owned(), value.clone()))
    };
    // By CmdStan's names.
    let named = [
        ("model", "Model"),
        ("file", "Data"),
        ("engine", "Method"),
        ("num_warmup", "Warmup"),
        ("num_samples", "Draws"),
        ("thin", "Thinned by"),
        ("delta", "Target acceptance"),
        ("max_depth", "Largest tree depth"),
        ("metric", "Metric"),
        ("seed", "Seed"),
        ("written_by", "Written by"),
    ];
    let mut facts = vec![("Read from".to_owned(), read)];
    facts.extend(named.iter().filter_map(|(key, name)| told(key, name)));
    let (warmup, sampling) = chains.run_seconds();
    if warmup + sampling > 0.0 {
        facts.push(("Time".to_owned(), format!("{warmup:.2} s of warmup, {sampling:.2} s of sampling")));
    }
    facts
}
