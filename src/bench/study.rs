//! A question of a comparison: which series run in which cells, and how they are drawn.

use serde::{Deserialize, Serialize};

use super::model::Model;
use super::peer::Against;
use super::way::Way;

/// What is asked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// How useful work a second grows with the number of chains.
    #[default]
    Chains,
    /// How much of what is computed is useful, by the number of chains.
    Utilization,
    /// What each of the paper's optimisations is worth: the first series has all, and the others make as many draws as that.
    Ablation,
    /// How useful work a second grows with the number of threads.
    Threads,
    /// How useful work a second depends on the leapfrog steps between the states that NUTS considers.
    LeafSteps,
}

/// Series and cells that belong to one question.
#[derive(Clone, Debug)]
pub struct Study {
    /// What is asked.
    pub question: Question,
    /// Our engines, and how each runs.
    pub engines: Vec<Way>,
    /// The peers.
    pub against: Vec<Against>,
    /// Numbers of chains, or of lanes where the model is no posterior.
    pub chains: Vec<usize>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Measured runs of every series of a cell.
    pub repetitions: usize,
    /// Draws of each chain in every run of every series, where they are not chosen by the time that they take.
    pub draws: Option<usize>,
}

impl Study {
    /// Whether a model can answer: a program of control flow has no leaves.
    pub(super) fn is_about(&self, model: &Model) -> bool {
        self.question != Question::LeafSteps || model.is_posterior()
    }
}

impl Question {
    /// What is said above a figure besides what was measured; nothing for the first figure of the paper.
    pub fn title(self) -> &'static str {
        match self {
            Question::Chains => "",
            Question::Utilization => "utilization",
            Question::Ablation => "without optimisations",
            Question::Threads => "by threads",
            Question::LeafSteps => "by leaf steps",
        }
    }

    /// What a reader must know of a figure.
    pub fn about(self) -> &'static str {
        match self {
            Question::Chains => {
                "Useful work a second: median and range of the runs, which all systems made in turns. ESS/s are effective \
                 samples a second of the worst coordinate, pushed B the bytes pushed on stacks for each unit of useful work."
            }
            Question::Utilization => {
                "Useful over computed work. Under a mask all lanes of the batch are computed whenever one of them needs it. \
                 Then the bound is the mean over the largest work of a chain, and that of local batching the same draw by \
                 draw. Without a mask the machine compacts the lanes that are active."
            }
            Question::Ablation => {
                "The time of a run without an optimisation, over that of the run of the same repetition and the same draws \
                 with all of them on."
            }
            Question::Threads => "Useful work a second by the number of threads that every system may use.",
            Question::LeafSteps => {
                "Gradients a second by the leapfrog steps between the states that NUTS considers: 1 is NUTS as published. \
                 More of them are more gradients between decisions, and not more effective samples."
            }
        }
    }

    /// The end of the names of its files.
    pub(super) fn file_word(self) -> Option<&'static str> {
        match self {
            Question::Chains => None,
            Question::Utilization => Some("utilization"),
            Question::Ablation => Some("ablation"),
            Question::Threads => Some("by-threads"),
            Question::LeafSteps => Some("leaf-steps"),
        }
    }
}
