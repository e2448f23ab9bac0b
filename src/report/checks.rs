//! The checks of CmdStan's `diagnose`: one after the other, each with what it found, and what to do.

use std::fmt;

use super::advice::{Concern, Warning};
use super::summary::Summary;

/// What is checked, and the words where nothing is wrong with it.
const CHECKS: [(Concern, &str, &str); 6] = [
    (Concern::TreeDepth, "tree depth", "no trajectory was ended by the largest depth"),
    (Concern::Divergences, "divergent transitions", "none"),
    (Concern::Energy, "E-BFMI", "at least 0.3: the momentum explores the energies"),
    (Concern::SampleSize, "effective sample sizes", "enough for all parameters, in the bulk and in the tails"),
    (Concern::Agreement, "R-hat", "the chains agree on all parameters"),
    (Concern::Other, "chains and draws", "no chain is stuck, and all draws are numbers"),
];

/// The checks of a run. `Display` prints them.
#[derive(Clone, PartialEq, Debug)]
pub struct Checks {
    warnings: Vec<Warning>,
    notes: Vec<String>,
    draws: usize,
    /// Whether there are energies, and enough draws, for E-BFMI.
    knows_energy: bool,
    /// Whether the chains stay where they start.
    stays: bool,
}

impl Checks {
    /// Of a summary.
    pub fn of(summary: &Summary) -> Self {
        let (warnings, notes) = (summary.warnings.clone(), summary.notes.clone());
        let (draws, knows_energy) = (summary.sampler.draws, !summary.sampler.e_bfmi.is_empty());
        Self { warnings, notes, draws, knows_energy, stays: summary.sampler.stays }
    }

    /// Whether there is nothing to worry about.
    pub fn all_hold(&self) -> bool {
        self.warnings.is_empty() && self.draws > 0
    }
}

impl fmt::Display for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.draws == 0 {
            return writeln!(f, "there are no draws to check");
        }
        for (concern, what, fine) in CHECKS {
            let mut of = self.warnings.iter().filter(|warning| warning.concern == concern).peekable();
            if self.stays && matches!(concern, Concern::Energy | Concern::SampleSize | Concern::Agreement) {
                writeln!(f, "-     {what}: the chains stay where they start")?;
            } else if concern == Concern::Energy && !self.knows_energy {
                writeln!(f, "-     {what}: too few draws to tell; run longer")?;
            } else if of.peek().is_none() {
                writeln!(f, "ok    {what}: {fine}")?;
            }
            for warning in of {
                writeln!(f, "LOOK  {what}: {warning}")?;
            }
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        match self.warnings.len() {
            0 => writeln!(f, "nothing to worry about was found"),
            1 => writeln!(f, "1 thing to look at"),
            n => writeln!(f, "{n} things to look at"),
        }
    }
}
