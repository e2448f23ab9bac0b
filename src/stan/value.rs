//! Values while a Stan program is run on the host: what is known, and what only lanes know.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::elems::Elems;
use super::syntax::ast::UnsizedType;
use crate::types::{Array, ArrayData, DType, Scalar, Type};

/// A type without its arrays.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum Base {
    Int,
    Real,
    Vector,
    RowVector,
    Matrix,
    Complex,
    ComplexVector,
    ComplexRowVector,
    ComplexMatrix,
    /// Its own types are those of its parts.
    Tuple,
}

impl Base {
    /// Its own axes.
    pub(super) fn rank(self) -> usize {
        match self {
            Base::Int | Base::Real | Base::Complex | Base::Tuple => 0,
            Base::Vector | Base::RowVector | Base::ComplexVector | Base::ComplexRowVector => 1,
            Base::Matrix | Base::ComplexMatrix => 2,
        }
    }
    /// The same with complex numbers in the place of numbers.
    fn complex(self) -> Base {
        match self {
            Base::Int | Base::Real => Base::Complex,
            Base::Vector => Base::ComplexVector,
            Base::RowVector => Base::ComplexRowVector,
            Base::Matrix => Base::ComplexMatrix,
            base => base,
        }
    }
    /// The same with reals in the place of complex numbers.
    fn real(self) -> Base {
        match self {
            Base::Complex => Base::Real,
            Base::ComplexVector => Base::Vector,
            Base::ComplexRowVector => Base::RowVector,
            Base::ComplexMatrix => Base::Matrix,
            base => base,
        }
    }
}

/// A type without extents: so many arrays of a base.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Kind {
    pub(super) base: Base,
    /// Axes of `array[…]`.
    pub(super) arrays: usize,
}

impl Kind {
    pub(super) const INT: Kind = Kind::of(Base::Int);
    pub(super) const REAL: Kind = Kind::of(Base::Real);
    pub(super) const VECTOR: Kind = Kind::of(Base::Vector);
    pub(super) const ROW_VECTOR: Kind = Kind::of(Base::RowVector);
    pub(super) const MATRIX: Kind = Kind::of(Base::Matrix);

    /// No array.
    pub(super) const fn of(base: Base) -> Kind {
        Kind { base, arrays: 0 }
    }
    /// All axes.
    pub(super) fn rank(self) -> usize {
        self.arrays + self.base.rank()
    }
    pub(super) fn is_int(self) -> bool {
        self.base == Base::Int
    }
    pub(super) fn is_complex(self) -> bool {
        self.base.real() != self.base
    }
    /// The same with complex numbers in the place of numbers.
    pub(super) fn complex(self) -> Kind {
        Kind { base: self.base.complex(), ..self }
    }
    /// The same with reals in the place of complex numbers: what both parts are.
    pub(super) fn real(self) -> Kind {
        Kind { base: self.base.real(), ..self }
    }
    /// The type of an array of it on the host.
    pub(super) fn host_type(self, shape: &[usize]) -> Type {
        Type::new(if self.is_int() { DType::Int } else { DType::Real }, shape.iter().copied())
    }
    /// Of what an element of the outermost axis is.
    pub(super) fn element(self) -> Kind {
        match self {
            Kind { arrays: 1.., base } => Kind { base, arrays: self.arrays - 1 },
            Kind { base: Base::Matrix, .. } => Kind::ROW_VECTOR,
            _ if self.is_complex() => self.real().element().complex(),
            _ => Kind::REAL,
        }
    }
    /// The kind of a type that has no tuples.
    pub(super) fn of_type(ty: &UnsizedType) -> Option<Kind> {
        let base = match ty {
            UnsizedType::Int => Base::Int,
            UnsizedType::Real => Base::Real,
            UnsizedType::Vector => Base::Vector,
            UnsizedType::RowVector => Base::RowVector,
            UnsizedType::Matrix => Base::Matrix,
            UnsizedType::Complex => Base::Complex,
            UnsizedType::ComplexVector => Base::ComplexVector,
            UnsizedType::ComplexRowVector => Base::ComplexRowVector,
            UnsizedType::ComplexMatrix => Base::ComplexMatrix,
            UnsizedType::Array(element) => {
                let Kind { base, arrays } = Kind::of_type(element)?;
                return Some(Kind { base, arrays: arrays + 1 });
            }
            UnsizedType::Tuple(_) => return None,
        };
        Some(Kind::of(base))
    }
    /// As Stan writes it.
    pub(super) fn shown(self) -> String {
        let base = match self.base {
            Base::Int => "int",
            Base::Real => "real",
            Base::Vector => "vector",
            Base::RowVector => "row_vector",
            Base::Matrix => "matrix",
            Base::Complex => "complex",
            Base::ComplexVector => "complex_vector",
            Base::ComplexRowVector => "complex_row_vector",
            Base::ComplexMatrix => "complex_matrix",
            Base::Tuple => "tuple(…)",
        };
        match self.arrays {
            0 => base.to_owned(),
            n => format!("array[{}] {base}", ",".repeat(n - 1)),
        }
    }
}

