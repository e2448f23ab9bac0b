//! Our engines as series of a comparison, and the bound.

use std::time::Instant;

use ndarray::{Array2, ArrayView2};

use super::bound::{self, Gradients};
use super::case::Case;
use super::cell::{Cell, Detail, Measured, Series};
use super::model::Kind;
use super::protocol::Request;
use crate::mcmc::diagnostics;
use crate::mcmc::sampling::{Draws, Sampling};
use crate::parts::StorageClass;
use crate::program::{Bound, Codegen, Engine, Error, ErrorKind, Inputs, Options, Program};
use crate::run::{BlockStats, NoSink, Settings, Stats};
use crate::types::{Array, DType, Precision};
use crate::vmath::Real;

/// The interpreter takes one lane after the other, so that more of them only take longer.
const SCALAR_LANES: usize = 4;

/// A way in which one of our engines runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// The engine.
    pub engine: Engine,
    /// Whether steps are fused.
    pub fusion: bool,
    /// Whether blocks are generated code.
    pub codegen: Codegen,
}

impl Way {
    /// Its name in reports.
    pub(super) fn name(self) -> &'static str {
        match (self.engine, self.codegen) {
            (Engine::Scalar, _) => "scalar",
            (Engine::Local, Codegen::Off) => "local",
            (Engine::Local, Codegen::Cc) => "local cc",
            (Engine::Pc, Codegen::Off) => "pc",
            (Engine::Pc, Codegen::Cc) => "pc cc",
        }
    }
}

/// The chains or lanes that an engine runs of a cell.
fn lanes(engine: Engine, chains: usize) -> usize {
    if engine == Engine::Scalar { chains.min(SCALAR_LANES) } else { chains }
}

fn options(cell: &Cell<'_>, Way { engine, fusion, codegen }: Way) -> Options {
    let mut options = Options { engine, codegen, ..Options::default() };
    options.settings = Settings { precision: cell.precision, threads: cell.threads, ..Settings::default() };
    if !fusion {
        options.passes.without_fusion();
        // The whole batch, a part for each thread.
        options.settings.shard_lanes = cell.chains.div_ceil(cell.threads);
    }
    options
}

/// An engine that runs a model.
pub(super) enum Own {
    /// NUTS on a posterior.
    Chains { sampling: Box<Sampling>, options: Options, chains: usize },
    /// A program of control flow, with the useful work of a run.
    Program { bound: Box<Bound>, options: Options, work: u64 },
}

impl Own {
    pub(super) fn new(cell: &Cell<'_>, way: Way) -> Result<Self, Error> {
        let options = options(cell, way);
        let chains = lanes(way.engine, cell.chains);
        let case = cell.case;
        match case.model.kind {
            Kind::Posterior { .. } => {
                let sampling = Box::new(case.sampling(chains, case.first_starts(chains))?);
                Ok(Own::Chains { sampling, options, chains })
            }
            Kind::Control { entry, .. } => {
                let inputs = case.first_starts(chains);
                let work = case.work(chains).expect("the inputs of a program of control flow tell its work");
                let program = Program::load(&case.program)?;
                let bound = program.function(entry)?.bind(&Inputs::new().lane("n", inputs), &options)?;
                bound.prepare(&options)?;
                Ok(Own::Program { bound: Box::new(bound), options, work })
            }
        }
    }
}

impl Series for Own {
    fn chains(&self) -> usize {
        match self {
            Own::Chains { chains, .. } => *chains,
            Own::Program { bound, .. } => bound.lanes(),
        }
    }

