//! The chains of a run as files have them, whatever the files are.

use indexmap::IndexMap;

use super::element_names::ElementNames;
use crate::mcmc::protocol::STEPSIZE;
use crate::types::Array;

/// The chains of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StoredChains {
    /// What is told of the run, by CmdStan's names; for a file of arrays nothing.
    pub config: IndexMap<String, String>,
    /// Parameters, chain × draw × event shape.
    pub parameters: IndexMap<String, Array>,
    /// What elements of the parameters are called.
    pub names: ElementNames,
    /// What the sampler tells of each draw, chain × draw, without `__` behind the names.
    pub statistics: IndexMap<String, Array>,
    /// The step sizes at the end of warmup.
    pub stepsizes: Vec<f64>,
    /// Seconds of warmup and of sampling of each chain.
    pub seconds: Vec<(f64, f64)>,
    /// Draws of each chain: as many as the shortest has.
    pub draws: usize,
    /// Whether a longer one was cut.
    pub uneven: bool,
    /// The numbers of the chains.
    pub numbers: Vec<usize>,
    /// Whether the run is over, as far as the files tell.
    pub state: RunState,
    /// What was observed, where the files have it.
    pub observed: IndexMap<String, Array>,
    /// The data sets, where there are many.
    pub sets: Option<SetsOfChains>,
}

/// Chains of many data sets, each of which has a posterior of its own.
#[derive(Clone, PartialEq, Debug)]
pub struct SetsOfChains {
    /// How many data sets there are.
    pub count: usize,
    /// The data set of each chain that is there, counted from 0.
    pub of: Vec<usize>,
}

impl SetsOfChains {
    /// Chains of each data set, and the data sets of which all chains are there, with the place of the first.
    pub(super) fn whole(&self) -> (usize, Vec<(usize, usize)>) {
        let groups: Vec<&[usize]> = self.of.chunk_by(|a, b| a == b).collect();
        let each = groups.iter().map(|group| group.len()).max().unwrap_or(0);
        let mut first = 0;
        let places = groups.into_iter().map(|group| {
            first += group.len();
            (group.len() == each).then_some((group[0], first - group.len()))
        });
        (each, places.flatten().collect())
    }
}

/// Whether a run is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RunState {
    /// Files do not tell.
    #[default]
    Unknown,
    /// It goes on, or it ended without a word: there are the draws that it has written.
    Running,
    /// It was stopped before its end.
    Interrupted,
    /// All draws are there.
    Complete,
}

impl StoredChains {
    /// The chains of a data set, as those of a run of its own.
    ///
    /// # Errors
    /// Where there is one posterior only, no such data set, or none of its chains is there: what to do.
    pub fn of_data_set(mut self, set: usize) -> Result<Self, String> {
        let Some(SetsOfChains { count, of }) = self.sets.take() else {
            return Err("the chains are those of one posterior".to_owned());
        };
        if set >= count {
            return Err(format!("there are {count} data sets, counted from 0"));
        }
        let chains: Vec<usize> = (0..of.len()).filter(|at| of[*at] == set).collect();
        if chains.is_empty() {
            return Err("no chain of this data set is there".to_owned());
        }
        let chosen = |all: IndexMap<String, Array>| -> IndexMap<String, Array> {
            all.into_iter().map(|(name, array)| (name, array.chosen_rows(&chains))).collect()
        };
        self.stepsizes = chains.iter().filter_map(|at| self.stepsizes.get(*at).copied()).collect();
        self.seconds = chains.iter().filter_map(|at| self.seconds.get(*at).copied()).collect();
        self.numbers = chains.iter().map(|at| self.numbers[*at]).collect();
        (self.parameters, self.statistics) = (chosen(self.parameters), chosen(self.statistics));
        Ok(self)
    }

    /// Seconds of warmup and of sampling that ended with the last draw of all chains: of chains that ran side by side, as
    /// ours do, those of the slowest; of others the sum, as `stansummary` has it.
    pub fn run_seconds(&self) -> (f64, f64) {
        let (warmup, sampling) = (self.seconds.iter().map(|s| s.0), self.seconds.iter().map(|s| s.1));
        if self.config.contains_key("written_by") {
            (warmup.fold(0.0, f64::max), sampling.fold(0.0, f64::max))
        } else {
            (warmup.sum(), sampling.sum())
        }
    }

    /// The step size of the last draw of each chain, where the sampler tells it: those that adaptation ended with, as far as
    /// they are not jittered.
    pub fn last_stepsizes(statistics: &IndexMap<String, Array>) -> Vec<f64> {
        let Some(array) = statistics.get(STEPSIZE) else { return vec![] };
        let draws = array.shape.get(1).copied().unwrap_or(0).max(1);
        array.as_real().unwrap_or_default().chunks_exact(draws).filter_map(<[f64]>::last).copied().collect()
    }

    /// A number of the configuration.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.config.get(key)?.parse().ok()
    }
}

impl RunState {
    /// The state that a store tells.
    pub fn named(word: &str) -> Self {
        match word {
            "running" => Self::Running,
            "interrupted" => Self::Interrupted,
            "complete" => Self::Complete,
            _ => Self::Unknown,
        }
    }

    /// What is to be told of draws that are not all; nothing of a run that is over as far as is known.
    pub fn told(self, draws: usize) -> Option<String> {
        match self {
            Self::Unknown | Self::Complete => None,
            Self::Running => Some(format!(
                "the run goes on, or ended without a word: this is of the first {draws} draws of each chain, which are whole"
            )),
            Self::Interrupted => {
                Some(format!("the run was stopped before its end: this is of {draws} draws of each chain"))
            }
        }
    }
}
