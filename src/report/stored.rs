//! The chains of a run as files have them, whatever the files are.

use indexmap::IndexMap;

use crate::mcmc::protocol::STEPSIZE;
use crate::types::Array;

/// The chains of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StoredChains {
    /// What is told of the run, by CmdStan's names; for a file of arrays nothing.
    pub config: IndexMap<String, String>,
    /// Parameters, chain × draw × event shape.
    pub parameters: IndexMap<String, Array>,
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
