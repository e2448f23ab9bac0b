//! Arrays of a store: their metadata, and chunks of them.

use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::program::{Error, ErrorKind};
use crate::types::{Array, ArrayData, DType};

/// What stands for an int that is not there.
pub(crate) const LOST: i64 = i64::MIN;
/// What the names of files end in that do not have their own yet.
pub(super) const PART: &str = ".part";
/// Bytes of a chunk, at most, where a chunk can be smaller.
const MOST_BYTES: usize = 1 << 22;

/// What the elements of an array are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoredElement {
    /// 64 bits.
    Float64,
    /// 32 bits.
    Float32,
    /// 64 bits.
    Int64,
    /// A byte.
    Bool,
}

impl StoredElement {
    /// Of these elements, where reals have 32 bits or not.
    pub fn of(dtype: DType, is_single: bool) -> Self {
        match dtype {
            DType::Real if is_single => StoredElement::Float32,
            DType::Real => StoredElement::Float64,
            DType::Int => StoredElement::Int64,
            DType::Bool => StoredElement::Bool,
        }
    }

    /// What they are when they are read.
    pub(super) fn dtype(self) -> DType {
        match self {
            StoredElement::Float64 | StoredElement::Float32 => DType::Real,
            StoredElement::Int64 => DType::Int,
            StoredElement::Bool => DType::Bool,
        }
    }

    fn name(self) -> &'static str {
        match self {
            StoredElement::Float64 => "float64",
            StoredElement::Float32 => "float32",
            StoredElement::Int64 => "int64",
            StoredElement::Bool => "bool",
        }
    }

    fn bytes(self) -> usize {
        match self {
            StoredElement::Float64 | StoredElement::Int64 => 8,
            StoredElement::Float32 => 4,
            StoredElement::Bool => 1,
        }
    }

    /// What stands where nothing was written.
    fn fill(self) -> Value {
        match self {
            StoredElement::Float64 | StoredElement::Float32 => json!("NaN"),
            StoredElement::Int64 => json!(LOST),
            StoredElement::Bool => json!(false),
        }
    }
}

/// An array of a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredArray {
    /// Where it is, in the store: `posterior/theta`.
    pub path: String,
    /// What its elements are.
    pub element: StoredElement,
    /// All of it, as it will be in the end.
    pub shape: Vec<usize>,
    /// The extents of a chunk.
    pub chunk: Vec<usize>,
    /// The names of its axes.
    pub axes: Vec<String>,
}

impl StoredArray {
    /// Values of draws: chain × draw × event shape. A chunk has the chains of a block and `rows` draws, or fewer, a power of
    /// two, of large events.
    pub fn of_draws(
        (group, name): (&str, &str),
        element: StoredElement,
        (chains, draws): (usize, usize),
        event: &[usize],
        (block, rows): (usize, usize),
    ) -> Self {
        let row = block * event.iter().product::<usize>().max(1) * element.bytes();
        let mut rows = rows.max(1).next_power_of_two();
        while rows > 1 && rows * row > MOST_BYTES {
            rows /= 2;
        }
        let own = (0..event.len()).map(|axis| format!("{name}_dim_{axis}"));
        Self {
            path: format!("{group}/{name}"),
            element,
            shape: [chains, draws].into_iter().chain(event.iter().copied()).collect(),
            chunk: [block, rows].into_iter().chain(event.iter().map(|n| (*n).max(1))).collect(),
            axes: ["chain".to_owned(), "draw".to_owned()].into_iter().chain(own).collect(),
        }
    }

    /// An array of one chunk.
    pub fn whole(path: String, array: &Array, element: StoredElement, axes: Vec<String>) -> Self {
        let chunk = array.shape.iter().map(|n| (*n).max(1)).collect();
        Self { path, element, shape: array.shape.to_vec(), chunk, axes }
    }

