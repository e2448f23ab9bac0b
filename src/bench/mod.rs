//! Layer 8: the engines measured against one another and against other systems on the same work, `autobatch bench`.
//!
//! A *model* says what is computed, a *series* who computes it: one of our engines, or a *peer*, another system in a process of
//! its own that speaks a small [`protocol`]. A *cell* is a model with a number of chains, a precision and a number of threads.
//! In every cell all series are made warm first and then measured in turns, A B C A B C …, so that a drift of the machine's
//! speed hits all alike. Rates count *useful* work only: leapfrog gradients of the chains' own trees, steps of a loop, calls.
//!
//! What cannot be measured is left out and named with the reason; the rest goes on.
//!
//! [`run`] measures and gives a [`Report`]; [`figure`] draws it and [`html`] makes a page of it. Nothing here prints.

pub mod bound;
mod case;
mod cell;
pub mod figure;
pub mod html;
pub mod machine;
pub mod model;
mod own;
pub mod peer;
pub mod protocol;
pub mod report;
mod stan;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indexmap::IndexMap;

use crate::program::{Codegen, Error, c_compiler};
use crate::types::Precision;

use model::Model;
pub use own::Way;
use peer::Against;
pub use report::{Rate, Report, ReportRow};
use report::{Setup, Skipped};

/// What to compare.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The models, one after the other.
    pub models: Vec<Model>,
    /// Our engines, and how each runs.
    pub engines: Vec<Way>,
    /// Whether the first of them is what the others are compared with: all make as many draws as that one.
    pub ablate: bool,
    /// The peers.
    pub against: Vec<Against>,
    /// Numbers of chains, or of lanes where the model is no posterior.
    pub chains: Vec<usize>,
    /// Widths of reals.
    pub precisions: Vec<Precision>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Measured runs of every series of a cell.
    pub repetitions: usize,
    /// How long one run should take, in seconds: every series makes as many draws as that takes it.
    pub seconds: f64,
    /// Draws of each chain in every run of every series, instead.
    pub draws: Option<usize>,
    /// Data of the model in the place of its own, as a file of arrays.
    pub data: Option<PathBuf>,
    /// Step size in the place of the model's.
    pub stepsize: Option<f64>,
    /// Iterations of the warmup that learns the step size and the metric of a Stan program.
    pub warmup: usize,
    /// Seed of the first repetition.
    pub seed: u64,
    /// The folder in which peers are installed; see [`peer::Places`].
    pub peers: Option<PathBuf>,
    /// The command that asked for it.
    pub command: String,
    /// How long a peer is waited for: until it is warm, and in each run.
    pub patience: Duration,
    /// Set from outside to end early: what is measured by then is reported.
    pub stop: Option<Arc<AtomicBool>>,
}

impl Comparison {
    /// Whether it is to end.
    fn stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// What belongs to every figure.
    fn setup(&self) -> Setup {
        Setup {
            command: self.command.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            repetitions: self.repetitions,
            seconds: self.draws.is_none().then_some(self.seconds),
            draws: self.draws,
            seed: self.seed,
            max_treedepth: MAX_TREEDEPTH,
            c_compiler: self
                .engines
                .iter()
                .any(|way| way.codegen != Codegen::Off)
                .then(c_compiler)
                .and_then(Result::ok),
            models: IndexMap::new(),
            interrupted: false,
        }
    }
}

/// Largest tree depth of every system.
pub const MAX_TREEDEPTH: usize = 10;

/// Measures everything. `note` is told what happens; `measured` gets the report after every cell, so that nothing of it is lost.
///
/// # Errors
/// Outside of a checkout. A model that cannot be read or compiled, an engine and a peer that fail are left
/// out, and the report says why.
pub fn run(comparison: &Comparison, note: &dyn Fn(&str), measured: &dyn Fn(&Report)) -> Result<Report, Error> {
    let places = peer::Places::find(comparison.peers.as_deref());
    places.checkout()?;
    let mut report = Report::new(machine::Machine::read(), comparison.setup());
    let folder = case::WorkFolder::new()?;
    // The threads that compute effective sample sizes, before this one keeps to some of the cores.
    rayon::current_num_threads();
    for model in &comparison.models {
        if comparison.stopped() {
            break;
        }
        note(&format!("{}: data and starting points", model.name));
        let case = match case::Case::prepare(model, comparison, &places, &folder) {
            Ok(case) => case,
            Err(_) if comparison.stopped() => break,
            Err(error) => {
                report.skip(Skipped::new("all systems", "", &error).of_model(&model.name), note);
                continue;
            }
        };
        report.comparison.models.insert(model.name.to_string(), case.setup(comparison));
        for (precision, threads, chains) in cells(comparison) {
            if comparison.stopped() {
                break;
            }
            let cell = cell::Cell { case: &case, precision, threads, chains };
            let cores = machine::use_cores(threads);
            cell::measure(&cell, comparison, &places, &mut report, note);
            drop(cores);
            measured(&report);
        }
    }
    report.comparison.interrupted = comparison.stopped();
    Ok(report)
}

/// Every precision with every number of threads and every number of chains.
fn cells(comparison: &Comparison) -> impl Iterator<Item = (Precision, usize, usize)> {
    let threads = comparison.threads.clone();
    let chains = comparison.chains.clone();
    comparison.precisions.clone().into_iter().flat_map(move |precision| {
        let chains = chains.clone();
        threads.clone().into_iter().flat_map(move |t| chains.clone().into_iter().map(move |c| (precision, t, c)))
    })
}

/// `f64` or `f32`.
pub fn precision_name(precision: Precision) -> &'static str {
    match precision {
        Precision::F32 => "f32",
        Precision::F64 => "f64",
    }
}
