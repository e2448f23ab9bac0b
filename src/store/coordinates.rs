//! What stands along the axes of arrays.

use std::collections::HashSet;
use std::path::Path;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::array::replace;
use crate::program::{Error, ErrorKind};

/// What stands along axes, by the names of these: of `school` the names of the schools.
pub type Coordinates = IndexMap<String, Coordinate>;

/// What stands along an axis, one for each place.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Coordinate {
    /// Whole numbers.
    Ints(Vec<i64>),
    /// Texts.
    Texts(Vec<String>),
}

impl Coordinate {
    /// Places of the axis.
    pub fn len(&self) -> usize {
        match self {
            Coordinate::Ints(numbers) => numbers.len(),
            Coordinate::Texts(texts) => texts.len(),
        }
    }

    /// Whether the axis has no place.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What stands at two places, if anything does.
    pub fn repeated(&self) -> Option<String> {
        let mut seen = HashSet::with_capacity(self.len());
        (0..self.len()).filter_map(|at| self.label(at)).find(|label| !seen.insert(label.clone()))
    }

    /// Whether it says no more than the places do, counted from 0.
    pub fn is_places(&self) -> bool {
        matches!(self, Coordinate::Ints(numbers) if numbers.iter().copied().eq(0..numbers.len() as i64))
    }

    /// What stands at a place, counted from 0.
    pub fn label(&self, at: usize) -> Option<String> {
        match self {
            Coordinate::Ints(numbers) => numbers.get(at).map(ToString::to_string),
            Coordinate::Texts(texts) => texts.get(at).cloned(),
        }
    }
}

/// Texts along an axis, as an array of a store: Zarr's data type `string`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct StoredTexts {
    /// Where they are, in the store: `posterior/school`.
    pub(super) path: String,
    /// The name of the axis.
    axis: String,
    /// How many there are.
    count: usize,
}

impl StoredTexts {
    /// Texts along an axis of a group.
    pub(super) fn of(group: &str, axis: &str, texts: &[String]) -> Self {
        Self { path: format!("{group}/{axis}"), axis: axis.to_owned(), count: texts.len() }
    }

    /// Those that have this metadata; nothing where they are none.
    pub(super) fn of_metadata(path: &str, metadata: &Value) -> Option<Self> {
        let [axis] = &metadata["dimension_names"].as_array()?[..] else { return None };
        let [count] = &metadata["shape"].as_array()?[..] else { return None };
        (metadata["data_type"] == "string").then_some(())?;
        Some(Self { path: path.to_owned(), axis: axis.as_str()?.to_owned(), count: count.as_u64()? as usize })
    }

    pub(super) fn metadata(&self) -> Value {
        json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": [self.count],
            "data_type": "string",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [self.count.max(1)]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": "",
            "codecs": [{"name": "vlen-utf8", "configuration": {}}, {"name": "crc32c"}],
            "attributes": {},
            "dimension_names": [self.axis],
            "storage_transformers": []
        })
    }

    /// Writes them.
    ///
    /// # Errors
    /// Where they cannot be written.
    pub(super) fn write(&self, root: &Path, texts: &[String]) -> Result<(), Error> {
        let length = |n: usize| match u32::try_from(n) {
            Ok(n) => Ok(n.to_le_bytes()),
            Err(_) => Err(Error::new(ErrorKind::Input, format!("{} has a text of {n} bytes: too many", self.path))),
        };
        let mut bytes = length(texts.len())?.to_vec();
        for text in texts {
            bytes.extend(length(text.len())?);
            bytes.extend(text.as_bytes());
        }
        let sum = crc32c::crc32c(&bytes).to_le_bytes();
        bytes.extend(sum);
        replace(&root.join(&self.path).join("c/0"), &bytes)
    }
}
