//! Layer 8: pictures and tables of what programs and chains did.

pub mod render;
pub mod summary;

pub use render::render;
pub use summary::{SamplerStatistics, Summary, SummaryRow};
