//! The chunks of an array: where they are, what their bytes mean.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// What an element of an array is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Element {
    Bool,
    Int(usize),
    Unsigned(usize),
    Single,
    Double,
}

/// The shape of an array, its chunks, and how they are found.
pub(super) struct Chunks<'a> {
    pub(super) path: &'a Path,
    pub(super) shape: &'a [usize],
    pub(super) chunk: &'a [usize],
    /// What keys begin with; may be empty.
    pub(super) prefix: &'a str,
    pub(super) separator: &'a str,
    pub(super) element: Element,
    /// What elements are of chunks that are not there.
    pub(super) fill: f64,
}

/// What is wrong, and where.
type Wrong = (PathBuf, String);

/// What can be read of the ways in which bytes are kept.
const KNOWN: &str = "the codecs that are read are bytes, zstd, gzip and crc32c; write it otherwise, such as by \
                     xarray's `to_zarr(PATH, zarr_format=3)` without an encoding";

impl Element {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "bool" => Self::Bool,
            "int8" => Self::Int(1),
            "int16" => Self::Int(2),
            "int32" => Self::Int(4),
            "int64" => Self::Int(8),
            "uint8" => Self::Unsigned(1),
            "uint16" => Self::Unsigned(2),
            "uint32" => Self::Unsigned(4),
            "uint64" => Self::Unsigned(8),
            "float32" => Self::Single,
            "float64" => Self::Double,
            _ => return None,
        })
    }

    fn bytes(self) -> usize {
        match self {
            Self::Bool => 1,
            Self::Int(bytes) | Self::Unsigned(bytes) => bytes,
            Self::Single => 4,
            Self::Double => 8,
        }
    }

    /// A fill value, as metadata have it.
    pub(super) fn fill(self, value: Option<&Value>) -> Option<f64> {
        match value? {
            Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
            Value::Number(number) => number.as_f64(),
            Value::String(text) => match (&**text, self) {
                ("NaN", _) => Some(f64::NAN),
                ("Infinity", _) => Some(f64::INFINITY),
                ("-Infinity", _) => Some(f64::NEG_INFINITY),
                // The bits of it.
                (text, Self::Double) => u64::from_str_radix(text.strip_prefix("0x")?, 16).ok().map(f64::from_bits),
                (text, Self::Single) => {
                    u32::from_str_radix(text.strip_prefix("0x")?, 16).ok().map(|bits| f64::from(f32::from_bits(bits)))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The number that bytes are, the lowest first.
    fn number(self, bytes: &[u8]) -> f64 {
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let bits = u64::from_le_bytes(wide);
        match self {
            Self::Bool => f64::from(u8::from(bits != 0)),
            Self::Int(size) => {
                let shift = 64 - 8 * size as u32;
                ((bits << shift) as i64 >> shift) as f64
            }
            Self::Unsigned(_) => bits as f64,
            Self::Single => f64::from(f32::from_bits(bits as u32)),
            Self::Double => f64::from_bits(bits),
        }
    }
}

/// A way in which the bytes of a chunk are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Codec {
    Zstd,
    Gzip,
    Checksum,
}

/// The codecs of chunks, in the order in which they were applied, behind the first, which is the one of this name; and whether
/// the highest byte of an element is the first.
fn codecs(all: &[Value], wanted: &str) -> Result<(bool, Vec<Codec>), String> {
    let name = |codec: &Value| codec.get("name").and_then(Value::as_str).unwrap_or("?").to_owned();
    let Some((first, rest)) = all.split_first() else { return Err("there are no codecs".to_owned()) };
    match &*name(first) {
        first if first == wanted => {}
        "sharding_indexed" => return Err(format!("it has shards: {KNOWN}")),
        other => return Err(format!("the codec `{other}` is not read: {KNOWN}")),
    }
    let endian = first.get("configuration").and_then(|c| c.get("endian")).and_then(Value::as_str);
    let known = |codec: &Value| match &*name(codec) {
        "zstd" => Ok(Codec::Zstd),
        "gzip" => Ok(Codec::Gzip),
        "crc32c" => Ok(Codec::Checksum),
        other => Err(format!("the codec `{other}` is not read: {KNOWN}")),
    };
    Ok((endian == Some("big"), rest.iter().map(known).collect::<Result<_, String>>()?))
}

impl Codec {
    /// The bytes as they were before; of those that are smaller kept, so many at most.
    fn undo(self, bytes: Vec<u8>, most: usize) -> Result<Vec<u8>, String> {
        let all = |reader: &mut dyn std::io::Read| {
            let mut all = vec![];
            // One more than there may be, which tells that there are too many.
            reader.take((most as u64).saturating_add(1)).read_to_end(&mut all).map_err(|error| error.to_string())?;
            Ok(all)
        };
        match self {
            Codec::Zstd => {
                let mut decoder =
                    ruzstd::decoding::StreamingDecoder::new(&bytes[..]).map_err(|error| error.to_string())?;
                all(&mut decoder)
            }
            Codec::Gzip => all(&mut flate2::read::MultiGzDecoder::new(&bytes[..])),
            Codec::Checksum => {
                let (rest, sum) = bytes.split_last_chunk::<4>().ok_or("it is too short")?;
                if crc32c::crc32c(rest) == u32::from_le_bytes(*sum) {
                    Ok(rest.to_vec())
                } else {
                    Err("its checksum is another".to_owned())
                }
            }
        }
    }
}

impl Chunks<'_> {
    /// All elements, in row-major order.
    pub(super) fn read(&self, all: &[Value]) -> Result<Vec<f64>, Wrong> {
        let here = |what: String| (self.path.to_owned(), what);
        let (big, codecs) = codecs(all, "bytes").map_err(here)?;
        let product = |extents: &[usize]| extents.iter().try_fold(1_usize, |all, extent| all.checked_mul(*extent));
        let too_large = || here("it does not fit in memory".to_owned());
        let size = product(self.shape).ok_or_else(too_large)?;
        let in_chunk = product(self.chunk).ok_or_else(too_large)?;
        let bytes = in_chunk.checked_mul(self.element.bytes()).ok_or_else(too_large)?;
        let room = crate::run::available_memory().unwrap_or(usize::MAX);
        if size.saturating_mul(size_of::<f64>()).saturating_add(bytes) > room {
            return Err(too_large());
        }
        let mut values = Vec::new();
        // Not every system tells what room there is.
        values.try_reserve_exact(size).map_err(|_| too_large())?;
        values.resize(size, self.fill);
        let counts: Vec<usize> = self.shape.iter().zip(self.chunk).map(|(n, chunk)| n.div_ceil(*chunk)).collect();
        if size == 0 {
            return Ok(values);
        }
        let mut at = vec![0; counts.len()];
        loop {
            let path = file(self.path, &at, (self.prefix, self.separator));
            if let Some(undone) = undone(&path, &codecs, bytes)? {
                if undone.len() != bytes {
                    let what = format!("the chunk is broken: {} bytes, where it has {bytes}", undone.len());
                    return Err((path, what));
                }
                self.place(&at, undone, big, &mut values);
            }
            if !advance(&mut at, &counts) {
                return Ok(values);
            }
        }
    }

    /// Puts the elements of a chunk in their places; those beyond the array are left out.
    fn place(&self, at: &[usize], mut bytes: Vec<u8>, big: bool, values: &mut [f64]) {
        let size = self.element.bytes();
        if big {
            bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
        }
        let Some((last, outer)) = self.chunk.split_last() else {
            values[0] = self.element.number(&bytes);
            return;
        };
        let axes = outer.len();
        let begin = at[axes] * last;
        let count = (*last).min(self.shape[axes] - begin);
        let mut row = vec![0; axes];
        let mut from = 0;
        loop {
            let index = |axis: usize| at[axis] * self.chunk[axis] + row[axis];
            if (0..axes).all(|axis| index(axis) < self.shape[axis]) {
                let to = (0..axes).fold(0, |to, axis| to * self.shape[axis] + index(axis)) * self.shape[axes] + begin;
                let elements = bytes[from..].chunks_exact(size);
                values[to..to + count].iter_mut().zip(elements).for_each(|(to, from)| *to = self.element.number(from));
            }
            from += last * size;
            if !advance(&mut row, outer) {
                return;
            }
        }
    }
}

/// Texts along one axis: `count` in chunks of `each`, kept as `kind` says; `fill` stands where no chunk is.
///
/// # Errors
/// For codecs that are not read, and for chunks that are broken.
pub(super) fn texts(
    path: &Path,
    (count, each): (usize, usize),
    key: (&str, &str),
    (kind, fill): (TextKind, &str),
    all: &[Value],
) -> Result<Vec<String>, Wrong> {
    let wanted = if kind == TextKind::Utf8 { "vlen-utf8" } else { "bytes" };
    let (big, codecs) = codecs(all, wanted).map_err(|what| (path.to_owned(), what))?;
    let mut texts = Vec::new();
    for at in 0..count.div_ceil(each) {
        let file = file(path, &[at], key);
        let most = match kind {
            TextKind::Utf8 => MOST_TEXT,
            TextKind::Utf32(bytes) => each.saturating_mul(bytes).min(MOST_TEXT),
        };
        let own = each.min(count - texts.len());
        let Some(bytes) = undone(&file, &codecs, most)? else {
            if count > MOST_TEXT {
                return Err((path.to_owned(), "it does not fit in memory".to_owned()));
            }
            texts.resize(texts.len() + own, fill.to_owned());
            continue;
        };
        let broken = || (file.clone(), "the chunk is broken: it has other texts".to_owned());
        let read = match kind {
            TextKind::Utf8 => of_utf8(&bytes),
            TextKind::Utf32(size) => of_utf32(&bytes, size, big),
        };
        let read = read.filter(|read| read.len() >= own).ok_or_else(broken)?;
        texts.extend(read.into_iter().take(own));
    }
    Ok(texts)
}

/// How texts are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TextKind {
    /// Each with its length before it.
    Utf8,
    /// So many bytes for each.
    Utf32(usize),
}

