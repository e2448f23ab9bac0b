//! A window of a run, superstep by superstep: which unit each worker ran, for which lanes.

use std::time::Duration;

use crate::base::Loc;

/// Which supersteps of a run are noted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceWindow {
    /// The first ones of all workers together.
    Supersteps(u64),
    /// Those that begin so long after the start of the run, for so long.
    Time {
        /// Since the start.
        begin: Duration,
        /// For so long.
        length: Duration,
    },
}

impl Default for TraceWindow {
    fn default() -> Self {
        Self::Supersteps(100_000)
    }
}

/// What was noted.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Timeline {
    /// The units of the program: their block, where they stand, and whether they are heavy.
    pub units: Vec<TracedUnit>,
    /// What each worker ran; a worker that ran several shards has several.
    pub tracks: Vec<Track>,
}

impl Timeline {
    /// Lets it begin so many nanoseconds later.
    pub(crate) fn shift(&mut self, nanoseconds: u64) {
        for slice in self.tracks.iter_mut().flat_map(|track| &mut track.slices) {
            slice.begin += nanoseconds;
            slice.end += nanoseconds;
        }
    }
}

/// A unit, for those who read a timeline.
#[derive(Clone, PartialEq, Debug)]
pub struct TracedUnit {
    /// Its first block.
    pub block: String,
    /// Where it stands.
    pub loc: Loc,
    /// Whether lanes wait for company there.
    pub heavy: bool,
    /// What it costs for a lane.
    pub weight: u64,
}

/// What a shard ran.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Track {
    /// The lanes of the shard.
    pub width: usize,
    /// Supersteps in their order; those that follow one another and are alike are one.
    pub slices: Vec<Slice>,
    /// Whether there were more in the window than are kept.
    pub cut: bool,
}

/// One superstep, or several that are alike. Times are in nanoseconds since the start of the run.
#[derive(Clone, PartialEq, Debug)]
pub struct Slice {
    /// The number of the unit.
    pub unit: usize,
    /// When it began.
    pub begin: u64,
    /// When it was over.
    pub end: u64,
    /// How many.
    pub supersteps: u32,
    /// Lanes that ran it.
    pub active: usize,
    /// Lanes that were computed.
    pub computed: usize,
    /// Whether the active lanes were gathered.
    pub gathered: bool,
    /// Lanes of the shard that are not done.
    pub live: usize,
    /// Lanes that wait at other units, which are heavy.
    pub waiting: usize,
    /// Bytes on the stacks of the shard, as of one of the last supersteps.
    pub stack_bytes: u64,
    /// Which lanes ran it, a bit each; kept at the beginning of a track.
    pub lanes: Option<Vec<u64>>,
}

impl Slice {
    /// Whether one that follows is no more than another turn of this one.
    pub(crate) fn goes_on(&self, next: &Self) -> bool {
        (self.unit, self.active, self.computed, self.gathered) == (next.unit, next.active, next.computed, next.gathered)
            && (self.live, self.waiting, self.stack_bytes) == (next.live, next.waiting, next.stack_bytes)
            && self.lanes == next.lanes
    }
}