crate::define_id!(
    /// A node of a [`Graph`](super::graph::Graph).
    #[allow(unreachable_pub, reason = "the macro makes public ids")]
    NodeId, "node"
);

/// A scalar.
#[derive(Clone, Copy, Debug)]
pub(super) enum Elem {
    Int(i64),
    Real(f64),
    /// An element of the value of a node, in row-major order.
    Of(NodeId, u32),
}

impl Elem {
    fn bits(self) -> (u8, u64) {
        match self {
            Elem::Int(i) => (0, i as u64),
            Elem::Real(x) => (1, x.to_bits()),
            Elem::Of(node, at) => (2, u64::from(node.0) << 32 | u64::from(at)),
        }
    }
    pub(super) fn is_known(self) -> bool {
        !matches!(self, Elem::Of(..))
    }
    /// The number, where it is known.
    pub(super) fn known(self) -> Option<Scalar> {
        match self {
            Elem::Int(i) => Some(Scalar::Int(i)),
            Elem::Real(x) => Some(Scalar::Real(x)),
            Elem::Of(..) => None,
        }
    }
    /// An int that is known as the real that it is.
    pub(super) fn as_real(self) -> Elem {
        if let Elem::Int(i) = self { Elem::Real(i as f64) } else { self }
    }
}
impl PartialEq for Elem {
    fn eq(&self, other: &Self) -> bool {
        self.bits() == other.bits()
    }
}
impl Eq for Elem {}
impl Hash for Elem {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bits().hash(state);
    }
}

/// What a value is, row-major.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// Known on the host: a real array for reals, an int array for ints. No scalar is one: the host makes millions.
    Known(Arc<Array>),
    /// A scalar, known or of lanes: a real one for reals, an int for ints.
    Scalar(Elem),
    /// All of the value of a node.
    Whole(NodeId),
    /// Elements of several nodes, and known ones.
    Elements(Elems),
    /// Of a tuple, or an array of tuples: its parts, each with the axes of the array before its own. Of complex numbers the
    /// real and the imaginary parts, both of the shape of the value.
    Parts(Arc<Vec<Val>>),
    /// As many elements along the first axis as lanes compute.
    Counted(Arc<Counted>),
}

/// The elements of a container of which lanes compute how many it has.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    /// As many as there can be: those that there are, then any others that could be among them.
    pub(super) whole: Val,
    /// How many there are: an int of lanes, never more than there can be.
    pub(super) count: Val,
}

/// An array or a scalar.
#[derive(Clone, Debug)]
pub(super) struct Val {
    pub(super) kind: Kind,
    /// Extents of all axes, those of arrays first.
    pub(super) shape: Vec<usize>,
    pub(super) what: What,
}

