//! What was measured: as an object of JSON, and as a table.

use std::fmt;

use indexmap::IndexMap;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::machine::{ForeignLoad, Machine};
use super::model::WorkUnit;
use crate::program::Error;

/// Everything that was measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The machine.
    pub machine: Machine,
    /// What was asked for.
    pub comparison: Setup,
    /// Whether the load of others makes a figure void.
    pub void: bool,
    /// The systems that ran, with their versions.
    pub systems: IndexMap<String, String>,
    /// What the machine can do at most, where a model has a bound.
    pub bound: Vec<BoundRow>,
    /// One row for each series of each cell.
    pub results: Vec<ReportRow>,
    /// What was not measured, and why.
    pub skipped: Vec<Skipped>,
}

/// What was asked for: with it anybody can measure again.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Setup {
    /// The command line.
    pub command: String,
    /// Version of autobatch.
    pub version: String,
    /// Measured runs of every series.
    pub repetitions: usize,
    /// How long a run should take, where the number of draws was chosen by it.
    pub seconds: Option<f64>,
    /// Draws of each chain in a run, where they were given.
    pub draws: Option<usize>,
    /// Seed of the first repetition.
    pub seed: u64,
    /// Largest tree depth of every system.
    pub max_treedepth: usize,
    /// The compiler of generated code, where it takes part and is there.
    pub c_compiler: Option<String>,
    /// The models that were measured.
    pub models: IndexMap<String, ModelSetup>,
    /// Whether it was ended early.
    pub interrupted: bool,
}

/// What a model was measured with; nothing for a program of control flow.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct ModelSetup {
    /// The step size of all systems.
    pub stepsize: Option<f64>,
    /// Dimensions of the state.
    pub dimension: Option<usize>,
    /// The data: a file, or how they are made.
    pub data: Option<String>,
}

/// Repetitions that a median and a range want.
const ENOUGH_REPETITIONS: usize = 5;

/// Median and range of a rate.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Rate {
    /// The median.
    pub median: f64,
    /// The lowest.
    pub min: f64,
    /// The highest: the best run.
    pub max: f64,
}

/// A bound.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BoundRow {
    /// The model.
    pub model: String,
    /// Chains.
    pub chains: usize,
    /// Threads.
    pub threads: usize,
    /// `f64` or `f32`.
    pub precision: String,
    /// Gradients a second of the matrix products and the elementary functions alone.
    pub gradients_per_second: Rate,
    /// How the quickest way cuts the work.
    pub tiling: Option<String>,
}

/// A series in a cell.
#[derive(Clone, PartialEq, Debug)]
pub struct ReportRow {
    /// `autobatch` or the name of a peer.
    pub system: String,
    /// Which of its ways of running.
    pub engine: String,
    /// Of our batching engines, whether steps are fused.
    pub fusion: Option<bool>,
    /// The model.
    pub model: String,
    /// Chains, or lanes.
    pub chains: usize,
    /// Those that it ran: fewer where it runs one after the other.
    pub chains_run: usize,
    /// Threads.
    pub threads: usize,
    /// `f64` or `f32`.
    pub precision: String,
    /// Measured runs: fewer than asked for where the comparison was ended early.
    pub repetitions: usize,
    /// What is counted: the key of the rate is `gradients_per_second`, `iterations_per_second` or `calls_per_second`.
    pub unit: String,
    /// Useful work a second.
    pub rate: Rate,
    /// Bulk effective sample size of the worst parameter a second, where draws are kept.
    pub effective_samples_per_second: Option<Rate>,
    /// Draws of each chain in a run, or runs over all lanes.
    pub draws: usize,
    /// Useful work of all runs.
    pub useful: u64,
    /// All work of all runs, where it is known; of our engines as many times the useful work as in one run of the same draws that
    /// counts both.
    pub issued: Option<f64>,
    /// Useful over issued work.
    pub utilization: Option<f64>,
    /// What utilization cannot be above of without new lanes in the place of those that are done: mean over largest work of
    /// a lane.
    pub utilization_bound: Option<f64>,
    /// Supersteps of one run.
    pub supersteps: Option<u64>,
    /// Bytes pushed on stacks for each unit of useful work.
    pub bytes_pushed: Option<f64>,
    /// Median of the bound of the same cell, in the unit of the rate.
    pub bound: Option<f64>,
    /// What is switched off and what that costs, where that is the question.
    pub ablation: Option<Ablation>,
    /// What other processes did during the repetitions, where the system tells.
    pub foreign_load: Option<ForeignLoad>,
}