    /// Its metadata, when so many draws are there.
    pub fn metadata(&self, draws: Option<usize>) -> Value {
        let mut shape = self.shape.clone();
        if let Some(draws) = draws {
            shape[1] = draws;
        }
        let bytes = match self.element {
            StoredElement::Bool => json!({"name": "bytes"}),
            _ => json!({"name": "bytes", "configuration": {"endian": "little"}}),
        };
        json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": shape,
            "data_type": self.element.name(),
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": self.chunk}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": self.element.fill(),
            "codecs": [bytes, {"name": "crc32c"}],
            "attributes": {},
            "dimension_names": self.axes,
            "storage_transformers": []
        })
    }

    /// The array that has this metadata; nothing where they are none that this project writes.
    pub fn of_metadata(path: &str, metadata: &Value) -> Option<Self> {
        let numbers = |value: &Value| -> Option<Vec<usize>> {
            value.as_array()?.iter().map(|n| n.as_u64().and_then(|n| usize::try_from(n).ok())).collect()
        };
        let element = match metadata["data_type"].as_str()? {
            "float64" => StoredElement::Float64,
            "float32" => StoredElement::Float32,
            "int64" => StoredElement::Int64,
            "bool" => StoredElement::Bool,
            _ => return None,
        };
        let (shape, chunk) =
            (numbers(&metadata["shape"])?, numbers(&metadata["chunk_grid"]["configuration"]["chunk_shape"])?);
        let axes: Option<Vec<String>> =
            metadata["dimension_names"].as_array()?.iter().map(|name| Some(name.as_str()?.to_owned())).collect();
        let axes = axes.filter(|axes| axes.len() == shape.len() && chunk.len() == shape.len())?;
        Some(Self { path: path.to_owned(), element, shape, chunk, axes })
    }

    /// The value of a chain of a chunk of an array along chains alone.
    pub(super) fn chain_of(&self, chunk: &Chunk, chain: usize) -> Array {
        let event = &self.shape[1..];
        let size = event.iter().product::<usize>() * 8;
        let bytes = &chunk.bytes[chain * size..(chain + 1) * size];
        Array::real(event.to_vec(), bytes.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect())
    }

    /// Draws of a chunk.
    pub fn rows(&self) -> usize {
        self.chunk[1]
    }

    /// Elements of a row: of one draw of one chain.
    pub fn event(&self) -> usize {
        self.shape[2..].iter().product()
    }

    /// The file of a chunk of draws.
    pub(super) fn chunk_file(&self, block: usize, at: usize) -> String {
        let more = "/0".repeat(self.shape.len() - 2);
        format!("{}/c/{block}/{at}{more}", self.path)
    }

    /// The file of a block of an array along chains alone.
    pub(super) fn block_file(&self, block: usize) -> String {
        format!("{}/c/{block}{}", self.path, "/0".repeat(self.shape.len() - 1))
    }

    /// The file of the only chunk of an array.
    pub(super) fn only_file(&self) -> String {
        format!("{}/c{}", self.path, "/0".repeat(self.shape.len()))
    }

    /// A chunk of which nothing is known yet.
    pub(super) fn empty_chunk(&self) -> Chunk {
        let elements: usize = self.chunk.iter().product();
        let bytes = match self.element {
            StoredElement::Float64 => f64::NAN.to_le_bytes().repeat(elements),
            StoredElement::Float32 => f32::NAN.to_le_bytes().repeat(elements),
            StoredElement::Int64 => LOST.to_le_bytes().repeat(elements),
            StoredElement::Bool => vec![0; elements],
        };
        Chunk { bytes, element: self.element }
    }

    /// A chunk that was written; nothing where the file is not there.
    ///
    /// # Errors
    /// Where it cannot be read, or is not what was written.
    pub(super) fn read_chunk(&self, root: &Path, file: &str) -> Result<Option<Chunk>, Error> {
        let path = root.join(file);
        let mut bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::new(ErrorKind::Io, format!("cannot read {}: {error}", path.display()))),
        };
        let damaged = || Error::new(ErrorKind::Io, format!("{} is damaged", path.display()));
        let size = self.chunk.iter().product::<usize>() * self.element.bytes();
        let sum = bytes.split_off(bytes.len().saturating_sub(4));
        if bytes.len() != size || crc32c::crc32c(&bytes).to_le_bytes()[..] != sum[..] {
            return Err(damaged());
        }
        Ok(Some(Chunk { bytes, element: self.element }))
    }

    /// Elements of rows of draws, of a chunk: of each row these.
    pub(super) fn rows_of(
        &self,
        chunk: &Chunk,
        chain: usize,
        rows: Range<usize>,
        elements: &Range<usize>,
    ) -> ArrayData {
        let event = self.event();
        let at = |row: usize, element: usize| ((chain * self.rows() + row) * event + element) * self.element.bytes();
        let runs: Vec<&[u8]> = match elements.len() == event {
            true => vec![&chunk.bytes[at(rows.start, 0)..at(rows.end, 0)]],
            false => rows.map(|row| &chunk.bytes[at(row, elements.start)..at(row, elements.end)]).collect(),
        };
        let wide = || runs.iter().flat_map(|run| run.as_chunks::<8>().0);
        match self.element {
            StoredElement::Float64 => ArrayData::Real(wide().map(|b| f64::from_le_bytes(*b)).collect()),
            StoredElement::Float32 => {
                let narrow = runs.iter().flat_map(|run| run.as_chunks::<4>().0);
                ArrayData::Real(narrow.map(|b| f32::from_le_bytes(*b).into()).collect())
            }
            StoredElement::Int64 => ArrayData::Int(wide().map(|b| i64::from_le_bytes(*b)).collect()),
            StoredElement::Bool => ArrayData::Bool(runs.iter().flat_map(|run| *run).map(|b| *b != 0).collect()),
        }
    }
}

