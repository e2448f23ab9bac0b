//! How far a run is, on standard error.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::{ProgressBar, ProgressStyle};

use super::note;
use crate::mcmc::sampling::{Observer, Reached, Sampling, SlowChain};

/// A bar on a terminal; elsewhere a line at every fifth of warmup, of what takes more than a second, and at every tenth of the
/// draws.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    draws: AtomicUsize,
    /// Fifths of warmup that were told.
    fifths: AtomicUsize,
    chains: usize,
    warmup: usize,
    /// Draws of each chain that are kept.
    kept: usize,
    total: usize,
    /// Iterations of the slowest chain after which a line is told, where they are asked for; 0 is never.
    refresh: Option<usize>,
    /// Lines that were told so.
    refreshed: AtomicUsize,
}

impl Progress {
    /// Of chains that have made so many draws together already.
    pub(super) fn new(refresh: Option<usize>, sampling: &Sampling, made: usize) -> Self {
        let (chains, warmup, draws) = (sampling.chains(), sampling.warmup(), sampling.kept());
        let bar = (std::io::stderr().is_terminal() && refresh.is_none()).then(|| {
            let bar = ProgressBar::new(chains.saturating_mul(warmup.saturating_add(draws)) as u64);
            let style = ProgressStyle::with_template("{msg} {wide_bar} {percent} %, {eta} left");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_message(format!("warmup ({warmup}), then draws"));
            bar.enable_steady_tick(std::time::Duration::from_millis(200));
            bar
        });
        let total = chains.saturating_mul(draws);
        Self {
            bar,
            draws: AtomicUsize::new(made),
            fifths: AtomicUsize::new(0),
            chains,
            warmup,
            kept: draws,
            total,
            refresh,
            refreshed: AtomicUsize::new(0),
        }
    }

    /// A line for every so many iterations that all chains have made.
    fn refresh(&self, every: usize, reached: &Reached) {
        let Reached { warm, warmup: (least, _), draws: (fewest, _), .. } = *reached;
        let (all, done) = (self.warmup + self.kept, if warm < self.chains { least } else { self.warmup + fewest });
        let lines = done.checked_div(every).unwrap_or(0);
        if self.refreshed.fetch_max(lines, Ordering::Relaxed) < lines {
            let phase = if warm < self.chains { "Warmup" } else { "Sampling" };
            let percent = done * 100 / all.max(1);
            let width = all.to_string().len();
            note(&format!("Iteration: {done:>width$} / {all} [{percent:>3}%]  ({phase}), {} chains", self.chains));
        }
    }

    /// A line that stays, above the bar where there is one.
    fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => note(line),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Observer for Progress {
    fn draw(&self) {
        let done = self.draws.fetch_add(1, Ordering::Relaxed) + 1;
        if self.bar.is_none()
            && self.refresh.is_none()
            && done * 10 / self.total.max(1) > (done - 1) * 10 / self.total.max(1)
        {
            note(&format!("{done} of {} draws", self.total));
        }
    }

    fn watches(&self) -> bool {
        true
    }

    fn moved(&self, reached: &Reached) {
        if let Some(every) = self.refresh {
            return self.refresh(every, reached);
        }
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
