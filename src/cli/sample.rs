//! `autobatch sample`: draws from a posterior, with progress, a summary and a file of draws.

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use indexmap::IndexMap;
use indicatif::{ProgressBar, ProgressStyle};

use crate::mcmc::sampling::{Draws, Plan, Sampling};
use crate::program::io::{ArrayType, read_argument, write_arrays};
use crate::program::{Error, ErrorKind};
use crate::report::{SamplerStatistics, Summary};
use crate::types::{Array, DType};

use super::args::{InputArgs, SampleArgs};
use super::run::{show_stats, stop_on_interrupt};
use super::{ARRAY_FILES, check_output, inputs, note, print, profile, warn};

pub(super) fn sample(args: &SampleArgs) -> Result<ExitCode, Error> {
    let mut options = args.engine.options(args.stats)?;
    profile::ask(&mut options, args.profile.as_deref(), args.output.as_deref())?;
    if args.chains == 0 {
        return Err(Error::new(ErrorKind::Option, "--chains 0: there is nothing to sample"));
    }
    check_output(args.output.as_deref(), ARRAY_FILES)?;
    let starts = args.starts.as_ref().map(|path| read_starts(path)).transpose()?;
    let plan = Plan {
        model: &args.model,
        sampler: args.sampler.as_deref(),
        chains: args.chains,
        warmup: args.warmup,
        draws: args.draws,
        stepsize: args.stepsize,
        starts,
    };
    let given = InputArgs { data: args.data.clone(), shared: args.shared.clone(), ..InputArgs::default() };
    let sampling = Sampling::new(&plan, |density| inputs::read(&given, density.signature()))?;
    warn(&sampling.bound(&options)?);
    note(&format!("memory: {}", sampling.memory(&options)?));
    let stop = stop_on_interrupt();
    options.settings.stop = Some(Arc::clone(&stop));
    let progress = Progress::new(args.chains.saturating_mul(args.draws), args.warmup);
    let draws = sampling.run(&options, &|| progress.step())?;
    progress.finish();
    report_traps(&draws, args, &sampling.not_numbers());
    if draws.chains.is_empty() {
        profile::write(args.profile.as_deref(), &draws.stats)?;
        return Err(Error::new(ErrorKind::Input, "no chain is left: there are no draws"));
    }
    let written = args.output.as_ref().map_or(Ok(()), |path| {
        write_arrays(path, &arrays(&draws), &IndexMap::new(), options.settings.precision)?;
        note(&format!("draws written to {}", path.display()));
        Ok::<(), Error>(())
    });
    let statistics = SamplerStatistics::of(&draws.statistics, draws.max_treedepth, draws.gradients, draws.seconds);
    print(&format!("{}\n", Summary::of(&draws.parameters, statistics)));
    if args.stats {
        print(&format!("\n{}", show_stats(&draws.stats)));
        let pushed = draws.stats.bytes_pushed() as f64 / draws.gradients.max(1) as f64;
        print(&format!("\nbytes pushed per gradient {pushed:.1}\n"));
    }
    profile::write(args.profile.as_deref(), &draws.stats)?;
    // Only now, so that the summary is not lost with the file.
    written?;
    let stopped = stop.load(Ordering::Relaxed);
    Ok(if stopped { ExitCode::from(130) } else { ExitCode::from(u8::from(!draws.traps.is_empty())) })
}

/// The starting points: chain × dimension.
fn read_starts(path: &Path) -> Result<Array, Error> {
    let (_, data) = read_argument(&format!("starts=@{}", path.display()))?;
    Ok(data.to_array("--starts", ArrayType { dtype: DType::Real, rank: 2 })?)
}

/// All arrays of the output file.
fn arrays(draws: &Draws) -> IndexMap<String, Array> {
    let mut all = draws.parameters.clone();
    for (name, array) in &draws.statistics {
        // A parameter of the model keeps its name, should it be that of a statistic.
        let name = if all.contains_key(name) { format!("{name}__") } else { name.clone() };
        all.insert(name, array.clone());
    }
    if !draws.traps.is_empty() {
        let numbers = draws.chains.iter().map(|c| *c as i64).collect();
        all.insert("chain".to_owned(), Array::int([draws.chains.len()], numbers));
    }
    all
}

fn report_traps(draws: &Draws, args: &SampleArgs, not_numbers: &[&str]) {
    for trap in draws.traps.iter().take(5) {
        let message = if trap.message.is_empty() { String::new() } else { format!(": {}", trap.message) };
        note(&format!(
            "chain {}: {}{message} (function `{}`, line {})",
            trap.position, trap.kind, trap.loc.function, trap.loc.line
        ));
    }
    if draws.traps.len() > 5 {
        note(&format!("… and {} more chains", draws.traps.len() - 5));
    }
    for name in not_numbers.iter().filter(|_| !draws.traps.is_empty()) {
        note(&format!("note: `{name}` holds NaN, with which no log density is finite"));
    }
    match draws.chains.len() {
        0 => return,
        1 if args.chains > 1 => note("the summary and the draws are of the other chain"),
        n if n < args.chains => note(&format!("the summary and the draws are of the other {n} chains")),
        _ => {}
    }
    if draws.draws < args.draws {
        note(&format!("stopped: {} draws of each chain are kept", draws.draws));
    }
}

/// A bar on a terminal; elsewhere a line at every tenth.
struct Progress {
    bar: Option<ProgressBar>,
    done: AtomicUsize,
    total: usize,
}

impl Progress {
    fn new(total: usize, warmup: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(total as u64);
            let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} draws, {eta} left");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_message(format!("warmup ({warmup}), then draws"));
            bar.enable_steady_tick(std::time::Duration::from_millis(200));
            bar
        });
        Self { bar, done: AtomicUsize::new(0), total }
    }

    fn step(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        match &self.bar {
            Some(bar) => bar.inc(1),
            None if done * 10 / self.total.max(1) > (done - 1) * 10 / self.total.max(1) => {
                note(&format!("{done} of {} draws", self.total));
            }
            None => {}
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
