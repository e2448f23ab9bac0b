//! NumPy's `.npy` format (versions 1.0 to 3.0), which is small enough to read defensively here: a header of Python
//! literal text, then the elements. <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>

use std::io::{self, Read, Write};
use std::path::Path;

use super::file;
use super::{FileAction, IoError, write_atomically};
use crate::types::{Array, ArrayData, DType};

const MAGIC: &[u8] = b"\x93NUMPY";
/// Headers of the arrays that can be read here are far shorter.
const MAX_HEADER_BYTES: u32 = 1 << 16;
/// NumPy's own limit is 64.
const MAX_RANK: usize = 64;

/// Reads an array from a `.npy` file. Arrays in Fortran order become row-major.
pub fn read_npy(path: &Path) -> Result<Array, IoError> {
    let bytes = file::read(path)?;
    let origin = file::shown(path);
    read(bytes.as_slice(), bytes.len() as u64, &origin, |source| file::failed(path, FileAction::Read, source))
}

/// Writes an array to a `.npy` file.
pub fn write_npy(path: &Path, array: &Array) -> Result<(), IoError> {
    write_atomically(path, |writer| write(writer, array))
}

/// Reads an array of which at most `available` bytes follow; `failed` makes an error of the reader's own.
pub(super) fn read(
    mut reader: impl Read,
    available: u64,
    origin: &str,
    failed: impl Fn(io::Error) -> IoError,
) -> Result<Array, IoError> {
    let malformed = |message: String| IoError::Malformed { origin: origin.to_owned(), message };
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => malformed("it ends too early".to_owned()),
        // What decompression finds wrong is wrong with the file.
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => malformed(error.to_string()),
        _ => failed(error),
    };
    let text = read_header_text(&mut reader).map_err(&failed)?;
    let header = Header::parse(&text).map_err(malformed)?;
    let element = Element::of(&header.descr)
        .ok_or_else(|| IoError::ElementType { origin: origin.to_owned(), found: header.descr.clone() })?;

    let bytes = header.elements().and_then(|count| count.checked_mul(element.bytes() as u64));
    let bytes = bytes.filter(|bytes| *bytes <= available);
    let Some(bytes) = bytes else {
        return Err(malformed(format!("an array of shape {:?} does not fit into it", header.shape)));
    };
    let mut raw = Vec::new();
    reader.take(bytes).read_to_end(&mut raw).map_err(&failed)?;
    if raw.len() as u64 != bytes {
        return Err(malformed(format!("{bytes} bytes of elements are announced, {} are there", raw.len())));
    }
    let shape = header.shape.iter().map(|extent| *extent as usize).collect();
    let array = Array { shape, data: element.decode(&raw) };
    Ok(if header.fortran_order { row_major(array) } else { array })
}

pub(super) fn read_header_text(reader: &mut impl Read) -> io::Result<String> {
    let invalid = |message: &str| io::Error::new(io::ErrorKind::InvalidData, message);
    let mut start = [0; 8];
    reader.read_exact(&mut start)?;
    if &start[..6] != MAGIC {
        return Err(invalid("it does not start as a .npy file"));
    }
    let length = match start[6] {
        1 => {
            let mut length = [0; 2];
            reader.read_exact(&mut length)?;
            u32::from(u16::from_le_bytes(length))
        }
        2 | 3 => {
            let mut length = [0; 4];
            reader.read_exact(&mut length)?;
            u32::from_le_bytes(length)
        }
        _ => return Err(invalid("its version of the .npy format is unknown")),
    };
    if length > MAX_HEADER_BYTES {
        return Err(invalid("its header is too long"));
    }
    let mut text = vec![0; length as usize];
    reader.read_exact(&mut text)?;
    String::from_utf8(text).map_err(|_| invalid("its header is not text"))
}

/// What the header says.
#[derive(PartialEq, Debug)]
pub(super) struct Header {
    pub(super) descr: String,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<u64>,
}

impl Header {
    /// Parses the dict literal, such as `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut cursor = Cursor { rest: text };
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        cursor.expect("{")?;
        while !cursor.accept("}") {
            let key = cursor.string()?;
            cursor.expect(":")?;
            match key {
                "descr" => descr = Some(cursor.descr()?),
                "fortran_order" => fortran_order = Some(cursor.boolean()?),
                "shape" => shape = Some(cursor.shape()?),
                _ => return Err(format!("unknown key {key:?} in its header")),
            }
            if !cursor.accept(",") {
                cursor.expect("}")?;
                break;
            }
        }
        let missing = |key: &str| format!("no {key:?} in its header");
        Ok(Self {
            descr: descr.ok_or_else(|| missing("descr"))?,
            fortran_order: fortran_order.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        })
    }

    /// Their number; nothing when the product of the extents, zeros left out, could overflow somewhere later.
    pub(super) fn elements(&self) -> Option<u64> {
        let mut nonzero = self.shape.iter().filter(|extent| **extent > 0);
        let product = nonzero.try_fold(1_u64, |product, extent| product.checked_mul(*extent));
        product.filter(|product| *product <= isize::MAX as u64)?;
        Some(self.shape.iter().product())
    }
}

struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn accept(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.accept(token) { Ok(()) } else { Err(format!("expected {token:?} in its header")) }
    }

    fn string(&mut self) -> Result<&'a str, String> {
        let quote = if self.accept("'") { '\'' } else { self.expect("\"").map(|()| '"')? };
        let (string, rest) = self.rest.split_once(quote).ok_or("a string without an end in its header")?;
        self.rest = rest;
        Ok(string)
    }

    /// A type string; a list is a structured type, which no reader here takes, so that its text need not be understood.
    fn descr(&mut self) -> Result<String, String> {
        if self.rest.trim_start().starts_with('[') {
            return Err("its elements are records".to_owned());
        }
        self.string().map(str::to_owned)
    }

    fn boolean(&mut self) -> Result<bool, String> {
        if self.accept("True") {
            return Ok(true);
        }
        self.expect("False").map(|()| false)
    }

    fn shape(&mut self) -> Result<Vec<u64>, String> {
        let mut shape = Vec::new();
        self.expect("(")?;
        while !self.accept(")") {
            shape.push(self.extent()?);
            if shape.len() > MAX_RANK {
                return Err(format!("its shape has more than {MAX_RANK} axes"));
            }
            if !self.accept(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(shape)
    }

    fn extent(&mut self) -> Result<u64, String> {
        self.rest = self.rest.trim_start();
        let digits = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(digits);
        // NumPy under Python 2 wrote `3L`.
        self.rest = rest.strip_prefix('L').unwrap_or(rest);
        number.parse().map_err(|_| "an extent of its shape is not a number".to_owned())
    }
}

/// How elements lie in the file.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Element {
    kind: Kind,
    big_endian: bool,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint16,
    Uint32,
    Float16,
    Float32,
    Float64,
}

impl Element {
    pub(super) fn of(descr: &str) -> Option<Self> {
        let kind = match descr.trim_start_matches(['<', '>', '=', '|']) {
            "b1" | "?" => Kind::Bool,
            "i1" => Kind::Int8,
            "i2" => Kind::Int16,
            "u1" => Kind::Uint8,
            "u2" => Kind::Uint16,
            "u4" => Kind::Uint32,
            "f2" => Kind::Float16,
            "i4" => Kind::Int32,
            "i8" => Kind::Int64,
            "f4" => Kind::Float32,
            "f8" => Kind::Float64,
            _ => return None,
        };
        let native_big = cfg!(target_endian = "big");
        Some(Self { kind, big_endian: descr.starts_with('>') || (native_big && !descr.starts_with('<')) })
    }

    pub(super) fn bytes(self) -> usize {
        match self.kind {
            Kind::Bool | Kind::Int8 | Kind::Uint8 => 1,
            Kind::Int16 | Kind::Uint16 | Kind::Float16 => 2,
            Kind::Int32 | Kind::Uint32 | Kind::Float32 => 4,
            Kind::Int64 | Kind::Float64 => 8,
        }
    }

    pub(super) fn decode(self, raw: &[u8]) -> ArrayData {
        match self.kind {
            Kind::Bool => ArrayData::Bool(raw.iter().map(|b| *b != 0).collect()),
            Kind::Int8 => ArrayData::Int(self.each(raw, |b| i8::from_le_bytes(b).into())),
            Kind::Int16 => ArrayData::Int(self.each(raw, |b| i16::from_le_bytes(b).into())),
            Kind::Int32 => ArrayData::Int(self.each(raw, |b| i32::from_le_bytes(b).into())),
            Kind::Int64 => ArrayData::Int(self.each(raw, i64::from_le_bytes)),
            Kind::Uint8 => ArrayData::Int(self.each(raw, |b| u8::from_le_bytes(b).into())),
            Kind::Uint16 => ArrayData::Int(self.each(raw, |b| u16::from_le_bytes(b).into())),
            Kind::Uint32 => ArrayData::Int(self.each(raw, |b| u32::from_le_bytes(b).into())),
            Kind::Float16 => ArrayData::Real(self.each(raw, |b| half(u16::from_le_bytes(b)))),
            Kind::Float32 => ArrayData::Real(self.each(raw, |b| f32::from_le_bytes(b).into())),
            Kind::Float64 => ArrayData::Real(self.each(raw, f64::from_le_bytes)),
        }
    }

