//! `autobatch sample`: draws from a posterior, with progress, a summary and a file of draws.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::args::SampleArgs;
use super::lines::Lines;
use super::model::{Model, SAMPLED};
use super::progress::Watcher;
use super::sample_args::DrawsFormat;
use super::sample_files::DrawsFile;
use super::sample_job::{files_read, job};
use super::search::{Starts, tell_why};
use super::show::{note_failed, show_stats, whole_names};
use super::signals::{interrupted, nothing_to_keep_yet, run_starts};
use super::store::Ran;
use super::{advice, cmdstan, note, page, print, profile, store, trace, warn_of_own};
use crate::mcmc::sampling::{DEFAULT_SAMPLER, Draws, Observer as _, Reached, Sampling, Setting, settings_of};
use crate::program::io::NamedValues;
use crate::program::{Error, ErrorKind};
use crate::report::{DataSetsSummary, Diagnosis, Summary};
use crate::run::{Trap, TrapKind};

pub(super) fn sample(args: &SampleArgs) -> Result<ExitCode, Error> {
    let Some(model) = args.model.as_deref().filter(|_| !args.list_settings) else {
        let sampler = args.chain.algorithm.map(|algorithm| Path::new(algorithm.sampler()));
        return list_settings(sampler.or(args.sampler.as_deref()));
    };
    let mut options = args.engine.options(args.shown.stats)?;
    options.first_lane = args.chain.id - 1;
    if args.store.store.is_some() && (args.draws_file.output.is_some() || args.draws_file.format.is_some()) {
        return Err(Error::new(ErrorKind::Option, "--store has the draws: leave --output and --format out"));
    }
    let own = args.lane_data.as_deref().map(NamedValues::read).transpose()?;
    if own.is_some() {
        refuse_with_sets(args)?;
    }
    let file = DrawsFile::new(&args.draws_file, args.chains, args.chain.id)?;
    let read = files_read(args, model);
    if args.chain.save_metric == Some(true) {
        file.takes_metrics(&read, args.chains, args.chain.id)?;
    }
    file.spares(read, args.chains, args.chain.id)?;
    if args.chain.stepsize.is_some() {
        let metric = if args.chain.metric_file.is_empty() { "the unit metric" } else { "the metric of --metric-file" };
        note(&format!(
            "note: --stepsize stays, with {metric}: warmup adapts nothing; CmdStan's `stepsize`, where adaptation starts, \
             is --initial-stepsize"
        ));
    }
    if let Some(path) = &args.report {
        page::check_page(path, "--report")?;
    }
    profile::ask(&mut options, args.profile.as_deref(), file.path())?;
    trace::ask(&mut options, &args.trace, file.path())?;
    let lines = Lines::of(&mut options);
    let stop = nothing_to_keep_yet();
    let loaded = Model::load_sets(model, &args.data, own.as_ref(), SAMPLED, options.settings.seed)?;
    let job = job(args, &loaded, &options)?;
    let sampling = Sampling::new(&job, |density| loaded.all_inputs(density))?;
    if let Some(store) = &args.store.store {
        drop(lines);
        let ran = store::sample((&sampling, &job), (&args.store, &args.chain), &args.shown, (&options, &stop))?;
        return after_store(args, store, ran);
    }
    if args.shown.no_summary && args.report.is_none() && file.path().is_none() {
        note("note: with --no-summary the draws are lost without --output, --store or --report");
    }
    warn_of_own(&sampling.bound(&options)?);
    note(&format!("memory: {}", sampling.memory(&options)?));
    run_starts();
    options.settings.stop = Some(Arc::clone(&stop));
    let progress = Watcher::new((args.chain.progress, args.chain.refresh), args.chain.id, &sampling, 0);
    let mut draws = sampling.run_keeping(&options, &progress)?;
    progress.finished(&draws.reached);
    drop(lines);
    report_traps(&draws, sampling.chains(), &sampling.not_numbers());
    // That of the program is told at the end, when what there is of draws is kept.
    let fatal = draws.fatal.take();
    let stopped = stop.load(Ordering::Relaxed) || fatal.is_some();
    let how_it_ended = |draws: &Draws| match &fatal {
        Some(error) => Err(error.clone()),
        None if stopped => Ok(interrupted()),
        None => Ok(ExitCode::from(u8::from(!draws.traps.is_empty()))),
    };
    if draws.chains.is_empty() {
        profile::write(args.profile.as_deref(), &draws.stats)?;
        trace::write(&args.trace, &draws.stats)?;
        if let Some(fatal) = fatal {
            return Err(fatal);
        }
        if !stopped {
            tell_why(&loaded, SAMPLED, &Starts::new(job.starts.as_ref(), &job.settings), &options);
        }
        return Err(Error::new(ErrorKind::Input, "no chain is left: there are no draws"));
    }
    if stopped && draws.draws == 0 {
        report_nothing(&draws, sampling.chains());
        file.write_states(args, &draws, &options)?;
        profile::write(args.profile.as_deref(), &draws.stats)?;
        trace::write(&args.trace, &draws.stats)?;
        return how_it_ended(&draws);
    }
    let written = file.write(args, &draws, &options);
    if draws.data_sets.is_some() {
        if !args.shown.no_summary {
            let mut summary = DataSetsSummary::of_draws(&draws);
            for name in summary.keep(&whole_names(&args.shown.summary)) {
                note(&format!("warning: --summary: there is no parameter `{name}`"));
            }
            print(&format!("{summary}\n"));
        }
        if let Some(failed) = &draws.failed {
            note_failed(failed, draws.chains.len() * draws.draws);
        }
        if args.shown.stats {
            print(&show_stats(&draws.stats));
        }
        profile::write(args.profile.as_deref(), &draws.stats)?;
        trace::write(&args.trace, &draws.stats)?;
        written?;
        return how_it_ended(&draws);
    }
    let summary = (!args.shown.no_summary || args.report.is_some()).then(|| {
        let mut summary = Summary::of_draws(&draws);
        for name in summary.keep(&whole_names(&args.shown.summary)) {
            note(&format!("warning: --summary: there is no parameter `{name}`"));
        }
        // With flags in the place of CmdStan's arguments: what is advised is a flag.
        let command = cmdstan::translated(super::arguments().into_iter()).unwrap_or_default();
        let command: Vec<String> = command.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
        summary.advise(|advice| advice::changed(&command, advice));
        summary
    });
    if let Some(summary) = summary.as_ref().filter(|_| !args.shown.no_summary) {
        print(&format!("{summary}\n"));
    } else if let Some(failed) = &draws.failed {
        note_failed(failed, draws.chains.len() * draws.draws);
    }
    if args.shown.diagnose {
        print(&format!("{}\n", Diagnosis::of_draws(&draws)));
    }
    if let Some(device) = draws.stats.device.as_ref().filter(|_| !args.shown.stats) {
        eprintln!("{device}");
    }
    if args.shown.stats {
        print(&format!("\n{}", show_stats(&draws.stats)));
        let pushed = draws.stats.bytes_pushed() as f64 / draws.gradients.max(1) as f64;
        print(&format!("\nbytes pushed per gradient {pushed:.1}\n"));
    }
    profile::write(args.profile.as_deref(), &draws.stats)?;
    trace::write(&args.trace, &draws.stats)?;
    if let (Some(path), Some(summary)) = (&args.report, &summary) {
        page::of_run(path, args, &draws, &options, summary)?;
    }
    // Only now, so that the summary is not lost with the file.
    written?;
    how_it_ended(&draws)
}

