//! Makes the text of functions from units, for targets of C's family. `README.md` in this folder is the guide.
//!
//! A [`Frame`] says how a function meets the machine that calls it; all else is the same for every target. Of compilers,
//! of calls and of loaded code the generator knows nothing.

mod ending;
mod frame;
mod functions;
mod lockstep;
mod operations;
mod parts;
mod region;
mod schedule;
mod scope;
mod ssa;
mod takes;
#[cfg(test)]
#[cfg(feature = "codegen")]
mod tests;
mod text;
mod tiles;

pub(in crate::backend) use ending::{Ending, Exit, Route};
pub(in crate::backend) use frame::{Access, Frame, Function, Limits, Stored};
pub(in crate::backend) use functions::{memory_type, of_reals, prefix};
pub(in crate::backend) use parts::parts;
pub use parts::{BlockPart, Segment, Site};
pub use region::{KernelOp, KernelOperand, KernelSource, RegionExit, RegionSegment, StraightSegment, TrapMessage};
pub(in crate::backend) use region::{
    MachineSegment, Mapped, Pile, Ports, RECORD_HEAD, RegionFrame, RegionFunction, Rows, SharedProduct, StraightFrame,
    machine, regions, straight,
};
pub(in crate::backend) use scope::Storage;
pub(in crate::backend) use ssa::{Kind, LocalId, Op};
pub(in crate::backend) use text::Writer;
pub use tiles::TileSegment;
pub(in crate::backend) use tiles::{all_in_tiles, tile_segments};
