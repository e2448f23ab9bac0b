//! Multi-path Pathfinder: what `autobatch pathfinder` draws. A path is a lane of `nuts/pathfinder.ab`; the draws of all
//! paths are resampled by Pareto-smoothed importance weights.

use std::sync::Mutex;

use indexmap::IndexMap;

use super::optimize::{StopReason, points, tuning};
use super::posterior::{Joined, Posterior};
use super::psis;
use super::sampling::{FailedDraws, ModelSource, QuantitiesOfDraws, SamplerSettings};
use crate::mcmc::streams::OF_RESAMPLING;
use crate::parts::StreamId;
use crate::program::{Engine, Error, ErrorKind, Function, Inputs, Options, Prints, Program, Terms};
use crate::run::{NoMemory, NoSink, Record, Sink, Trap, TrapKind};
use crate::types::Array;

/// The module of the paths, with their defaults.
const MODULE: &str = "std/pathfinder.ab";

/// What is asked for; by default CmdStan's numbers.
#[derive(Clone, Debug)]
pub struct Pathfinder {
    /// Paths.
    pub num_paths: usize,
    /// Draws of each path.
    pub num_draws: usize,
    /// Draws that are resampled of those of all paths.
    pub num_psis_draws: usize,
    /// Draws that the evidence lower bound is estimated with.
    pub num_elbo_draws: usize,
    /// Steps that L-BFGS remembers.
    pub history_size: usize,
    /// Whether draws are resampled; else those of all paths are given as they are.
    pub psis_resample: bool,
    /// Where paths start, unconstrained, a row for each or one for all.
    pub points: Option<Array>,
    /// What is set: `iter`, `init_alpha`, ….
    pub settings: SamplerSettings,
}

impl Default for Pathfinder {
    fn default() -> Self {
        Self {
            num_paths: 4,
            num_draws: 1000,
            num_psis_draws: 1000,
            num_elbo_draws: 25,
            history_size: 5,
            psis_resample: true,
            points: None,
            settings: SamplerSettings::new(),
        }
    }
}

/// What came of one path.
#[derive(Clone, PartialEq, Debug)]
pub struct FollowedPath {
    /// Its number.
    pub path: usize,
    /// The evidence lower bound of its best approximation; minus infinity where it has none.
    pub elbo: f64,
    /// The iteration of that.
    pub best_iteration: i64,
    /// Iterations of L-BFGS.
    pub iterations: i64,
    /// Evaluations of the density.
    pub evaluations: i64,
    /// Why it stopped.
    pub stopped: StopReason,
}

/// What came of all paths.
#[derive(Clone, Debug)]
pub struct PathfinderDraws {
    /// The paths that began.
    pub paths: Vec<FollowedPath>,
    /// Unconstrained draws, 1 × draw × coordinate.
    pub q: Array,
    /// `lp_approx`, `lp` and `path` (from 1), 1 × draw.
    pub statistics: IndexMap<String, Array>,
    /// Parameters, 1 × draw × event shape.
    pub parameters: IndexMap<String, Array>,
    /// Draws for which `parameters` trapped.
    pub failed: Option<FailedDraws>,
    /// What one of them said that ends a command when all is written, as `fatal_error` of Stan does.
    pub fatal: Option<Error>,
    /// The shape of the tail of the importance ratios.
    pub pareto_k: Option<f64>,
    /// Paths that found no point to begin.
    pub traps: Vec<Trap>,
}

/// The records of paths, by lane.
struct Drawn<'a> {
    words: Vec<Mutex<Vec<u64>>>,
    prints: &'a Prints,
}

impl Sink for Drawn<'_> {
    fn emit(&self, position: usize, _stream: StreamId, record: &dyn Record) -> Result<(), NoMemory> {
        record.append_words(&mut self.words[position].lock().expect("no emit panics while it holds the lock"));
        Ok(())
    }
    fn print(&self, position: usize, line: String) {
        self.prints.tell(format_args!("path {position}"), false, line);
    }
}

/// A draw of a path.
struct Draw {
    path: usize,
    log_q: f64,
    lp: f64,
    q: Vec<f64>,
}

