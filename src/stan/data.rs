//! The data of a Stan program: a JSON object, its values by the names and types that the program declares (CmdStan's
//! guide, "JSON format for CmdStan").

use indexmap::IndexMap;
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::value::{Base, Kind};
use crate::types::{Array, ArrayData, Datum};

/// The data of a Stan program, by their names. Copies share arrays.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StanData {
    values: IndexMap<String, Datum>,
}

impl StanData {
    /// The value of this name, if there is one.
    pub fn get(&self, name: &str) -> Option<&Datum> {
        self.values.get(name)
    }

    /// Every name with its value, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Datum)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Adds a value, or puts it in the place of another of its name.
    pub fn insert(&mut self, name: String, value: Datum) {
        self.values.insert(name, value);
    }
}

impl Serialize for StanData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(&self.values)
    }
}

impl FromIterator<(String, Datum)> for StanData {
    fn from_iter<I: IntoIterator<Item = (String, Datum)>>(values: I) -> Self {
        Self { values: values.into_iter().collect() }
    }
}

impl From<&StanData> for StanData {
    fn from(data: &StanData) -> Self {
        data.clone()
    }
}

impl From<&Map<String, Value>> for StanData {
    fn from(object: &Map<String, Value>) -> Self {
        object.iter().map(|(name, value)| (name.clone(), value.into())).collect()
    }
}

/// The value of a variable, in row-major order; of complex numbers, which are pairs, with an axis of two behind its own.
///
/// # Errors
/// Where it is missing, or has another type or size than the program declares: in the words of both.
pub(super) fn read(given: &StanData, name: &str, kind: Kind, shape: &[usize]) -> Result<Array, String> {
    let size = |shape: &[usize]| shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let ty = if shape.is_empty() { kind.shown() } else { format!("{} of size {}", kind.shown(), size(shape)) };
    let elements = shape.iter().product::<usize>();
    let Some(value) = given.get(name) else {
        if elements == 0 {
            return Ok(empty(kind, shape));
        }
        return Err(format!("the data lack `{name}`, {ty}"));
    };
    if let Datum::Numbers(numbers) = value
        && let Some(array) = fitting(numbers.array(), kind, shape)
    {
        return Ok(array);
    }
    let value = &*value.as_value();
    // An empty list stands for any shape without elements.
    if elements == 0 && value.as_array().is_some_and(Vec::is_empty) {
        return Ok(empty(kind, shape));
    }
    let mut reader = Reader { name, ty: &ty, kind, ints: Vec::new(), reals: Vec::new(), place: Vec::new() };
    reader.walk(value, shape)?;
    let shape = extents(kind, shape);
    Ok(match kind.base {
        Base::Int => Array::int(shape, reader.ints),
        _ => Array::real(shape, reader.reals),
    })
}

/// An array that has the type and the size that the program declares.
fn fitting(array: &Array, kind: Kind, shape: &[usize]) -> Option<Array> {
    if !array.shape.iter().copied().eq(extents(kind, shape)) {
        return None;
    }
    match (&array.data, kind.is_int()) {
        (ArrayData::Int(values), true) => values.iter().all(|i| i32::try_from(*i).is_ok()).then(|| array.clone()),
        (ArrayData::Int(values), false) => {
            Some(Array::real(array.shape.iter().copied(), values.iter().map(|i| *i as f64).collect()))
        }
        (ArrayData::Real(_), false) => Some(array.clone()),
        _ => None,
    }
}

fn extents(kind: Kind, shape: &[usize]) -> impl Iterator<Item = usize> {
    shape.iter().copied().chain(kind.is_complex().then_some(2))
}

fn empty(kind: Kind, shape: &[usize]) -> Array {
    let shape = extents(kind, shape);
    if kind.is_int() { Array::int(shape, vec![]) } else { Array::real(shape, vec![]) }
}

struct Reader<'a> {
    name: &'a str,
    ty: &'a str,
    kind: Kind,
    ints: Vec<i64>,
    reals: Vec<f64>,
    place: Vec<usize>,
}

impl Reader<'_> {
    fn here(&self) -> String {
        let place: Vec<String> = self.place.iter().map(|i| format!("[{}]", i + 1)).collect();
        format!("`{}{}`", self.name, place.concat())
    }

    fn walk(&mut self, value: &Value, shape: &[usize]) -> Result<(), String> {
        let Some((extent, rest)) = shape.split_first() else {
            return if self.kind.is_complex() { self.pair(value) } else { self.number(value) };
        };
        let Some(items) = value.as_array() else {
            let found = short(value);
            return Err(format!("{} is {found}, but the program declares {}", self.here(), self.ty));
        };
        if items.len() != *extent {
            let n = items.len();
            return Err(format!("{} has {n} entries, but the program declares {}", self.here(), self.ty));
        }
        for (i, item) in items.iter().enumerate() {
            self.place.push(i);
            self.walk(item, rest)?;
            self.place.pop();
        }
        Ok(())
    }

    /// A complex number.
    fn pair(&mut self, value: &Value) -> Result<(), String> {
        let Some([re, im]) = value.as_array().map(Vec::as_slice) else {
            let found = short(value);
            return Err(format!(
                "{} is {found}, but a complex number is a list of two: [real, imaginary]",
                self.here()
            ));
        };
        self.number(re)?;
        self.number(im)
    }

    fn number(&mut self, value: &Value) -> Result<(), String> {
        if self.kind.is_int() {
            let Some(i) = value.as_i64() else {
                return Err(format!("{} is {}, which is no int, as {} wants", self.here(), short(value), self.ty));
            };
            if i32::try_from(i).is_err() {
                return Err(format!("{} is {i}, which is no int of Stan: they have 32 bits", self.here()));
            }
            self.ints.push(i);
            return Ok(());
        }
        let x = match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => match text.as_str() {
                "NaN" => Some(f64::NAN),
                "Inf" | "+Inf" | "Infinity" | "+Infinity" => Some(f64::INFINITY),
                "-Inf" | "-Infinity" => Some(f64::NEG_INFINITY),
                _ => None,
            },
            _ => None,
        };
        match x {
            Some(x) => self.reals.push(x),
            None => return Err(format!("{} is {}, which is no number", self.here(), short(value))),
        }
        Ok(())
    }
}

/// A value in a message.
fn short(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
        other => other.to_string(),
    }
}
