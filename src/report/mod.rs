//! Layer 8: pictures and tables of what programs and chains did.

pub mod advice;
pub mod diagnosis;
pub mod render;
pub mod stan_csv;
pub mod statistics;
pub mod summary;

pub use advice::{Advice, Warning};
pub use diagnosis::{Diagnosis, Suspect};
pub use render::render;
pub use statistics::{SamplerStatistics, StuckChain};
pub use summary::{Summary, SummaryRow};
