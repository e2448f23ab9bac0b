//! What the runs of machines ask of a device.

use std::fmt;

/// Memory of a device, given back when it is dropped.
pub(super) trait Memory: Send + Sync {
    /// Where it begins, for the device.
    fn address(&self) -> u64;
    /// Copies bytes into it, from a place on.
    ///
    /// # Errors
    /// Where the device fails.
    fn write(&mut self, at: usize, bytes: &[u8]) -> Result<(), DeviceError>;
    /// Copies bytes out of it.
    ///
    /// # Errors
    /// Where the device fails.
    fn read(&self, at: usize, bytes: &mut [u8]) -> Result<(), DeviceError>;
    /// Copies words out of it, from a word on.
    ///
    /// # Errors
    /// Where the device fails.
    fn read_words(&self, at: usize, words: &mut [u64]) -> Result<(), DeviceError>;
    /// Sets all bytes.
    ///
    /// # Errors
    /// Where the device fails.
    fn fill(&mut self, byte: u8) -> Result<(), DeviceError>;
}

/// The threads that a scheduler serves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Scope {
    /// Those of a warp, each by itself: nobody waits for anybody.
    Warp,
    /// Those of a block, which run the same unit together: what one of its warps runs is in the cache of instructions for
    /// the others, which is worth more than their waiting where all multiprocessors are full (`benches/RESULTS.md`).
    Block,
}

/// How threads are divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Grid {
    pub(super) blocks: usize,
    /// Threads of a block.
    pub(super) threads: usize,
    /// Those of them that have lanes; the others help where lanes meet.
    pub(super) columns: usize,
}

/// A device with the function of a program.
pub(super) trait Device: fmt::Debug + Send + Sync {
    /// Its name.
    fn name(&self) -> String;
    /// Threads that it runs at a time.
    ///
    /// # Errors
    /// Where the device fails.
    fn threads(&self) -> Result<usize, DeviceError>;
    /// The blocks for so many threads with lanes.
    fn grid(&self, threads: usize, meets: bool) -> Grid;
    /// Words of records after which lanes wait for the host, if there is room.
    fn most_records(&self) -> usize;
    /// Bytes that can be taken.
    ///
    /// # Errors
    /// Where the device fails.
    fn room(&self) -> Result<usize, DeviceError>;
    /// Memory of so many bytes, all zero.
    ///
    /// # Errors
    /// Where there is none.
    fn memory(&self, bytes: usize) -> Result<Box<dyn Memory>, DeviceError>;
    /// Calls the function in all threads of a grid, and waits until all have come back. When `stops` says so, the word `run.stop`,
    /// which is in memory of this device, is set to 1.
    ///
    /// # Errors
    /// Where the device fails.
    ///
    /// # Safety
    /// All that `run` names is there: memory of this device, of the sizes that the function was made for.
    unsafe fn launch(&self, run: Run, grid: Grid, stops: &dyn Fn() -> bool) -> Result<(), DeviceError>;
}

/// `struct ab_run` of `machine.cuh`. What points somewhere is an address of the device.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Run {
    pub(super) constants: u64,
    pub(super) inputs: u64,
    pub(super) outputs: u64,
    pub(super) numbers: u64,
    pub(super) drawn: u64,
    pub(super) lanes: u64,
    pub(super) queue: u64,
    pub(super) arena: u64,
    pub(super) piles: u64,
    pub(super) levels: u64,
    pub(super) notes: u64,
    pub(super) pcs: u64,
    pub(super) positions: u64,
    pub(super) draws: u64,
    pub(super) heights: u64,
    pub(super) sites: u64,
    pub(super) indices: u64,
    pub(super) told: u64,
    pub(super) steps: u64,
    pub(super) kept: u64,
    pub(super) scratch: u64,
    pub(super) numbers_met: u64,
    pub(super) log: u64,
    pub(super) cursor: u64,
    pub(super) high_water: u64,
    pub(super) counts: u64,
    pub(super) stop: u64,
    pub(super) overflowed: u64,
    pub(super) capped: u64,
    pub(super) seed: u64,
    pub(super) most_steps: u64,
    pub(super) threads: u64,
    pub(super) deepest: u32,
    pub(super) tape_limit: u32,
    pub(super) theta: u32,
    pub(super) columns: u32,
}

/// Why a device does not do what it should.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum DeviceError {
    /// It has no memory of this size.
    #[error("the device has no {0} bytes of memory left; run fewer lanes at a time, or a smaller model")]
    NoMemory(usize),
    /// The run may not take so much.
    #[error("the run takes {needed} bytes of the device's memory or more, and may take {limit} (`--device-memory`)")]
    Limit {
        /// What it would have with what it asks for.
        needed: usize,
        /// What it may have.
        limit: usize,
    },
    /// What its driver says.
    #[error("{what}: {why}")]
    Failed {
        /// What was tried.
        what: &'static str,
        /// What the driver says.
        why: String,
    },
}
