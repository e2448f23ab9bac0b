//! Reads a store: what groups and arrays it has, and the arrays that are asked for. Stores of others are read as zarr-python
//! writes them, with the codecs that are common; what cannot be read says how to write it otherwise.

use std::fmt;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::Coordinate;
use super::array::LOST;
use super::chunks::{Chunks, Element, TextKind, texts};
use crate::types::Array;

/// Why a store cannot be read: what, and what to do.
#[derive(Clone, PartialEq, Debug)]
pub struct ZarrError(String);

impl fmt::Display for ZarrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ZarrError {}

impl ZarrError {
    /// At this place of a store.
    pub(super) fn at(path: &Path, what: impl fmt::Display) -> Self {
        Self(format!("{}: {what}", path.display()))
    }
}

/// What writes a store that can be read.
const OTHERWISE: &str = "write it as Zarr v3 in a folder, with Zstd, gzip or no compression and without shards \
                         (xarray: `to_zarr(PATH, zarr_format=3)`)";

/// A group of a store.
#[derive(Clone, PartialEq, Debug)]
pub struct ZarrGroup {
    path: PathBuf,
    /// What it tells of itself.
    pub attributes: Map<String, Value>,
    /// What the metadata of the store tell that is in it, in their order.
    told: Vec<String>,
}

/// An array of a store, as its metadata tell.
#[derive(Clone, PartialEq, Debug)]
pub struct ZarrArray {
    path: PathBuf,
    /// Its shape.
    pub shape: Vec<usize>,
    /// The names of its axes, where it has such.
    pub dimensions: Vec<String>,
    /// The name of the type of its elements.
    pub element: String,
    metadata: Map<String, Value>,
}

/// Whether a folder is a store, of whatever version.
pub fn is_store(path: &Path) -> bool {
    path.is_dir() && ["zarr.json", ".zgroup", ".zarray"].iter().any(|name| path.join(name).is_file())
}

/// The metadata of a node of this type.
fn metadata(path: &Path, node: &str) -> Result<Map<String, Value>, ZarrError> {
    let file = path.join("zarr.json");
    if !file.is_file() {
        let old = [".zgroup", ".zarray", ".zmetadata"].iter().any(|name| path.join(name).is_file());
        let what =
            if old { format!("this is a Zarr v2 store: {OTHERWISE}") } else { "there is no zarr.json".to_owned() };
        return Err(ZarrError::at(path, what));
    }
    let text = std::fs::read(&file).map_err(|error| ZarrError::at(&file, error))?;
    let value: Value =
        serde_json::from_slice(&text).map_err(|error| ZarrError::at(&file, format!("no JSON: {error}")))?;
    let Value::Object(value) = value else { return Err(ZarrError::at(&file, "no JSON object")) };
    if value.get("zarr_format").and_then(Value::as_u64) != Some(3) {
        return Err(ZarrError::at(&file, format!("the format is not Zarr v3: {OTHERWISE}")));
    }
    match value.get("node_type").and_then(Value::as_str) {
        Some(found) if found == node => Ok(value),
        found => Err(ZarrError::at(&file, format!("this is {}, not {node}", found.unwrap_or("nothing of Zarr")))),
    }
}

