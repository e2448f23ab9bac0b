//! One cell: all series made warm, then measured in turns.

use super::case::Case;
use super::machine::LoadMeter;
use super::model::Kind;
use super::own::{BoundSeries, Own};
use super::peer::{self, Places};
use super::protocol::Request;
use super::report::{BoundRow, Rate, Report, Row, Skipped};
use super::{Comparison, precision_name};
use crate::program::{Engine, Error};
use crate::types::Precision;

/// A model with a number of chains, a precision and a number of threads.
pub(super) struct Cell<'a> {
    pub(super) case: &'a Case<'a>,
    pub(super) precision: Precision,
    pub(super) threads: usize,
    pub(super) chains: usize,
}

/// What a run of a series was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    /// Useful work.
    pub(super) useful: u64,
    /// All work, where the series tells it.
    pub(super) issued: Option<f64>,
    pub(super) seconds: f64,
    pub(super) draws: usize,
    /// Bulk effective sample size of the worst parameter.
    pub(super) ess: Option<f64>,
}

/// What is known of a series besides its speed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Detail {
    /// Issued over useful work.
    pub(super) issued: Option<f64>,
    /// Mean over largest work of a lane.
    pub(super) utilization_bound: Option<f64>,
    pub(super) supersteps: Option<u64>,
    /// Bytes pushed for each unit of useful work.
    pub(super) bytes_pushed: Option<f64>,
}

/// What can be measured.
pub(super) trait Series {
    /// Chains or lanes that it runs at once: those of the cell, or fewer where its rate does not depend on them.
    fn chains(&self) -> usize;
    /// One run.
    fn run(&mut self, request: &Request) -> Result<Measured, Error>;
    /// What is known besides, of the same run, which is not measured.
    fn detail(&mut self, request: &Request) -> Result<Detail, Error>;
}

/// Who runs.
#[derive(Clone, Debug)]
struct Name {
    system: String,
    engine: String,
    fusion: Option<bool>,
}

/// A series that takes part.
struct Entrant {
    /// None for the bound.
    name: Option<Name>,
    series: Box<dyn Series>,
    draws: usize,
    runs: Vec<Measured>,
    detail: Detail,
}

/// Bytes that the draws of one run may take.
const MOST_DRAW_BYTES: usize = 64 << 20;
/// Draws that effective sample sizes need.
const LEAST_DRAWS: usize = 4;

/// Measures a cell and adds it to the report.
pub(super) fn measure(
    cell: &Cell<'_>,
    comparison: &Comparison,
    places: &Places,
    report: &mut Report,
    note: &dyn Fn(&str),
) -> Result<(), Error> {
    let Cell { case, precision, threads, chains } = *cell;
    let title = format!("{}, {chains} chains, {}, {threads} threads", case.model.name, precision_name(precision));
    let meter = LoadMeter::start();
    let mut entrants = bound_entrant(cell).into_iter().collect::<Vec<_>>();
    for way in &comparison.engines {
        // The interpreter has nothing to fuse.
        let fusion = (way.engine != Engine::Scalar).then_some(way.fusion);
        let name = Name { system: "autobatch".into(), engine: way.name().into(), fusion };
        entrants.push(Entrant::new(Some(name), Box::new(Own::new(cell, *way)?)));
    }
    report.systems.insert("autobatch".into(), concat!("autobatch ", env!("CARGO_PKG_VERSION")).into());
    for against in &comparison.against {
        for engine in against.engines(case.model.name, precision) {
            let name = Name { system: against.peer.name.into(), engine: engine.into(), fusion: None };
            note(&format!("{title}: {} {engine} compiles", against.peer.name));
            match peer::Process::start(cell, against.peer, engine, places) {
                Ok(process) => {
                    report.systems.insert(name.system.clone(), process.version().to_owned());
                    entrants.push(Entrant::new(Some(name), Box::new(process)));
                }
                Err(error) => report.skip(Skipped::new(&name.system, &name.engine, &error), note),
            }
        }
    }
    let fit = |entrant: &mut Entrant, report: &mut Report| {
        let done = entrant.choose_draws(cell, comparison);
        keep(done, entrant, report, note)
    };
    entrants.retain_mut(|entrant| fit(entrant, report));
    for repetition in 0..comparison.repetitions {
        note(&format!("{title}: repetition {} of {}", repetition + 1, comparison.repetitions));
        entrants.retain_mut(|entrant| {
            let done = entrant.repeat(case, comparison.seed + repetition as u64);
            keep(done, entrant, report, note)
        });
    }
    for entrant in &mut entrants {
        entrant.detail = entrant.series.detail(&entrant.request(case, comparison.seed))?;
    }
    let rows: Vec<(Option<Name>, Vec<Measured>, Detail)> =
        entrants.into_iter().map(|e| (e.name, e.runs, e.detail)).collect();
    // Now that the peers have ended, their time is known to be ours.
    let load = meter.foreign();
    if let Some(load) = load.filter(|l| l.void) {
        note(&format!("{title}: void: other processes used {:.2} cores", load.cores));
    }
    let bound = rows.iter().find(|(name, ..)| name.is_none()).map(|(_, runs, _)| Rate::of(&rates(runs)));
    let (model, precision) = (case.model.name.to_owned(), precision_name(precision).to_owned());
    if let Some(rate) = bound {
        report.bound.push(BoundRow {
            model: model.clone(),
            chains,
            threads,
            precision: precision.clone(),
            gradients_per_second: rate,
        });
    }
    for (name, runs, detail) in rows {
        let Some(name) = name else { continue };
        let row = Row {
            system: name.system,
            engine: name.engine,
            fusion: name.fusion,
            model: model.clone(),
            chains,
            threads,
            precision: precision.clone(),
            unit: case.model.unit().name().to_owned(),
            rate: Rate::of(&rates(&runs)),
            effective_samples_per_second: ess_rate(&runs),
            draws: runs.last().map_or(0, |r| r.draws),
            useful: runs.iter().map(|r| r.useful).sum(),
            issued: issued(&runs, detail),
            utilization: None,
            utilization_bound: detail.utilization_bound,
            supersteps: detail.supersteps,
            bytes_pushed: detail.bytes_pushed,
            bound: bound.map(|b| b.median),
            foreign_load: load,
        };
        report.add(row.with_utilization());
    }
    Ok(())
}

