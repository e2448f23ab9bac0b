//! Layer 1: element types, shapes, and arrays of the host.

mod array;
mod complex;
mod datum;

pub use array::{Array, ArrayData, Precision, Scalar};
pub use complex::ComplexPart;
pub use datum::{Datum, Document, JsonArray, Numbers};

use std::fmt;

use smallvec::SmallVec;

/// The type of one element.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DType {
    /// `bool`
    Bool,
    /// `int`: 64 bits; going past them is a trap.
    Int,
    /// `real`: f64, or f32 when the run says so.
    Real,
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DType::Bool => "bool",
            DType::Int => "int",
            DType::Real => "real",
        })
    }
}

/// The extents of an array, outermost first; empty for a scalar.
pub type Shape = SmallVec<[usize; 4]>;

/// The places in row-major order of the elements of an array, one after the other with the first index fastest. The first
/// `outer` axes stay in their order, as those of an array of matrices do.
pub fn column_major(shape: &[usize], outer: usize) -> impl Iterator<Item = usize> + use<> {
    let (outer, own) = shape.split_at(outer);
    let (count, each) = (outer.iter().product::<usize>(), own.iter().product::<usize>());
    let own = Shape::from(own);
    let place = move |number: usize| {
        let step = |(rest, place), extent: &usize| (rest / extent, place * extent + rest % extent);
        own.iter().fold((number, 0), step).1
    };
    (0..count * each).map(move |at| at / each * each + place(at % each))
}

/// The concrete type of a variable of a CFG or stack program: an element type and an event shape.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Type {
    /// Element type.
    pub dtype: DType,
    /// Event shape: the shape in one lane.
    pub shape: Shape,
}

impl Type {
    /// An array type.
    pub fn new(dtype: DType, shape: impl IntoIterator<Item = usize>) -> Self {
        Self { dtype, shape: shape.into_iter().collect() }
    }
    /// A scalar type.
    pub fn scalar(dtype: DType) -> Self {
        Self { dtype, shape: Shape::new() }
    }
    /// `bool`
    pub fn bool() -> Self {
        Self::scalar(DType::Bool)
    }
    /// `int`
    pub fn int() -> Self {
        Self::scalar(DType::Int)
    }
    /// `real`
    pub fn real() -> Self {
        Self::scalar(DType::Real)
    }
    /// Number of elements in one lane: the product of the extents, 1 for a scalar.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }
    /// Whether the shape is empty.
    pub fn is_scalar(&self) -> bool {
        self.shape.is_empty()
    }
}

impl fmt::Display for Type {
    /// `real`, `int[3]`, `real[10, 2]`: also the text form in IR files.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.dtype)?;
        if !self.shape.is_empty() {
            let dims: Vec<String> = self.shape.iter().map(ToString::to_string).collect();
            write!(f, "[{}]", dims.join(", "))?;
        }
        Ok(())
    }
}
impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::column_major;

    #[test]
    fn the_first_index_is_the_fastest() {
        let places = |shape: &[usize], outer| column_major(shape, outer).collect::<Vec<_>>();
        assert_eq!(places(&[2, 3], 0), [0, 3, 1, 4, 2, 5]);
        assert_eq!(places(&[2, 2, 2], 0), [0, 4, 2, 6, 1, 5, 3, 7]);
        assert_eq!(places(&[2, 2, 2], 1), [0, 2, 1, 3, 4, 6, 5, 7]);
        assert_eq!(places(&[2, 2], 2), [0, 1, 2, 3]);
        assert_eq!(places(&[], 0), [0]);
        assert_eq!(places(&[0, 3], 0), [0usize; 0]);
        assert_eq!(places(&[2, 0], 1), [0usize; 0]);
    }
}
