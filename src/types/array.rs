//! Arrays of the host, row-major, and scalar constants.

use std::fmt;

use super::{DType, Shape, Type};

/// Width of `real` in a run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Precision {
    /// 32 bits.
    F32,
    /// 64 bits.
    #[default]
    F64,
}

impl Precision {
    /// The f64 whose shortest text is the shortest text of `x` in this precision: a real of an f32 run prints as `0.1`, not
    /// as the f64 next to it, `0.10000000149011612`.
    pub fn shown(self, x: f64) -> f64 {
        match self {
            Precision::F32 if x.is_finite() => (x as f32).to_string().parse().expect("a number reads back"),
            _ => x,
        }
    }
}

/// A constant of the program. Equality and hashing are by bits, so that NaN equals itself.
#[derive(Clone, Copy)]
pub enum Scalar {
    /// `bool`
    Bool(bool),
    /// `int`
    Int(i64),
    /// `real`, kept as f64 until the run chooses a precision.
    Real(f64),
}

impl Scalar {
    /// Its element type.
    pub fn dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::Int,
            Scalar::Real(_) => DType::Real,
        }
    }
    fn bits(self) -> (DType, u64) {
        match self {
            Scalar::Bool(b) => (DType::Bool, u64::from(b)),
            Scalar::Int(i) => (DType::Int, i as u64),
            Scalar::Real(r) => (DType::Real, r.to_bits()),
        }
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.bits() == other.bits()
    }
}
impl Eq for Scalar {}
impl std::hash::Hash for Scalar {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.bits().hash(state);
    }
}
impl fmt::Display for Scalar {
    /// The text form in IR files: reals always have a point, an exponent, or are `nan`, `inf`, `-inf`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(b) => write!(f, "{b}"),
            Scalar::Int(i) => write!(f, "{i}"),
            Scalar::Real(r) if r.is_nan() => f.write_str("nan"),
            Scalar::Real(r) if r.is_infinite() => f.write_str(if *r > 0.0 { "inf" } else { "-inf" }),
            Scalar::Real(r) => write!(f, "{r:?}"),
        }
    }
}
impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The elements of an [`Array`].
#[derive(Clone, PartialEq, Debug)]
pub enum ArrayData {
    /// `bool`
    Bool(Vec<bool>),
    /// `int`
    Int(Vec<i64>),
    /// `real`; a run in f32 rounds on entry and widens on exit.
    Real(Vec<f64>),
}

/// An array of the host, row-major: an input, a shared value or an output. Outputs and lane inputs have the lanes as
/// their leading axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Array {
    /// Extents, outermost first.
    pub shape: Shape,
    /// Elements in row-major order.
    pub data: ArrayData,
}