    fn each<const N: usize, T>(self, raw: &[u8], from: impl Fn([u8; N]) -> T) -> Vec<T> {
        raw.chunks_exact(N).map(|bytes| from(self.little_endian(bytes))).collect()
    }

    fn little_endian<const N: usize>(self, bytes: &[u8]) -> [u8; N] {
        let mut bytes: [u8; N] = bytes.try_into().expect("chunks of N bytes");
        if self.big_endian {
            bytes.reverse();
        }
        bytes
    }
}

/// The number that the bits of an IEEE half mean.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * f64::powi(2.0, -24),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        _ => (1024.0 + fraction) * f64::powi(2.0, exponent - 25),
    }
}

/// Elements that lie first index fastest, moved to last index fastest.
fn row_major(array: Array) -> Array {
    let shape = array.shape;
    let data = match array.data {
        ArrayData::Bool(v) => ArrayData::Bool(transposed(&shape, &v)),
        ArrayData::Int(v) => ArrayData::Int(transposed(&shape, &v)),
        ArrayData::Real(v) => ArrayData::Real(transposed(&shape, &v)),
    };
    Array { shape, data }
}

fn transposed<T: Copy>(shape: &[usize], column_major: &[T]) -> Vec<T> {
    let strides: Vec<usize> = shape
        .iter()
        .scan(1, |stride, extent| {
            let this = *stride;
            *stride *= extent;
            Some(this)
        })
        .collect();
    let mut index = vec![0; shape.len()];
    let mut source = 0;
    let mut elements = Vec::with_capacity(column_major.len());
    for _ in 0..column_major.len() {
        elements.push(column_major[source]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            source += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            source -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    elements
}

/// Writes an array as `.npy`, version 1.0, row-major, little endian.
pub(super) fn write(writer: &mut impl Write, array: &Array) -> io::Result<()> {
    write_header(writer, array.dtype(), &array.shape)?;
    write_elements(writer, array)
}

/// Writes what comes before the elements.
pub(super) fn write_header(writer: &mut impl Write, dtype: DType, shape: &[usize]) -> io::Result<()> {
    let descr = match dtype {
        DType::Bool => "|b1",
        DType::Int => "<i8",
        DType::Real => "<f8",
    };
    let extents: String = shape.iter().map(|extent| format!("{extent}, ")).collect();
    // `(3,)` has its comma, `(3, 4)` has none at the end.
    let extents = if shape.len() == 1 { extents.trim_end() } else { extents.trim_end_matches(", ") };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({extents}), }}");
    let unpadded = MAGIC.len() + 4 + header.len() + 1;
    header.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(64) - unpadded));
    header.push('\n');
    let length = u16::try_from(header.len())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "too many axes for a .npy file"))?;
    writer.write_all(MAGIC)?;
    writer.write_all(&[1, 0])?;
    writer.write_all(&length.to_le_bytes())?;
    writer.write_all(header.as_bytes())
}