/// What a run takes without some of the paper's optimisations, beside one with all.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Ablation {
    /// The passes that are off.
    pub without: Vec<&'static str>,
    /// Seconds of a run.
    pub seconds: Rate,
    /// Seconds over those of the run with everything on of the same repetition, which has the same draws.
    pub ratio: Rate,
}

/// A series that was not measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Skipped {
    /// The system.
    pub system: String,
    /// Which of its ways of running.
    pub engine: String,
    /// Of which model; none for several.
    pub model: Option<String>,
    /// With how many chains; none for several.
    pub chains: Option<usize>,
    /// On how many threads; none for several.
    pub threads: Option<usize>,
    /// In which precision; none for several.
    pub precision: Option<String>,
    /// Why.
    pub reason: String,
}

impl Rate {
    /// Of at least one run.
    pub fn of(rates: &[f64]) -> Self {
        let mut sorted = rates.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let n = sorted.len();
        let at = |i: usize| sorted.get(i).copied().unwrap_or(f64::NAN);
        let median = if n % 2 == 1 { at(n / 2) } else { f64::midpoint(at((n / 2).wrapping_sub(1)), at(n / 2)) };
        Self { median, min: at(0), max: at(n.wrapping_sub(1)) }
    }
}

impl Skipped {
    pub(super) fn new(system: &str, engine: &str, error: &Error) -> Self {
        let (system, engine) = (system.to_owned(), engine.to_owned());
        Self { system, engine, model: None, chains: None, threads: None, precision: None, reason: error.to_string() }
    }
    pub(super) fn of_system(self, system: &str) -> Self {
        Self { system: system.to_owned(), ..self }
    }
    pub(super) fn of_model(self, model: &str) -> Self {
        Self { model: Some(model.to_owned()), ..self }
    }
    pub(super) fn in_precision(self, precision: &str) -> Self {
        Self { precision: Some(precision.to_owned()), ..self }
    }
    pub(super) fn with(self, chains: usize, threads: usize) -> Self {
        Self { chains: Some(chains), threads: Some(threads), ..self }
    }

    /// Whether it says the same of another cell.
    fn is_like(&self, other: &Self) -> bool {
        (&self.system, &self.engine, &self.reason) == (&other.system, &other.engine, &other.reason)
    }

    /// Speaks of the cells of another one, too.
    fn widen(&mut self, other: &Self) {
        fn keep<T: PartialEq>(one: &mut Option<T>, other: &Option<T>) {
            if one != other {
                *one = None;
            }
        }
        keep(&mut self.model, &other.model);
        keep(&mut self.chains, &other.chains);
        keep(&mut self.threads, &other.threads);
        keep(&mut self.precision, &other.precision);
    }
}

impl fmt::Display for Skipped {
    /// `stan plain (fib, 10 chains): why`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let engine = if self.engine.is_empty() { String::new() } else { format!(" {}", self.engine) };
        let chains = self.chains.map(|n| counted(n, "chain"));
        let threads = self.threads.map(|n| counted(n, "thread"));
        let of: Vec<String> =
            [self.model.clone(), chains, self.precision.clone(), threads].into_iter().flatten().collect();
        let of = if of.is_empty() { String::new() } else { format!(" ({})", of.join(", ")) };
        write!(f, "{}{engine}{of}: {}", self.system, self.reason)
    }
}

