//! The rows of a figure as a table, for the terminal and for the page.

use std::fmt;

use super::group::Group;
use super::machine::Machine;
use super::report::{BoundRow, Rate, Report, counted};
use super::row::{Ablation, ReportRow};
use super::study::Question;
use crate::picture::short;

/// A table of a report.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Table {
    /// What stands above it.
    pub(super) title: String,
    /// What a reader must know of it.
    pub(super) about: &'static str,
    pub(super) head: Vec<String>,
    pub(super) lines: Vec<TableLine>,
    /// The column of names, which are texts.
    pub(super) names: usize,
}

/// A line of a table.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct TableLine {
    pub(super) cells: Vec<String>,
    pub(super) void: bool,
}

impl Table {
    /// The rows of a group.
    pub(super) fn of(report: &Report, group: Group<'_>, rows: &[&ReportRow]) -> Self {
        let lanes = rows.first().map_or("chains", |row| row.lanes_name());
        let (head, names, lines) = match group.question {
            Question::Ablation => ablations(lanes, rows),
            _ => rates(report, group, lanes, rows),
        };
        Table { title: group.title(lanes), about: group.question.about(), head, lines, names }
    }
}

type Parts = (Vec<String>, usize, Vec<TableLine>);

/// Useful work a second and what belongs to it.
fn rates(report: &Report, group: Group<'_>, lanes: &str, rows: &[&ReportRow]) -> Parts {
    let axis: &[&str] = match group.question {
        Question::Threads => &["threads", lanes],
        Question::LeafSteps => &["leaf steps", lanes],
        _ => &[lanes],
    };
    let unit = rows.first().map_or("", |row| row.unit.as_str());
    let rate = format!("{unit}/s");
    let common = ["system", &rate, "range", "of bound", "utilization", "its bound", "ESS/s", "pushed B", "draws"];
    let head: Vec<String> = axis.iter().chain(&common).map(|name| (*name).to_owned()).collect();
    let mut bounds: Vec<&BoundRow> = report.bounds(group).collect();
    let mut lines = Vec::new();
    for row in rows {
        // The bound of a cell stands before its rows.
        if let Some(at) = bounds.iter().position(|b| (b.chains, b.threads) == (row.chains, row.threads)) {
            lines.push(bound_line(bounds.remove(at), group, head.len()));
        }
        lines.push(rate_line(row, group));
    }
    (head, axis.len(), lines)
}

fn bound_line(bound: &BoundRow, group: Group<'_>, columns: usize) -> TableLine {
    let rate = bound.gradients_per_second;
    let mut cells = match group.question {
        Question::Threads => vec![bound.threads.to_string(), bound.chains.to_string()],
        Question::LeafSteps => vec![String::new(), bound.chains.to_string()],
        _ => vec![bound.chains.to_string()],
    };
    cells.extend(["bound".to_owned(), short(rate.median), range(rate)]);
    cells.resize(columns, String::new());
    TableLine { cells, void: false }
}

fn rate_line(row: &ReportRow, group: Group<'_>) -> TableLine {
    let shown = |value: Option<f64>, digits: usize| value.map_or(String::new(), |v| format!("{v:.digits$}"));
    let mut cells = match group.question {
        Question::Threads | Question::LeafSteps => vec![row.place().to_string(), row.chains_shown()],
        _ => vec![row.chains_shown()],
    };
    cells.extend([
        row.series(),
        format!("{}{}", short(row.rate.median), void(row)),
        range(row.rate),
        shown(row.bound.map(|b| row.rate.median / b), 2),
        shown(row.utilization, 3),
        shown(row.utilization_bound, 3),
        row.effective_samples_per_second.map_or(String::new(), |r| short(r.median)),
        shown(row.bytes_pushed, 0),
        row.draws.to_string(),
    ]);
    TableLine { cells, void: row.is_void() }
}

/// What a run of the same draws takes without some optimisations.
fn ablations(lanes: &str, rows: &[&ReportRow]) -> Parts {
    let unit = rows.first().map_or("", |row| row.unit.trim_end_matches('s'));
    let pushed = format!("pushed B a {unit}");
    let head = [lanes, "without", "s a run", "range", "times all on", "range", &pushed, "supersteps a run"];
    let line = |(row, Ablation { without, seconds, ratio }): (&ReportRow, &Ablation)| {
        let without = if without.is_empty() { "nothing: all on".to_owned() } else { without.join(", ") };
        let cells = vec![
            row.chains_shown(),
            without,
            format!("{:.3}{}", seconds.median, void(row)),
            format!("{:.3}–{:.3}", seconds.min, seconds.max),
            format!("{:.2}", ratio.median),
            format!("{:.2}–{:.2}", ratio.min, ratio.max),
            row.bytes_pushed.map_or(String::new(), |b| format!("{b:.0}")),
            row.supersteps.map_or(String::new(), |n| n.to_string()),
        ];
        TableLine { cells, void: row.is_void() }
    };
    let lines = rows.iter().filter_map(|row| Some((*row, row.ablation.as_ref()?))).map(line).collect();
    (head.iter().map(|name| (*name).to_owned()).collect(), 1, lines)
}

fn void(row: &ReportRow) -> &'static str {
    if row.is_void() { " (void)" } else { "" }
}

fn range(rate: Rate) -> String {
    format!("{}–{}", short(rate.min), short(rate.max))
}

impl fmt::Display for Table {
    /// As in `benches/RESULTS.md`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}\n", self.title)?;
        writeln!(f, "| {} |", self.head.join(" | "))?;
        writeln!(f, "|{}", "---|".repeat(self.head.len()))?;
        self.lines.iter().try_for_each(|line| writeln!(f, "| {} |", line.cells.join(" | ")))
    }
}

impl fmt::Display for Report {
    /// What was measured on, what was asked for, and all tables.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { cpu, cores, memory_gib, os, vectors, load_average } = &self.machine;
        writeln!(f, "{cpu}, {}, {vectors}, {memory_gib} GiB, {os}", counted(*cores, "core"))?;
        if let Some([one, five, fifteen]) = load_average {
            writeln!(f, "load average before: {one}, {five}, {fifteen}")?;
        }
        for line in self.setup_lines().iter().chain(self.systems.values()) {
            writeln!(f, "{line}")?;
        }
        for (group, rows) in self.groups() {
            write!(f, "{}", Table::of(self, group, &rows))?;
        }
        for skipped in &self.skipped {
            writeln!(f, "\nleft out: {skipped}")?;
        }
        self.remarks().iter().try_for_each(|remark| writeln!(f, "\n{remark}"))
    }
}
