//! `autobatch sample`: draws from a posterior, with progress, a summary and a file of draws.

use std::borrow::Cow;
use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use indexmap::IndexMap;
use indicatif::{ProgressBar, ProgressStyle};

use crate::mcmc::sampling::{
    DEFAULT_SAMPLER, Draws, INIT_RADIUS, Job, MAX_TREEDEPTH, Observer, Reached, SamplerSettings, Sampling, Setting,
    SlowChain, TARGET_ACCEPT, settings_of,
};
use crate::program::io::{ArrayType, read_argument, write_arrays};
use crate::program::{Error, ErrorKind};
use crate::report::{Diagnosis, Summary};
use crate::run::{Trap, TrapKind};
use crate::types::{Array, DType};

use super::args::{InputArgs, SampleArgs};
use super::show::show_stats;
use super::signals::{interrupted, stop_on_interrupt};
use super::{ARRAY_FILES, advice, check_output, inputs, note, print, profile, warn_of_own};

pub(super) fn sample(args: &SampleArgs) -> Result<ExitCode, Error> {
    let Some(model) = args.model.as_deref().filter(|_| !args.list_settings) else {
        return list_settings(args.sampler.as_deref());
    };
    let mut options = args.engine.options(args.stats)?;
    profile::ask(&mut options, args.profile.as_deref(), args.output.as_deref())?;
    if args.chains == 0 {
        return Err(Error::new(ErrorKind::Option, "--chains 0: there is nothing to sample"));
    }
    check_output(args.output.as_deref(), ARRAY_FILES)?;
    let starts = args.starts.as_ref().map(|path| read_starts(path)).transpose()?;
    let job = Job {
        model: model.into(),
        sampler: args.sampler.as_deref(),
        chains: args.chains,
        warmup: args.warmup,
        draws: args.draws,
        stepsize: args.stepsize,
        starts,
        settings: settings(args)?,
    };
    let given = InputArgs { data: args.data.clone(), shared: args.shared.clone(), ..InputArgs::default() };
    let sampling = Sampling::new(&job, |density| inputs::read(&given, density.signature()))?;
    warn_of_own(&sampling.bound(&options)?);
    note(&format!("memory: {}", sampling.memory(&options)?));
    let stop = stop_on_interrupt();
    options.settings.stop = Some(Arc::clone(&stop));
    let progress = Progress::new(args.chains, args.warmup, args.draws);
    let draws = sampling.run(&options, &progress)?;
    progress.finish();
    report_traps(&draws, args, &sampling.not_numbers());
    let stopped = stop.load(Ordering::Relaxed);
    if draws.chains.is_empty() {
        profile::write(args.profile.as_deref(), &draws.stats)?;
        return Err(Error::new(ErrorKind::Input, "no chain is left: there are no draws"));
    }
    if stopped && draws.draws == 0 {
        report_nothing(&draws, args);
        profile::write(args.profile.as_deref(), &draws.stats)?;
        return Ok(interrupted());
    }
    let written = args.output.as_ref().map_or(Ok(()), |path| {
        write_arrays(path, &arrays(&draws), &IndexMap::new(), options.settings.precision)?;
        note(&format!("draws written to {}", path.display()));
        Ok::<(), Error>(())
    });
    let mut summary = Summary::of_draws(&draws);
    for name in summary.keep(&args.summary) {
        note(&format!("warning: --summary: there is no parameter `{name}`"));
    }
    let command: Vec<String> = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    summary.advise(|advice| advice::changed(&command, advice));
    print(&format!("{summary}\n"));
    if args.diagnose {
        print(&format!("{}\n", Diagnosis::of_draws(&draws)));
    }
    if args.stats {
        print(&format!("\n{}", show_stats(&draws.stats)));
        let pushed = draws.stats.bytes_pushed() as f64 / draws.gradients.max(1) as f64;
        print(&format!("\nbytes pushed per gradient {pushed:.1}\n"));
    }
    profile::write(args.profile.as_deref(), &draws.stats)?;
    // Only now, so that the summary is not lost with the file.
    written?;
    Ok(if stopped { interrupted() } else { ExitCode::from(u8::from(!draws.traps.is_empty())) })
}

/// All that is asked for of the sampler.
fn settings(args: &SampleArgs) -> Result<SamplerSettings, Error> {
    let short = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name}={value}"));
    let shorts = [
        short(TARGET_ACCEPT, &args.target_accept),
        short(MAX_TREEDEPTH, &args.max_treedepth),
        short(INIT_RADIUS, &args.init_radius),
    ];
    let all = args.set.iter().cloned().chain(shorts.into_iter().flatten());
    all.into_iter().try_fold(SamplerSettings::new(), |settings, text| settings.with_text(&text))
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

/// The starting points: chain × dimension.
fn read_starts(path: &Path) -> Result<Array, Error> {
    let (_, data) = read_argument(&format!("starts=@{}", path.display()))?;
    Ok(data.to_array("--starts", ArrayType { dtype: DType::Real, rank: 2 })?)
}