/// `1 chain`, `2 chains`.
pub(super) fn counted(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

impl ReportRow {
    /// Whether the load of others makes its figures void.
    pub fn is_void(&self) -> bool {
        self.foreign_load.is_some_and(|load| load.void)
    }

    /// What its chains are called.
    pub(super) fn lanes_name(&self) -> &'static str {
        if self.unit == WorkUnit::Gradients.name() { "chains" } else { "lanes" }
    }

    /// `1000`, or `1000 (4 run)`.
    pub(super) fn chains_shown(&self) -> String {
        match self.chains_run {
            n if n == self.chains => n.to_string(),
            n => format!("{} ({n} run)", self.chains),
        }
    }

    pub(super) fn with_utilization(self) -> Self {
        let utilization = self.issued.map(|issued| self.useful as f64 / issued);
        Self { utilization, ..self }
    }

    /// The series that it belongs to: `autobatch pc`, `autobatch pc, no fusion`, `stan glm native`.
    pub fn series(&self) -> String {
        let fusion = if self.fusion == Some(false) { ", no fusion" } else { "" };
        let off = self.ablation.as_ref().filter(|a| !a.without.is_empty());
        let off = off.map_or(String::new(), |a| format!(", no {}", a.without.join(", ")));
        format!("{} {}{fusion}{off}", self.system, self.engine)
    }

    /// What belongs into one figure: model, precision, threads.
    pub fn figure(&self) -> (&str, &str, usize) {
        (&self.model, &self.precision, self.threads)
    }
}

impl Serialize for ReportRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_map(None)?;
        row.serialize_entry("system", &self.system)?;
        row.serialize_entry("engine", &self.engine)?;
        row.serialize_entry("fusion", &self.fusion)?;
        row.serialize_entry("model", &self.model)?;
        row.serialize_entry("chains", &self.chains)?;
        row.serialize_entry("chains_run", &self.chains_run)?;
        row.serialize_entry("threads", &self.threads)?;
        row.serialize_entry("precision", &self.precision)?;
        row.serialize_entry("repetitions", &self.repetitions)?;
        row.serialize_entry(&format!("{}_per_second", self.unit), &self.rate)?;
        row.serialize_entry("effective_samples_per_second", &self.effective_samples_per_second)?;
        row.serialize_entry("draws", &self.draws)?;
        row.serialize_entry("useful", &self.useful)?;
        row.serialize_entry("issued", &self.issued)?;
        row.serialize_entry("utilization", &self.utilization)?;
        row.serialize_entry("utilization_bound", &self.utilization_bound)?;
        row.serialize_entry("supersteps", &self.supersteps)?;
        row.serialize_entry("bytes_pushed", &self.bytes_pushed)?;
        row.serialize_entry("bound", &self.bound)?;
        if let Some(ablation) = &self.ablation {
            row.serialize_entry("ablation", ablation)?;
        }
        row.serialize_entry("foreign_load", &self.foreign_load)?;
        row.end()
    }
}

impl Report {
    /// Of nothing yet.
    pub fn new(machine: Machine, comparison: Setup) -> Self {
        let (systems, bound, results, skipped) = (IndexMap::new(), Vec::new(), Vec::new(), Vec::new());
        Self { machine, comparison, void: false, systems, bound, results, skipped }
    }

    pub(super) fn add(&mut self, row: ReportRow) {
        self.void |= row.is_void();
        self.results.push(row);
    }

    /// Says once why a series is not measured, however many cells that is true of.
    pub(super) fn skip(&mut self, skipped: Skipped, note: &dyn Fn(&str)) {
        match self.skipped.iter_mut().find(|s| s.is_like(&skipped)) {
            Some(before) => before.widen(&skipped),
            None => {
                note(&format!("left out: {skipped}"));
                self.skipped.push(skipped);
            }
        }
    }