/// Writes the elements of an array.
pub(super) fn write_elements(writer: &mut impl Write, array: &Array) -> io::Result<()> {
    match &array.data {
        ArrayData::Bool(v) => v.iter().try_for_each(|b| writer.write_all(&[u8::from(*b)])),
        ArrayData::Int(v) => v.iter().try_for_each(|i| writer.write_all(&i.to_le_bytes())),
        ArrayData::Real(v) => v.iter().try_for_each(|r| writer.write_all(&r.to_le_bytes())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8]) -> Result<Array, String> {
        read(bytes, bytes.len() as u64, "`x.npy`", |source| file::failed(Path::new("x.npy"), FileAction::Read, source))
            .map_err(|error| error.to_string())
    }

    fn bytes_of(array: &Array) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, array).unwrap();
        bytes
    }

    fn with_header(header: &str, elements: &[u8]) -> Vec<u8> {
        let length = u16::try_from(header.len()).unwrap().to_le_bytes();
        [MAGIC, &[1, 0], &length, header.as_bytes(), elements].concat()
    }

    // Python: numpy.lib.format.write_array(f, numpy.asfortranarray(numpy.array([[1, 2, 3], [4, 5, 6]], dtype=">i4")))
    const FORTRAN_BIG_ENDIAN: &str = "{'descr': '>i4', 'fortran_order': True, 'shape': (2, 3), }          \n";

    #[test]
    fn fortran_order_and_big_endian_become_row_major() {
        let elements: Vec<u8> = [1_i32, 4, 2, 5, 3, 6].iter().flat_map(|i| i.to_be_bytes()).collect();
        let array = parse(&with_header(FORTRAN_BIG_ENDIAN, &elements)).unwrap();
        assert_eq!(array, Array::int([2, 3], vec![1, 2, 3, 4, 5, 6]));
    }

    #[test]
    fn narrow_elements_are_widened() {
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n";
        assert_eq!(parse(&with_header(header, &0.5_f32.to_le_bytes())).unwrap(), Array::real([1], vec![0.5]));
        let of = |descr: &str, elements: &[u8]| {
            let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (2,), }}\n");
            parse(&with_header(&header, elements)).unwrap()
        };
        assert_eq!(of("|i1", &[255, 1]), Array::int([2], vec![-1, 1]));
        assert_eq!(of("|u1", &[255, 1]), Array::int([2], vec![255, 1]));
        assert_eq!(of(">i2", &[255, 254, 1, 0]), Array::int([2], vec![-2, 256]));
        assert_eq!(of("<u2", &[254, 255, 1, 0]), Array::int([2], vec![65534, 1]));
        assert_eq!(of("<u4", &[255, 255, 255, 255, 1, 0, 0, 0]), Array::int([2], vec![4_294_967_295, 1]));
        // NumPy: numpy.array([1.5, -65504.0, 6e-8, -numpy.inf], dtype="<f2").tobytes()
        assert_eq!(of("<f2", &[0x00, 0x3e, 0xff, 0xfb]), Array::real([2], vec![1.5, -65504.0]));
        let least = f64::powi(2.0, -24);
        assert_eq!(of("<f2", &[0x01, 0x00, 0x00, 0xfc]), Array::real([2], vec![least, f64::NEG_INFINITY]));
    }

    #[test]
    fn arrays_written_are_read_back() {
        let arrays = [
            Array::real([2, 3], vec![0.1, f64::INFINITY, -0.0, 1e-310, 5.0, 6.0]),
            Array::int([], vec![i64::MIN]),
            Array::bool([4], vec![true, false, true, true]),
            Array::real([3, 0, 2], vec![]),
        ];
        for array in arrays {
            let bytes = bytes_of(&array);
            assert_eq!((bytes.len() - array.len() * if array.as_bool().is_some() { 1 } else { 8 }) % 64, 0);
            assert_eq!(parse(&bytes).unwrap(), array);
        }
    }

    /// `numpy.save` of `numpy.arange(6.0).reshape(2, 3)` with NumPy 2.4.6.
    #[test]
    fn files_are_those_of_numpy() {
        let mut expected =
            b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }".to_vec();
        expected.extend(std::iter::repeat_n(b' ', 127 - expected.len()));
        expected.push(b'\n');
        expected.extend((0..6).flat_map(|i| f64::from(i).to_le_bytes()));
        let array = Array::real([2, 3], (0..6).map(f64::from).collect());
        assert_eq!(bytes_of(&array), expected);
        assert_eq!(parse(&expected).unwrap(), array);
    }

    #[test]
    fn huge_shapes_are_refused_before_anything_is_allocated() {
        for shape in [
            "(1152921504606846976,)",
            "(4294967296, 4294967296, 4294967296)",
            "(99999999999999999999,)",
            "(0, 4294967296, 4294967296)",
        ] {
            let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n");
            let error = parse(&with_header(&header, &[0; 16])).unwrap_err();
            assert!(error.starts_with("`x.npy` is malformed"), "{error}");
        }
    }

    #[test]
    fn truncated_files_are_refused() {
        let bytes = bytes_of(&Array::real([3], vec![1.0, 2.0, 3.0]));
        for length in 0..bytes.len() {
            assert!(parse(&bytes[..length]).unwrap_err().starts_with("`x.npy` is malformed"), "{length}");
        }
    }

    #[test]
    fn damaged_files_never_panic() {
        let bytes = bytes_of(&Array::int([2, 2], vec![1, 2, 3, 4]));
        for position in 0..bytes.len() {
            for byte in [0, b'(', b'9', b'\'', 0xff] {
                let mut damaged = bytes.clone();
                damaged[position] = byte;
                let _ = parse(&damaged);
            }
        }
    }

    #[test]
    fn other_element_types_are_named() {
        for descr in ["|O", "<c16", "<U3", "<u8", "<f16"] {
            let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (1,), }}\n");
            let error = parse(&with_header(&header, &[0; 16])).unwrap_err();
            assert!(error.contains(descr) && error.contains("float64"), "{error}");
        }
        let records = "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }\n";
        assert!(parse(&with_header(records, &[0; 8])).unwrap_err().contains("records"));
    }
}
