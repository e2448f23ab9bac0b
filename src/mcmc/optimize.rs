//! Maxima of a log density from many starts: what `autobatch optimize` finds. The algorithms are programs of the
//! language, `nuts/quasi_newton.ab` and `nuts/newton.ab`; every start is a lane.

use std::fmt;

use indexmap::IndexMap;

use super::posterior::{Joined, Posterior};
use super::sampling::{FailedDraws, ModelSource, QuantitiesOfDraws, SamplerSettings, Tuning};
use crate::program::{Error, ErrorKind, Function, Inputs, Options, Program, Speakers, Terms};
use crate::run::Trap;
use crate::types::Array;

/// How maxima are looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Algorithm {
    /// BFGS of a short history.
    #[default]
    Lbfgs,
    /// With the whole inverse Hessian.
    Bfgs,
    /// Newton's method, with Hessians by differences of gradients.
    Newton,
}

impl Algorithm {
    /// CmdStan's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Lbfgs => "lbfgs",
            Algorithm::Bfgs => "bfgs",
            Algorithm::Newton => "newton",
        }
    }
}

/// The module with what can be set.
pub(super) const SETTINGS: &str = "std/quasi_newton.ab";

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Optimization {
    /// How.
    pub algorithm: Algorithm,
    /// Steps that L-BFGS remembers.
    pub history_size: usize,
    /// Starts.
    pub starts: usize,
    /// Where they are, unconstrained, a row for each or one for all; without it every coordinate is uniform in (-2, 2).
    pub points: Option<Array>,
    /// What is set: `tol_obj`, `iter`, ….
    pub settings: SamplerSettings,
    /// Which terms the density has, of a model with its constraints in the signature; a Stan program has those that it was
    /// loaded with.
    pub terms: Terms,
}

impl Default for Optimization {
    fn default() -> Self {
        let settings = SamplerSettings::new();
        let terms = Terms::default();
        Self { algorithm: Algorithm::default(), history_size: 5, starts: 1, points: None, settings, terms }
    }
}

/// Why a start stopped; the numbers and the words are Stan's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct StopReason(pub i64);

impl StopReason {
    /// Whether a tolerance was reached.
    pub fn converged(self) -> bool {
        (1..40).contains(&self.0)
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            10 => "Convergence detected: absolute parameter change was below tolerance",
            20 => "Convergence detected: absolute change in objective function was below tolerance",
            21 => "Convergence detected: relative change in objective function was below tolerance",
            30 => "Convergence detected: gradient norm is below tolerance",
            31 => "Convergence detected: relative gradient magnitude is below tolerance",
            40 => "Maximum number of iterations hit, may not be at an optima",
            -1 => "Line search failed to achieve a sufficient decrease, no more progress can be made",
            _ => "Unknown termination code",
        })
    }
}

/// What came of one start.
#[derive(Clone, PartialEq, Debug)]
pub struct Optimum {
    /// The number of the start.
    pub start: usize,
    /// The unconstrained point.
    pub q: Vec<f64>,
    /// The log density there.
    pub lp: f64,
    /// The norm of its gradient.
    pub gradient_norm: f64,
    /// Iterations.
    pub iterations: i64,
    /// Evaluations of the density and its gradient.
    pub gradients: i64,
    /// Why it stopped.
    pub stopped: StopReason,
}

/// What came of all starts.
#[derive(Clone, Debug)]
pub struct Optima {
    /// Those that began, by their log densities, the largest last.
    pub all: Vec<Optimum>,
    /// Their parameters, 1 × optimum × event shape.
    pub parameters: IndexMap<String, Array>,
    /// Optima for which `parameters` trapped.
    pub failed: Option<FailedDraws>,
    /// What one of them said that ends a command when all is written, as `fatal_error` of Stan does.
    pub fatal: Option<Error>,
    /// Starts that found no point to begin.
    pub traps: Vec<Trap>,
    /// What could be set, with its values.
    pub settings: Vec<super::sampling::Setting>,
}

impl Optima {
    /// The one with the largest log density.
    pub fn best(&self) -> Option<&Optimum> {
        self.all.last()
    }
}

/// The settings of the quasi-Newton algorithms, as they are asked for; given points are taken as they are.
pub(super) fn tuning(asked: &SamplerSettings, module: &str, given: bool) -> Result<Tuning, Error> {
    let program = Program::shipped(module).expect("it ships")?;
    let mut tuning = Tuning::read(&program, module)?.expect("it has settings");
    if given && let Some(radius) = tuning.settings.iter_mut().find(|s| s.name == super::sampling::INIT_RADIUS) {
        radius.value = crate::types::Scalar::Real(0.0);
        radius.default = radius.value;
    }
    tuning.set(asked)?;
    if let Some(name) = asked.names().find(|name| tuning.get(name).is_none()) {
        return Err(Error::new(ErrorKind::Option, format!("there is no setting `{name}`")));
    }
    let checks = Program::shipped(SETTINGS).expect("it ships")?;
    tuning.check(&checks)?;
    Ok(tuning)
}