/// The elements of a chunk.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    bytes: Vec<u8>,
    element: StoredElement,
}

impl Chunk {
    /// Writes elements of an array, from its place `from` on, to the place `to`.
    pub(super) fn put(&mut self, to: usize, array: &Array, from: usize, elements: usize) {
        let size = self.element.bytes();
        let out = &mut self.bytes[to * size..(to + elements) * size];
        match &array.data {
            ArrayData::Bool(v) => {
                out.iter_mut().zip(&v[from..from + elements]).for_each(|(out, flag)| *out = u8::from(*flag));
            }
            ArrayData::Int(v) => put_each::<8, _>(out, &v[from..from + elements], |x| x.to_le_bytes()),
            ArrayData::Real(v) => {
                let v = &v[from..from + elements];
                match self.element {
                    StoredElement::Float64 => put_each::<8, _>(out, v, |x| x.to_le_bytes()),
                    StoredElement::Float32 => put_each::<4, _>(out, v, |x| (*x as f32).to_le_bytes()),
                    // Ints and bools among which some are lost are reals: `FailedDraws`.
                    StoredElement::Int64 => {
                        put_each::<8, _>(out, v, |x| if x.is_nan() { LOST } else { *x as i64 }.to_le_bytes());
                    }
                    StoredElement::Bool => out.iter_mut().zip(v).for_each(|(out, x)| *out = u8::from(*x == 1.0)),
                }
            }
        }
    }

    /// The file: the elements, and what they add up to.
    pub(super) fn file(&self) -> Vec<u8> {
        let mut file = self.bytes.clone();
        file.extend_from_slice(&crc32c::crc32c(&self.bytes).to_le_bytes());
        file
    }
}

fn put_each<const N: usize, T>(out: &mut [u8], values: &[T], bytes: impl Fn(&T) -> [u8; N]) {
    for (out, value) in out.as_chunks_mut::<N>().0.iter_mut().zip(values) {
        *out = bytes(value);
    }
}

/// Puts a file in its place: at no time does another see a part of it.
///
/// # Errors
/// Where it cannot be written; what was there before stays.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let write = || -> io::Result<()> {
        let folder = path.parent().expect("files of a store are in a folder");
        fs::create_dir_all(folder)?;
        let name = path.file_name().expect("it is a file").to_string_lossy();
        // Processes on several machines may have one number, and write the same file.
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        static PROCESS: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(std::process::id()));
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let part = folder.join(format!(".{name}.{:x}-{number}{PART}", *PROCESS));
        let written = fs::File::create_new(&part).and_then(|mut file| file.write_all(bytes));
        let written = written.and_then(|()| fs::rename(&part, path));
        if written.is_err() {
            // The error that matters is the first.
            let _ = fs::remove_file(&part);
        }
        written
    };
    write().map_err(|error| Error::new(ErrorKind::Io, format!("cannot write {}: {error}", path.display())))
}
