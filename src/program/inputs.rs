//! The inputs of a run, by name, and how they are bound to what an entry point wants.

use indexmap::IndexMap;
use ndarray::{ArrayBase, Data, Dimension};

use crate::lower::hir_to_cfg::{Shapes, Signature, SignaturePort, Told};
use crate::program::error::{Error, ErrorKind};
use crate::program::ragged::{self, Lengths};
use crate::types::{Array, ArrayData, DType, Scalar, Type};

/// Values for the parameters of an entry point, by name. Fields of a struct parameter `z` are `z.q`, parts of a tuple `t.0`.
///
/// Lane inputs have the lanes as their leading axis, all of one length; a length of 1 serves every lane. Shared inputs have
/// no such axis; a shared value that is given to an ordinary parameter serves every lane as well.
///
/// An array of a bounded dimension `t`, `real[t <= 100]`, is given with padding: its axis is at least as long as the longest lane,
/// what lies beyond the length of a lane is not looked at, and the lengths are a lane input of their own, an int under the name
/// of the dimension. Without it every lane has the length of the axis. `Inputs::add_data` takes JSON lists of different
/// lengths.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    pub(crate) values: IndexMap<String, Given>,
    /// Dimensions that are told by their names.
    pub(crate) dims: IndexMap<String, ToldDim>,
    pub(crate) lanes: Option<usize>,
}

/// The number of a dimension, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct ToldDim {
    pub(crate) number: i64,
    /// ` by --shared`, or nothing.
    pub(crate) by: String,
    /// Whether it was told of the dimensions of another function: one of the same name may mean something else, so that
    /// it counts only where nothing else tells.
    pub(crate) of_another: bool,
}

/// A value and how it was given.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) array: Array,
    pub(crate) shared: bool,
    /// How many of its leading axes have extents that the value tells: not those within an empty list of JSON.
    pub(crate) known_axes: usize,
    /// For a list of JSON whose lanes have different lengths: axes of an event and how long each lane is along them, as
    /// far as the lane tells: an empty list does not tell what would stand in it.
    pub(crate) lengths: Vec<(usize, Vec<Option<usize>>)>,
}

impl Given {
    /// A value that tells its whole shape.
    pub(crate) fn new(array: Array, shared: bool) -> Self {
        Self { known_axes: array.shape.len(), array, shared, lengths: Vec::new() }
    }
    /// These rows of a lane input.
    fn rows(&self, rows: std::ops::Range<usize>) -> Self {
        let lengths = self.lengths.iter().map(|(axis, lengths)| (*axis, lengths[rows.clone()].to_vec())).collect();
        Self { array: self.array.rows(rows), shared: self.shared, known_axes: self.known_axes, lengths }
    }
    /// How many axes of an event are known.
    fn known_event_axes(&self) -> usize {
        if self.shared { self.known_axes } else { self.known_axes.saturating_sub(1) }
    }
}

impl Inputs {
    /// No inputs yet.
    pub fn new() -> Self {
        Self::default()
    }
    /// Adds a lane input: one value for each lane, along the leading axis.
    #[must_use]
    pub fn lane(mut self, name: impl Into<String>, value: impl Into<Array>) -> Self {
        self.values.insert(name.into(), Given::new(value.into(), false));
        self
    }
    /// Adds a shared input: one value for all lanes.
    #[must_use]
    pub fn shared(mut self, name: impl Into<String>, value: impl Into<Array>) -> Self {
        self.values.insert(name.into(), Given::new(value.into(), true));
        self
    }
    /// Says the number of a dimension. It must be that of the arrays that have it, and holds where no array tells it.
    #[must_use]
    pub fn dimension(mut self, name: impl Into<String>, number: i64) -> Self {
        self.dims.insert(name.into(), ToldDim { number, by: String::new(), of_another: false });
        self
    }
    /// The dimensions of a signature that are told.
    #[doc(hidden)]
    pub fn told(&self, signature: &Signature) -> Told {
        self.told_where(signature, |dim| !dim.of_another)
    }
    /// The same, and those that count where nothing else tells.
    fn told_anyhow(&self, signature: &Signature) -> Told {
        self.told_where(signature, |_| true)
    }
    fn told_where(&self, signature: &Signature, counts: impl Fn(&ToldDim) -> bool) -> Told {
        let is_port = |name: &str| signature.ports.iter().any(|p| p.name == name);
        let told = signature.dims.iter().filter(|(_, name)| !is_port(name));
        told.filter_map(|(id, name)| Some((id, self.dims.get(name).filter(|dim| counts(dim))?.number))).collect()
    }
    /// The dimensions that the shared values tell that are given for the parameters.
    #[doc(hidden)]
    pub fn told_by_arrays(&self, signature: &Signature) -> Told {
        let of = |port: &SignaturePort| {
            self.values.get(&port.name).filter(|given| given.shared).map(|given| given.array.ty())
        };
        signature.told_by(&signature.ports.iter().map(of).collect::<Vec<_>>())
    }
    /// For another function: without the values that it does not take. What is told of dimensions counts only where
    /// nothing else tells, since the function may mean another one by the name.
    #[doc(hidden)]
    #[must_use]
    pub fn restricted_to(mut self, signature: &Signature) -> Self {
        self.dims.values_mut().for_each(|dim| dim.of_another = true);
        self.values.retain(|name, _| signature.ports.iter().any(|p| p.name == *name));
        self
    }
    /// Of each lane input these rows, of one that serves every lane its one.
    #[doc(hidden)]
    #[must_use]
    pub fn rows(&self, rows: std::ops::Range<usize>) -> Self {
        let values = self.values.iter().map(|(name, given)| {
            let one_for_all = given.shared || given.array.shape.first().is_none_or(|n| *n == 1);
            let given = if one_for_all { given.clone() } else { given.rows(rows.clone()) };
            (name.clone(), given)
        });
        Self { values: values.collect(), dims: self.dims.clone(), lanes: Some(rows.len()) }
    }
    /// The number of lanes that the lane inputs tell, or else [`lanes`](Self::lanes).
    ///
    /// # Errors
    /// [`ErrorKind::Input`] when two disagree, one has no leading axis, or nothing tells.
    pub fn lane_count(&self) -> Result<usize, Error> {
        lane_count(self)
    }
    /// Sets the number of lanes, where no lane input tells.
    #[must_use]
    pub fn lanes(mut self, lanes: usize) -> Self {
        self.lanes = Some(lanes);
        self
    }
}

