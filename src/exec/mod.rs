//! Layer 5: what the machine is made of, whatever the device: masks of lanes, the scheduler, and the memory of lane
//! stacks.

pub mod aligned;
pub mod lane_stack;
pub mod mask;
pub mod scheduler;

pub use aligned::AlignedVec;
pub use lane_stack::{Columns, LaneStack, Opened, StackError};
pub use mask::LaneMask;
pub use scheduler::{OpenWaiting, Scheduler, Waiting};
