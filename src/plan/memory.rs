//! How much memory a run takes, before it runs.

use super::{Plan, bytes};
use crate::run::Settings;
use crate::types::Precision;

/// Memory of a run, in bytes. Linear in the number of lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MemoryEstimate {
    /// The number of lanes.
    pub lanes: usize,
    /// Inputs and outputs on the host, a lane: outputs twice, as lanes end and as arrays. Reals are 8 bytes there.
    pub host_bytes_per_lane: usize,
    /// State of the machine, a lane that runs: lane buffers, and one level of every stack and tape. Deeper recursion takes
    /// more, and so does every further value on a tape.
    pub state_bytes_per_lane: usize,
    /// One value on every tape, a lane that runs; part of the state. 0 for a program without tapes.
    pub tape_level_bytes: usize,
    /// One level of every stack and tape, a lane that runs: the part of the state that grows.
    pub level_bytes: usize,
    /// Lanes that run at one time: all of them, or the slots of all shards.
    pub running_lanes: usize,
    /// What is stored once: shared values.
    pub shared_bytes: usize,
}

impl MemoryEstimate {
    /// The whole run.
    pub fn total(&self) -> usize {
        self.shared_bytes
            .saturating_add(self.lanes.saturating_mul(self.host_bytes_per_lane))
            .saturating_add(self.running_lanes.saturating_mul(self.state_bytes_per_lane))
    }
    /// What of it is there before lanes run and does not grow: inputs, outputs and shared values, and where the machine keeps
    /// the state of lanes (`machine`), all of it but its stacks and tapes.
    pub fn fixed(&self, machine: bool) -> usize {
        let growing = if machine { self.level_bytes } else { self.state_bytes_per_lane };
        self.total() - self.running_lanes.saturating_mul(growing).min(self.total())
    }
    /// The largest number of lanes whose run takes at most `limit` bytes, when all of them run at one time.
    pub fn largest_batch(&self, limit: usize) -> usize {
        let a_lane = self.host_bytes_per_lane.saturating_add(self.state_bytes_per_lane);
        limit.saturating_sub(self.shared_bytes) / a_lane.max(1)
    }
}

/// Estimates the memory of a run of this many lanes.
pub fn estimate(plan: &Plan, lanes: usize, settings: &Settings) -> MemoryEstimate {
    let real = match settings.precision {
        Precision::F32 => 4,
        Precision::F64 => 8,
    };
    // Outputs as lanes end, and put together.
    let ports = plan.inputs.iter().chain(&plan.outputs).chain(&plan.outputs);
    let shared = plan.globals.units.shared.values();
    let workers = crate::run::workers(settings);
    let width = match settings.shard_lanes {
        // Which of the two it is hangs on the code that is there.
        0 => {
            let planned = plan.shard_lanes(real).max(plan.shard_lanes_of_code(real));
            plan.body.machine.shard_width(lanes, planned, workers)
        }
        n => n,
    };
    let tape_level_bytes = plan.globals.tape_bytes(real);
    let returns = size_of::<u32>();
    MemoryEstimate {
        lanes,
        tape_level_bytes,
        level_bytes: plan.body.level_bytes(real) + tape_level_bytes + returns,
        host_bytes_per_lane: ports.map(|p| bytes(p.ty.dtype, p.ty.elements(), 8)).fold(8, usize::saturating_add),
        // The tapes with their heights; the program counter's stack, the number of the lane, its draws, its steps.
        state_bytes_per_lane: plan.body.bytes_per_lane(real)
            + tape_level_bytes
            + plan.globals.units.tapes.len() * size_of::<u32>()
            + 8
            + 3 * 8,
        running_lanes: lanes.min(width.saturating_mul(workers)),
        // Once as given, once as the machine reads it.
        shared_bytes: shared.map(|s| bytes(s.ty.dtype, s.ty.elements(), 8 + real)).sum(),
    }
}
