//! The samplers, their draws and their diagnostics.

mod adaptation;
pub(crate) mod by_value;
mod calibration;
pub(crate) mod cmdstan;
mod data;
mod data_sets;
pub(crate) mod diagnostics;
mod failed;
pub(crate) mod fixed_stepsize;
pub(crate) mod from_rust;
pub(crate) mod log_prob;
pub(crate) mod metrics;
pub(crate) mod modes;
pub(crate) mod page;
#[cfg(unix)]
mod pooled;
pub(crate) mod posteriors;
pub(crate) mod rejections;
#[cfg(unix)]
pub(crate) mod run_stores;
pub(crate) mod sampling;
pub(crate) mod shipped;
pub(crate) mod stan_csv;
pub(crate) mod stopped;
pub(crate) mod stores;
mod trace;
pub(crate) mod transitions;
