//! Our engines as series of a comparison, and the bound.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use ndarray::{Array2, ArrayView2};

use super::bound::{self, Gradients, Tiling};
use super::case::Case;
use super::cell::{Cell, Detail, Measured, Series};
use super::model::Kind;
use super::protocol::PeerRequest;
use super::report::counted;
use super::way::Way;
use crate::mcmc::diagnostics;
use crate::mcmc::protocol::{N_LEAPFROG, Q};
use crate::mcmc::sampling::{Draws, Sampling};
use crate::parts::StorageClass;
use crate::program::{Bound, Engine, Error, ErrorKind, Inputs, Options, Program, device};
use crate::run::{BlockStats, NoSink, Settings, Stats};
use crate::types::{Array, DType, Precision};
use crate::vmath::Real;

/// The interpreter takes one lane after the other, so that more of them only take longer.
const SCALAR_LANES: usize = 4;

/// The chains or lanes that an engine runs of a cell.
fn lanes(way: Way, chains: usize, threads: usize) -> usize {
    if way.interprets() { chains.min(SCALAR_LANES.max(threads)) } else { chains }
}

fn options(cell: &Cell<'_>, way: Way, stop: Option<Arc<AtomicBool>>) -> Result<Options, Error> {
    let Way { engine, device: name, fusion, codegen, schedule, execution, without, .. } = way;
    let mut options = Options::default().engine(engine).backend(device(name)?).codegen(codegen);
    for name in without {
        options = options.without_pass(name)?;
    }
    let Cell { precision, threads, .. } = *cell;
    options.settings = Settings { precision, threads, schedule, execution, stop, ..Settings::default() };
    if !fusion {
        options.passes.without_fusion();
    }
    if way.is_whole() {
        // The whole batch, a part for each thread.
        options.settings.shard_lanes = cell.chains.div_ceil(cell.threads);
    }
    Ok(options)
}

/// An engine that runs a model.
pub(super) enum Own {
    /// NUTS on a posterior.
    Chains(Vec<Part<Sampling>>),
    /// A program of control flow, with the useful work of a run.
    Program { parts: Vec<Part<Bound>>, work: u64 },
}

/// What one call of an engine runs: all lanes, or of the interpreter, which knows no threads, those of a thread.
pub(super) struct Part<T> {
    what: Box<T>,
    options: Options,
    lanes: usize,
}

impl Own {
    pub(super) fn new(cell: &Cell<'_>, way: Way, stop: Option<Arc<AtomicBool>>) -> Result<Self, Error> {
        let options = options(cell, way, stop)?;
        let lanes = lanes(way, cell.chains, cell.threads);
        let case = cell.case;
        let mut first = 0;
        let threads = if way.interprets() { cell.threads } else { 1 };
        let mut next = |lanes: usize| {
            let range = first..first + lanes;
            first = range.end;
            // The lanes of a part draw what they draw in the whole.
            (case.starts_of(range.clone()), Options { first_lane: range.start as u64, ..options.clone() })
        };
        let shares = bound::shares(lanes, threads).into_iter();
        match &case.model.kind {
            Kind::Posterior { .. } | Kind::Stan { .. } => {
                let part = |lanes: usize| {
                    let (starts, options) = next(lanes);
                    let what = Box::new(case.sampling(lanes, starts, way.leaf_steps)?);
                    // Compiled now, so that what is wrong is known before anything is measured.
                    what.bound(&options)?.prepare(&options)?;
                    Ok(Part { what, options, lanes })
                };
                Ok(Own::Chains(shares.map(part).collect::<Result<_, Error>>()?))
            }
            Kind::Control { entry, .. } => {
                let program = Program::load(&case.program)?;
                let part = |lanes: usize| {
                    let (inputs, options) = next(lanes);
                    let bound = program.function(entry)?.bind(&Inputs::new().lane("n", inputs), &options)?;
                    bound.prepare(&options)?;
                    Ok(Part { what: Box::new(bound), options, lanes })
                };
                let parts = shares.map(part).collect::<Result<_, Error>>()?;
                let work = case.work(lanes).expect("the inputs of a program of control flow tell its work");
                Ok(Own::Program { parts, work })
            }
        }
    }
}