/// Writes what else is asked of a run whose draws are in a store.
fn after_store(args: &SampleArgs, store: &Path, ran: Ran) -> Result<ExitCode, Error> {
    profile::write(args.profile.as_deref(), &ran.stats)?;
    trace::write(&args.trace, &ran.stats)?;
    let code = ran.code?;
    match &args.report {
        Some(path) if ran.has_draws => page::of_store(path, store, args.trace.trace.as_deref())?,
        Some(path) => note(&format!(
            "{} was not written: where there are draws of all chains, `autobatch report {} --output {0}` does",
            path.display(),
            store.display()
        )),
        None => {}
    }
    Ok(code)
}

/// Refuses what is of one posterior where there are many.
fn refuse_with_sets(args: &SampleArgs) -> Result<(), Error> {
    let csv = args.draws_file.format == Some(DrawsFormat::StanCsv)
        || args.draws_file.output.as_ref().is_some_and(|path| path.extension().is_some_and(|e| e == "csv"));
    let with = [
        (csv, "files of Stan CSV are of one: name a file of arrays, --output FILE.npz"),
        (args.report.is_some(), "--report shows one: give --output or --store, and `autobatch report … --data-set K`"),
        (
            args.shown.diagnose,
            "--diagnose is of one: give --output or --store, and `autobatch diagnose … --data-set K`",
        ),
        (args.chain.save_metric == Some(true), "--save-metric is of files of Stan CSV: leave it out"),
    ];
    match with.into_iter().find(|(given, _)| *given) {
        Some((_, why)) => {
            Err(Error::new(ErrorKind::Option, format!("with --lane-data there are many posteriors: {why}")))
        }
        None => Ok(()),
    }
}

