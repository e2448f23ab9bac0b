//! Arrays of the host in files: Stan's JSON data, `.npy` and `.npz`, both ways.
//!
//! Nothing here panics or allocates without bound on a malformed file, and a file that could not be written
//! completely does not replace the one that was there.

mod error;
mod file;
mod json;
mod npy;
mod npz;
mod rows;
mod values;

pub use error::{FileAction, IoError};
pub use file::{remove_partial_files, write_atomically};
pub use json::{JsonArray, parse_data, parse_json};
pub use npy::{read_npy, write_npy};
pub use npz::{npz_bytes, read_npz, write_npz};
pub use rows::{NpyRows, write_npy_rows};
pub use values::{ArrayType, Data, NamedValues, read_argument, write_arrays};