/// Runs all parts, each on a thread of its own, and gives what they give.
fn together<T: Sync, U: Send>(
    parts: &[Part<T>],
    run: impl Fn(&Part<T>) -> Result<U, Error> + Sync,
) -> Result<Vec<U>, Error> {
    if let [part] = parts {
        return Ok(vec![run(part)?]);
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = parts.iter().map(|part| scope.spawn(|| run(part))).collect();
        threads.into_iter().map(|t| t.join().expect("an engine gives errors and does not panic")).collect()
    })
}

/// Seeds all parts, and sets the number of draws.
fn schedule(parts: &mut [Part<Sampling>], request: &PeerRequest) {
    for part in parts {
        part.what.set_schedule(0, request.draws);
        part.options.settings.seed = request.seed;
    }
}

impl Series for Own {
    fn chains(&self) -> usize {
        match self {
            Own::Chains(parts) => parts.iter().map(|p| p.lanes).sum(),
            Own::Program { parts, .. } => parts.iter().map(|p| p.lanes).sum(),
        }
    }

    fn run(&mut self, request: &PeerRequest) -> Result<Measured, Error> {
        match self {
            Own::Chains(parts) => {
                schedule(parts, request);
                let draws = together(parts, |part| part.what.run_unconstrained(&part.options, &|| ()))?;
                let mut useful = 0;
                for draws in &draws {
                    useful += leapfrogs(draws)?.iter().sum::<u64>();
                }
                let ess = request.keep.is_some().then(|| ess(&states(&draws))).flatten();
                let seconds = draws.iter().map(|d| d.seconds).fold(0.0, f64::max);
                Ok(Measured { useful, issued: None, seconds, draws: request.draws, ess })
            }
            Own::Program { parts, work } => {
                let start = Instant::now();
                together(parts, |part| {
                    for _ in 0..request.draws {
                        let results = part.what.run(&part.options, &NoSink)?;
                        if let Some(trap) = results.traps().first() {
                            return Err(trapped("lane", trap.position, trap.kind));
                        }
                    }
                    Ok(())
                })?;
                let seconds = start.elapsed().as_secs_f64();
                let useful = *work * request.draws as u64;
                Ok(Measured { useful, issued: None, seconds, draws: request.draws, ess: None })
            }
        }
    }