/// What `--set` can set.
fn list_settings(sampler: Option<&Path>) -> Result<ExitCode, Error> {
    let settings = settings_of(sampler)?;
    let width = |of: fn(&Setting) -> String| settings.iter().map(|s| of(s).chars().count()).max().unwrap_or(0);
    let (names, values) = (width(|s| s.name.clone()), width(|s| s.default.to_string()));
    let name = sampler.map_or(DEFAULT_SAMPLER.to_owned(), |path| path.display().to_string());
    let mut text = format!("what --set NAME=VALUE sets of {name}, with the values that it has otherwise\n");
    for Setting { name, default, about, .. } in &settings {
        let line = format!("  {name:<names$}  {:<values$}  {about}", default.to_string());
        text += line.trim_end();
        text.push('\n');
    }
    print(&text);
    Ok(ExitCode::SUCCESS)
}

fn report_traps(draws: &Draws, asked: usize, not_numbers: &[&str]) {
    let traps: Vec<&Trap> = draws.traps.iter().filter(|t| t.kind != TrapKind::Interrupted).collect();
    for trap in traps.iter().take(5) {
        note(&format!("chain {}: {}", trap.position, trap.told_with("")));
    }
    if traps.len() > 5 {
        note(&format!("… and {} more chains", traps.len() - 5));
    }
    for name in not_numbers.iter().filter(|_| !traps.is_empty()) {
        note(&format!("note: `{name}` holds NaN, with which no log density is finite"));
    }
    if draws.chains.is_empty() || draws.draws == 0 {
        return;
    }
    let left_out = asked - draws.chains.len() - traps.len();
    if left_out > 0 {
        let s = if left_out == 1 { "" } else { "s" };
        let least = draws.reached.draws.0;
        note(&format!(
            "{left_out} chain{s} had made fewer draws when the run was stopped, {least} or more: in no summary, nor in a \
             file of arrays"
        ));
    }
    match draws.chains.len() {
        1 if asked > 1 => note("the draws are of the other chain"),
        n if n < asked => note(&format!("the draws are of the other {n} chains")),
        _ => {}
    }
    if draws.draws < draws.asked {
        let more = if draws.data_sets.is_some() { "" } else { "; a file of Stan CSV has all of its chain" };
        note(&format!("stopped: {} draws of each chain are kept{more}", draws.draws));
    }
}

/// What a run that was stopped before the first draw had come to.
fn report_nothing(draws: &Draws, chains: usize) {
    let Reached { started, warm, warmup: (least, most), .. } = draws.reached;
    let all = draws.warmup;
    let far = if started < chains {
        format!("{started} of {chains} chains had started, the farthest at iteration {most} of {all} of its warmup")
    } else if warm > 0 {
        format!("{warm} of {chains} chains had ended their warmup, the last was at iteration {least} of {all}")
    } else {
        format!("the chains were at iterations {least} to {most} of {all} of their warmup")
    };
    let (gradients, seconds) = (draws.gradients, draws.seconds);
    note(&format!(
        "stopped in warmup, nothing was drawn: {far}, after {gradients} gradients or more in {seconds:.2} s"
    ));
}
