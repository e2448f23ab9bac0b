//! The CPU back end: lane buffers and the kernels over them.

pub mod buffer;
pub mod kernels;