    fn detail(&mut self, request: &PeerRequest) -> Result<Detail, Error> {
        match self {
            Own::Chains(parts) if parts[0].options.engine == Engine::Scalar => {
                // It computes no lane but the one that it runs, and has no machine.
                schedule(parts, request);
                Ok(Detail { issued: Some(1.0), ..Detail::default() })
            }
            Own::Chains(parts) => {
                schedule(parts, request);
                let Part { what: sampling, options, lanes: chains } = &mut parts[0];
                let options =
                    Options { settings: Settings { stats: true, ..options.settings.clone() }, ..options.clone() };
                let draws = sampling.run_unconstrained(&options, &|| ())?;
                let counts = leapfrogs(&draws)?;
                let useful: u64 = counts.iter().sum();
                let most = most_work(&counts, request.draws.max(1), options.engine).max(1);
                let block = gradient_block(&draws.stats, useful, *chains);
                // The block may have run for the first gradient of each chain, too.
                let first = block.map_or(0, |b| b.lanes_useful - useful) as f64;
                let needed = useful as f64 + first;
                let pushed = bytes_pushed(&sampling.bound(&options)?, &draws.stats, options.settings.precision);
                Ok(Detail {
                    issued: block.map(|b| b.lanes_issued as f64 / b.lanes_useful.max(1) as f64),
                    utilization_bound: Some(needed / (most as f64 * *chains as f64 + first)),
                    supersteps: Some(draws.stats.supersteps),
                    bytes_pushed: (options.engine == Engine::Pc).then(|| pushed / useful.max(1) as f64),
                })
            }
            Own::Program { parts, work } => {
                let Part { what: bound, options, .. } = &parts[0];
                if options.engine == Engine::Scalar {
                    return Ok(Detail { issued: Some(1.0), ..Detail::default() });
                }
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

/// The states of all parts, chain × draw × dimension, chain after chain.
fn states(parts: &[Draws]) -> Array {
    let all: Vec<&Array> = parts.iter().map(|draws| &draws.parameters[Q]).collect();
    let values = all.iter().flat_map(|q| q.as_real().unwrap_or_default()).copied().collect();
    let chains: usize = all.iter().map(|q| q.shape[0]).sum();
    Array::real([chains, all[0].shape[1], all[0].shape[2]], values)
}

fn trapped(what: &str, position: usize, kind: crate::run::TrapKind) -> Error {
    Error::new(ErrorKind::Input, format!("{what} {position}: {kind}"))
}

/// Leapfrog steps of every draw, chain after chain.
fn leapfrogs(draws: &Draws) -> Result<Vec<u64>, Error> {
    if let Some(trap) = draws.traps.first() {
        return Err(trapped("chain", trap.position, trap.kind));
    }
    let counts = draws.statistics.get(N_LEAPFROG).and_then(Array::as_int);
    let counts = counts.ok_or_else(|| Error::new(ErrorKind::Entry, "the sampler counts no gradients"))?;
    Ok(counts.iter().map(|n| u64::try_from(*n).unwrap_or(0)).collect())
}

/// Work of the longest chain, of counts chain × draw. With `local` a chain waits after each draw for the longest one of that.
fn most_work(counts: &[u64], draws: usize, engine: Engine) -> u64 {
    let longest = |works: &mut dyn Iterator<Item = u64>| works.max().unwrap_or(0);
    match engine {
        Engine::Local => {
            let of_draw = |t: usize| longest(&mut counts.chunks(draws).filter_map(|chain| chain.get(t).copied()));
            (0..draws).map(of_draw).sum()
        }
        _ => longest(&mut counts.chunks(draws).map(|chain| chain.iter().sum())),
    }
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
    // A coordinate without one is worse than any that has one.
    all.iter().all(|e| e.is_finite()).then(|| all.into_iter().reduce(f64::min)).flatten()
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

/// The bound of logistic regression as a series: the quickest of several ways in each turn.
pub(super) struct BoundSeries<R> {
    x: Array2<R>,
    lanes: usize,
    teams: Vec<Team<R>>,
    /// The turns that each team won.
    won: Vec<usize>,
}

/// All lanes, a part for each thread, cut in one way.
struct Team<R> {
    parts: Vec<Gradients<R>>,
    tiling: Tiling,
}

/// How many ways are measured in each turn: those that a trial finds quickest.
const TEAMS: usize = 3;
/// With fewer lanes a thread than this, fewer threads with wider products may be quicker.
const FEW_LANES: usize = 32;
/// Multiply-adds of one product that the trial of a way computes: some ten milliseconds.
const TRIAL: usize = 1 << 27;

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
        let mut counts = vec![threads];
        if threads > 1 && chains / threads < FEW_LANES {
            counts.push(1);
        }
        // So many that starting threads does not count.
        let rounds = TRIAL.checked_div(n * d * chains).unwrap_or(1).max(1);
        let mut tried: Vec<(f64, Team<R>)> = Vec::new();
        for threads in counts {
            let weights = parts(&starts, threads);
            for tiling in bound::quickest(&x.view(), &weights[0].view()).into_iter().take(TEAMS) {
                let parts = weights.iter().map(|w| Gradients::new(w.view(), tiling)).collect();
                let mut team = Team { parts, tiling };
                tried.push((team.seconds(&x, rounds), team));
            }
        }
        tried.sort_by(|a, b| a.0.total_cmp(&b.0));
        let teams: Vec<Team<R>> = tried.into_iter().take(TEAMS).map(|(_, team)| team).collect();
        Some(Self { x, lanes: chains, won: vec![0; teams.len()], teams })
    }
}

impl<R: Real> Team<R> {
    /// Computes so many gradients of each lane.
    fn seconds(&mut self, x: &Array2<R>, rounds: usize) -> f64 {
        let x = x.view();
        let run = |part: &mut Gradients<R>| (0..rounds).for_each(|_| part.run(&x));
        let start = Instant::now();
        match &mut self.parts[..] {
            [part] => run(part),
            parts => std::thread::scope(|scope| {
                for part in parts {
                    scope.spawn(|| run(part));
                }
            }),
        }
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
        self.lanes
    }

    fn run(&mut self, request: &PeerRequest) -> Result<Measured, Error> {
        // The ways share the time that other series have for one.
        let draws = request.draws.div_ceil(self.teams.len());
        let seconds: Vec<f64> = self.teams.iter_mut().map(|team| team.seconds(&self.x, draws)).collect();
        let best = (0..seconds.len()).min_by(|a, b| seconds[*a].total_cmp(&seconds[*b])).unwrap_or(0);
        self.won[best] += 1;
        let useful = (self.lanes * draws) as u64;
        Ok(Measured { useful, issued: None, seconds: seconds[best], draws, ess: None })
    }

    fn detail(&mut self, _: &PeerRequest) -> Result<Detail, Error> {
        Ok(Detail::default())
    }

    fn tells(&self) -> Option<String> {
        let best = (0..self.teams.len()).max_by_key(|i| self.won[*i])?;
        let Team { parts, tiling } = &self.teams[best];
        let threads = counted(parts.len(), "thread");
        let (lanes, rows) = (counted(tiling.columns, "lane"), counted(tiling.rows, "observation"));
        Some(format!("{lanes} × {rows} at a time on {threads}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Codegen;

    #[test]
    fn the_tree_depth_is_that_of_the_other_systems() {
        let settings = crate::mcmc::sampling::settings_of(None).expect("the sampler ships");
        let depth = settings.iter().find(|s| s.name == crate::mcmc::sampling::MAX_TREEDEPTH);
        let wanted = crate::types::Scalar::Int(crate::bench::MAX_TREEDEPTH as i64);
        assert_eq!(depth.map(|s| s.value), Some(wanted));
    }

    #[test]
    fn a_coordinate_without_an_effective_sample_size_is_not_left_out() {
        let varies = |i: usize| ((i * 7919) % 101) as f64;
        let states = |second: fn(usize) -> f64| {
            let values = (0..200).flat_map(|i| [varies(i), second(i)]).collect();
            ess(&Array::real([2, 100, 2], values))
        };
        assert!(states(|i| ((i * 31) % 57) as f64).is_some());
        assert_eq!(states(|_| f64::NAN), None);
    }

    #[test]
    fn chains_of_local_wait_for_one_another_at_each_draw() {
        // Two chains of three draws.
        let counts = [1, 7, 3, 7, 1, 1];
        assert_eq!(most_work(&counts, 3, Engine::Pc), 11);
        assert_eq!(most_work(&counts, 3, Engine::Local), 7 + 7 + 3);
    }

    #[test]
    fn the_interpreter_runs_few_lanes_and_uses_all_threads() {
        let way = |engine, codegen| Way { codegen, ..Way::of(engine, "cpu") };
        let interpreter = way(Engine::Scalar, Codegen::Off);
        assert_eq!(lanes(interpreter, 1000, 2), SCALAR_LANES);
        assert_eq!(lanes(interpreter, 1000, 16), 16);
        assert_eq!(lanes(interpreter, 3, 2), 3);
        assert_eq!(lanes(way(Engine::Scalar, Codegen::Cc), 1000, 2), 1000);
        assert_eq!(lanes(way(Engine::Pc, Codegen::Off), 1000, 2), 1000);
    }
}
