//! Layer 4: the places where one representation of a program becomes the next.

pub mod cfg_to_stack;
pub mod hir_to_cfg;
pub mod to_plan;
pub mod to_unit;
