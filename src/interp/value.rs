//! Values of the interpreter: scalars in place, arrays behind a counted reference that is written through when it is the
//! only one.

use std::ops::Range;
use std::rc::Rc;

use crate::types::{Array, ArrayData, DType, Scalar, Shape, Type};
use crate::vmath::Real;

/// A scalar.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Elem<R> {
    Bool(bool),
    Int(i64),
    Real(R),
}

/// A scalar or an array.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Value<R> {
    Scalar(Elem<R>),
    Array(Rc<Tensor<R>>),
}

/// An array, row-major.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Tensor<R> {
    pub(super) shape: Shape,
    pub(super) data: Data<R>,
}

/// The elements of a [`Tensor`].
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Data<R> {
    Bool(Vec<bool>),
    Int(Vec<i64>),
    Real(Vec<R>),
}

pub(super) const FITS: &str = "the verifier lets only operands pass that fit the primitive";

impl<R: Real> Elem<R> {
    pub(super) fn new(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Bool(b) => Elem::Bool(b),
            Scalar::Int(i) => Elem::Int(i),
            Scalar::Real(r) => Elem::Real(R::from_f64(r)),
        }
    }
    pub(super) fn bool(self) -> bool {
        if let Elem::Bool(x) = self { x } else { unreachable!("{FITS}") }
    }
    pub(super) fn int(self) -> i64 {
        if let Elem::Int(x) = self { x } else { unreachable!("{FITS}") }
    }
    pub(super) fn real(self) -> R {
        if let Elem::Real(x) = self { x } else { unreachable!("{FITS}") }
    }
    pub(super) fn to_scalar(self) -> Scalar {
        match self {
            Elem::Bool(b) => Scalar::Bool(b),
            Elem::Int(i) => Scalar::Int(i),
            Elem::Real(r) => Scalar::Real(r.to_f64()),
        }
    }
}

impl<R: Real> Value<R> {
    /// The entries of an array of the host from `first` on, as a value of this type.
    pub(super) fn from_array(array: &Array, first: usize, ty: &Type) -> Self {
        let range = first..first + ty.elements();
        if ty.is_scalar() {
            return Value::Scalar(Elem::new(array.get(first)));
        }
        let data = match &array.data {
            ArrayData::Bool(v) => Data::Bool(v[range].to_vec()),
            ArrayData::Int(v) => Data::Int(v[range].to_vec()),
            ArrayData::Real(v) => Data::Real(v[range].iter().map(|x| R::from_f64(*x)).collect()),
        };
        data.into_value(&ty.shape)
    }
    /// The value as an array of the host.
    pub(super) fn to_array(&self) -> Array {
        match self {
            Value::Scalar(x) => Array::scalar(x.to_scalar()),
            Value::Array(tensor) => {
                let data = match &tensor.data {
                    Data::Bool(v) => ArrayData::Bool(v.clone()),
                    Data::Int(v) => ArrayData::Int(v.clone()),
                    Data::Real(v) => ArrayData::Real(v.iter().map(|x| x.to_f64()).collect()),
                };
                Array::new(tensor.shape.iter().copied(), data)
            }
        }
    }
    /// The element in row-major order; a scalar has it everywhere.
    #[inline]
    pub(super) fn elem(&self, i: usize) -> Elem<R> {
        match self {
            Value::Scalar(x) => *x,
            Value::Array(tensor) => tensor.data.get(i),
        }
    }
    #[inline]
    pub(super) fn scalar(&self) -> Elem<R> {
        match self {
            Value::Scalar(x) => *x,
            Value::Array(_) => unreachable!("{FITS}"),
        }
    }
    #[inline]
    pub(super) fn int(&self) -> i64 {
        match self {
            Value::Scalar(Elem::Int(i)) => *i,
            _ => unreachable!("{FITS}"),
        }
    }
    #[inline]
    pub(super) fn bool(&self) -> bool {
        match self {
            Value::Scalar(Elem::Bool(b)) => *b,
            _ => unreachable!("{FITS}"),
        }
    }
    pub(super) fn tensor(&self) -> &Tensor<R> {
        match self {
            Value::Array(tensor) => tensor,
            Value::Scalar(_) => unreachable!("{FITS}"),
        }
    }
    /// Memory that it takes, as if nothing else held its array.
    pub(super) fn bytes(&self) -> usize {
        let elements = match self {
            Value::Scalar(_) => 0,
            Value::Array(tensor) => match &tensor.data {
                Data::Bool(v) => v.len(),
                Data::Int(v) => v.len() * size_of::<i64>(),
                Data::Real(v) => v.len() * size_of::<R>(),
            },
        };
        size_of::<Self>() + elements
    }
    /// The share of one holder in the memory of its array, 0 for a scalar: those of all its holders make the whole.
    #[inline]
    pub(super) fn share(&self) -> usize {
        match self {
            Value::Scalar(_) => 0,
            Value::Array(tensor) => self.bytes() / Rc::strong_count(tensor),
        }
    }
    /// Whether a real element is NaN.
    pub(super) fn has_nan(&self) -> bool {
        match self {
            Value::Scalar(Elem::Real(x)) => x.is_nan(),
            Value::Scalar(_) => false,
            Value::Array(tensor) => match &tensor.data {
                Data::Real(v) => v.iter().any(|x| x.is_nan()),
                _ => false,
            },
        }
    }
}