impl Val {
    pub(super) fn int(i: i64) -> Val {
        Val::scalar(Kind::INT, Elem::Int(i))
    }
    pub(super) fn real(x: f64) -> Val {
        Val::scalar(Kind::REAL, Elem::Real(x))
    }
    /// A number; an int that is known is promoted where a real is wanted.
    pub(super) fn scalar(kind: Kind, elem: Elem) -> Val {
        let elem = if kind.is_int() { elem } else { elem.as_real() };
        Val { kind, shape: Vec::new(), what: What::Scalar(elem) }
    }
    pub(super) fn bool(b: bool) -> Val {
        Val::int(i64::from(b))
    }
    /// A known value; ints among reals are promoted.
    pub(super) fn known(kind: Kind, array: Array) -> Val {
        let array = if kind.is_int() { array } else { to_real(array) };
        let shape = array.shape.to_vec();
        if shape.is_empty() {
            return Val::scalar(kind, element(&array, 0));
        }
        Val { kind, shape, what: What::Known(Arc::new(array)) }
    }
    /// From its elements: known where all are.
    pub(super) fn from_elems(kind: Kind, shape: Vec<usize>, elems: Vec<Elem>) -> Val {
        debug_assert_eq!(shape.iter().product::<usize>(), elems.len());
        if let ([one], true) = (&elems[..], shape.is_empty()) {
            return if one.is_known() {
                Val::scalar(kind, *one)
            } else {
                Val { kind, shape, what: What::Scalar(*one) }
            };
        }
        if elems.iter().all(|e| e.is_known()) {
            let array = if kind.is_int() {
                let ints = elems.iter().map(|e| if let Elem::Int(i) = e { *i } else { 0 });
                Array::int(shape.iter().copied(), ints.collect())
            } else {
                let reals = elems.iter().map(|e| if let Elem::Real(x) = e.as_real() { x } else { f64::NAN });
                Array::real(shape.iter().copied(), reals.collect())
            };
            return Val { kind, shape, what: What::Known(Arc::new(array)) };
        }
        Val { kind, shape, what: What::Elements(elems.into()) }
    }
    pub(super) fn is_known(&self) -> bool {
        match &self.what {
            What::Known(_) => true,
            What::Scalar(elem) => elem.is_known(),
            What::Parts(parts) => parts.iter().all(Val::is_known),
            _ => false,
        }
    }
    pub(super) fn is_scalar(&self) -> bool {
        self.shape.is_empty()
    }
    pub(super) fn len(&self) -> usize {
        self.shape.iter().product()
    }
    /// The array, where it is known and no scalar.
    pub(super) fn array(&self) -> Option<&Array> {
        if let What::Known(array) = &self.what { Some(array) } else { None }
    }
    /// The number, where it is one and known.
    pub(super) fn number(&self) -> Option<Scalar> {
        if let What::Scalar(elem) = &self.what { elem.known() } else { None }
    }
    /// All of it as an array of the host, where it is known.
    pub(super) fn to_array(&self) -> Option<Array> {
        self.number().map(Array::scalar).or_else(|| self.array().cloned())
    }
    /// The int, where it is one and known.
    pub(super) fn as_int(&self) -> Option<i64> {
        if let What::Scalar(Elem::Int(i)) = &self.what { Some(*i) } else { None }
    }
    /// As `print` shows it, where it is known.
    pub(super) fn known_text(&self) -> Option<String> {
        Some(self.to_array()?.to_string())
    }
    /// The number as a real, where it is one and known.
    pub(super) fn as_real(&self) -> Option<f64> {
        match &self.what {
            What::Scalar(Elem::Int(i)) => Some(*i as f64),
            What::Scalar(Elem::Real(x)) => Some(*x),
            _ => None,
        }
    }
    /// The elements as reals, where they are known.
    pub(super) fn reals(&self) -> Option<Vec<f64>> {
        if let Some(x) = self.as_real() {
            return Some(vec![x]);
        }
        match &self.array()?.data {
            ArrayData::Int(v) => Some(v.iter().map(|i| *i as f64).collect()),
            ArrayData::Real(v) => Some(v.clone()),
            ArrayData::Bool(_) => None,
        }
    }
    /// The elements as ints, where they are and are known.
    pub(super) fn ints(&self) -> Option<Vec<i64>> {
        if let Some(i) = self.as_int() {
            return Some(vec![i]);
        }
        if let ArrayData::Int(v) = &self.array()?.data { Some(v.clone()) } else { None }
    }
    /// One element.
    pub(super) fn elem(&self, at: usize) -> Elem {
        match &self.what {
            What::Known(array) => element(array, at),
            What::Scalar(elem) => *elem,
            What::Whole(node) => Elem::Of(*node, at as u32),
            What::Elements(elems) => elems.get(at),
            What::Parts(_) => unreachable!("a tuple or a complex value has parts, not elements"),
            What::Counted(_) => unreachable!("whoever takes a value of so many elements knows how many there are"),
        }
    }
    /// All elements.
    pub(super) fn elems(&self) -> Vec<Elem> {
        match &self.what {
            What::Elements(elems) => elems.list().to_vec(),
            _ => (0..self.len()).map(|at| self.elem(at)).collect(),
        }
    }
    /// The same, without a copy where they are a list.
    pub(super) fn elem_list(&self) -> Cow<'_, [Elem]> {
        match &self.what {
            What::Elements(elems) => Cow::Borrowed(&elems.list()[..]),
            _ => Cow::Owned(self.elems()),
        }
    }
    /// The elements and their number, where lanes compute it.
    pub(super) fn counted(&self) -> Option<&Counted> {
        if let What::Counted(counted) = &self.what { Some(counted) } else { None }
    }
    /// The elements at these places, as a value of this kind and shape.
    pub(super) fn pick(&self, kind: Kind, shape: Vec<usize>, at: impl Iterator<Item = usize>) -> Val {
        if let What::Parts(parts) = &self.what {
            let at: Vec<usize> = at.collect();
            let of = |part: &Val| part.pick(kind.real(), shape.clone(), at.iter().copied());
            return Val { kind, what: What::Parts(Arc::new(parts.iter().map(of).collect())), shape };
        }
        if let (What::Known(array), false) = (&self.what, shape.is_empty()) {
            let array = match &array.data {
                ArrayData::Int(v) => Array::int(shape.iter().copied(), at.map(|i| v[i]).collect()),
                ArrayData::Real(v) => Array::real(shape.iter().copied(), at.map(|i| v[i]).collect()),
                ArrayData::Bool(v) => Array::bool(shape.iter().copied(), at.map(|i| v[i]).collect()),
            };
            return Val { kind, shape, what: What::Known(Arc::new(array)) };
        }
        let mut elems = at.map(|i| self.elem(i));
        if shape.is_empty() {
            return Val::scalar(kind, elems.next().expect("a scalar has an element"));
        }
        Val::from_elems(kind, shape, elems.collect())
    }
    /// The same elements under another kind and shape.
    pub(super) fn reshaped(&self, kind: Kind, shape: Vec<usize>) -> Val {
        debug_assert_eq!(shape.iter().product::<usize>(), self.len());
        let what = match &self.what {
            What::Known(array) if !shape.is_empty() => {
                let mut array = (**array).clone();
                array.shape = shape.iter().copied().collect();
                What::Known(Arc::new(if kind.is_int() { array } else { to_real(array) }))
            }
            What::Whole(_) if shape == self.shape => self.what.clone(),
            _ => return Val::from_elems(kind, shape, self.elems()),
        };
        Val { kind, shape, what }
    }
    /// Sets the elements at these places to those of a value.
    pub(super) fn set(&mut self, places: &[usize], value: &Val) {
        if let (What::Known(array), true) = (&mut self.what, value.is_known()) {
            let array = Arc::make_mut(array);
            for (i, place) in places.iter().enumerate() {
                match (&mut array.data, value.elem(i)) {
                    (ArrayData::Int(old), Elem::Int(new)) => old[*place] = new,
                    (ArrayData::Real(old), Elem::Real(new)) => old[*place] = new,
                    _ => unreachable!("values are promoted before they are set"),
                }
            }
            return;
        }
        if value.shape == self.shape
            && places.len() == self.len()
            && places.iter().enumerate().all(|(i, place)| i == *place)
        {
            self.what = value.what.clone();
            return;
        }
        if !matches!(self.what, What::Elements(_)) {
            self.what = What::Elements(self.elems().into());
        }
        let What::Elements(elems) = &mut self.what else { unreachable!("made above") };
        for (i, place) in places.iter().enumerate() {
            elems.set(*place, value.elem(i));
        }
    }
    /// With ints as reals.
    pub(super) fn promoted(&self) -> Val {
        if !self.kind.is_int() {
            return self.clone();
        }
        let kind = Kind { base: Base::Real, ..self.kind };
        match &self.what {
            What::Known(array) => Val::known(kind, (**array).clone()),
            What::Scalar(elem) => Val::scalar(kind, *elem),
            What::Counted(counted) => {
                let whole = counted.whole.promoted();
                let (shape, count) = (whole.shape.clone(), counted.count.clone());
                Val { kind, shape, what: What::Counted(Counted { whole, count }.into()) }
            }
            what => Val { kind, shape: self.shape.clone(), what: what.clone() },
        }
    }
}

fn element(array: &Array, at: usize) -> Elem {
    match &array.data {
        ArrayData::Int(v) => Elem::Int(v[at]),
        ArrayData::Real(v) => Elem::Real(v[at]),
        ArrayData::Bool(v) => Elem::Int(i64::from(v[at])),
    }
}

fn to_real(array: Array) -> Array {
    match array.data {
        ArrayData::Int(v) => Array { shape: array.shape, data: ArrayData::Real(v.iter().map(|i| *i as f64).collect()) },
        _ => array,
    }
}