    fn run(&mut self, request: &Request) -> Result<Measured, Error> {
        match self {
            Own::Chains { sampling, options, .. } => {
                sampling.set_schedule(0, request.draws);
                options.settings.seed = request.seed;
                let draws = sampling.run_unconstrained(options, &|| ())?;
                let useful = leapfrogs(&draws)?.iter().sum();
                let ess = request.keep.is_some().then(|| ess(&draws.parameters["q"])).flatten();
                Ok(Measured { useful, issued: None, seconds: draws.seconds, draws: request.draws, ess })
            }
            Own::Program { bound, options, work } => {
                let start = Instant::now();
                for _ in 0..request.draws {
                    let results = bound.run(options, &NoSink)?;
                    if let Some(trap) = results.traps().first() {
                        return Err(trapped("lane", trap.position, trap.kind));
                    }
                }
                let seconds = start.elapsed().as_secs_f64();
                let useful = *work * request.draws as u64;
                Ok(Measured { useful, issued: None, seconds, draws: request.draws, ess: None })
            }
        }
    }

    fn detail(&mut self, request: &Request) -> Result<Detail, Error> {
        match self {
            Own::Chains { sampling, options, chains } => {
                sampling.set_schedule(0, request.draws);
                let options = Options {
                    settings: Settings { stats: true, seed: request.seed, ..options.settings.clone() },
                    ..options.clone()
                };
                let draws = sampling.run_unconstrained(&options, &|| ())?;
                let each: Vec<u64> =
                    leapfrogs(&draws)?.chunks(request.draws.max(1)).map(|chain| chain.iter().sum()).collect();
                let useful: u64 = each.iter().sum();
                let most = each.iter().copied().max().unwrap_or(0).max(1);
                let block = gradient_block(&draws.stats, useful, *chains);
                let pushed = bytes_pushed(&sampling.bound(&options)?, &draws.stats, options.settings.precision);
                Ok(Detail {
                    issued: block.map(|b| b.lanes_issued as f64 / b.lanes_useful.max(1) as f64),
                    utilization_bound: Some(useful as f64 / (most * *chains as u64) as f64),
                    supersteps: Some(draws.stats.supersteps),
                    bytes_pushed: (options.engine == Engine::Pc).then(|| pushed / useful.max(1) as f64),
                })
            }
            Own::Program { bound, options, work } => {
                let settings = Settings { stats: true, ..options.settings.clone() };
                let options = Options { settings, ..options.clone() };
                let results = bound.run(&options, &NoSink)?;
                let pushed = bytes_pushed(bound, results.stats(), options.settings.precision);
                Ok(Detail {
                    issued: Some(1.0 / results.stats().utilization()),
                    utilization_bound: None,
                    supersteps: Some(results.stats().supersteps),
                    bytes_pushed: (options.engine == Engine::Pc).then(|| pushed / (*work).max(1) as f64),
                })
            }
        }
    }
}

fn trapped(what: &str, position: usize, kind: crate::run::TrapKind) -> Error {
    Error::new(ErrorKind::Input, format!("{what} {position}: {kind}"))
}

/// Leapfrog steps of every draw, chain after chain.
fn leapfrogs(draws: &Draws) -> Result<Vec<u64>, Error> {
    if let Some(trap) = draws.traps.first() {
        return Err(trapped("chain", trap.position, trap.kind));
    }
    let counts = draws.statistics.get("n_leapfrog").and_then(Array::as_int);
    let counts = counts.ok_or_else(|| Error::new(ErrorKind::Entry, "the sampler counts no gradients"))?;
    Ok(counts.iter().map(|n| u64::try_from(*n).unwrap_or(0)).collect())
}

/// Bulk effective sample size of the worst coordinate of states chain × draw × dimension.
pub(super) fn ess(q: &Array) -> Option<f64> {
    use rayon::prelude::*;
    let [chains, draws, dimension] = q.shape[..] else { return None };
    let values = q.as_real()?;
    let of = |coordinate: usize| {
        let chain =
            |c: usize| -> Vec<f64> { (0..draws).map(|t| values[(c * draws + t) * dimension + coordinate]).collect() };
        diagnostics::ess_bulk(&(0..chains).map(chain).collect::<Vec<_>>())
    };
    let all: Vec<f64> = (0..dimension).into_par_iter().map(of).collect();
    all.into_iter().filter(|e| e.is_finite()).reduce(f64::min)
}