    /// What a reader should know of all figures.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.void {
            remarks.push("VOID: other processes used the machine while it was measured".to_owned());
        }
        if self.results.iter().any(|row| row.repetitions < ENOUGH_REPETITIONS) {
            remarks.push(format!("fewer than {ENOUGH_REPETITIONS} repetitions: medians and ranges say little"));
        }
        if self.comparison.interrupted {
            remarks.push("interrupted: cells are missing, or repetitions of the last one".to_owned());
        }
        remarks
    }

    /// What was asked for, in lines.
    pub(super) fn setup_lines(&self) -> Vec<String> {
        let Setup { command, repetitions, seconds, draws, seed, max_treedepth, c_compiler, models, .. } =
            &self.comparison;
        let how_long = match (seconds, draws) {
            (_, Some(draws)) => format!("{} a run", counted(*draws, "draw")),
            (Some(seconds), None) => format!("{seconds} s a run"),
            (None, None) => "one run".to_owned(),
        };
        let repeated = counted(*repetitions, "repetition");
        let compiler = c_compiler.as_ref().map_or(String::new(), |c| format!(", code by {c}"));
        let mut lines = vec![
            command.clone(),
            format!("{repeated} of {how_long}, seed {seed}, tree depth at most {max_treedepth}{compiler}"),
        ];
        for (name, model) in models {
            if let ModelSetup { stepsize: Some(stepsize), dimension: Some(d), data: Some(data) } = model {
                lines.push(format!("{name}: step size {stepsize}, {d} dimensions, data: {data}"));
            }
        }
        lines
    }

    /// As JSON.
    ///
    /// # Errors
    /// Never for what [`run`](super::run) gives.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    /// The rows of each figure, in their order.
    pub fn figures(&self) -> IndexMap<(&str, &str, usize), Vec<&ReportRow>> {
        let mut figures: IndexMap<_, Vec<&ReportRow>> = IndexMap::new();
        for row in &self.results {
            figures.entry(row.figure()).or_default().push(row);
        }
        figures
    }

    /// The bounds of a figure: chains and rate.
    pub fn bounds(&self, (model, precision, threads): (&str, &str, usize)) -> Vec<(usize, Rate)> {
        let of_figure =
            self.bound.iter().filter(|b| b.model == model && b.precision == precision && b.threads == threads);
        of_figure.map(|b| (b.chains, b.gradients_per_second)).collect()
    }
}

/// A number with three or four digits that count, in thousands, millions or billions.
pub fn short(x: f64) -> String {
    let (value, unit) = match x.abs() {
        a if a >= 1e9 => (x / 1e9, " G"),
        a if a >= 1e6 => (x / 1e6, " M"),
        a if a >= 1e4 => (x / 1e3, " k"),
        _ => (x, ""),
    };
    let digits = match value.abs() {
        a if a >= 100.0 => 0,
        a if a >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$}{unit}")
}

impl fmt::Display for Report {
    /// Tables as in `benches/RESULTS.md`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { cpu, cores, memory_gib, os, vectors, load_average } = &self.machine;
        writeln!(f, "{cpu}, {cores} cores, {vectors}, {memory_gib} GiB, {os}")?;
        if let Some([one, five, fifteen]) = load_average {
            writeln!(f, "load average before: {one}, {five}, {fifteen}")?;
        }
        for line in self.setup_lines().iter().chain(self.systems.values()) {
            writeln!(f, "{line}")?;
        }
        for ((model, precision, threads), rows) in self.figures() {
            if rows.iter().any(|row| row.ablation.is_some()) {
                writeln!(f, "\n{model}, {precision}, {}\n", counted(threads, "thread"))?;
                ablation_table(f, &rows)?;
                continue;
            }
            let unit = rows.first().map_or("", |r| r.unit.as_str());
            writeln!(f, "\n{model}, {precision}, {}\n", counted(threads, "thread"))?;
            let lanes = rows.first().map_or("chains", |r| r.lanes_name());
            writeln!(
                f,
                "| {lanes} | system | {unit}/s | range | of bound | utilization | its bound | ESS/s | pushed B | draws |"
            )?;
            writeln!(f, "|---|---|---|---|---|---|---|---|---|---|")?;
            let mut bounds = self.bounds((model, precision, threads)).into_iter().peekable();
            for row in rows {
                if let Some((chains, rate)) = bounds.next_if(|(chains, _)| *chains == row.chains) {
                    writeln!(f, "| {chains} | bound | {} | {} | | | | | | |", short(rate.median), range(rate))?;
                }
                row.table_row(f)?;
            }
        }
        for skipped in &self.skipped {
            writeln!(f, "\nleft out: {skipped}")?;
        }
        self.remarks().iter().try_for_each(|remark| writeln!(f, "\n{remark}"))
    }
}