impl Pathfinder {
    /// Follows all paths, and draws.
    ///
    /// # Errors
    /// For a model that cannot be read or has errors, data that are not all there, settings that make no sense, and where no
    /// path has an approximation.
    pub fn run(
        &self,
        model: &ModelSource<'_>,
        read_data: &dyn Fn(&Function<'_>) -> Result<Inputs, Error>,
        options: &Options,
    ) -> Result<PathfinderDraws, Error> {
        let counts = [
            ("num_paths", self.num_paths),
            ("num_draws", self.num_draws),
            ("num_elbo_draws", self.num_elbo_draws),
            ("history_size", self.history_size),
            ("num_psis_draws", if self.resamples() { self.num_psis_draws } else { 1 }),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, n)| *n == 0) {
            return Err(Error::new(ErrorKind::Option, format!("{name} must be a number from 1 on, not 0")));
        }
        let posterior = Posterior::new(model, Terms::default(), read_data)?;
        let tuning = tuning(&self.settings, MODULE, self.points.is_some())?;
        let d = posterior.dimension();
        let literal = tuning.literal("settings");
        let rows = 2 * self.history_size;
        let made = Joined {
            result: "method::Path",
            body: &format!(
                "method::path(density, {literal}, {{start}}, [0.0 for i in 0..{rows}, j in 0..{{d}}]{{counts}})"
            ),
            counts: &[("num_elbo_draws", self.num_elbo_draws as i64), ("num_draws", self.num_draws as i64)],
        };
        let joined = posterior.join(&[("quasi_newton.ab", "settings"), ("pathfinder.ab", "method")], &made)?;
        let bound = joined.bind(points(self.points.as_ref(), self.num_paths, d)?, options)?;
        let words = (0..self.num_paths).map(|_| Mutex::default()).collect();
        let drawn = Drawn { words, prints: &options.prints };
        let results = bound.run(options, &drawn)?;
        let reals = |name: &str| results.output(name).and_then(Array::as_real).expect("a path has it");
        let ints = |name: &str| results.output(name).and_then(Array::as_int).expect("a path has it");
        let began = |path: &usize| !results.traps().iter().any(|trap| trap.position == *path);
        let paths: Vec<FollowedPath> = (0..self.num_paths)
            .filter(began)
            .map(|path| FollowedPath {
                path,
                elbo: reals("elbo")[path],
                best_iteration: ints("best_iteration")[path],
                iterations: ints("iterations")[path],
                evaluations: ints("gradients")[path],
                stopped: StopReason(ints("reason")[path]),
            })
            .collect();
        let mut draws: Vec<Draw> = vec![];
        for path in paths.iter().filter(|path| path.elbo.is_finite()) {
            let words = drawn.words[path.path].lock().expect("nothing panics while it holds the lock");
            let number = |word: &u64| f64::from_bits(*word);
            draws.extend(words.chunks_exact(d + 2).map(|record| Draw {
                path: path.path,
                q: record[..d].iter().map(number).collect(),
                log_q: number(&record[d]),
                lp: number(&record[d + 1]),
            }));
        }
        let stopped = results.traps().iter().any(|trap| trap.kind == TrapKind::Interrupted);
        if draws.is_empty() && stopped {
            let message = "stopped: no path had come to an end, and nothing is written";
            return Err(Error::new(ErrorKind::Interrupted, message));
        }
        if draws.is_empty() {
            let why = results.traps().first().map(|trap| format!(": {}", trap.message)).unwrap_or_default();
            let message = format!("no path has an approximation{why}");
            return Err(Error::new(ErrorKind::Input, message));
        }
        let (mut pareto_k, mut chosen) = (None, (0..draws.len()).collect::<Vec<_>>());
        // One path alone is given as it is, as in Stan.
        if self.resamples() {
            let ratios: Vec<f64> = draws.iter().map(|draw| draw.lp - draw.log_q).collect();
            let (weights, k) = psis::weights(&ratios);
            pareto_k = k;
            chosen = resampled(&weights, self.num_psis_draws, options)?;
        }
        let n = chosen.len();
        let of = |f: &dyn Fn(&Draw) -> f64| Array::real([1, n], chosen.iter().map(|at| f(&draws[*at])).collect());
        let path = Array::int([1, n], chosen.iter().map(|at| draws[*at].path as i64 + 1).collect());
        let statistics = IndexMap::from([
            ("lp_approx".to_owned(), of(&|draw| draw.log_q)),
            ("lp".to_owned(), of(&|draw| draw.lp)),
            ("path".to_owned(), path),
        ]);
        let q = Array::real([1, n, d], chosen.iter().flat_map(|at| draws[*at].q.iter().copied()).collect());
        let QuantitiesOfDraws { arrays: parameters, failed, fatal } = posterior.parameters(&q, options)?;
        let traps = results.traps().to_vec();
        Ok(PathfinderDraws { paths, q, statistics, parameters, failed, fatal, pareto_k, traps })
    }

    /// Whether draws are chosen anew, by importance.
    fn resamples(&self) -> bool {
        self.psis_resample && self.num_paths > 1
    }
}

/// So many draws, with replacement, by their weights.
fn resampled(weights: &[f64], n: usize, options: &Options) -> Result<Vec<usize>, Error> {
    let program = Program::compile("pub fn u() -> real { uniform_rng(0.0, 1.0) }")?;
    let mut host = Options::default().engine(Engine::Scalar);
    host.settings.seed = options.settings.seed;
    let mut bound = program.function("u")?.bind(&Inputs::new().lanes(n), &host)?;
    bound.inputs_mut().lanes = (0..n as u64).map(|draw| OF_RESAMPLING | (options.first_lane << 32) | draw).collect();
    let results = bound.run(&host, &NoSink)?;
    let uniform = results.outputs().values().next().and_then(Array::as_real).expect("the function gives a real");
    let mut sums = Vec::with_capacity(weights.len());
    let mut total = 0.0;
    for weight in weights {
        total += weight;
        sums.push(total);
    }
    if total.is_nan() || total <= 0.0 {
        let message = "no draw of any path has a weight: the log density is finite at none of them";
        return Err(Error::new(ErrorKind::Input, message));
    }
    let at = |u: &f64| sums.partition_point(|sum| *sum <= u * total).min(weights.len() - 1);
    Ok(uniform.iter().map(at).collect())
}
