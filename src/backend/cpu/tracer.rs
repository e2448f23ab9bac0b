//! Notes the supersteps of a shard within a window of the run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::run::{Slice, TraceWindow, Track};

/// Slices of a shard that are kept at most: with their place, some 100 MiB.
const MOST_SLICES: usize = 1_000_000;
/// Slices at the beginning of a track that tell which lanes are active, in shards of at most so many lanes.
const WITH_LANES: usize = 2_000;
const MOST_LANES: usize = 1_024;
/// Bytes on stacks are counted once in so many supersteps: a look at the height of every lane takes as long as a small unit.
const COUNTED_EACH: u32 = 16;

/// What the shards of a run that is traced have in common.
#[derive(Debug)]
pub(super) struct TraceClock {
    started: Instant,
    /// Supersteps that were noted.
    noted: AtomicU64,
}

impl TraceClock {
    pub(super) fn new() -> Self {
        Self { started: Instant::now(), noted: AtomicU64::new(0) }
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }
}

/// The lanes of a shard at the start of a superstep.
pub(super) struct Look {
    pub(super) active: usize,
    pub(super) live: usize,
    /// Lanes that wait at other units, which are heavy.
    pub(super) waiting: usize,
    pub(super) lanes: Option<Vec<u64>>,
    pub(super) stack_bytes: Option<u64>,
}

/// Notes the supersteps of a shard.
#[derive(Debug)]
pub(super) struct Tracer {
    window: TraceWindow,
    track: Track,
    /// The one that runs, if it is in the window.
    open: Option<Slice>,
    supersteps: u32,
    stack_bytes: u64,
}

impl Tracer {
    pub(super) fn new(window: TraceWindow, width: usize) -> Self {
        let track = Track { width, ..Track::default() };
        Self { window, track, open: None, supersteps: 0, stack_bytes: 0 }
    }

    /// Whether the superstep that begins now is to be noted.
    pub(super) fn opens(&self, clock: &TraceClock) -> bool {
        match self.window {
            TraceWindow::Supersteps(most) => {
                clock.noted.load(Ordering::Relaxed) < most && clock.noted.fetch_add(1, Ordering::Relaxed) < most
            }
            TraceWindow::Time { begin, length } => {
                let begin = begin.as_nanos() as u64;
                (begin..begin.saturating_add(length.as_nanos() as u64)).contains(&clock.now())
            }
        }
    }

    /// Whether it is to tell which lanes are active.
    pub(super) fn wants_lanes(&self) -> bool {
        self.track.slices.len() < WITH_LANES && self.track.width <= MOST_LANES
    }

    /// Whether bytes on stacks are to be counted.
    pub(super) fn wants_bytes(&self) -> bool {
        self.supersteps.is_multiple_of(COUNTED_EACH)
    }

    /// A superstep begins.
    pub(super) fn begin(&mut self, unit: usize, look: Look, clock: &TraceClock) {
        self.supersteps = self.supersteps.wrapping_add(1);
        self.stack_bytes = look.stack_bytes.unwrap_or(self.stack_bytes);
        self.open = Some(Slice {
            unit,
            begin: clock.now(),
            end: 0,
            supersteps: 1,
            active: look.active,
            computed: 0,
            gathered: false,
            live: look.live,
            waiting: look.waiting,
            stack_bytes: self.stack_bytes,
            lanes: look.lanes,
        });
    }

    /// It is over; nothing where it did not run.
    pub(super) fn end(&mut self, computed: Option<usize>, gathered: bool, clock: &TraceClock) {
        let Some((slice, computed)) = self.open.take().zip(computed) else { return };
        let slice = Slice { end: clock.now(), computed, gathered, ..slice };
        let room = self.track.slices.len() < MOST_SLICES;
        match self.track.slices.last_mut().filter(|last| last.goes_on(&slice)) {
            Some(last) => {
                last.end = slice.end;
                last.supersteps = last.supersteps.saturating_add(1);
            }
            None if room => self.track.slices.push(slice),
            None => self.track.cut = true,
        }
    }

    pub(super) fn into_track(self) -> Track {
        self.track
    }
}
