//! The highest four bits of the numbers of random streams, which say what they are for. Those of chains are 0; below the
//! bits are the numbers of chains, draws and starts.

/// Generated quantities of the draws of a run.
pub(super) const OF_DRAWS: u64 = 8 << 60;
/// Quantities of draws that are there.
pub(super) const OF_QUANTITIES: u64 = 12 << 60;
/// Random starts of what a file of starts leaves out.
pub(super) const OF_STARTS: u64 = 4 << 60;
/// Parameters of single points, such as modes.
pub(super) const OF_POINTS: u64 = 6 << 60;
/// Draws of normal approximations.
pub(super) const OF_NORMALS: u64 = 5 << 60;
/// The choice among draws of several paths.
pub(super) const OF_RESAMPLING: u64 = 7 << 60;
