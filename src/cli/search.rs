//! What the commands that look for modes do alike: the search, and what they tell of what failed.

use crate::mcmc::log_prob::LogProb;
use crate::mcmc::optimize::{Optima, Optimization};
use crate::mcmc::sampling::{FailedDraws, INIT_RADIUS, SamplerSettings};
use crate::program::{Error, ErrorKind, Options, Terms};
use crate::report::failed_draws;
use crate::run::{Trap, TrapKind};
use crate::types::{Array, Scalar};

use super::model::Model;
use super::note;

/// How far from 0 random points are where nothing is said, as Stan has it.
const RADIUS: f64 = 2.0;

/// Where something was to start: at points that were given, or at random ones within a distance of 0.
pub(super) struct Starts<'a> {
    points: Option<&'a Array>,
    radius: f64,
}

impl<'a> Starts<'a> {
    /// Of points that were given, if any were, and what is set of random ones.
    pub(super) fn new(points: Option<&'a Array>, settings: &SamplerSettings) -> Self {
        let radius = match settings.get(INIT_RADIUS) {
            Some(Scalar::Real(radius)) => radius,
            Some(Scalar::Int(radius)) => radius as f64,
            _ => RADIUS,
        };
        Self { points, radius }
    }
}

/// What is found from all starts; those that found no point to begin are told.
///
/// # Errors
/// Where none found one, and those of the run.
pub(super) fn optima(job: &Optimization, model: &Model<'_>, options: &Options) -> Result<Optima, Error> {
    let optima = job.run(&model.source(), &|function| model.inputs(function), options)?;
    report_traps("start", &optima.traps);
    if optima.all.is_empty() && stopped(&optima.traps) > 0 {
        let message = "stopped: no start had come to an end, and nothing is written";
        return Err(Error::new(ErrorKind::Interrupted, message));
    }
    if optima.all.is_empty() {
        tell_why(model, job.terms, &Starts::new(job.points.as_ref(), &job.settings), options);
        return Err(Error::new(ErrorKind::Input, "no start found a point with a finite log density and gradient"));
    }
    Ok(optima)
}

/// Tells why no point is a start, where that is so; of points that were given of the first that is none.
pub(super) fn tell_why(model: &Model<'_>, terms: Terms, starts: &Starts<'_>, options: &Options) {
    let density = LogProb::new(&model.source(), terms, |function| model.inputs(function));
    let why = density.and_then(|density| match starts.points {
        Some(points) => density.problem_of_points(points, options),
        None => density.start_problem(starts.radius, options),
    });
    if let Ok(Some(why)) = why {
        note(&format!("note: {why}"));
    }
}

/// How many had not come to an end when the run was stopped.
fn stopped(traps: &[Trap]) -> usize {
    traps.iter().filter(|trap| trap.kind == TrapKind::Interrupted).count()
}

/// Tells of starts that found no point to begin, and of those that had not come to an end when the run was stopped.
pub(super) fn report_traps(what: &str, traps: &[Trap]) {
    match stopped(traps) {
        0 => {}
        1 => note(&format!("stopped: 1 {what} had not come to an end")),
        n => note(&format!("stopped: {n} {what}s had not come to an end")),
    }
    let traps: Vec<&Trap> = traps.iter().filter(|trap| trap.kind != TrapKind::Interrupted).collect();
    for trap in traps.iter().take(5) {
        let message = if trap.message.is_empty() { String::new() } else { format!(": {}", trap.message) };
        note(&format!("{what} {}: {}{message}", trap.position, trap.kind));
    }
    if traps.len() > 5 {
        note(&format!("… and {} more", traps.len() - 5));
    }
}

/// Tells of draws, so many in all, whose parameters failed.
pub(super) fn report_failed(failed: Option<&FailedDraws>, all: usize) {
    if let Some(failed) = failed {
        note(&format!("warning: {}", failed_draws(failed, all, |at| format!("draw {at}"))));
    }
}
