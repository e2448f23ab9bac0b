//! `autobatch bench`: the engines against one another and against other systems.

use std::ops::RangeInclusive;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::bench::model::{self, MODELS, Model};
use crate::bench::peer::{PEERS, PeerEngine, Places};
use crate::bench::{Comparison, Report, figure, html, run};
use crate::program::io::write_atomically;
use crate::program::{Error, ErrorKind};
use crate::types::Precision;

use super::args::Format;
use super::bench_args::BenchArgs;
use super::bench_studies::{distinct, studies};
use super::signals::{interrupted, stop_on_interrupt};
use super::{note, print};

/// The numbers of leapfrog steps that NUTS takes between states that it considers.
const LEAF_STEPS: RangeInclusive<usize> = 1..=1000;
/// A run longer than this is a mistake: a day.
const MOST_SECONDS: f64 = 86_400.0;

pub(super) fn bench(args: &BenchArgs) -> Result<ExitCode, Error> {
    if args.list {
        print(&list(&Places::find(args.peers.as_deref())));
        return Ok(ExitCode::SUCCESS);
    }
    if let (Some(file), Some(folder)) = (&args.from, &args.report) {
        return draw_again(file, folder, args.format);
    }
    let mut comparison = comparison(args)?;
    let folder = args.figures.as_ref().or(args.report.as_ref());
    if let Some(folder) = folder {
        make_folder(if args.figures.is_some() { "--figures" } else { "--report" }, folder)?;
    }
    let stop = stop_on_interrupt();
    comparison.stop = Some(Arc::clone(&stop));
    let after_cell = |report: &Report| {
        let Some(folder) = folder else { return };
        // The rest is measured all the same, and printed.
        if let Err(error) = json(report).and_then(|json| write(&folder.join(RESULTS), &json)) {
            note(&format!("warning: {error}"));
        }
    };
    let report = run(&comparison, &note, &after_cell)?;
    let json = json(&report)?;
    show(&report, &json, args.format);
    if let Some(folder) = folder {
        write_report(folder, &report, &json)?;
    }
    if stop.load(Ordering::Relaxed) {
        return Ok(interrupted());
    }
    if report.results.is_empty() && report.bound.is_empty() {
        return Err(Error::new(ErrorKind::Input, "nothing was measured: see what is left out, and why"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes the folder of a report.
fn make_folder(flag: &str, folder: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(folder).map_err(|e| Error::new(ErrorKind::Io, format!("{flag} {}: {e}", folder.display())))
}

/// What is measured already, as figures and a page.
fn draw_again(file: &Path, folder: &Path, format: Format) -> Result<ExitCode, Error> {
    let refused = |e: String| Error::new(ErrorKind::Io, format!("--from {}: {e}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|e| refused(e.to_string()))?;
    let report = Report::from_json(&text).map_err(|e| refused(format!("no results.json of `autobatch bench`: {e}")))?;
    make_folder("--report", folder)?;
    let json = json(&report)?;
    show(&report, &json, format);
    write_report(folder, &report, &json)?;
    Ok(ExitCode::SUCCESS)
}

fn show(report: &Report, json: &str, format: Format) {
    match format {
        Format::Json => print(&format!("{json}\n")),
        Format::Text => print(&report.to_string()),
    }
}

fn json(report: &Report) -> Result<String, Error> {
    report.to_json().map_err(|e| Error::new(ErrorKind::Io, e.to_string()))
}

/// The command line, as a shell takes it.
fn command_line() -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=,./:+@%".contains(c);
    let quoted = |word: String| match word.chars().all(plain) && !word.is_empty() {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    let words = super::arguments().into_iter().skip(1).map(|word| quoted(word.to_string_lossy().into_owned()));
    std::iter::once("autobatch".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// What the arguments ask for.
fn comparison(args: &BenchArgs) -> Result<Comparison, Error> {
    let refused = |message: String| Err(Error::new(ErrorKind::Option, message));
    if args.chains.contains(&0) {
        return refused("--chains 0: there is nothing to measure".to_owned());
    }
    if args.threads.contains(&0) {
        return refused("--threads 0: say how many threads every system may use".to_owned());
    }
    if args.leaf_steps.iter().any(|n| !LEAF_STEPS.contains(n)) {
        let (least, most) = (LEAF_STEPS.start(), LEAF_STEPS.end());
        return refused(format!("--leaf-steps must be numbers from {least} to {most}"));
    }
    if args.repetitions == 0 || args.draws == Some(0) {
        return refused("--repetitions and --draws must be 1 or more".to_owned());
    }
    if args.warmup == 0 {
        return refused("--warmup 0: the metric that all systems take is learnt in it".to_owned());
    }
    if !(args.seconds > 0.0 && args.seconds <= MOST_SECONDS) {
        return refused(format!("--seconds {}: a run must take some time, and a day at most", args.seconds));
    }
    if !(args.patience > 0.0 && args.patience <= MOST_SECONDS) {
        return refused(format!("--patience {}: a peer must have some time, and a day at most", args.patience));
    }
    let models = match &args.stan {
        Some(program) => vec![Model::of_stan(program, &args.includes.include_path)],
        None => distinct(args.model.iter().map(|name| model::by_name(name).cloned()).collect::<Result<Vec<_>, _>>()?),
    };
    if (args.data.is_some() || args.stepsize.is_some()) && models.len() > 1 {
        return refused("--data and --stepsize are for one model".to_owned());
    }
    match &models[..] {
        [one] if args.data.is_some() && !one.takes_data() => {
            return refused(format!("--data: `{}` takes no data", one.name));
        }
        [one] if args.stepsize.is_some() && !one.is_posterior() => {
            return refused(format!("--stepsize: `{}` is a program of control flow", one.name));
        }
        _ => {}
    }
    if let Some(ordinary) = models.iter().find(|model| model.is_ordinary())
        && args.precision.iter().any(|p| Precision::from(*p) != Precision::F64)
    {
        return refused(format!("--precision f32: `{}` is compared with a twin in doubles", ordinary.name));
    }
    if let Some(control) = models.iter().find(|model| !model.is_posterior())
        && args.leaf_steps != [1]
    {
        return refused(format!("--leaf-steps: `{}` is a program of control flow", control.name));
    }
    Ok(Comparison {
        models,
        studies: studies(args)?,
        precisions: distinct(args.precision.iter().map(|p| (*p).into())),
        seconds: args.seconds,
        data: args.data.clone(),
        stepsize: args.stepsize,
        warmup: args.warmup,
        seed: args.seed,
        peers: args.peers.clone(),
        command: command_line(),
        patience: Duration::from_secs_f64(args.patience),
        stop: None,
    })
}

/// The models and the systems.
fn list(places: &Places) -> String {
    let mut text = "models\n".to_owned();
    for model in MODELS {
        text += &format!("  {:<14} {}\n", model.name, model.about);
    }
    // Without a checkout nothing runs, and it is no matter what is installed.
    let outside = places.checkout().err();
    text += "systems\n";
    for peer in PEERS {
        let engines: Vec<String> = peer.engines.iter().map(PeerEngine::argument).collect();
        let there = match (&outside, places.command(peer)) {
            (Some(_), _) => String::new(),
            (None, Ok(_)) => " (installed)".to_owned(),
            (None, Err(error)) => format!(" ({error})"),
        };
        text += &format!("  {:<14} {}{there}\n", peer.name, engines.join(", "));
    }
    match outside {
        Some(error) => format!("{text}none of them runs here: {error}\n"),
        None => text,
    }
}

/// The file of a report that holds everything.
const RESULTS: &str = "results.json";

/// Files that say what was measured.
fn write_report(folder: &Path, report: &Report, json: &str) -> Result<(), Error> {
    write(&folder.join(RESULTS), json)?;
    let figures = figure::draw(report);
    for figure in &figures {
        write(&folder.join(&figure.file_name), &figure.svg)?;
    }
    write(&folder.join("report.html"), &html::page(report, &figures)?)?;
    note(&format!("report written to {}", folder.join("report.html").display()));
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    Ok(write_atomically(path, |file| std::io::Write::write_all(file, text.as_bytes()))?)
}
