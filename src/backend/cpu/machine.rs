//! What plans must know of the processor.

use crate::plan::TargetMachine;

/// A common core: half of its L2 cache, and vectors of 512 bits.
pub const MACHINE: TargetMachine =
    TargetMachine { cache_bytes: 1 << 20, group: 8, least_lanes: 64, least_code_lanes: 16, most_lanes: 1024 };

/// Elements behind the last lane of what generated code reads: it takes lanes in groups of no more than so many.
pub(in crate::backend) const PADDING: usize = MACHINE.group;