/// Bytes of the texts of a chunk, at most.
const MOST_TEXT: usize = 1 << 28;

/// Texts, their number before them, and its length before each.
fn of_utf8(bytes: &[u8]) -> Option<Vec<String>> {
    let (count, mut rest) = bytes.split_first_chunk::<4>()?;
    let mut texts = vec![];
    for _ in 0..u32::from_le_bytes(*count) {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let (text, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        texts.push(String::from_utf8(text.to_vec()).ok()?);
        rest = behind;
    }
    Some(texts)
}

/// Texts of so many bytes each, four for a character, filled up with zeros.
fn of_utf32(bytes: &[u8], size: usize, big: bool) -> Option<Vec<String>> {
    let order = if big { u32::from_be_bytes } else { u32::from_le_bytes };
    let text = |bytes: &[u8]| -> Option<String> {
        let all = bytes.as_chunks::<4>().0.iter().map(|bytes| order(*bytes));
        all.take_while(|code| *code != 0).map(char::from_u32).collect()
    };
    (size > 0).then(|| bytes.chunks_exact(size).map(text).collect())?
}

/// The file of a chunk, of keys that begin so, with this between their parts.
fn file(path: &Path, at: &[usize], (prefix, separator): (&str, &str)) -> PathBuf {
    let mut parts: Vec<String> = at.iter().map(ToString::to_string).collect();
    if !prefix.is_empty() {
        parts.insert(0, prefix.to_owned());
    } else if parts.is_empty() {
        parts.push("0".to_owned());
    }
    path.join(parts.join(separator))
}

/// The bytes of a chunk, so many at most, as they were before they were kept; nothing where it is not there.
fn undone(path: &Path, codecs: &[Codec], most: usize) -> Result<Option<Vec<u8>>, Wrong> {
    match std::fs::read(path) {
        Ok(kept) => {
            let undone = codecs.iter().rev().try_fold(kept, |kept, codec| codec.undo(kept, most.saturating_add(4)));
            undone.map(Some).map_err(|what| (path.to_owned(), format!("the chunk is broken: {what}")))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err((path.to_owned(), error.to_string())),
    }
}

/// The next place in row-major order; false behind the last.
fn advance(at: &mut [usize], counts: &[usize]) -> bool {
    for (at, count) in at.iter_mut().zip(counts).rev() {
        *at += 1;
        if *at < *count {
            return true;
        }
        *at = 0;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_their_bytes() {
        assert_eq!(Element::Int(2).number(&(-3_i16).to_le_bytes()), -3.0);
        assert_eq!(Element::Unsigned(1).number(&[200]), 200.0);
        assert_eq!(Element::Single.number(&1.5_f32.to_le_bytes()), 1.5);
        assert_eq!(Element::Double.fill(Some(&Value::from("0x3ff0000000000000"))), Some(1.0));
        assert!(Element::Double.fill(Some(&Value::from("NaN"))).is_some_and(f64::is_nan));
        assert_eq!(Element::Double.fill(Some(&Value::from("many"))), None);
    }

    /// The value that RFC 3720 has for 32 bytes of zeros.
    #[test]
    fn checksums_are_those_of_castagnoli() {
        assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
        let kept = [&[7, 8][..], &crc32c::crc32c(&[7, 8]).to_le_bytes()].concat();
        assert_eq!(Codec::Checksum.undo(kept.clone(), 9), Ok(vec![7, 8]));
        assert!(Codec::Checksum.undo([&[9], &kept[1..]].concat(), 9).is_err());
    }

    #[test]
    fn places_go_row_by_row() {
        let mut at = vec![0, 1];
        assert!(advance(&mut at, &[2, 2]) && at == [1, 0] && advance(&mut at, &[2, 2]) && !advance(&mut at, &[2, 2]));
    }
}
