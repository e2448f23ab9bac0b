//! Layer 8: the engines measured against one another and against other systems on the same work, `autobatch bench`.
//!
//! A *model* says what is computed, a *series* who computes it: one of our engines, or a *peer*, another system in a process of
//! its own that speaks a small [`protocol`]. A *cell* is a model with a number of chains, a precision and a number of threads.
//! In every cell all series are made warm first and then measured in turns, A B C A B C …, so that a drift of the machine's
//! speed hits all alike. Rates count *useful* work only: leapfrog gradients of the chains' own trees, steps of a loop, calls.
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

use std::path::PathBuf;

use crate::program::Error;
use crate::types::Precision;

use model::Model;
pub use own::Way;
use peer::Against;
pub use report::{Rate, Report, Row};

/// What to compare.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The models, one after the other.
    pub models: Vec<&'static Model>,
    /// Our engines, and how each runs.
    pub engines: Vec<Way>,
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
    /// Seed of the first repetition.
    pub seed: u64,
    /// The folder in which peers are installed; see [`peer::Places`].
    pub peers: Option<PathBuf>,
}

/// Largest tree depth of every system.
pub const MAX_TREEDEPTH: usize = 10;

/// Measures everything. `note` is told what happens.
///
/// # Errors
/// For models that cannot be read or compiled. A peer that fails is left out, and the report says why.
pub fn run(comparison: &Comparison, note: &dyn Fn(&str)) -> Result<Report, Error> {
    let places = peer::Places::find(comparison.peers.as_deref());
    let mut report = Report::new(machine::Machine::read());
    let folder = case::WorkFolder::new()?;
    for model in &comparison.models {
        note(&format!("{}: data and starting points", model.name));
        let case = case::Case::prepare(model, comparison, &places, &folder)?;
        for (precision, threads, chains) in cells(comparison) {
            let cell = cell::Cell { case: &case, precision, threads, chains };
            cell::measure(&cell, comparison, &places, &mut report, note)?;
        }
    }
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
