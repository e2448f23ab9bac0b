//! The CPU back end: lane buffers, the kernels over them, and the two batching engines. `README.md` in this folder is
//! the guide: how the machine works. Its rooms:

// The contract of back ends, and what plans must know of the processor.
mod executable;
mod machine;

// Running: the superstep and what runs a unit; the two engines; threads, the queue of lanes, and who has none.
mod crew;
mod helpers;
pub mod local;
pub mod pc;
mod run_unit;

// What runs in a unit: steps; calls of generated functions in their place; groups of steps, some rows at a time.
mod segments;
mod steps;
mod straight;
mod tiles;

// What a primitive does to all lanes, and the C that is generated for many of them.
pub mod codegen;
pub mod kernels;

// The memory of a shard: lane buffers, arrays of activations, tapes, tops of stacks.
mod arrays;
pub mod buffer;
mod frame;
mod tapes;
mod tops;

// Which lanes: masked or gathered, compaction, lanes that an attempt catches.
mod active;
mod attempts;
mod compact;

// Figures: constants of the cost model; where time goes.
mod calibrate;
mod profile;
mod tracer;

pub use calibrate::calibrate;
pub use executable::Cpu;
pub use machine::MACHINE;
pub(in crate::backend) use machine::PADDING;
pub(in crate::backend) use segments::told;
