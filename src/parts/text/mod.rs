//! The text form of the parts: constants, types, locations, operands, messages, and what is the same for all lanes.
//! Printing is total: an id that is out of range is written with a question mark, and such a text cannot be read back.

mod globals;
mod print;
mod read;

pub use globals::{GlobalsReader, SharedValues, StreamTable, Tapes, write_globals};
pub use print::{LocText, OperandNames, ScalarText, tape_name, typed_names};
pub use read::{
    NameTable, PortText, Scope, eat_scalar, read_array, read_block_id, read_loc, read_ports, read_type, read_typed_name,
};