impl<R: Real> Default for Value<R> {
    /// What stands in a variable that is not set; nothing reads it.
    fn default() -> Self {
        Value::Scalar(Elem::Int(0))
    }
}

impl<R: Real> Data<R> {
    pub(super) fn with_capacity(dtype: DType, n: usize) -> Self {
        match dtype {
            DType::Bool => Data::Bool(Vec::with_capacity(n)),
            DType::Int => Data::Int(Vec::with_capacity(n)),
            DType::Real => Data::Real(Vec::with_capacity(n)),
        }
    }
    pub(super) fn filled(x: Elem<R>, n: usize) -> Self {
        match x {
            Elem::Bool(x) => Data::Bool(vec![x; n]),
            Elem::Int(x) => Data::Int(vec![x; n]),
            Elem::Real(x) => Data::Real(vec![x; n]),
        }
    }
    pub(super) fn into_value(self, shape: &[usize]) -> Value<R> {
        if shape.is_empty() {
            return Value::Scalar(self.get(0));
        }
        Value::Array(Rc::new(Tensor { shape: shape.into(), data: self }))
    }
    #[inline]
    pub(super) fn get(&self, i: usize) -> Elem<R> {
        match self {
            Data::Bool(v) => Elem::Bool(v[i]),
            Data::Int(v) => Elem::Int(v[i]),
            Data::Real(v) => Elem::Real(v[i]),
        }
    }
    pub(super) fn real(&self) -> &[R] {
        match self {
            Data::Real(v) => v,
            _ => unreachable!("{FITS}"),
        }
    }
    pub(super) fn dtype(&self) -> DType {
        match self {
            Data::Bool(_) => DType::Bool,
            Data::Int(_) => DType::Int,
            Data::Real(_) => DType::Real,
        }
    }
    pub(super) fn set(&mut self, i: usize, x: Elem<R>) {
        match (self, x) {
            (Data::Bool(v), Elem::Bool(x)) => v[i] = x,
            (Data::Int(v), Elem::Int(x)) => v[i] = x,
            (Data::Real(v), Elem::Real(x)) => v[i] = x,
            _ => unreachable!("{FITS}"),
        }
    }
    pub(super) fn push(&mut self, x: Elem<R>) {
        match (self, x) {
            (Data::Bool(v), Elem::Bool(x)) => v.push(x),
            (Data::Int(v), Elem::Int(x)) => v.push(x),
            (Data::Real(v), Elem::Real(x)) => v.push(x),
            _ => unreachable!("{FITS}"),
        }
    }
    pub(super) fn extend(&mut self, from: &Data<R>, range: Range<usize>) {
        match (self, from) {
            (Data::Bool(v), Data::Bool(x)) => v.extend_from_slice(&x[range]),
            (Data::Int(v), Data::Int(x)) => v.extend_from_slice(&x[range]),
            (Data::Real(v), Data::Real(x)) => v.extend_from_slice(&x[range]),
            _ => unreachable!("{FITS}"),
        }
    }
    pub(super) fn extend_value(&mut self, value: &Value<R>) {
        match value {
            Value::Scalar(x) => self.push(*x),
            Value::Array(tensor) => self.extend(&tensor.data, 0..tensor.data.len()),
        }
    }
    /// Writes a value over the elements from `at` on.
    pub(super) fn write(&mut self, at: usize, value: &Value<R>) {
        match (self, value) {
            (Data::Bool(v), Value::Scalar(Elem::Bool(x))) => v[at] = *x,
            (Data::Int(v), Value::Scalar(Elem::Int(x))) => v[at] = *x,
            (Data::Real(v), Value::Scalar(Elem::Real(x))) => v[at] = *x,
            (data, Value::Array(tensor)) => match (data, &tensor.data) {
                (Data::Bool(v), Data::Bool(x)) => v[at..at + x.len()].copy_from_slice(x),
                (Data::Int(v), Data::Int(x)) => v[at..at + x.len()].copy_from_slice(x),
                (Data::Real(v), Data::Real(x)) => v[at..at + x.len()].copy_from_slice(x),
                _ => unreachable!("{FITS}"),
            },
            _ => unreachable!("{FITS}"),
        }
    }
    pub(super) fn len(&self) -> usize {
        match self {
            Data::Bool(v) => v.len(),
            Data::Int(v) => v.len(),
            Data::Real(v) => v.len(),
        }
    }
}
