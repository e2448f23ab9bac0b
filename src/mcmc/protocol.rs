//! The names of what a chain tells: the streams of records and their fields. On the other side stands
//! `nuts/protocol.ab`, which emits them; a test compares the two, and a chain that lacks one is refused.

use crate::types::DType;

/// The state of a draw, unconstrained.
pub const Q: &str = "q";
/// The log density.
pub const LP: &str = "lp";
/// The acceptance statistic of a transition.
pub const ACCEPT_STAT: &str = "accept_stat";
/// The step size.
pub const STEPSIZE: &str = "stepsize";
/// Doublings of a trajectory; 0 for a sampler without trees.
pub const TREEDEPTH: &str = "treedepth";
/// Leapfrog steps of a transition.
pub const N_LEAPFROG: &str = "n_leapfrog";
/// Whether a trajectory went astray.
pub const DIVERGENT: &str = "divergent";
/// The Hamiltonian at the new point.
pub const ENERGY: &str = "energy";
/// The inverse metric: a row of variances, or all covariances.
pub const INV_METRIC: &str = "inv_metric";
/// Gradients evaluated so far.
pub const GRADIENTS: &str = "gradients";
/// Iterations of warmup so far.
pub const ITERATION: &str = "iteration";

/// Random numbers that the chain has drawn.
pub const POSITION: &str = "position";

/// Dual averaging: the step size, where it is drawn to, the mean error, the mean logarithm of step sizes.
pub const AVERAGING: &str = "averaging";
/// Step sizes that it has averaged.
pub const AVERAGED: &str = "averaged";
/// The last iteration of the current window of warmup, and its length.
pub const WINDOW: &str = "window";
/// States that were seen in it.
pub const SEEN: &str = "seen";
/// Their mean.
pub const MEAN: &str = "mean";
/// The sums of products of their deviations.
pub const PRODUCTS: &str = "products";

/// A field of a stream: its name, the type of its elements and its number of axes.
pub type StreamField = (&'static str, DType, usize);

/// A stream of records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Records {
    /// Its name.
    pub name: &'static str,
    /// Its fields; a chain of the user's own may tell more.
    pub fields: &'static [StreamField],
}

/// One record for each draw that is kept.
pub const DRAW: Records = Records {
    name: "draw",
    fields: &[
        (Q, DType::Real, 1),
        (LP, DType::Real, 0),
        (ACCEPT_STAT, DType::Real, 0),
        (STEPSIZE, DType::Real, 0),
        (TREEDEPTH, DType::Int, 0),
        (N_LEAPFROG, DType::Int, 0),
        (DIVERGENT, DType::Bool, 0),
        (ENERGY, DType::Real, 0),
    ],
};
/// One record for each state of warmup that is kept, where these are asked for.
pub const WARMUP: Records = Records { name: "warmup", fields: DRAW.fields };
/// One record at the end of warmup.
pub const ADAPTED: Records = Records {
    name: "adapted",
    fields: &[(STEPSIZE, DType::Real, 0), (INV_METRIC, DType::Real, 2), (GRADIENTS, DType::Int, 0)],
};
/// One record at the start of warmup, and some twenty in it.
pub const PROGRESS: Records = Records {
    name: "progress",
    fields: &[
        (ITERATION, DType::Int, 0),
        (STEPSIZE, DType::Real, 0),
        (LP, DType::Real, 0),
        (TREEDEPTH, DType::Int, 0),
        (GRADIENTS, DType::Int, 0),
    ],
};
/// One record of all that a chain goes on with, as often as `checkpoint_every` says; in the order in which `chain.ab`'s
/// `state_of_record` takes it.
pub const STATE: Records = Records {
    name: "state",
    fields: &[
        (ITERATION, DType::Int, 0),
        (POSITION, DType::Int, 0),
        (GRADIENTS, DType::Int, 0),
        (Q, DType::Real, 1),
        (LP, DType::Real, 0),
        ("grad", DType::Real, 1),
        ("metric", DType::Real, 2),
        (STEPSIZE, DType::Real, 0),
        (AVERAGING, DType::Real, 1),
        (AVERAGED, DType::Int, 0),
        (WINDOW, DType::Int, 1),
        (SEEN, DType::Int, 0),
        (MEAN, DType::Real, 1),
        (PRODUCTS, DType::Real, 2),
    ],
};
/// All streams.
pub const STREAMS: [Records; 5] = [DRAW, WARMUP, ADAPTED, PROGRESS, STATE];
