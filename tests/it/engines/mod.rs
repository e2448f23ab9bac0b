//! The engines: all of them against the reference, kernels, schedules, memory.

pub(crate) mod change_over;
pub(crate) mod differential;
pub(crate) mod draws;
pub(crate) mod file_tests;
pub(crate) mod generator;
pub(crate) mod gpu;
pub(crate) mod kernels;
pub(crate) mod machine;
pub(crate) mod memory;
pub(crate) mod options;
pub(crate) mod ordinary;
pub(crate) mod routing;
pub(crate) mod scheduling;
pub(crate) mod straight;
pub(crate) mod tapes;
pub(crate) mod tiles;
