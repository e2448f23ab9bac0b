//! Layer 8: the store of a run on disk: a folder in the form of Zarr, version 3, with the names of `ArviZ`, which `xarray`
//! and `zarr` open as it is, also while the run goes on.
//!
//! | file | what |
//! |---|---|
//! | `array` | an array of a store: its metadata, and chunks of it |
//! | `coordinates` | what stands along axes: numbers or texts |
//! | `plan` | what was run, whole: program, data, settings |
//! | `lanes` | how far the chains of a block are, and all that each goes on with |
//! | `folder` | the folder: what is made in it first, the commit rule, locks |
//! | `rows` | draws, read a chunk at a time |
//! | `archive` | a store in a ZIP archive |
//! | `read`, `chunks` | stores of others, too: whatever Zarr has them written |
//!
//! # The commit rule
//! Chains are kept in blocks of 64. First the chunks of a block take their names, then its file of states says how many
//! rows of each chain they hold, then, with those of all blocks, the extents of the arrays grow to the draws that *all*
//! chains have. So a reader sees whole draws only, and whoever goes on finds for each chain a state and the rows before
//! it. What is written twice is the same both times: a chain is a function of its seed and its number.

mod archive;
mod array;
mod chunks;
mod coordinates;
mod folder;
mod lanes;
mod plan;
pub mod read;
mod rows;

pub use archive::UnpackedStore;
pub(crate) use array::LOST;
pub use array::{StoredArray, StoredElement};
pub use coordinates::{Coordinate, Coordinates};
pub use folder::{ChainBlock, METADATA, Piece, RunStatus, RunStore, coordinate};
pub use lanes::{BlockStates, LaneProgress, StoredTrap};
pub use plan::{RunPlan, StoredSetting};
pub(crate) use rows::StoredRows;

/// The axis of data sets, and the data set of each chain.
pub const DATA_SET: &str = "data_set";
/// Chains of a block.
pub const BLOCK: usize = 64;