/// The element types of host arrays that become an [`Array`]: `f64`, `f32`, `i64`, `i32`, `bool`.
pub trait Element: Copy {
    /// The elements in the width of the host: f64 and i64.
    fn collect(elements: impl Iterator<Item = Self>) -> ArrayData;
}

macro_rules! elements {
    ($($t:ty => $variant:ident;)*) => {$(
        impl Element for $t {
            fn collect(elements: impl Iterator<Item = Self>) -> ArrayData {
                ArrayData::$variant(elements.map(Into::into).collect())
            }
        }
        impl From<$t> for Array {
            fn from(value: $t) -> Self {
                Array::new([], <$t>::collect(std::iter::once(value)))
            }
        }
    )*};
}

elements! {
    f64 => Real;
    f32 => Real;
    i64 => Int;
    i32 => Int;
    bool => Bool;
}

impl<S: Data<Elem: Element>, D: Dimension> From<&ArrayBase<S, D>> for Array {
    fn from(array: &ArrayBase<S, D>) -> Self {
        Array::new(array.shape().iter().copied(), S::Elem::collect(array.iter().copied()))
    }
}
impl<S: Data<Elem: Element>, D: Dimension> From<ArrayBase<S, D>> for Array {
    fn from(array: ArrayBase<S, D>) -> Self {
        Array::from(&array)
    }
}
impl<T: Element> From<Vec<T>> for Array {
    fn from(values: Vec<T>) -> Self {
        Array::new([values.len()], T::collect(values.into_iter()))
    }
}

/// Converts the elements where nothing is lost and the language would do it too: ints to reals.
pub(crate) fn convert(array: Array, dtype: DType) -> Option<Array> {
    if array.dtype() == dtype {
        return Some(array);
    }
    match (array.data, dtype) {
        (ArrayData::Int(v), DType::Real) => {
            Some(Array { shape: array.shape, data: ArrayData::Real(v.into_iter().map(|x| x as f64).collect()) })
        }
        // An empty list says nothing about its elements.
        (data, _) if Array { shape: array.shape.clone(), data: data.clone() }.is_empty() => {
            Some(Array::zeros(&Type { dtype, shape: array.shape }))
        }
        _ => None,
    }
}

/// The same value in every lane.
fn repeat(array: &Array, lanes: usize) -> Array {
    let mut shape = array.shape.clone();
    shape.insert(0, lanes);
    let data = match &array.data {
        ArrayData::Bool(v) => ArrayData::Bool(v.repeat(lanes)),
        ArrayData::Int(v) => ArrayData::Int(v.repeat(lanes)),
        ArrayData::Real(v) => ArrayData::Real(v.repeat(lanes)),
    };
    Array { shape, data }
}

/// The event type of a lane input.
pub(crate) fn event_type(array: &Array) -> Type {
    Type { dtype: array.dtype(), shape: array.shape[1..].into() }
}

