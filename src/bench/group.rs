//! Which rows of a report belong into one figure and one table.

use super::report::counted;
use super::row::ReportRow;
use super::study::Question;

/// What the rows of a figure have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Group<'a> {
    /// What is asked.
    pub question: Question,
    /// The model.
    pub model: &'a str,
    /// `f64` or `f32`.
    pub precision: &'a str,
    /// Chains, where they do not vary.
    pub chains: Option<usize>,
    /// Threads, where they do not vary.
    pub threads: Option<usize>,
}

impl<'a> Group<'a> {
    /// That of a cell.
    pub(super) fn of(
        question: Question,
        (model, precision): (&'a str, &'a str),
        (chains, threads): (usize, usize),
    ) -> Self {
        let (chains, threads) = match question {
            Question::Chains | Question::Utilization | Question::Ablation => (None, Some(threads)),
            Question::Threads => (Some(chains), None),
            Question::LeafSteps => (Some(chains), Some(threads)),
        };
        Self { question, model, precision, chains, threads }
    }

    /// What stands above its figure.
    pub fn title(&self, lanes: &str) -> String {
        let mut parts = vec![self.model.to_owned(), self.precision.to_owned()];
        parts.extend(self.threads.map(|n| counted(n, "thread")));
        parts.extend(self.chains.map(|n| counted(n, lanes.trim_end_matches('s'))));
        match self.question.title() {
            "" => parts.join(", "),
            title => format!("{}: {title}", parts.join(", ")),
        }
    }

    /// What the file of its figure is called.
    pub fn file_name(&self) -> String {
        let mut parts = vec![self.model.to_owned(), self.precision.to_owned()];
        parts.extend(self.threads.map(|n| n.to_string()));
        parts.extend(self.chains.map(|n| format!("{n}-chains")));
        parts.extend(self.question.file_word().map(str::to_owned));
        // A program of a user may be called anything.
        let plain = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        format!("{}.svg", parts.join("-").chars().map(plain).collect::<String>())
    }
}

impl ReportRow {
    /// What belongs into one figure with it.
    pub fn group(&self) -> Group<'_> {
        Group::of(self.question, (&self.model, &self.precision), (self.chains, self.threads))
    }

    /// Where it stands on the axis of its figure.
    pub(super) fn place(&self) -> usize {
        match self.question {
            Question::Chains | Question::Utilization | Question::Ablation => self.chains,
            Question::Threads => self.threads,
            Question::LeafSteps => self.leaf_steps.unwrap_or(1),
        }
    }
}
