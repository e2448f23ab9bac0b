//! Layer 8: pictures and tables of what programs and chains did.

pub mod summary;

pub use summary::{SamplerStatistics, Summary, SummaryRow};