/// How many lanes the given inputs make.
///
/// # Errors
/// When two lane inputs disagree, a lane input has no axis, or nothing tells.
pub(crate) fn lane_count(inputs: &Inputs) -> Result<usize, Error> {
    let mut found: Option<(&str, usize)> = None;
    let mut ones = false;
    for (name, given) in inputs.values.iter().filter(|(_, g)| !g.shared) {
        let Some(n) = given.array.shape.first().copied() else {
            let message = format!(
                "lane input `{name}` is a single value; give a list with one value a lane, or pass it by --shared"
            );
            return Err(Error::new(ErrorKind::Input, message));
        };
        match found {
            _ if n == 1 => ones = true,
            None => found = Some((name, n)),
            Some((other, m)) if m != n => {
                let message =
                    format!("lane inputs disagree on the number of lanes: `{other}` has {m}, `{name}` has {n}");
                return Err(Error::new(ErrorKind::Input, message));
            }
            Some(_) => {}
        }
    }
    match (found, inputs.lanes) {
        (Some((name, n)), Some(lanes)) if n != lanes => Err(Error::new(
            ErrorKind::Input,
            format!("lane input `{name}` has {n} lanes, but {lanes} lanes are asked for"),
        )),
        (Some((_, n)), _) | (None, Some(n)) => Ok(n),
        (None, None) if ones => Ok(1),
        (None, None) => Err(Error::new(ErrorKind::Input, "no lane input tells the number of lanes; give --lanes")),
    }
}

impl From<Scalar> for Array {
    fn from(value: Scalar) -> Self {
        Array::scalar(value)
    }
}

/// Values bound to the ports of a signature.
pub(crate) struct Values {
    /// Event types, one for each port, and the dimensions that they leave open.
    pub(crate) shapes: Shapes,
    /// Lane inputs, one for each port that is not shared.
    lanes: Vec<LaneInput>,
    /// Shared inputs by name.
    pub(crate) shared: IndexMap<String, Array>,
}

/// A lane input before it takes the memory that its lanes need.
enum LaneInput {
    /// Leading axis lanes.
    Rows(Array),
    /// One event for every lane.
    Everywhere(Array),
    /// Rows that get padding up to this event type; one row serves every lane.
    Padded(Array, Type, Lengths),
}

impl Values {
    /// The lane inputs, leading axis lanes.
    pub(crate) fn lane_arrays(self, lanes: usize) -> Vec<Array> {
        let rows = |input| match input {
            LaneInput::Rows(array) => array,
            LaneInput::Everywhere(array) => repeat(&array, lanes),
            LaneInput::Padded(array, event, lengths) => {
                let mut padded = ragged::padded(&array, &event, &lengths);
                if padded.shape[0] == 1 && lanes != 1 {
                    padded.shape.remove(0);
                    padded = repeat(&padded, lanes);
                }
                padded
            }
        };
        self.lanes.into_iter().map(rows).collect()
    }
}

/// Refuses an array that was put together of a shape and elements that do not fit one another.
fn refuse_misshapen(name: &str, array: &Array) -> Result<(), Error> {
    let elements = array.shape.iter().try_fold(1_usize, |n, extent| n.checked_mul(*extent));
    if elements == Some(array.len()) {
        return Ok(());
    }
    let shape: Vec<String> = array.shape.iter().map(ToString::to_string).collect();
    let message = format!("`{name}` has {} elements, and its shape is [{}]", array.len(), shape.join(", "));
    Err(Error::new(ErrorKind::Input, message))
}