/// All arrays of the output file.
fn arrays(draws: &Draws) -> IndexMap<String, Cow<'_, Array>> {
    let mut all: IndexMap<String, Cow<'_, Array>> =
        draws.parameters.iter().map(|(name, array)| (name.clone(), Cow::Borrowed(array))).collect();
    for (name, array) in &draws.statistics {
        // A parameter of the model keeps its name, should it be that of a statistic.
        let name = if all.contains_key(name) { format!("{name}__") } else { name.clone() };
        all.insert(name, Cow::Borrowed(array));
    }
    if !draws.traps.is_empty() {
        let numbers = draws.chains.iter().map(|c| *c as i64).collect();
        all.insert("chain".to_owned(), Cow::Owned(Array::int([draws.chains.len()], numbers)));
    }
    all
}

fn report_traps(draws: &Draws, args: &SampleArgs, not_numbers: &[&str]) {
    let traps: Vec<&Trap> = draws.traps.iter().filter(|t| t.kind != TrapKind::Interrupted).collect();
    for trap in traps.iter().take(5) {
        let message = if trap.message.is_empty() { String::new() } else { format!(": {}", trap.message) };
        note(&format!(
            "chain {}: {}{message} (function `{}`, line {})",
            trap.position, trap.kind, trap.loc.function, trap.loc.line
        ));
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
    let left_out = args.chains - draws.chains.len() - traps.len();
    if left_out > 0 {
        let s = if left_out == 1 { "" } else { "s" };
        let least = draws.reached.draws.0;
        note(&format!("{left_out} chain{s} had made fewer draws when the run was stopped, {least} or more: left out"));
    }
    match draws.chains.len() {
        1 if args.chains > 1 => note("the summary and the draws are of the other chain"),
        n if n < args.chains => note(&format!("the summary and the draws are of the other {n} chains")),
        _ => {}
    }
    if draws.draws < args.draws {
        note(&format!("stopped: {} draws of each chain are kept", draws.draws));
    }
}

/// What a run that was stopped before the first draw had come to.
fn report_nothing(draws: &Draws, args: &SampleArgs) {
    let Reached { started, warm, warmup: (least, most), .. } = draws.reached;
    let (chains, all) = (args.chains, args.warmup);
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
    if let Some(path) = &args.output {
        note(&format!("{} is not written", path.display()));
    }
}

/// A bar on a terminal; elsewhere a line at every fifth of warmup, of what takes more than a second, and at every tenth of the
/// draws.
struct Progress {
    bar: Option<ProgressBar>,
    draws: AtomicUsize,
    /// Fifths of warmup that were told.
    fifths: AtomicUsize,
    chains: usize,
    warmup: usize,
    total: usize,
}

impl Progress {
    fn new(chains: usize, warmup: usize, draws: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(chains.saturating_mul(warmup.saturating_add(draws)) as u64);
            let style = ProgressStyle::with_template("{msg} {wide_bar} {percent} %, {eta} left");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_message(format!("warmup ({warmup}), then draws"));
            bar.enable_steady_tick(std::time::Duration::from_millis(200));
            bar
        });
        let total = chains.saturating_mul(draws);
        Self { bar, draws: AtomicUsize::new(0), fifths: AtomicUsize::new(0), chains, warmup, total }
    }

    /// A line that stays, above the bar where there is one.
    fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => note(line),
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Observer for Progress {
    fn draw(&self) {
        let done = self.draws.fetch_add(1, Ordering::Relaxed) + 1;
        if self.bar.is_none() && done * 10 / self.total.max(1) > (done - 1) * 10 / self.total.max(1) {
            note(&format!("{done} of {} draws", self.total));
        }
    }

    fn watches(&self) -> bool {
        true
    }

    fn moved(&self, reached: &Reached) {
        let Reached { warm, warmup: (least, most), draws, iterations, .. } = *reached;
        if let Some(bar) = &self.bar {
            bar.set_position(iterations as u64);
            bar.set_message(if warm < self.chains {
                format!("warmup: iterations {least} to {most} of {}", self.warmup)
            } else {
                format!("draws {} to {}", draws.0, draws.1)
            });
            return;
        }
        let done = iterations - self.draws.load(Ordering::Relaxed).min(iterations);
        let fifths = done * 5 / self.chains.saturating_mul(self.warmup).max(1);
        if warm < self.chains && self.fifths.fetch_max(fifths, Ordering::Relaxed) < fifths {
            note(&format!("warmup: chains are at iterations {least} to {most} of {}", self.warmup));
        }
    }

    fn slow(&self, slow: &SlowChain) {
        let SlowChain { chain, iterations, median_iterations, stepsize, lp, treedepth } = slow;
        self.say(&format!(
            "chain {chain} holds up the others: it is at iteration {iterations}, the median chain at {median_iterations}; step \
             size {stepsize:.2e}, log density {lp:.4}, tree depth {treedepth}"
        ));
    }
}
