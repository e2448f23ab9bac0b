//! Draws as CmdStan writes them: one CSV file a chain, whose comments tell the configuration, what warmup learnt, and the
//! time that it took. cmdstanpy, ArviZ, posterior and Stan's own `stansummary` read them.

mod header;
mod number;
mod read;
mod tables;
mod write;

pub use header::CsvRun;
pub use number::general;
pub use read::CsvError;
pub use tables::{CsvHeader, CsvTables};
pub use write::{ChainRows, CsvChain, DEFAULT_DIGITS, MOST_DIGITS};