impl ZarrGroup {
    /// The group in a folder: of a store the first one.
    ///
    /// # Errors
    /// For what is no group of Zarr v3.
    pub fn open(path: &Path) -> Result<Self, ZarrError> {
        let metadata = metadata(path, "group")?;
        let attributes = metadata.get("attributes").and_then(Value::as_object).cloned().unwrap_or_default();
        let all = of(metadata.get("consolidated_metadata"), "metadata").and_then(Value::as_object);
        let told = all.map(|all| all.keys().cloned().collect()).unwrap_or_default();
        Ok(Self { path: path.to_owned(), attributes, told })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A group within this one; nothing where there is none of this name.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn group(&self, name: &str) -> Result<Option<Self>, ZarrError> {
        let path = self.path.join(name);
        if !path.is_dir() {
            return Ok(None);
        }
        let mut group = Self::open(&path)?;
        if group.told.is_empty() {
            let inside = |path: &String| Some(path.strip_prefix(name)?.strip_prefix('/')?.to_owned());
            group.told = self.told.iter().filter_map(inside).collect();
        }
        Ok(Some(group))
    }

    /// The names of what is in it: in the order in which the metadata of the store tell them, else in that of the alphabet.
    ///
    /// # Errors
    /// Where the folder cannot be read.
    pub fn names(&self) -> Result<Vec<String>, ZarrError> {
        let entries = std::fs::read_dir(&self.path).map_err(|error| ZarrError::at(&self.path, error))?;
        let mut names = vec![];
        for entry in entries {
            let entry = entry.map_err(|error| ZarrError::at(&self.path, error))?;
            if entry.path().join("zarr.json").is_file() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        let place = |name: &String| self.told.iter().position(|told| told == name).unwrap_or(usize::MAX);
        names.sort_by_cached_key(|name| (place(name), name.clone()));
        Ok(names)
    }

    /// The arrays in it, by their names.
    ///
    /// # Errors
    /// For metadata that cannot be read.
    pub fn arrays(&self) -> Result<IndexMap<String, ZarrArray>, ZarrError> {
        let mut arrays = IndexMap::new();
        for name in self.names()? {
            let path = self.path.join(&name);
            if let Ok(metadata) = metadata(&path, "array") {
                arrays.insert(name, ZarrArray::of(&path, metadata)?);
            } else {
                metadata_of_group(&path)?;
            }
        }
        Ok(arrays)
    }
}

/// What is no array must be a group.
fn metadata_of_group(path: &Path) -> Result<(), ZarrError> {
    metadata(path, "group").map(drop)
}

impl ZarrArray {
    fn of(path: &Path, metadata: Map<String, Value>) -> Result<Self, ZarrError> {
        let lacks = |what: &str| ZarrError::at(path, format!("zarr.json has no {what}"));
        let shape = extents(metadata.get("shape")).ok_or_else(|| lacks("shape"))?;
        let names = metadata.get("dimension_names").and_then(Value::as_array);
        let dimensions = names.map_or_else(Vec::new, |names| {
            names.iter().map(|name| name.as_str().unwrap_or_default().to_owned()).collect()
        });
        let element = match metadata.get("data_type") {
            Some(Value::String(name)) => name.clone(),
            Some(Value::Object(of)) => of.get("name").and_then(Value::as_str).unwrap_or("?").to_owned(),
            _ => return Err(lacks("data_type")),
        };
        if !dimensions.is_empty() && dimensions.len() != shape.len() {
            let what = format!("{} names of axes for an array of {}", dimensions.len(), shape.len());
            return Err(ZarrError::at(path, what));
        }
        Ok(Self { path: path.to_owned(), shape, dimensions, element, metadata })
    }

    /// Whether its elements are numbers or flags.
    pub fn is_number(&self) -> bool {
        Element::named(&self.element).is_some()
    }

    /// Its elements as reals. Chunks that are not there have the value that the metadata tell.
    ///
    /// # Errors
    /// For elements, chunks or codecs of a kind that is not read, for chunks that are broken, and for what does not fit in
    /// memory.
    pub fn read(&self) -> Result<Array, ZarrError> {
        let wrong = |what: String| ZarrError::at(&self.path, what);
        let element = Element::named(&self.element)
            .ok_or_else(|| wrong(format!("elements of type `{}` are no numbers", self.element)))?;
        let (chunk, prefix, separator) = self.chunks()?;
        let separator = &*separator;
        let codecs = self.metadata.get("codecs").and_then(Value::as_array).cloned().unwrap_or_default();
        let fill = self.metadata.get("fill_value");
        let fill = element.fill(fill).ok_or_else(|| wrong("the fill value is none of its type".to_owned()))?;
        let chunks = Chunks { path: &self.path, shape: &self.shape, chunk: &chunk, prefix, separator, element, fill };
        let mut values = chunks.read(&codecs).map_err(|(path, what)| ZarrError::at(&path, what))?;
        // As our own stores have ints that are not there.
        let lost = LOST as f64;
        if element == Element::Int(8) && fill == lost {
            values.iter_mut().filter(|value| **value == lost).for_each(|value| *value = f64::NAN);
        }
        Ok(Array::real(self.shape.iter().copied(), values))
    }

    /// The extents of a chunk, what keys of chunks begin with, and what stands between their parts.
    fn chunks(&self) -> Result<(Vec<usize>, &'static str, String), ZarrError> {
        let wrong = |what: String| ZarrError::at(&self.path, what);
        let grid = self.metadata.get("chunk_grid");
        if of(grid, "name").and_then(Value::as_str) != Some("regular") {
            return Err(wrong(format!("the grid of chunks is not regular: {OTHERWISE}")));
        }
        let chunk = extents(configured(grid, "chunk_shape"))
            .filter(|chunk| chunk.len() == self.shape.len() && !chunk.contains(&0))
            .ok_or_else(|| wrong("the shape of chunks does not fit that of the array".to_owned()))?;
        let encoding = self.metadata.get("chunk_key_encoding");
        let separator = configured(encoding, "separator").and_then(Value::as_str);
        let (prefix, separator) = match of(encoding, "name").and_then(Value::as_str) {
            None | Some("default") => ("c", separator.unwrap_or("/")),
            Some("v2") => ("", separator.unwrap_or(".")),
            Some(other) => return Err(wrong(format!("keys of chunks are encoded by `{other}`: {OTHERWISE}"))),
        };
        if !["/", "."].contains(&separator) {
            return Err(wrong(format!("the separator of keys of chunks is `{separator}`: there is `/` and `.`")));
        }
        Ok((chunk, prefix, separator.to_owned()))
    }

    /// How its elements are kept, where they are texts.
    fn text_kind(&self) -> Option<TextKind> {
        match &*self.element {
            "string" => Some(TextKind::Utf8),
            "fixed_length_utf32" => {
                let bytes = configured(self.metadata.get("data_type"), "length_bytes")?.as_u64()?;
                usize::try_from(bytes).ok().filter(|bytes| *bytes > 0).map(TextKind::Utf32)
            }
            _ => None,
        }
    }

    /// What stands along an axis: texts, or whole numbers up to 2^53. Nothing where it is no array of one axis, the one of its
    /// name, or has others.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn coordinate(&self) -> Result<Option<Coordinate>, ZarrError> {
        let is_along =
            self.dimensions.len() == 1 && self.path.file_name().is_some_and(|name| *name == *self.dimensions[0]);
        if !is_along {
            return Ok(None);
        }
        if let Some(kind) = self.text_kind() {
            let (chunk, prefix, separator) = self.chunks()?;
            let codecs = self.metadata.get("codecs").and_then(Value::as_array).cloned().unwrap_or_default();
            let fill = self.metadata.get("fill_value").and_then(Value::as_str).unwrap_or_default();
            let sizes = (self.shape[0], chunk[0]);
            let texts = texts(&self.path, sizes, (prefix, &separator), (kind, fill), &codecs);
            return texts
                .map(|texts| Some(Coordinate::Texts(texts)))
                .map_err(|(path, what)| ZarrError::at(&path, what));
        }
        if !matches!(Element::named(&self.element), Some(Element::Int(_) | Element::Unsigned(_))) {
            return Ok(None);
        }
        let read = self.read()?;
        let whole = |x: &f64| (x.abs() <= 2_f64.powi(53)).then_some(*x as i64);
        let numbers: Option<Vec<i64>> = read.as_real().unwrap_or_default().iter().map(whole).collect();
        Ok(numbers.map(Coordinate::Ints))
    }
}

fn of<'v>(value: Option<&'v Value>, key: &str) -> Option<&'v Value> {
    value?.get(key)
}

fn configured<'v>(value: Option<&'v Value>, key: &str) -> Option<&'v Value> {
    value?.get("configuration")?.get(key)
}

fn extents(value: Option<&Value>) -> Option<Vec<usize>> {
    value?.as_array()?.iter().map(|extent| usize::try_from(extent.as_u64()?).ok()).collect()
}
