//! One cell: all series made warm, then measured in turns.

use super::case::Case;
use super::machine::{ForeignLoad, LoadMeter};
use super::model::Kind;
use super::own::{BoundSeries, Own};
use super::peer::{self, Places};
use super::protocol::PeerRequest;
use super::report::{BoundRow, Rate, Report, Skipped, counted};
use super::row::{Ablation, ReportRow};
use super::study::{Question, Study};
use super::way::Way;
use super::{Comparison, precision_name};
use crate::program::Error;
use crate::types::Precision;

/// A model with a number of chains, a precision and a number of threads.
pub(super) struct Cell<'a> {
    pub(super) case: &'a Case<'a>,
    pub(super) study: &'a Study,
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
    /// Mean over largest work of a lane; of `local` draw by draw.
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
    fn run(&mut self, request: &PeerRequest) -> Result<Measured, Error>;
    /// What is known besides, of the same run, which is not measured.
    fn detail(&mut self, request: &PeerRequest) -> Result<Detail, Error>;
    /// How it runs, where it chooses.
    fn tells(&self) -> Option<String> {
        None
    }
}

/// The system that is this one.
const OWN: &str = "autobatch";
/// What runs as a series beside the systems.
const BOUND: &str = "bound";

/// Who runs.
#[derive(Clone, PartialEq, Debug)]
struct Name {
    system: String,
    engine: String,
    /// Of our engines, how.
    way: Option<Way>,
}

/// A series that takes part.
struct Entrant {
    name: Name,
    series: Box<dyn Series>,
    draws: usize,
    runs: Vec<Measured>,
    detail: Detail,
}

/// Bytes that the draws of one run may take.
const MOST_DRAW_BYTES: usize = 64 << 20;
/// Draws that effective sample sizes need.
const LEAST_DRAWS: usize = 4;

/// Measures a cell and adds it to the report. What fails is left out, and the report says why. When the comparison is to end, what
/// has been measured is in the report.
pub(super) fn measure(
    cell: &Cell<'_>,
    comparison: &Comparison,
    places: &Places,
    report: &mut Report,
    note: &dyn Fn(&str),
) {
    let mut entrants: Vec<Entrant> = bound_entrant(cell).into_iter().collect();
    entrants.extend(own_entrants(cell, comparison, report, note));
    entrants.extend(peer_entrants(cell, comparison, places, report, note));
    let go_on = |entrants: &mut Vec<Entrant>, report: &mut Report, step: &dyn Fn(&mut Entrant) -> Result<(), Error>| {
        entrants.retain_mut(|entrant| {
            if comparison.stopped() {
                return true;
            }
            match step(entrant) {
                // What was interrupted keeps the runs that it made.
                Err(error) if !comparison.stopped() => {
                    report.skip(cell.skipped(&entrant.name.system, &entrant.name.engine, &error), note);
                    false
                }
                _ => true,
            }
        });
    };
    go_on(&mut entrants, report, &|entrant| entrant.choose_draws(cell, comparison));
    let Study { question, repetitions, .. } = *cell.study;
    if let (Question::Ablation, Some(draws)) = (question, entrants.first().map(|e| e.draws)) {
        entrants.iter_mut().for_each(|e| e.draws = draws);
    }
    let mut loads: Vec<ForeignLoad> = Vec::new();
    for repetition in 0..repetitions {
        if comparison.stopped() || entrants.is_empty() {
            break;
        }
        note(&format!("{}: repetition {} of {}", cell.title(), repetition + 1, repetitions));
        // Without what came before: compilers of peers, and runs that make them warm.
        let meter = LoadMeter::start(report.machine.cores);
        let seed = comparison.seed.wrapping_add(repetition as u64);
        go_on(&mut entrants, report, &|entrant| entrant.repeat(cell.case, seed));
        loads.extend(meter.foreign());
    }
    for entrant in &mut entrants {
        if comparison.stopped() || entrant.runs.is_empty() {
            continue;
        }
        match entrant.series.detail(&entrant.request(cell.case, comparison.seed)) {
            Ok(detail) => entrant.detail = detail,
            Err(error) => note(&format!("{}: {}: no details: {error}", cell.title(), entrant.name.engine)),
        }
    }
    let load = ForeignLoad::over(&loads);
    if let Some(load) = load.filter(|l| l.void) {
        note(&format!("{}: void: other processes used {:.2} cores", cell.title(), load.cores));
    }
    entrants.retain(|entrant| !entrant.runs.is_empty());
    add_rows(cell, entrants, load, report);
}

/// Our engines.
fn own_entrants(cell: &Cell<'_>, comparison: &Comparison, report: &mut Report, note: &dyn Fn(&str)) -> Vec<Entrant> {
    report.systems.insert(OWN.into(), concat!("autobatch ", env!("CARGO_PKG_VERSION")).into());
    let mut entrants = Vec::new();
    for way in &cell.study.engines {
        if comparison.stopped() {
            break;
        }
        let name = Name { system: OWN.into(), engine: way.name(), way: Some(*way) };
        match Own::new(cell, *way, comparison.stop.clone()) {
            Ok(own) => entrants.push(Entrant::new(name, Box::new(own))),
            Err(_) if comparison.stopped() => {}
            Err(error) => report.skip(cell.skipped(OWN, &name.engine, &error), note),
        }
    }
    entrants
}