/// The starting points as lanes.
pub(super) fn points(given: Option<&Array>, starts: usize, d: usize) -> Result<Array, Error> {
    let refused = |message: String| Err(Error::new(ErrorKind::Option, message));
    let Some(given) = given else { return Ok(Array::real([starts, d], vec![0.0; starts * d])) };
    let (rows, columns) = (given.shape[0], given.shape[1]);
    if columns != d {
        return refused(format!("points of {columns} coordinates, but the state of the model has {d}"));
    }
    if rows != 1 && rows != starts {
        return refused(format!("{rows} points for {starts} starts: give one for all, or one for each"));
    }
    let values = given.as_real().expect("starting points are reals");
    let all = (0..starts).flat_map(|start| values[start % rows * d..][..d].to_vec());
    Ok(Array::real([starts, d], all.collect()))
}

impl Optimization {
    /// Runs all starts.
    ///
    /// # Errors
    /// For a model that cannot be read or has errors, data that are not all there, and settings that make no sense. A start
    /// that finds no point to begin is none: see [`Optima::traps`].
    pub fn run(
        &self,
        model: &ModelSource<'_>,
        read_data: &dyn Fn(&Function<'_>) -> Result<Inputs, Error>,
        options: &Options,
    ) -> Result<Optima, Error> {
        let refused = |message: &str| Err(Error::new(ErrorKind::Option, message));
        if self.starts == 0 {
            return refused("no starts: there is nothing to optimize");
        }
        if self.history_size == 0 {
            return refused("history_size must be a number from 1 on, not 0");
        }
        let posterior = Posterior::new(model, self.terms, read_data)?;
        let tuning = tuning(&self.settings, SETTINGS, self.points.is_some())?;
        let d = posterior.dimension();
        let literal = tuning.literal("settings");
        let empty = |rows: &str| format!("[0.0 for i in 0..{rows}, j in 0..{{d}}]");
        let (module, call) = match self.algorithm {
            Algorithm::Lbfgs => {
                let memory = empty(&(2 * self.history_size).to_string());
                ("quasi_newton.ab", format!("lbfgs(density, {literal}, {{start}}, {memory})"))
            }
            Algorithm::Bfgs => ("quasi_newton.ab", format!("bfgs(density, {literal}, {{start}}, {})", empty("{d}"))),
            Algorithm::Newton => ("newton.ab", format!("newton(density, {literal}, {{start}})")),
        };
        let made = Joined { result: "settings::Optimum[{d}]", body: &format!("method::{call}"), counts: &[] };
        let joined = posterior.join(&[("quasi_newton.ab", "settings"), (module, "method")], &made)?;
        let starts = points(self.points.as_ref(), self.starts, d)?;
        let who = |position: usize| format!("start {position}");
        let sink = Speakers { prints: &options.prints, of_results: false, who: &who };
        let results = joined.bind(starts, options)?.run(options, &sink)?;
        let reals = |name: &str| results.output(name).and_then(Array::as_real).expect("an optimum has it");
        let ints = |name: &str| results.output(name).and_then(Array::as_int).expect("an optimum has it");
        let began = |start: &usize| !results.traps().iter().any(|trap| trap.position == *start);
        let mut all: Vec<Optimum> = (0..self.starts)
            .filter(began)
            .map(|start| Optimum {
                start,
                q: reals("q")[start * d..][..d].to_vec(),
                lp: reals("lp")[start],
                gradient_norm: reals("gradient_norm")[start],
                iterations: ints("iterations")[start],
                gradients: ints("gradients")[start],
                stopped: StopReason(ints("reason")[start]),
            })
            .collect();
        all.sort_by(|a, b| a.lp.total_cmp(&b.lp));
        let q = Array::real([1, all.len(), d], all.iter().flat_map(|optimum| optimum.q.clone()).collect());
        let made = if all.is_empty() { QuantitiesOfDraws::default() } else { posterior.parameters(&q, options)? };
        let QuantitiesOfDraws { arrays: parameters, failed, fatal } = made;
        Ok(Optima { all, parameters, failed, fatal, traps: results.traps().to_vec(), settings: tuning.settings })
    }
}
