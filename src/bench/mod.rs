//! Layer 8: the engines measured against one another and against other systems on the same work, `autobatch bench`.
//!
//! A *model* says what is computed, a *series* who computes it: one of our engines, or a *peer*, another system in a process of
//! its own that speaks a small [`protocol`]. A *cell* is a model with a number of chains, a precision and a number of threads.
//! A [`Study`] is a [`Question`] with its series and its cells. In every cell all series are made warm first and then
//! measured in turns, A B C A B C …, so that a drift of the machine's speed hits all alike. Rates count *useful* work only:
//! leapfrog gradients of the chains' own trees, steps of a loop, calls.
//!
//! What cannot be measured is left out and named with the reason; the rest goes on.
//!
//! [`run`] measures and gives a [`Report`]; [`figure`] draws it and [`html`] makes a page of it. Nothing here prints.

mod bars;
pub mod bound;
mod case;
mod cell;
mod chart;
pub mod figure;
pub mod group;
pub mod html;
pub mod machine;
pub mod model;
mod own;
pub mod peer;
pub mod protocol;
pub mod report;
pub mod row;
mod stan;
pub mod study;
mod table;
mod way;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indexmap::IndexMap;

use crate::program::{Codegen, Error, c_compiler};
use crate::types::Precision;

use model::Model;
pub use report::{Rate, Report};
use report::{Setup, Skipped};
pub use row::ReportRow;
pub use study::{Question, Study};
pub use way::Way;

/// What to compare.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The models, one after the other.
    pub models: Vec<Model>,
    /// What is asked of each: the series, and the cells in which they run.
    pub studies: Vec<Study>,
    /// Widths of reals.
    pub precisions: Vec<Precision>,
    /// How long one run should take, in seconds, where a study does not say how many draws it makes: every series makes as
    /// many as that takes it.
    pub seconds: f64,
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

    /// The largest number of chains.
    fn most_chains(&self) -> usize {
        self.studies.iter().flat_map(|study| &study.chains).copied().max().unwrap_or(1)
    }

    /// Whether code is generated for a series.
    fn generates_code(&self) -> bool {
        self.studies.iter().flat_map(|study| &study.engines).any(|way| way.codegen != Codegen::Off)
    }

    /// What belongs to every figure. Where studies differ, that of the first stands.
    fn setup(&self) -> Setup {
        let first = self.studies.first();
        let draws = first.and_then(|study| study.draws);
        Setup {
            command: self.command.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            repetitions: first.map_or(0, |study| study.repetitions),
            seconds: draws.is_none().then_some(self.seconds),
            draws,
            seed: self.seed,
            max_treedepth: MAX_TREEDEPTH,
            c_compiler: self.generates_code().then(c_compiler).and_then(Result::ok),
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
        for (study, precision, threads, chains) in cells(comparison, model) {
            if comparison.stopped() {
                break;
            }
            let cell = cell::Cell { case: &case, study, precision, threads, chains };
            let cores = machine::use_cores(threads);
            cell::measure(&cell, comparison, &places, &mut report, note);
            drop(cores);
            measured(&report);
        }
    }
    report.comparison.interrupted = comparison.stopped();
    Ok(report)
}

/// Of every study every precision with every number of threads and every number of chains.
fn cells<'a>(comparison: &'a Comparison, model: &Model) -> Vec<(&'a Study, Precision, usize, usize)> {
    let mut cells = Vec::new();
    for study in comparison.studies.iter().filter(|study| study.is_about(model)) {
        for &precision in &comparison.precisions {
            for &threads in &study.threads {
                cells.extend(study.chains.iter().map(|chains| (study, precision, threads, *chains)));
            }
        }
    }
    cells
}

/// `f64` or `f32`.
pub fn precision_name(precision: Precision) -> &'static str {
    match precision {
        Precision::F32 => "f32",
        Precision::F64 => "f64",
    }
}