impl Array {
    /// An array of reals. Panics when the number of elements is not the product of the shape.
    pub fn real(shape: impl IntoIterator<Item = usize>, data: Vec<f64>) -> Self {
        Self::new(shape, ArrayData::Real(data))
    }
    /// An array of ints. Panics when the number of elements is not the product of the shape.
    pub fn int(shape: impl IntoIterator<Item = usize>, data: Vec<i64>) -> Self {
        Self::new(shape, ArrayData::Int(data))
    }
    /// An array of bools. Panics when the number of elements is not the product of the shape.
    pub fn bool(shape: impl IntoIterator<Item = usize>, data: Vec<bool>) -> Self {
        Self::new(shape, ArrayData::Bool(data))
    }
    /// An array. Panics when the number of elements is not the product of the shape.
    pub fn new(shape: impl IntoIterator<Item = usize>, data: ArrayData) -> Self {
        let array = Self { shape: shape.into_iter().collect(), data };
        assert_eq!(array.shape.iter().product::<usize>(), array.len(), "elements must fill the shape");
        array
    }
    /// A scalar.
    pub fn scalar(value: Scalar) -> Self {
        match value {
            Scalar::Bool(b) => Self::bool([], vec![b]),
            Scalar::Int(i) => Self::int([], vec![i]),
            Scalar::Real(r) => Self::real([], vec![r]),
        }
    }
    /// Zeros (or `false`) of this type.
    pub fn zeros(ty: &Type) -> Self {
        let n = ty.elements();
        let data = match ty.dtype {
            DType::Bool => ArrayData::Bool(vec![false; n]),
            DType::Int => ArrayData::Int(vec![0; n]),
            DType::Real => ArrayData::Real(vec![0.0; n]),
        };
        Self { shape: ty.shape.clone(), data }
    }
    /// Number of elements.
    pub fn len(&self) -> usize {
        match &self.data {
            ArrayData::Bool(v) => v.len(),
            ArrayData::Int(v) => v.len(),
            ArrayData::Real(v) => v.len(),
        }
    }
    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Element type.
    pub fn dtype(&self) -> DType {
        match &self.data {
            ArrayData::Bool(_) => DType::Bool,
            ArrayData::Int(_) => DType::Int,
            ArrayData::Real(_) => DType::Real,
        }
    }
    /// Element type and shape.
    pub fn ty(&self) -> Type {
        Type { dtype: self.dtype(), shape: self.shape.clone() }
    }
    /// The `i`-th element in row-major order.
    pub fn get(&self, i: usize) -> Scalar {
        match &self.data {
            ArrayData::Bool(v) => Scalar::Bool(v[i]),
            ArrayData::Int(v) => Scalar::Int(v[i]),
            ArrayData::Real(v) => Scalar::Real(v[i]),
        }
    }
    /// The entries `rows` of the leading axis. Panics when there is no such axis, or it has fewer.
    #[must_use]
    pub fn rows(&self, rows: std::ops::Range<usize>) -> Array {
        let size: usize = self.shape[1..].iter().product();
        let part = rows.start * size..rows.end * size;
        let data = match &self.data {
            ArrayData::Bool(v) => ArrayData::Bool(v[part].to_vec()),
            ArrayData::Int(v) => ArrayData::Int(v[part].to_vec()),
            ArrayData::Real(v) => ArrayData::Real(v[part].to_vec()),
        };
        Array::new(std::iter::once(rows.len()).chain(self.shape[1..].iter().copied()), data)
    }
    /// These entries of the leading axis. Panics when there is no such axis, or it has fewer.
    #[must_use]
    pub fn chosen_rows(&self, rows: &[usize]) -> Array {
        fn chosen<T: Copy>(values: &[T], rows: &[usize], size: usize) -> Vec<T> {
            rows.iter().flat_map(|row| &values[row * size..(row + 1) * size]).copied().collect()
        }
        let size: usize = self.shape[1..].iter().product();
        let data = match &self.data {
            ArrayData::Bool(v) => ArrayData::Bool(chosen(v, rows, size)),
            ArrayData::Int(v) => ArrayData::Int(chosen(v, rows, size)),
            ArrayData::Real(v) => ArrayData::Real(chosen(v, rows, size)),
        };
        Array::new(std::iter::once(rows.len()).chain(self.shape[1..].iter().copied()), data)
    }
    /// Makes room for so many entries of the leading axis in all, which are appended.
    pub fn reserve_rows(&mut self, rows: usize) {
        let more = rows.saturating_sub(self.shape[0]).saturating_mul(self.shape[1..].iter().product());
        match &mut self.data {
            ArrayData::Bool(v) => v.reserve_exact(more),
            ArrayData::Int(v) => v.reserve_exact(more),
            ArrayData::Real(v) => v.reserve_exact(more),
        }
    }
    /// Appends the entries of the leading axis of an array of the same element type and the same other extents. Panics for
    /// any other.
    pub fn append_rows(&mut self, rows: &Array) {
        assert_eq!(self.shape[1..], rows.shape[1..], "rows have the extents of the others");
        match (&mut self.data, &rows.data) {
            (ArrayData::Bool(v), ArrayData::Bool(more)) => v.extend_from_slice(more),
            (ArrayData::Int(v), ArrayData::Int(more)) => v.extend_from_slice(more),
            (ArrayData::Real(v), ArrayData::Real(more)) => v.extend_from_slice(more),
            _ => panic!("rows have the element type of the others"),
        }
        self.shape[0] += rows.shape[0];
    }
    /// The elements as reals, if they are.
    pub fn as_real(&self) -> Option<&[f64]> {
        if let ArrayData::Real(v) = &self.data { Some(v) } else { None }
    }
    /// The elements as ints, if they are.
    pub fn as_int(&self) -> Option<&[i64]> {
        if let ArrayData::Int(v) = &self.data { Some(v) } else { None }
    }
    /// The elements as bools, if they are.
    pub fn as_bool(&self) -> Option<&[bool]> {
        if let ArrayData::Bool(v) = &self.data { Some(v) } else { None }
    }
}

impl Array {
    /// With the reals as they are shown to users: see [`Precision::shown`].
    #[must_use]
    pub fn shown(mut self, precision: Precision) -> Array {
        if let (Precision::F32, ArrayData::Real(v)) = (precision, &mut self.data) {
            v.iter_mut().for_each(|x| *x = precision.shown(*x));
        }
        self
    }
}

/// A real with the fewest digits that read back as the same number: `1`, `0.1`, `NaN`, `inf`, and with an exponent where the
/// number is below 1e-5 in magnitude or from 1e16 on: `1e-200`.
fn fmt_real(f: &mut fmt::Formatter<'_>, real: f64) -> fmt::Result {
    let magnitude = real.abs();
    let plain = magnitude == 0.0 || !real.is_finite() || (1e-5..1e16).contains(&magnitude);
    if plain { write!(f, "{real}") } else { write!(f, "{real:e}") }
}

impl fmt::Display for Array {
    /// Scalars as Rust prints them, reals with the fewest digits that read back as the same number (`1`, `0.1`, `NaN`, `inf`,
    /// `1e-200`); arrays as nested lists, `[[1, 2], [3, 4]]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_part(f, &self.shape, 0)
    }
}

impl Array {
    fn fmt_part(&self, f: &mut fmt::Formatter<'_>, shape: &[usize], first: usize) -> fmt::Result {
        let Some((extent, inner)) = shape.split_first() else {
            return match self.get(first) {
                Scalar::Bool(b) => write!(f, "{b}"),
                Scalar::Int(i) => write!(f, "{i}"),
                Scalar::Real(r) => fmt_real(f, r),
            };
        };
        let size: usize = inner.iter().product();
        f.write_str("[")?;
        for i in 0..*extent {
            if i > 0 {
                f.write_str(", ")?;
            }
            self.fmt_part(f, inner, first + i * size)?;
        }
        f.write_str("]")
    }
}
