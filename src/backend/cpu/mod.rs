//! The CPU back end: lane buffers, the kernels over them, and the two batching engines. `README.md` in this folder is
//! the guide: which file has what, and how the machine works.

mod active;
mod arrays;
mod attempts;
pub mod buffer;
mod calibrate;
pub mod codegen;
mod compact;
mod crew;
mod executable;
mod frame;
pub mod kernels;
pub mod local;
mod machine;
pub mod pc;
mod profile;
mod run_unit;
mod segments;
mod steps;
mod tapes;
mod tiles;
mod tops;

pub use calibrate::calibrate;
pub use executable::Cpu;
pub use machine::MACHINE;
pub(in crate::backend) use machine::PADDING;