/// Whether an entrant goes on; else the report says why not.
fn keep(done: Result<(), Error>, entrant: &Entrant, report: &mut Report, note: &dyn Fn(&str)) -> bool {
    match (done, &entrant.name) {
        (Ok(()), _) => true,
        (Err(error), Some(name)) => {
            report.skip(Skipped::new(&name.system, &name.engine, &error), note);
            false
        }
        (Err(_), None) => false,
    }
}

/// The bound, where the model has one.
fn bound_entrant(cell: &Cell<'_>) -> Option<Entrant> {
    if !matches!(cell.case.model.kind, Kind::Posterior { .. }) {
        return None;
    }
    let series: Box<dyn Series> = match cell.precision {
        Precision::F64 => Box::new(BoundSeries::<f64>::new(cell.case, cell.chains, cell.threads)?),
        Precision::F32 => Box::new(BoundSeries::<f32>::new(cell.case, cell.chains, cell.threads)?),
    };
    Some(Entrant::new(None, series))
}

impl Entrant {
    fn new(name: Option<Name>, series: Box<dyn Series>) -> Self {
        Self { name, series, draws: 1, runs: Vec::new(), detail: Detail::default() }
    }

    fn request(&self, case: &Case<'_>, seed: u64) -> Request {
        let keep = (case.dimension > 0 && self.draws >= LEAST_DRAWS && self.name.is_some())
            .then(|| case.folder.join("draws.bin"));
        Request { draws: self.draws, seed, keep }
    }

    /// Makes it warm, and finds out how many draws take as long as wanted.
    fn choose_draws(&mut self, cell: &Cell<'_>, comparison: &Comparison) -> Result<(), Error> {
        let each = self.series.chains() * cell.case.dimension.max(1) * size_of::<f64>();
        let most = (MOST_DRAW_BYTES / each).max(LEAST_DRAWS);
        self.draws = comparison.draws.unwrap_or(2).max(1);
        loop {
            let request = Request { keep: None, ..self.request(cell.case, comparison.seed) };
            let measured = self.series.run(&request)?;
            if comparison.draws.is_some() {
                return Ok(());
            }
            let factor = comparison.seconds / measured.seconds.max(1e-6);
            let wanted = (measured.draws as f64 * factor).round() as usize;
            if factor < 4.0 || self.draws >= most {
                // As near as it gets; a slow one makes what it takes.
                self.draws = wanted.clamp(1, most);
                return Ok(());
            }
            self.draws = wanted.min(measured.draws.saturating_mul(20)).min(most);
        }
    }

    fn repeat(&mut self, case: &Case<'_>, seed: u64) -> Result<(), Error> {
        let request = self.request(case, seed);
        self.runs.push(self.series.run(&request)?);
        Ok(())
    }
}

fn rates(runs: &[Measured]) -> Vec<f64> {
    runs.iter().map(|r| r.useful as f64 / r.seconds).collect()
}

fn ess_rate(runs: &[Measured]) -> Option<Rate> {
    let rates: Option<Vec<f64>> = runs.iter().map(|r| r.ess.map(|e| e / r.seconds)).collect();
    rates.filter(|r| !r.is_empty()).map(|r| Rate::of(&r))
}

/// All work of all runs.
fn issued(runs: &[Measured], detail: Detail) -> Option<f64> {
    let useful: u64 = runs.iter().map(|r| r.useful).sum();
    let told: Option<f64> = runs.iter().map(|r| r.issued).sum();
    told.or(detail.issued.map(|factor| useful as f64 * factor))
}
