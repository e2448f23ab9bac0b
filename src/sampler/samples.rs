//! What a [`Sampler`](super::Sampler) gives: draws by name, and what they are worth.

use ndarray::ArrayViewD;

use crate::mcmc::sampling::Draws;
use crate::program::{Arrays, Error};
use crate::report::{Advice, DataSetsSummary, Diagnosis, Summary, SummaryRow, Warning};
use crate::run::{Trap, TrapKind};

/// The draws of a run, and what they are worth.
#[derive(Clone, Debug)]
pub struct Samples {
    draws: Draws,
    summary: Summary,
    chains: usize,
}

impl Samples {
    pub(super) fn new(draws: Draws, summary: Summary, chains: usize) -> Self {
        Self { draws, summary, chains }
    }

    /// Of draws that were had from a run of so many chains while it went on.
    pub fn of_draws(draws: Draws, chains: usize) -> Self {
        Self { summary: Summary::of_draws(&draws), draws, chains }
    }

    /// The parameters of the model, chain × draw × event shape: the fields of what its `parameters` gives, or the
    /// unconstrained state `q`.
    pub fn parameters(&self) -> Arrays<'_> {
        Arrays::new("parameter", &self.draws.parameters)
    }

    /// What the sampler tells of each draw, chain × draw: `lp`, `accept_stat`, `stepsize`, `treedepth`, `n_leapfrog`,
    /// `divergent`, `energy`.
    pub fn statistics(&self) -> Arrays<'_> {
        Arrays::new("statistic", &self.draws.statistics)
    }

    /// A parameter of reals, chain × draw × event shape. Draws for which the model's `parameters` trapped are NaN.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::program::ErrorKind::Input) for a name that there is not, or that has other elements.
    pub fn real(&self, name: &str) -> Result<ArrayViewD<'_, f64>, Error> {
        self.parameters().real(name)
    }

    /// A row for each scalar parameter, with mean, quantiles, R-hat and effective sample sizes; `Display` prints the
    /// table that `autobatch sample` prints.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Of a run with data of many data sets: what there is of all, and where the worst is; `Display` prints the table of
    /// `autobatch sample --lane-data`.
    pub fn data_sets(&self) -> Option<DataSetsSummary> {
        self.draws.data_sets.map(|_| DataSetsSummary::of_draws(&self.draws))
    }

    /// The draws of the chains of a data set, with their own summary; all draws where there are no data sets.
    #[must_use]
    pub fn of_data_set(&self, set: usize) -> Self {
        let draws = self.draws.of_data_set(set);
        let chains = self.draws.data_sets.map_or(self.chains, |(_, each)| each);
        Self { summary: Summary::of_draws(&draws), draws, chains }
    }

    /// The row of a scalar parameter: `tau`, `theta[1]`, or `theta[Choate]` where the axis has labels.
    pub fn row(&self, name: &str) -> Option<&SummaryRow> {
        self.summary.rows.iter().find(|row| row.name == name || row.by_index.as_deref() == Some(name))
    }

    /// What to worry about.
    pub fn warnings(&self) -> &[Warning] {
        &self.summary.warnings
    }

    /// Keeps the draws and the rows of these variables; of none of them all. Gives the names that there are not.
    pub fn keep(&mut self, names: &[String]) -> Vec<String> {
        let (known, unknown): (Vec<String>, Vec<String>) =
            names.iter().cloned().partition(|name| self.draws.parameters.contains_key(name));
        if !known.is_empty() {
            self.draws.parameters.retain(|name, _| known.contains(name));
            if let Some(states) = &mut self.draws.warmup_states {
                states.parameters.retain(|name, _| known.contains(name));
            }
            self.summary.keep(&known);
        }
        unknown
    }

    /// Writes what to do to every warning that advises something: what stands there else is a flag of the command.
    pub fn advise(&mut self, words: impl Fn(&Advice) -> String) {
        self.summary.advise(words);
    }

    /// Which parameters go with divergent transitions, with the energy and with deep trees: what to write otherwise
    /// where there are warnings of them. `Display` prints the table of `autobatch sample --diagnose`.
    pub fn diagnosis(&self) -> Diagnosis {
        Diagnosis::of_draws(&self.draws)
    }

    /// Chains that failed and are in no array, and why.
    pub fn failed_chains(&self) -> impl Iterator<Item = &Trap> {
        self.draws.traps.iter().filter(|trap| trap.kind != TrapKind::Interrupted)
    }

    /// Whether all draws of all chains are there: not where the run was cancelled, or a chain failed.
    pub fn is_complete(&self) -> bool {
        self.draws.chains.len() == self.chains && self.draws.draws == self.draws.asked
    }

    /// The draws without the rest, to be taken apart.
    pub fn into_draws(self) -> Draws {
        self.draws
    }

    /// Everything else that is known of the run.
    pub fn draws(&self) -> &Draws {
        &self.draws
    }
}
