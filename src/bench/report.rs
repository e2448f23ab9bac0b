//! What was measured, as an object of JSON.

use std::fmt;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::group::Group;
use super::machine::Machine;
use super::row::ReportRow;
use super::study::Question;
use crate::program::Error;

/// Everything that was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
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
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
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
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
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
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Rate {
    /// The median.
    pub median: f64,
    /// The lowest.
    pub min: f64,
    /// The highest: the best run.
    pub max: f64,
}

/// A bound.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BoundRow {
    /// What is asked with the cell.
    #[serde(default)]
    pub question: Question,
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

/// A series that was not measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
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

impl BoundRow {
    /// The figure into which it belongs.
    fn group(&self) -> Group<'_> {
        Group::of(self.question, (&self.model, &self.precision), (self.chains, self.threads))
    }

    /// Where it stands on the axis of its figure.
    pub(super) fn place(&self) -> usize {
        if self.question == Question::Threads { self.threads } else { self.chains }
    }
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
        let counts = |row: &&ReportRow| row.question != Question::Utilization;
        if self.results.iter().filter(counts).any(|row| row.repetitions < ENOUGH_REPETITIONS) {
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

    /// From what [`to_json`](Self::to_json) gave.
    ///
    /// # Errors
    /// For a text that is something else.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The rows of each figure, in their order.
    pub fn groups(&self) -> IndexMap<Group<'_>, Vec<&ReportRow>> {
        let mut groups: IndexMap<Group<'_>, Vec<&ReportRow>> = IndexMap::new();
        for row in &self.results {
            groups.entry(row.group()).or_default().push(row);
        }
        groups
    }

    /// The bounds of a figure.
    pub(super) fn bounds<'a>(&'a self, group: Group<'a>) -> impl Iterator<Item = &'a BoundRow> {
        self.bound.iter().filter(move |bound| bound.group() == group)
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
}