/// The peers, compiled and warm.
fn peer_entrants(
    cell: &Cell<'_>,
    comparison: &Comparison,
    places: &Places,
    report: &mut Report,
    note: &dyn Fn(&str),
) -> Vec<Entrant> {
    let mut entrants: Vec<Entrant> = Vec::new();
    for (peer, engine) in cell.study.against.iter().flat_map(|against| against.engines()) {
        let name = Name { system: peer.name.into(), engine: engine.name.into(), way: None };
        // A peer and one of its ways of running may both be asked for.
        if comparison.stopped() || entrants.iter().any(|e| e.name == name) {
            continue;
        }
        if let Some(skipped) = engine.cannot_run(cell.case.model, cell.precision) {
            report.skip(skipped.of_system(peer.name), note);
            continue;
        }
        note(&format!("{}: {} {} compiles", cell.title(), peer.name, engine.name));
        match peer::Process::start(cell, peer, engine.name, places, comparison) {
            Ok(process) => {
                report.systems.insert(name.system.clone(), process.version().to_owned());
                entrants.push(Entrant::new(name, Box::new(process)));
            }
            Err(_) if comparison.stopped() => {}
            Err(error) => report.skip(cell.skipped(&name.system, &name.engine, &error), note),
        }
    }
    entrants
}

/// Puts what was measured into the report.
fn add_rows(cell: &Cell<'_>, entrants: Vec<Entrant>, load: Option<ForeignLoad>, report: &mut Report) {
    let &Cell { case, study, precision, threads, chains } = cell;
    let question = study.question;
    let bound = entrants.iter().find(|e| e.name.system == BOUND).map(|e| Rate::of(&rates(&e.runs)));
    let whole = entrants.iter().find(|e| question == Question::Ablation && e.without().is_empty());
    let whole = whole.map(|e| e.runs.clone());
    let (model, precision) = (case.model.name.to_string(), precision_name(precision).to_owned());
    for entrant in entrants {
        let without = entrant.without();
        let Entrant { name, series, runs, detail, .. } = entrant;
        let way = name.way;
        let rate = Rate::of(&rates(&runs));
        if name.system == BOUND {
            let (model, precision, tiling) = (model.clone(), precision.clone(), series.tells());
            report.bound.push(BoundRow {
                question,
                model,
                chains,
                threads,
                precision,
                gradients_per_second: rate,
                tiling,
            });
            continue;
        }
        let row = ReportRow {
            question,
            system: name.system,
            engine: name.engine,
            // The interpreter has nothing to fuse.
            fusion: way.filter(|way| !way.interprets()).map(|way| way.fusion),
            schedule: way.and_then(Way::schedule_name),
            execution: way.and_then(Way::execution_name),
            leaf_steps: way.filter(|_| case.model.is_posterior()).map(|way| way.leaf_steps),
            model: model.clone(),
            chains,
            chains_run: series.chains(),
            threads,
            precision: precision.clone(),
            repetitions: runs.len(),
            unit: case.model.unit().name().to_owned(),
            rate,
            effective_samples_per_second: ess_rate(&runs),
            draws: runs.last().map_or(0, |r| r.draws),
            useful: runs.iter().map(|r| r.useful).sum(),
            issued: issued(&runs, detail),
            utilization: None,
            utilization_bound: detail.utilization_bound,
            supersteps: detail.supersteps,
            bytes_pushed: detail.bytes_pushed,
            bound: bound.map(|b| b.median),
            ablation: whole.as_ref().map(|whole| ablation(without, &runs, whole)),
            foreign_load: load,
        };
        report.add(row.with_utilization());
    }
}

/// What the runs took without some passes, each beside the run of the same repetition with all.
fn ablation(without: &[&'static str], runs: &[Measured], whole: &[Measured]) -> Ablation {
    let seconds: Vec<f64> = runs.iter().map(|r| r.seconds).collect();
    let ratios: Vec<f64> = runs.iter().zip(whole).map(|(run, whole)| run.seconds / whole.seconds).collect();
    let without = without.iter().map(|name| (*name).to_owned()).collect();
    Ablation { without, seconds: Rate::of(&seconds), ratio: Rate::of(&ratios) }
}

impl Cell<'_> {
    fn title(&self) -> String {
        let (chains, threads) = (counted(self.chains, "chain"), counted(self.threads, "thread"));
        let cell = format!("{}, {chains}, {}, {threads}", self.case.model.name, precision_name(self.precision));
        match self.study.question.title() {
            "" => cell,
            question => format!("{cell}, {question}"),
        }
    }

    /// Why a series is not measured here.
    fn skipped(&self, system: &str, engine: &str, error: &Error) -> Skipped {
        let skipped = Skipped::new(system, engine, error).of_model(&self.case.model.name);
        skipped.in_precision(precision_name(self.precision)).with(self.chains, self.threads)
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
    Some(Entrant::new(Name { system: BOUND.into(), engine: String::new(), way: None }, series))
}

impl Entrant {
    fn new(name: Name, series: Box<dyn Series>) -> Self {
        Self { name, series, draws: 1, runs: Vec::new(), detail: Detail::default() }
    }

    /// The passes that are off.
    fn without(&self) -> &'static [&'static str] {
        self.name.way.map_or(&[], |way| way.without)
    }

    fn request(&self, case: &Case<'_>, seed: u64) -> PeerRequest {
        let keep = (case.dimension > 0 && self.draws >= LEAST_DRAWS && self.name.system != BOUND)
            .then(|| case.folder.join("draws.bin"));
        PeerRequest { draws: self.draws, seed, keep }
    }

    /// Makes it warm, and finds out how many draws take as long as wanted.
    fn choose_draws(&mut self, cell: &Cell<'_>, comparison: &Comparison) -> Result<(), Error> {
        let each = self.series.chains() * cell.case.dimension.max(1) * size_of::<f64>();
        let most = (MOST_DRAW_BYTES / each).max(LEAST_DRAWS);
        self.draws = cell.study.draws.unwrap_or(2).max(1);
        loop {
            let request = PeerRequest { keep: None, ..self.request(cell.case, comparison.seed) };
            let measured = self.series.run(&request)?;
            if cell.study.draws.is_some() {
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