/// What a run of the same draws takes without some optimisations.
fn ablation_table(f: &mut fmt::Formatter<'_>, rows: &[&ReportRow]) -> fmt::Result {
    let (lanes, unit) = rows.first().map_or(("chains", ""), |r| (r.lanes_name(), r.unit.trim_end_matches('s')));
    writeln!(
        f,
        "| {lanes} | without | s a run | range | times all on | range | pushed B a {unit} | supersteps a run |"
    )?;
    writeln!(f, "|---|---|---|---|---|---|---|---|")?;
    for row in rows {
        let Some(Ablation { without, seconds, ratio }) = &row.ablation else { continue };
        let without = if without.is_empty() { "nothing: all on".to_owned() } else { without.join(", ") };
        let void = if row.is_void() { " (void)" } else { "" };
        writeln!(
            f,
            "| {} | {without} | {:.3}{void} | {:.3}–{:.3} | {:.2} | {:.2}–{:.2} | {} | {} |",
            row.chains_shown(),
            seconds.median,
            seconds.min,
            seconds.max,
            ratio.median,
            ratio.min,
            ratio.max,
            row.bytes_pushed.map_or(String::new(), |b| format!("{b:.0}")),
            row.supersteps.map_or(String::new(), |n| n.to_string()),
        )?;
    }
    Ok(())
}

fn range(rate: Rate) -> String {
    format!("{}–{}", short(rate.min), short(rate.max))
}

impl ReportRow {
    fn table_row(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: Option<f64>, digits: usize| value.map_or(String::new(), |v| format!("{v:.digits$}"));
        let void = if self.is_void() { " (void)" } else { "" };
        writeln!(
            f,
            "| {} | {} | {}{void} | {} | {} | {} | {} | {} | {} | {} |",
            self.chains_shown(),
            self.series(),
            short(self.rate.median),
            range(self.rate),
            shown(self.bound.map(|b| self.rate.median / b), 2),
            shown(self.utilization, 3),
            shown(self.utilization_bound, 3),
            self.effective_samples_per_second.map_or(String::new(), |r| short(r.median)),
            shown(self.bytes_pushed, 0),
            self.draws,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(Rate::of(&[3.0, 1.0, 2.0]), Rate { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(Rate::of(&[4.0, 1.0]).median, 2.5);
        assert_eq!(Rate::of(&[7.0]), Rate { median: 7.0, min: 7.0, max: 7.0 });
        assert!(Rate::of(&[]).median.is_nan());
    }

    #[test]
    fn a_reason_is_told_once_for_all_cells_that_it_holds_for() {
        let mut report = Report::new(Machine::read(), Setup::default());
        let error = Error::new(crate::program::ErrorKind::Io, "no licence");
        let skip = |model: &str, chains| {
            Skipped::new("stan", "plain", &error).of_model(model).in_precision("f64").with(chains, 1)
        };
        for (model, chains) in [("logistic", 1), ("logistic", 10)] {
            report.skip(skip(model, chains), &|_| ());
        }
        assert_eq!(report.skipped.len(), 1);
        assert_eq!(report.skipped[0].to_string(), "stan plain (logistic, f64, 1 thread): no licence");
        report.skip(skip("fib", 1), &|_| ());
        assert_eq!(report.skipped[0].to_string(), "stan plain (f64, 1 thread): no licence");
        let other = Error::new(crate::program::ErrorKind::Io, "too slow");
        report.skip(Skipped::new("stan", "plain", &other), &|_| ());
        assert_eq!(report.skipped.len(), 2);
    }

    #[test]
    fn numbers_are_short() {
        let cases = [(0.5, "0.50"), (1234.4, "1234"), (12_345.0, "12.3 k"), (2.5e6, "2.50 M"), (1e9, "1.00 G")];
        for (x, expected) in cases {
            assert_eq!(short(x), expected);
        }
    }
}
