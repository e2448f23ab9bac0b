//! Layer 2: stores of draws in the Zarr v3 format, in folders: metadata as JSON, and chunks of arrays in files of their own.

mod chunks;
pub mod read;
