//! What was run, whole: with it and the states of its chains a run goes on anywhere.

use std::path::Path;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::archive::UnpackedStore;
use super::array::replace;
use super::coordinates::Coordinates;
use crate::program::{Error, ErrorKind};

/// The form of stores that this version writes and reads.
const FORM: u32 = 1;
/// Where a plan is, in a store.
pub(super) const PLAN: &str = "_autobatch/plan.json";

/// A value that is set of a sampler.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StoredSetting {
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Real(f64),
}

/// What was run. Paths of files are those in the store.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunPlan {
    /// The form of the store.
    pub form: u32,
    /// The version of autobatch that runs it: another may draw other numbers.
    pub autobatch: String,
    /// What users call the model.
    pub model_name: String,
    /// The file of the model.
    pub model: String,
    /// Folders in which a Stan program finds what it includes.
    pub include: Vec<String>,
    /// The sampler, if it is not the one that ships: `std/…`, or a file.
    pub sampler: Option<String>,
    /// The file of the data.
    pub data: Option<String>,
    /// The file of what each data set has of its own, where there are many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane_data: Option<String>,
    /// How many data sets there are then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_sets: Option<usize>,
    /// Numbers of dimensions that are told by their names.
    pub dimensions: IndexMap<String, i64>,
    /// The seed.
    pub seed: u64,
    /// Whether reals have 32 bits.
    pub single: bool,
    /// The number of the first chain.
    pub first_lane: u64,
    /// Chains.
    pub chains: usize,
    /// Iterations of warmup.
    pub warmup: usize,
    /// Iterations after warmup.
    pub draws: usize,
    /// The step size that stays, if one was given.
    pub stepsize: Option<f64>,
    /// `unit_e`, `diag_e`, `dense_e`.
    pub metric: String,
    /// The file of the inverse metric to start with.
    pub inv_metric: Option<String>,
    /// The file of the starting points.
    pub starts: Option<String>,
    /// What is set of the sampler and its chain.
    pub settings: IndexMap<String, StoredSetting>,
    /// Calls that may be active in a lane, values of a tape, blocks that a lane may run.
    pub limits: (usize, usize, u64),
    /// The variables that are kept; all where nothing is said.
    pub keep: Option<Vec<String>>,
    /// What axes of variables are called, where it is not as the model has it.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub dims: IndexMap<String, Vec<String>>,
    /// What stands along axes.
    #[serde(default, skip_serializing_if = "Coordinates::is_empty")]
    pub coords: Coordinates,
    /// Draws of a chunk.
    pub rows: usize,
}

impl RunPlan {
    /// The form that this version writes.
    pub fn form() -> u32 {
        FORM
    }

    /// The version of autobatch.
    pub fn version() -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    /// Whether there is a plan in a folder.
    pub fn exists(root: &Path) -> bool {
        root.join(PLAN).exists()
    }

    /// What differs in another plan, the first of it.
    pub fn difference(&self, other: &Self) -> String {
        let fields = |plan: &Self| serde_json::to_value(plan).expect("numbers and texts are JSON");
        let (own, others) = (fields(self), fields(other));
        let differs = own.as_object().into_iter().flatten().find(|(name, value)| others[*name] != **value);
        differs
            .map_or_else(String::new, |(name, value)| format!("`{name}` is {value} there, and {} here", others[name]))
    }

    /// Reads the plan of a store.
    ///
    /// # Errors
    /// Where there is none, or it is one of another version.
    pub fn read(root: &Path) -> Result<Self, Error> {
        let path = root.join(PLAN);
        let refused = |message: String| Error::new(ErrorKind::Input, message);
        let text = std::fs::read(&path).map_err(|error| match error.kind() {
            _ if UnpackedStore::is_archive(root) => {
                let shown = root.display();
                refused(format!(
                    "{shown} is an archive, which is read and never written: unpack it and name the folder"
                ))
            }
            std::io::ErrorKind::NotFound if root.exists() => {
                refused(format!("{} is no store of a run of autobatch: it has no {PLAN}", root.display()))
            }
            _ => Error::new(ErrorKind::Io, format!("cannot read {}: {error}", path.display())),
        })?;
        #[derive(Deserialize)]
        struct Versions {
            form: u32,
            autobatch: String,
        }
        let damaged = |error: serde_json::Error| refused(format!("{} is damaged: {error}", path.display()));
        let versions: Versions = serde_json::from_slice(&text).map_err(damaged)?;
        let (own, Versions { form, autobatch }) = (Self::version(), versions);
        if form != FORM || autobatch != own {
            return Err(refused(format!(
                "{} was made by autobatch {autobatch} (form {form}), and this is {own} (form {FORM}), which may draw other \
                 numbers: go on with autobatch {autobatch}; the draws can be read by any version",
                root.display()
            )));
        }
        serde_json::from_slice(&text).map_err(damaged)
    }

    /// Writes it.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn write(&self, root: &Path) -> Result<(), Error> {
        replace(&root.join(PLAN), &serde_json::to_vec_pretty(self).expect("numbers and texts are JSON"))
    }
}
