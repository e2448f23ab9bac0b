//! Layer 8: pictures and tables of what programs and chains did.

pub mod advice;
pub mod calibration;
pub mod checks;
pub mod data_sets;
pub mod diagnosis;
pub mod element_names;
pub mod failed;
#[cfg(feature = "cli")]
pub mod page;
pub mod progress;
pub mod quantities;
pub mod render;
pub mod stan_csv;
pub mod stan_summary;
pub mod statistics;
pub mod stored;
pub mod summary;
pub mod timeline;

pub use advice::{Advice, Concern, Warning};
pub use calibration::{CalibratedQuantity, Calibration, RankPoint};
pub use checks::{CheckResult, Checks, Verdict};
pub use data_sets::{DataSetsRow, DataSetsSummary};
pub use diagnosis::{Diagnosis, Suspect};
pub use element_names::{ElementNames, element_name};
pub use failed::failed_draws;
#[cfg(feature = "cli")]
pub use page::RunPage;
pub use quantities::{aligned, quantity_table};
pub use render::render;
pub use stan_summary::StanSummary;
pub use statistics::{SamplerStatistics, StuckChain};
pub use stored::{RunState, SetsOfChains, StoredChains};
pub use summary::{Summary, SummaryRow};
