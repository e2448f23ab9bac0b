//! How far chains are, while they run: bars on a terminal, lines, or JSON for what is no person.

use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use super::note;
use super::sample_args::ProgressName;
use crate::mcmc::sampling::{ChainGroup, MOST_GROUPS, Observer, Reached, Sampling, SlowChain};
use crate::report::progress::{group_row, line, rates};

/// A line at least so often, where something moves.
const LINES: Duration = Duration::from_secs(10);
/// An object so often.
const OBJECTS: Duration = Duration::from_secs(1);

/// Shows how far chains are, in one of several ways.
pub(super) struct Watcher {
    way: Way,
    chains: usize,
    warmup: usize,
    /// Draws of each chain that are kept.
    kept: usize,
    total: usize,
    /// The number of the first chain.
    first: u64,
    draws: AtomicUsize,
    /// How far the chains were at the last look, and when something was told.
    last: Mutex<(Reached, Instant)>,
    /// Tenths of warmup that were told; of the lines that are asked for by iterations, their number.
    told: AtomicUsize,
}

/// The way in which it is shown.
enum Way {
    Bars(Bars),
    /// At tenths, and every ten seconds.
    Lines,
    /// After so many iterations of the slowest chain, as CmdStan does.
    Refresh(usize),
    Json,
    Nothing,
}

/// A bar for each group, and a line for all.
struct Bars {
    all: MultiProgress,
    groups: Vec<ProgressBar>,
    line: ProgressBar,
}

impl Bars {
    fn new(groups: usize) -> Self {
        let all = MultiProgress::new();
        let style = |template: &str| {
            ProgressStyle::with_template(template)
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("━╸ ")
        };
        let bar = |template: &str| all.add(ProgressBar::new(1000).with_style(style(template)));
        let groups = (0..groups).map(|_| bar("{prefix:>16} {bar:24} {wide_msg}")).collect();
        let line = bar("{spinner} {wide_msg}");
        line.set_message("warmup");
        line.enable_steady_tick(Duration::from_millis(200));
        Self { groups, line, all }
    }

    fn show(&self, reached: &Reached, first: u64) {
        for (bar, group) in self.groups.iter().zip(&reached.groups) {
            let row = group_row(group, reached, first);
            bar.set_prefix(row.name);
            bar.set_position((row.part * 1000.0) as u64);
            bar.set_message(row.text);
        }
        self.line.set_message(line(reached));
    }
}

impl Watcher {
    /// Of chains that have made so many draws together already; the number of the first is `first`.
    pub(super) fn new(how: (ProgressName, Option<usize>), first: u64, sampling: &Sampling, made: usize) -> Self {
        let (chains, warmup, kept) = (sampling.chains(), sampling.warmup(), sampling.kept());
        let way = match how {
            (ProgressName::None, _) => Way::Nothing,
            (ProgressName::Auto, Some(every)) => Way::Refresh(every),
            (ProgressName::Json, _) => Way::Json,
            (ProgressName::Bar, _) => Way::Bars(Bars::new(chains.min(MOST_GROUPS))),
            (ProgressName::Auto, _) if std::io::stderr().is_terminal() => Way::Bars(Bars::new(chains.min(MOST_GROUPS))),
            (ProgressName::Auto | ProgressName::Lines, _) => Way::Lines,
        };
        Self {
            way,
            chains,
            warmup,
            kept,
            total: chains.saturating_mul(kept),
            first,
            draws: AtomicUsize::new(made),
            last: Mutex::new((Reached::default(), Instant::now())),
            told: AtomicUsize::new(0),
        }
    }

    /// A line that stays, above the bars where there are some.
    fn say(&self, line: &str) {
        match &self.way {
            Way::Bars(bars) => drop(bars.all.println(line)),
            Way::Json => note(&json!({"event": "note", "message": line}).to_string()),
            Way::Lines | Way::Refresh(_) | Way::Nothing => note(line),
        }
    }

    /// A line for every so many iterations that all chains have made.
    fn refresh(&self, every: usize, reached: &Reached) {
        let Reached { warm, warmup: (least, _), draws: (fewest, _), .. } = *reached;
        let (all, done) = (self.warmup + self.kept, if warm < self.chains { least } else { self.warmup + fewest });
        let lines = done.checked_div(every).unwrap_or(0);
        if self.told.fetch_max(lines, Ordering::Relaxed) < lines {
            let phase = if warm < self.chains { "Warmup" } else { "Sampling" };
            let percent = done * 100 / all.max(1);
            let width = all.to_string().len();
            note(&format!("Iteration: {done:>width$} / {all} [{percent:>3}%]  ({phase}), {} chains", self.chains));
        }
    }