/// Binds the given values to the ports of `function`.
///
/// # Errors
/// When one is missing, was given as a lane input where it is shared, or has another element type or number of axes; when
/// lengths of bounded dimensions disagree or are larger than their bounds.
pub(crate) fn bind(inputs: &Inputs, function: &str, signature: &Signature, lanes: usize) -> Result<Values, Error> {
    let mut arrays = Vec::new();
    let (mut types, mut known) = (Vec::new(), Vec::new());
    for port in &signature.ports {
        if port.length_of.is_some() {
            types.push(Type::int());
            known.push(0);
            arrays.push(None);
            continue;
        }
        let given = given(inputs, function, signature, port)?;
        refuse_misshapen(&port.name, &given.array)?;
        let wrong = || wrong_type(signature, port, given);
        let array = convert(given.array.clone(), port.dtype).ok_or_else(wrong)?;
        let event = if given.shared { array.ty() } else { event_type(&array) };
        if event.shape.len() != port.extents.len() {
            return Err(wrong());
        }
        types.push(event);
        known.push(given.known_event_axes());
        arrays.push(Some((given, array)));
    }
    let told = inputs.told(signature);
    refuse_contradictions(inputs, signature, (&types, &known), &told)?;
    signature.complete(&mut types, &known, &told);
    let lengths = ragged::lengths(inputs, signature, &types, lanes)?;
    let told = signature.open(&types, inputs.told_anyhow(signature));
    let mut values = Values { shapes: Shapes { types, told }, lanes: Vec::new(), shared: IndexMap::new() };
    for ((port, bound), event) in signature.ports.iter().zip(arrays).zip(&values.shapes.types) {
        let Some((given, mut array)) = bound else {
            let of = port.length_of.and_then(|id| lengths.get(&id)).map_or(&[][..], |rows| rows);
            values.lanes.push(match of {
                [one] if lanes != 1 => LaneInput::Everywhere(Array::int([], vec![*one])),
                rows => LaneInput::Rows(Array::int([rows.len()], rows.to_vec())),
            });
            continue;
        };
        if port.extents.iter().any(|d| signature.bounded(d).is_some()) {
            let axes = ragged::axes(signature, port, &lengths);
            if given.shared {
                array.shape.insert(0, 1);
            }
            values.lanes.push(LaneInput::Padded(array, event.clone(), axes));
            continue;
        }
        let events = usize::from(!given.shared);
        array.shape.truncate(events);
        array.shape.extend_from_slice(&event.shape);
        if port.shared {
            values.shared.insert(port.name.clone(), array);
        } else if given.shared {
            values.lanes.push(LaneInput::Everywhere(array));
        } else if array.shape[0] == 1 && lanes != 1 {
            let one = Array { shape: array.shape[1..].into(), data: array.data };
            values.lanes.push(LaneInput::Everywhere(one));
        } else {
            values.lanes.push(LaneInput::Rows(array));
        }
    }
    Ok(values)
}

/// Refuses dimensions that are told to be another number than the arrays make them.
///
/// # Errors
/// For the first of them.
pub(crate) fn refuse_contradictions(
    inputs: &Inputs,
    signature: &Signature,
    (types, known): (&[Type], &[usize]),
    told: &Told,
) -> Result<(), Error> {
    let Some((id, said, port, number)) = signature.contradicted(types, known, told) else {
        return Ok(());
    };
    let name = &signature.dims[id];
    let port = &signature.ports[port];
    let by = inputs.dims.get(name).map_or("", |dim| &dim.by);
    let found = match (port.extents.iter().any(|d| d.alone() == Some(id)), number) {
        (true, 1) => "has 1 entry".to_owned(),
        (true, number) => format!("has {number} entries"),
        (false, number) => format!("makes it {number} (`{}`)", port.describe(&signature.dims)),
    };
    let message = format!("`{name}` is {said}{by}, but `{}` {found}", port.name);
    Err(Error::new(ErrorKind::Input, message))
}

/// Refuses values that `function` does not take.
///
/// # Errors
/// For the first of them, with what the function takes.
pub(crate) fn refuse_unknown(inputs: &Inputs, function: &str, signature: &Signature) -> Result<(), Error> {
    let ports = &signature.ports;
    let Some((name, given)) = inputs.values.iter().find(|(name, _)| !ports.iter().any(|p| p.name == **name)) else {
        return Ok(());
    };
    let wanted: Vec<String> = ports.iter().map(|p| format!("`{}: {}`", p.name, p.describe(&signature.dims))).collect();
    let wanted = if wanted.is_empty() { "no inputs".to_owned() } else { wanted.join(", ") };
    let dimension = if signature.dims.values().any(|dim| dim == name) {
        format!("; `{name}` is a dimension: --shared tells it")
    } else {
        String::new()
    };
    let found = given.array.ty();
    let message = format!("`{function}` has no input `{name}` (found {found}); it takes {wanted}{dimension}");
    Err(Error::new(ErrorKind::Input, message))
}

fn given<'i>(
    inputs: &'i Inputs,
    function: &str,
    signature: &Signature,
    port: &SignaturePort,
) -> Result<&'i Given, Error> {
    let ty = port.describe(&signature.dims);
    let Some(given) = inputs.values.get(&port.name) else {
        let of = if port.shared { "one for all lanes" } else { "one for each lane" };
        let message = format!("`{function}` needs a value for `{}`, of type {ty}, {of}", port.name);
        return Err(Error::new(ErrorKind::Input, message));
    };
    if port.shared && !given.shared {
        let name = &port.name;
        let message = format!("`{name}` is shared: it has one value of type {ty} for all lanes");
        return Err(Error::new(ErrorKind::Input, message));
    }
    Ok(given)
}

fn wrong_type(signature: &Signature, port: &SignaturePort, given: &Given) -> Error {
    let found = if given.shared { given.array.ty() } else { event_type(&given.array) };
    let each = if given.shared { "" } else { " in each lane" };
    let expected = port.describe(&signature.dims);
    let message = format!("`{}` has the wrong type: expected {expected}{each}, found {found}", port.name);
    Error::new(ErrorKind::Input, message)
}