/// The block of the gradients: the heaviest of those that as many lanes went through, with or without the first gradient of
/// each chain.
fn gradient_block(stats: &Stats, useful: u64, chains: usize) -> Option<&BlockStats> {
    let all = stats.blocks.iter().filter(|b| (useful..=useful + chains as u64).contains(&b.lanes_useful));
    all.max_by_key(|b| b.weight)
}

/// Bytes that went onto stacks.
fn bytes_pushed(bound: &Bound, stats: &Stats, precision: Precision) -> f64 {
    let real = if precision == Precision::F32 { 4 } else { 8 };
    let vars = bound.compiled().plan.body.vars.values();
    let bytes = vars.zip(&stats.variables).filter(|(var, _)| var.class == StorageClass::Stack).map(|(var, used)| {
        let element = match var.ty.dtype {
            DType::Bool => 1,
            DType::Int => 8,
            DType::Real => real,
        };
        used.pushes as f64 * (var.ty.elements() * element) as f64
    });
    bytes.fold(0.0, |all, each| all + each)
}

/// The bound of logistic regression as a series.
pub(super) struct BoundSeries<R> {
    x: Array2<R>,
    shares: Vec<Array2<R>>,
}

impl<R: Real> BoundSeries<R> {
    /// For a case whose data have a matrix `x`, observation × covariate.
    pub(super) fn new(case: &Case<'_>, chains: usize, threads: usize) -> Option<Self> {
        let x = case.data.get("x").filter(|x| x.shape.len() == 2)?;
        let [n, d] = x.shape[..] else { return None };
        let matrix = |values: &[f64], rows: usize, columns: usize| {
            let values: Vec<R> = values.iter().map(|v| R::from_f64(*v)).collect();
            ArrayView2::from_shape((rows, columns), &values).map(|view| view.to_owned()).ok()
        };
        let x = matrix(x.as_real()?, n, d)?;
        let starts = matrix(case.first_starts(chains).as_real()?, chains, d)?;
        // A few lanes may be quicker on one thread: products of few columns are slow.
        let parted = Self { shares: parts(&starts, threads), x };
        if threads == 1 {
            return Some(parted);
        }
        let together = Self { shares: parts(&starts, 1), x: parted.x.clone() };
        let seconds = [parted.seconds(2), together.seconds(2)];
        Some(if seconds[0] <= seconds[1] { parted } else { together })
    }

    /// Computes so many gradients of each lane.
    fn seconds(&self, rounds: usize) -> f64 {
        let mut work: Vec<Gradients<'_, R>> =
            self.shares.iter().map(|w| Gradients::new(self.x.view(), w.clone())).collect();
        let start = Instant::now();
        std::thread::scope(|scope| {
            for part in &mut work {
                scope.spawn(|| (0..rounds).for_each(|_| part.run()));
            }
        });
        start.elapsed().as_secs_f64()
    }
}

/// The weights of each thread, covariate × lane: lanes are the columns, contiguous.
fn parts<R: Real>(starts: &Array2<R>, threads: usize) -> Vec<Array2<R>> {
    let mut first = 0;
    let part = |lanes: usize| {
        let rows = starts.slice(ndarray::s![first..first + lanes, ..]);
        first += lanes;
        rows.t().as_standard_layout().to_owned()
    };
    bound::shares(starts.nrows(), threads).into_iter().map(part).collect()
}

impl<R: Real> Series for BoundSeries<R> {
    fn chains(&self) -> usize {
        self.shares.iter().map(Array2::ncols).sum()
    }

    fn run(&mut self, request: &Request) -> Result<Measured, Error> {
        let seconds = self.seconds(request.draws);
        let useful = (self.chains() * request.draws) as u64;
        Ok(Measured { useful, issued: None, seconds, draws: request.draws, ess: None })
    }

    fn detail(&mut self, _: &Request) -> Result<Detail, Error> {
        Ok(Detail::default())
    }
}