    /// A line at every tenth of warmup, and where ten seconds have passed.
    fn tell_line(&self, reached: &Reached) {
        let Reached { warm, warmup: (least, most), draws: (fewest, _), iterations, .. } = *reached;
        let draws = self.draws.load(Ordering::Relaxed);
        let tenths = iterations.saturating_sub(draws) * 10 / self.chains.saturating_mul(self.warmup).max(1);
        let next = warm < self.chains && self.told.fetch_max(tenths, Ordering::Relaxed) < tenths;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if !next && last.1.elapsed() < LINES {
            last.0 = reached.clone();
            return;
        }
        *last = (reached.clone(), Instant::now());
        drop(last);
        let rest = self.rest(reached);
        if warm < self.chains {
            note(&format!("warmup: chains are at iterations {least} to {most} of {}{rest}", self.warmup));
        } else {
            note(&format!("{draws} of {} draws, {fewest} or more of each chain{rest}", self.total));
        }
    }

    /// What a line tells behind how far the chains are.
    fn rest(&self, reached: &Reached) -> String {
        let divergent: u64 = reached.groups.iter().map(|group| group.divergent).sum();
        let divergent = if divergent > 0 { format!(", {divergent} divergent") } else { String::new() };
        divergent + &rates(reached)
    }
}

/// How far a run is, as JSON: its keys are a documented format.
fn object(reached: &Reached, draws: usize, all_draws: usize, first: u64, done: bool) -> Value {
    let range = |(least, median, most): (usize, usize, usize)| json!({"least": least, "median": median, "most": most});
    let group = |group: &ChainGroup| {
        let stepsize =
            group.stepsize.map(|(least, median, most)| json!({"least": least, "median": median, "most": most}));
        json!({
            "first": first + group.chains.start as u64, "last": first + group.chains.end as u64 - 1,
            "warm": group.warm, "finished": group.finished, "iterations": range(group.iterations),
            "divergent": group.divergent, "stepsize": stepsize, "gradients": group.gradients,
            "gradients_per_draw": group.gradients_per_draw,
        })
    };
    let groups: Vec<Value> = reached.groups.iter().map(group).collect();
    json!({
        "event": if done { "end" } else { "progress" }, "seconds": reached.seconds,
        "draws": draws, "all_draws": all_draws, "iterations_of_chain": reached.all_iterations,
        "started": reached.started, "warm": reached.warm, "finished": reached.finished,
        "gradients": reached.gradients, "gradients_per_second": reached.gradients_per_second,
        "seconds_left": reached.seconds_left, "groups": groups,
    })
}

impl Observer for Watcher {
    fn draw(&self) {
        let done = self.draws.fetch_add(1, Ordering::Relaxed) + 1;
        if matches!(self.way, Way::Lines) && done * 10 / self.total.max(1) > (done - 1) * 10 / self.total.max(1) {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            last.1 = Instant::now();
            let rest = self.rest(&last.0);
            drop(last);
            note(&format!("{done} of {} draws{rest}", self.total));
        }
    }

    fn watches(&self) -> bool {
        true
    }

    fn moved(&self, reached: &Reached) {
        match &self.way {
            Way::Bars(bars) => bars.show(reached, self.first),
            Way::Lines => self.tell_line(reached),
            Way::Refresh(every) => self.refresh(*every, reached),
            Way::Json => {
                let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
                last.0 = reached.clone();
                if last.1.elapsed() >= OBJECTS {
                    last.1 = Instant::now();
                    let draws = self.draws.load(Ordering::Relaxed);
                    note(&object(reached, draws, self.total, self.first, false).to_string());
                }
            }
            Way::Nothing => {}
        }
    }

    fn slow(&self, slow: &SlowChain) {
        if matches!(self.way, Way::Nothing) {
            return;
        }
        let SlowChain { chain, iterations, median_iterations, stepsize, lp, treedepth } = slow;
        self.say(&format!(
            "chain {} holds up the others: it is at iteration {iterations}, the median chain at {median_iterations}; step \
             size {stepsize:.2e}, log density {lp:.4}, tree depth {treedepth}",
            self.first + *chain as u64
        ));
    }

    fn finished(&self, reached: &Reached) {
        match &self.way {
            Way::Bars(bars) => drop(bars.all.clear()),
            Way::Json => {
                note(&object(reached, self.draws.load(Ordering::Relaxed), self.total, self.first, true).to_string());
            }
            Way::Lines | Way::Refresh(_) | Way::Nothing => {}
        }
    }
}
