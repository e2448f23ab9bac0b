//! What is said between the harness and a peer: one JSON object a line, the harness on the peer's standard input, the peer on its
//! standard output. What a peer says on standard error goes to a file that is shown when it fails.
//!
//! 1. The harness sends one [`PeerJob`]. The peer compiles, makes itself warm and answers [`Answer::Ready`].
//! 2. For every repetition the harness sends a [`PeerRequest`], and the peer answers [`Answer::Done`].
//! 3. The harness closes the pipe, and the peer ends.
//!
//! At any time a peer may answer [`Answer::Error`] instead and end.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a peer is to compute, before it is asked to compute it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PeerJob {
    /// Name of the model.
    pub model: String,
    /// Which way of running, where a system has several: `glm native`.
    pub engine: String,
    /// Data of the model, and for a posterior `starts`, chain × dimension, all in Stan's JSON data format; for a program of
    /// control flow `n`, one int a lane.
    pub data: PathBuf,
    /// Chains, or lanes.
    pub chains: usize,
    /// Dimensions of the state; 0 without one.
    pub dimension: usize,
    /// `f64` or `f32`.
    pub precision: String,
    /// Threads it may use.
    pub threads: usize,
    /// The step size, which stays; the metric is the unit metric, but for a Stan program.
    pub stepsize: f64,
    /// Largest tree depth.
    pub max_treedepth: usize,
    /// A folder of its own for what it writes.
    pub folder: PathBuf,
    /// Of a Stan program: its files. `data` then holds `starts` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<StanFiles>,
}

/// A Stan program that a peer is to run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StanFiles {
    /// The program.
    pub file: PathBuf,
    /// Where the files are that it includes.
    pub include: Vec<PathBuf>,
    /// Its data, in Stan's JSON data format.
    pub data: PathBuf,
    /// The diagonal of the inverse metric, which stays as the step size does.
    pub inv_metric: Vec<f64>,
}

/// One repetition.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PeerRequest {
    /// Draws of each chain from the starting points on; runs over all lanes for a program of control flow. A peer may round
    /// it up.
    pub draws: usize,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Where the draws go when they are wanted: chain × draw × dimension, little-endian f64, unconstrained or by monotone
    /// functions of each coordinate.
    pub keep: Option<PathBuf>,
}

/// What a peer says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is warm.
    Ready {
        /// Name and version of what runs, with what matters of its parts.
        version: String,
    },
    /// A repetition is done.
    Done(Done),
    /// It cannot go on, and why.
    Error(String),
}

/// What a repetition was.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Done {
    /// Useful work: leapfrog gradients of the chains' own trees; 0 for a program of control flow, whose work is known.
    pub useful: u64,
    /// Work that was computed, useful or not, where the peer can tell.
    #[serde(default)]
    pub issued: Option<f64>,
    /// Seconds it took, compilation, start and the keeping of files left out.
    pub seconds: f64,
    /// Draws of each chain, or runs, that it made.
    pub draws: usize,
    /// Extents of the draws that were kept: chains, draws, dimensions.
    #[serde(default)]
    pub kept: Option<[usize; 3]>,
}
