//! What was measured: as an object of JSON, and as a table.

use std::fmt;

use indexmap::IndexMap;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::machine::{ForeignLoad, Machine};
use crate::program::Error;

/// Everything that was measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The machine.
    pub machine: Machine,
    /// Whether the load of others makes a figure void.
    pub void: bool,
    /// The systems that ran, with their versions.
    pub systems: IndexMap<String, String>,
    /// What the machine can do at most, where a model has a bound.
    pub bound: Vec<BoundRow>,
    /// One row for each series of each cell.
    pub results: Vec<Row>,
    /// What was not measured, and why.
    pub skipped: Vec<Skipped>,
}

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
}

/// A series in a cell.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
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
    /// Threads.
    pub threads: usize,
    /// `f64` or `f32`.
    pub precision: String,
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
    /// All work of all runs, where it is known.
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
    /// What other processes did meanwhile, where the system tells.
    pub foreign_load: Option<ForeignLoad>,
}

/// A series that was not measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Skipped {
    /// The system.
    pub system: String,
    /// Which of its ways of running.
    pub engine: String,
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
        Self { system: system.to_owned(), engine: engine.to_owned(), reason: error.to_string() }
    }
}

impl Row {
    pub(super) fn with_utilization(self) -> Self {
        let utilization = self.issued.map(|issued| self.useful as f64 / issued);
        Self { utilization, ..self }
    }

    /// The series that it belongs to: `autobatch pc`, `autobatch pc, no fusion`, `stan glm native`.
    pub fn series(&self) -> String {
        let fusion = if self.fusion == Some(false) { ", no fusion" } else { "" };
        format!("{} {}{fusion}", self.system, self.engine)
    }

    /// What belongs into one figure: model, precision, threads.
    pub fn figure(&self) -> (&str, &str, usize) {
        (&self.model, &self.precision, self.threads)
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_map(None)?;
        row.serialize_entry("system", &self.system)?;
        row.serialize_entry("engine", &self.engine)?;
        row.serialize_entry("fusion", &self.fusion)?;
        row.serialize_entry("model", &self.model)?;
        row.serialize_entry("chains", &self.chains)?;
        row.serialize_entry("threads", &self.threads)?;
        row.serialize_entry("precision", &self.precision)?;
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
        row.serialize_entry("foreign_load", &self.foreign_load)?;
        row.end()
    }
}

impl Report {
    /// Of nothing yet.
    pub fn new(machine: Machine) -> Self {
        let (systems, bound, results, skipped) = (IndexMap::new(), Vec::new(), Vec::new(), Vec::new());
        Self { machine, void: false, systems, bound, results, skipped }
    }

    pub(super) fn add(&mut self, row: Row) {
        self.void |= row.foreign_load.is_some_and(|load| load.void);
        self.results.push(row);
    }

    /// Says once why a series is not measured.
    pub(super) fn skip(&mut self, skipped: Skipped, note: &dyn Fn(&str)) {
        if !self.skipped.contains(&skipped) {
            note(&format!("{} {} is left out: {}", skipped.system, skipped.engine, skipped.reason));
            self.skipped.push(skipped);
        }
    }

    /// As JSON.
    ///
    /// # Errors
    /// Never for what [`run`](super::run) gives.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    /// The rows of each figure, in their order.
    pub fn figures(&self) -> IndexMap<(&str, &str, usize), Vec<&Row>> {
        let mut figures: IndexMap<_, Vec<&Row>> = IndexMap::new();
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
        for version in self.systems.values() {
            writeln!(f, "{version}")?;
        }
        for ((model, precision, threads), rows) in self.figures() {
            let unit = rows.first().map_or("", |r| r.unit.as_str());
            writeln!(f, "\n{model}, {precision}, {threads} threads\n")?;
            writeln!(
                f,
                "| chains | system | {unit}/s | range | of bound | utilization | its bound | ESS/s | pushed B | draws |"
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
            writeln!(f, "\nleft out: {} {}: {}", skipped.system, skipped.engine, skipped.reason)?;
        }
        if self.void {
            writeln!(f, "\nVOID: other processes used the machine while it was measured")?;
        }
        Ok(())
    }
}

fn range(rate: Rate) -> String {
    format!("{}–{}", short(rate.min), short(rate.max))
}

impl Row {
    fn table_row(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: Option<f64>, digits: usize| value.map_or(String::new(), |v| format!("{v:.digits$}"));
        let void = if self.foreign_load.is_some_and(|l| l.void) { " (void)" } else { "" };
        writeln!(
            f,
            "| {} | {} | {}{void} | {} | {} | {} | {} | {} | {} | {} |",
            self.chains,
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
    fn numbers_are_short() {
        let cases = [(0.5, "0.50"), (1234.4, "1234"), (12_345.0, "12.3 k"), (2.5e6, "2.50 M"), (1e9, "1.00 G")];
        for (x, expected) in cases {
            assert_eq!(short(x), expected);
        }
    }
}
