//! The checks of CmdStan's `diagnose`: one after the other, each with what it found and its worst parameter or chain, and what
//! to do.

use std::fmt;

use super::advice::{Concern, Warning};
use super::summary::{Summary, SummaryRow, fixed, whole};

/// What is checked.
const CHECKS: [(Concern, &str); 6] = [
    (Concern::TreeDepth, "tree depth"),
    (Concern::Divergences, "divergent transitions"),
    (Concern::Energy, "E-BFMI"),
    (Concern::SampleSize, "effective sample sizes"),
    (Concern::Agreement, "R-hat"),
    (Concern::Other, "chains and draws"),
];

/// The checks of a run. `Display` prints them.
#[derive(Clone, PartialEq, Debug)]
pub struct Checks {
    /// What was found, check by check; empty without draws.
    pub findings: Vec<CheckResult>,
    notes: Vec<String>,
}

/// What a check found.
#[derive(Clone, PartialEq, Debug)]
pub struct CheckResult {
    /// What was checked.
    pub what: &'static str,
    /// How it went.
    pub verdict: Verdict,
    /// In words.
    pub text: String,
    /// The command that may help, where there is one.
    pub command: Option<String>,
}

/// How a check went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Nothing is wrong.
    Fine,
    /// There is something to look at.
    Look,
    /// It cannot be told.
    Untold,
}

impl Verdict {
    /// The word that stands before a finding.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Fine => "ok",
            Verdict::Look => "LOOK",
            Verdict::Untold => "-",
        }
    }
}

impl Checks {
    /// Of a summary.
    pub fn of(summary: &Summary) -> Self {
        let findings = if summary.sampler.draws == 0 { vec![] } else { findings(summary) };
        Self { findings, notes: summary.notes.clone() }
    }

    /// Whether there is nothing to worry about.
    pub fn all_hold(&self) -> bool {
        !self.findings.is_empty() && self.looks() == 0
    }

    /// How many things there are to look at.
    pub fn looks(&self) -> usize {
        self.findings.iter().filter(|finding| finding.verdict == Verdict::Look).count()
    }

    /// How many, in words.
    pub fn told(&self) -> String {
        match self.looks() {
            _ if self.findings.is_empty() => "there are no draws to check".to_owned(),
            0 => "nothing to worry about was found".to_owned(),
            1 => "1 thing to look at".to_owned(),
            n => format!("{n} things to look at"),
        }
    }
}

fn findings(summary: &Summary) -> Vec<CheckResult> {
    let sampler = &summary.sampler;
    let mut findings = vec![];
    for (concern, what) in CHECKS {
        let mut add = |verdict, text, command| findings.push(CheckResult { what, verdict, text, command });
        let of: Vec<&Warning> = summary.warnings.iter().filter(|warning| warning.concern == concern).collect();
        let worst = worst(concern, summary).map_or(String::new(), |worst| format!("; worst: {worst}"));
        let converges = matches!(concern, Concern::Energy | Concern::SampleSize | Concern::Agreement);
        if sampler.stays && converges {
            add(Verdict::Untold, "the chains stay where they start".to_owned(), None);
        } else if concern == Concern::Energy && sampler.e_bfmi.is_empty() {
            add(Verdict::Untold, "too few draws to tell, or no energies; run longer".to_owned(), None);
        } else if of.is_empty() {
            add(Verdict::Fine, fine(concern, summary) + &worst, None);
        }
        for warning in of {
            // Without the command, which stands in a line of its own.
            let advice = warning.advice.as_ref().filter(|_| warning.command.is_none());
            let text = warning.message.clone() + &worst + &advice.map_or(String::new(), |advice| format!(": {advice}"));
            add(Verdict::Look, text, warning.command.clone());
        }
    }
    findings
}

/// The words where nothing is wrong.
fn fine(concern: Concern, summary: &Summary) -> String {
    match (concern, summary.sampler.max_treedepth) {
        (Concern::TreeDepth, Some(depth)) => format!("no trajectory was ended by the largest depth, {depth}"),
        (Concern::TreeDepth, None) => "no trajectory was ended by the largest depth".to_owned(),
        (Concern::Divergences, _) => "none".to_owned(),
        (Concern::Energy, _) => "at least 0.3: the momentum explores the energies".to_owned(),
        (Concern::SampleSize, _) => "enough for all parameters, in the bulk and in the tails".to_owned(),
        (Concern::Agreement, _) if summary.sampler.chains == 1 => {
            "the halves of the chain agree on all parameters".to_owned()
        }
        (Concern::Agreement, _) => "the chains agree on all parameters".to_owned(),
        (Concern::Other, _) => "no chain is stuck, and all draws are numbers".to_owned(),
    }
}

/// What is worst, whether it is good or not: a parameter or a chain.
fn worst(concern: Concern, summary: &Summary) -> Option<String> {
    let (sampler, rows) = (&summary.sampler, || summary.rows.iter());
    match concern {
        Concern::Energy => {
            let (at, value) = sampler.e_bfmi.iter().copied().enumerate().min_by(|a, b| a.1.total_cmp(&b.1))?;
            let of_chain = sampler.e_bfmi.len() == sampler.chains;
            Some(fixed(value, 2) + &if of_chain { format!(" ({} chain)", nth(at)) } else { String::new() })
        }
        Concern::SampleSize => {
            let least = |of: fn(&SummaryRow) -> f64, what: &str| {
                let row = rows().filter(|row| !of(row).is_nan()).min_by(|a, b| of(a).total_cmp(&of(b)))?;
                Some(format!("{} in the {what} ({})", whole(of(row)), row.name))
            };
            Some([least(|row| row.ess_bulk, "bulk")?, least(|row| row.ess_tail, "tails")?].join(", "))
        }
        Concern::Agreement => {
            let rhat = |row: &SummaryRow| row.rhat_nested.unwrap_or(row.rhat);
            let row = rows().filter(|row| !rhat(row).is_nan()).max_by(|a, b| rhat(a).total_cmp(&rhat(b)))?;
            Some(format!("{} ({})", fixed(rhat(row), 3), row.name))
        }
        Concern::TreeDepth | Concern::Divergences | Concern::Other => None,
    }
}

/// `1st`, `2nd`, …: the place of a chain, counted from 0.
fn nth(at: usize) -> String {
    let n = at + 1;
    let end = match (n % 10, n % 100) {
        (1, 11) | (2, 12) | (3, 13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{end}")
}

impl fmt::Display for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for CheckResult { what, verdict, text, command } in &self.findings {
            write!(f, "{:<5} {what}: {text}", verdict.word())?;
            match command {
                Some(command) => writeln!(f, ":\n    {command}")?,
                None => writeln!(f)?,
            }
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        writeln!(f, "{}", self.told())
    }
}
