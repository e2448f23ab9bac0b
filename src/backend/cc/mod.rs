//! Generated C: functions over groups of lanes, compiled by the system's C compiler when a program is loaded.
//!
//! What they are made of is in `include/`: `lanes.h`, groups of lanes for AVX-512, AVX2 and plain C, and `vmath.h`, the
//! elementary functions and random draws of [`vmath`](crate::vmath) with the same bits.

pub mod compiler;
#[cfg(test)]
mod tests;
