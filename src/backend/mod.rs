//! Layer 6: back ends: what runs a plan on a device.

pub mod cpu;
