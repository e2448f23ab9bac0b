//! Values of JSON as data have them: lists of numbers take what arrays take.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bitvec::slice::BitSlice;
use bitvec::vec::BitVec;
use indexmap::IndexMap;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeSeq, Serializer};
use serde_json::{Map, Value};

use super::{Array, ArrayData, DType, Scalar, Shape};

/// A value of JSON whose objects have each key once. A list of numbers, or of such lists of one length, is an array: a
/// [`Value`] takes 72 bytes for each number, and data have millions. Copies of it share the array.
#[derive(Clone, PartialEq, Debug)]
pub enum Datum {
    /// A rectangular list of numbers, not empty.
    Numbers(Arc<Numbers>),
    /// Anything else.
    Json(Value),
}

impl Datum {
    fn into_value(self) -> Value {
        match self {
            Datum::Numbers(numbers) => numbers.to_value(),
            Datum::Json(value) => value,
        }
    }

    /// The value as it was written.
    pub fn as_value(&self) -> Cow<'_, Value> {
        match self {
            Datum::Numbers(numbers) => Cow::Owned(numbers.to_value()),
            Datum::Json(value) => Cow::Borrowed(value),
        }
    }

    /// Of a list the elements.
    pub fn rows(&self) -> Option<Vec<Datum>> {
        match self {
            Datum::Numbers(numbers) => Some(numbers.rows()),
            Datum::Json(value) => Some(value.as_array()?.iter().map(Datum::from).collect()),
        }
    }
}

impl From<&Array> for Datum {
    fn from(array: &Array) -> Self {
        let ints = match &array.data {
            ArrayData::Real(values) => BitVec::repeat(false, values.len()),
            ArrayData::Int(_) | ArrayData::Bool(_) => BitVec::new(),
        };
        if array.dtype() == DType::Bool || array.shape.is_empty() || array.is_empty() {
            return Datum::Json(serde_json::to_value(JsonArray(array)).expect("arrays are JSON"));
        }
        Datum::Numbers(Arc::new(Numbers { array: array.clone(), ints }))
    }
}

impl From<&Value> for Datum {
    fn from(value: &Value) -> Self {
        Self::deserialize(value).expect("the objects of a value have each key once")
    }
}

/// A rectangular list of numbers, not empty. Of an array of the host, reals may be infinite or NaN.
#[derive(Clone, PartialEq, Debug)]
pub struct Numbers {
    array: Array,
    /// Of an array of reals, which numbers are written as ints: all of them are reals to who wants reals.
    ints: BitVec,
}

/// Ints up to here are reals that tell them again.
const EXACT: u64 = 1 << 53;

impl Numbers {
    /// The numbers: an array of ints if all are written so, else of reals.
    pub fn array(&self) -> &Array {
        &self.array
    }

    /// The list as it was written.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("numbers are JSON")
    }

    fn rows(&self) -> Vec<Datum> {
        let (count, inner) = self.array.shape.split_first().expect("it is a list");
        let size: usize = inner.iter().product();
        let row = |row: usize| {
            let part = Part { array: &self.array, ints: &self.ints, axis: 1, start: row };
            if inner.is_empty() {
                return Datum::Json(serde_json::to_value(part).expect("numbers are JSON"));
            }
            let places = row * size..(row + 1) * size;
            let shape = inner.iter().copied();
            let numbers = match &self.array.data {
                ArrayData::Int(values) => {
                    Self { array: Array::int(shape, values[places].to_vec()), ints: BitVec::new() }
                }
                ArrayData::Real(values) if self.ints[places.clone()].all() => {
                    let ints = values[places].iter().map(|x| *x as i64).collect();
                    Self { array: Array::int(shape, ints), ints: BitVec::new() }
                }
                ArrayData::Real(values) => {
                    let ints = self.ints[places.clone()].to_bitvec();
                    Self { array: Array::real(shape, values[places].to_vec()), ints }
                }
                ArrayData::Bool(_) => unreachable!("they are numbers"),
            };
            Datum::Numbers(Arc::new(numbers))
        };
        (0..*count).map(row).collect()
    }
}

/// An array as nested lists for any serde format; what is not finite becomes `"NaN"`, `"Inf"` or `"-Inf"`.
#[derive(Clone, Copy, Debug)]
pub struct JsonArray<'a>(pub &'a Array);

impl Serialize for JsonArray<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Part { array: self.0, ints: BitSlice::empty(), axis: 0, start: 0 }.serialize(serializer)
    }
}

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Part { array: &self.array, ints: &self.ints, axis: 0, start: 0 }.serialize(serializer)
    }
}

impl Serialize for Datum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Datum::Numbers(numbers) => numbers.serialize(serializer),
            Datum::Json(value) => value.serialize(serializer),
        }
    }
}

/// The elements that share their first `axis` indices.
struct Part<'a> {
    array: &'a Array,
    /// The reals that are written as ints.
    ints: &'a BitSlice,
    axis: usize,
    start: usize,
}

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some((extent, inner)) = self.array.shape[self.axis..].split_first() else {
            return match self.array.get(self.start) {
                Scalar::Bool(b) => serializer.serialize_bool(b),
                Scalar::Int(i) => serializer.serialize_i64(i),
                Scalar::Real(r) if self.ints.get(self.start).is_some_and(|is_int| *is_int) => {
                    serializer.serialize_i64(r as i64)
                }
                Scalar::Real(r) if r.is_finite() => serializer.serialize_f64(r),
                Scalar::Real(r) if r.is_nan() => serializer.serialize_str("NaN"),
                Scalar::Real(r) => serializer.serialize_str(if r > 0.0 { "Inf" } else { "-Inf" }),
            };
        };
        let stride: usize = inner.iter().product();
        let mut list = serializer.serialize_seq(Some(*extent))?;
        for i in 0..*extent {
            list.serialize_element(&Part { axis: self.axis + 1, start: self.start + i * stride, ..*self })?;
        }
        list.end()
    }
}

/// What stands in a text, before it is known what it stands in.
enum Found {
    Int(i64),
    Real(f64),
    Numbers(Numbers),
    Object(IndexMap<String, Datum>),
    Other(Value),
}

impl Found {
    fn into_value(self) -> Value {
        match self {
            Found::Int(i) => i.into(),
            Found::Real(x) => x.into(),
            Found::Numbers(numbers) => numbers.to_value(),
            Found::Object(entries) => {
                entries.into_iter().map(|(key, datum)| (key, datum.into_value())).collect::<Map<_, _>>().into()
            }
            Found::Other(value) => value,
        }
    }

    fn datum(self) -> Datum {
        match self {
            Found::Numbers(numbers) => Datum::Numbers(Arc::new(numbers)),
            other => Datum::Json(other.into_value()),
        }
    }
}

/// A list as it is read: of numbers as long as it can be.
enum List {
    Numbers(Growing),
    Values(Vec<Value>),
}

impl List {
    fn push(&mut self, element: Found) {
        match self {
            List::Numbers(growing) => {
                if let Err(element) = growing.push(element) {
                    let mut values = match std::mem::take(growing).list() {
                        Some(Value::Array(values)) => values,
                        _ => vec![],
                    };
                    values.push(element.into_value());
                    *self = List::Values(values);
                }
            }
            List::Values(values) => values.push(element.into_value()),
        }
    }

    fn found(self) -> Found {
        match self {
            List::Numbers(growing) => growing.numbers().map_or(Found::Other(Value::Array(vec![])), Found::Numbers),
            List::Values(values) => Found::Other(Value::Array(values)),
        }
    }
}

/// A list of numbers, or of rectangular lists of them, as it is read.
#[derive(Default)]
struct Growing {
    count: usize,
    /// The shape of an element.
    inner: Shape,
    /// All numbers, as long as all are written as ints.
    ints: Vec<i64>,
    /// All numbers, from the first on that is written as a real, and which of them are written as ints.
    reals: Vec<f64>,
    written_as_ints: BitVec,
}

impl Growing {
    /// Adds an element. Gives it back where the list is none of numbers with it.
    fn push(&mut self, element: Found) -> Result<(), Found> {
        let fits = match &element {
            Found::Int(i) => self.inner.is_empty() && (self.reals.is_empty() || is_exact(*i)),
            Found::Real(_) => self.inner.is_empty() && self.becomes_real(),
            Found::Numbers(Numbers { array, .. }) => {
                (self.count == 0 || self.inner == array.shape)
                    && match &array.data {
                        ArrayData::Int(values) => self.reals.is_empty() || values.iter().all(|i| is_exact(*i)),
                        _ => self.becomes_real(),
                    }
            }
            Found::Object(_) | Found::Other(_) => false,
        };
        if !fits {
            return Err(element);
        }
        match element {
            Found::Int(i) if self.reals.is_empty() => self.ints.push(i),
            Found::Int(i) => self.push_reals([i as f64], true),
            Found::Real(x) => self.push_reals([x], false),
            Found::Numbers(Numbers { array, ints }) => {
                self.inner = array.shape;
                match array.data {
                    ArrayData::Int(values) if self.reals.is_empty() => self.ints.extend(values),
                    ArrayData::Int(values) => self.push_reals(values.into_iter().map(|i| i as f64), true),
                    ArrayData::Real(values) => {
                        self.reals.extend(values);
                        self.written_as_ints.extend(ints);
                    }
                    ArrayData::Bool(_) => unreachable!("they are numbers"),
                }
            }
            Found::Object(_) | Found::Other(_) => unreachable!("it does not fit"),
        }
        self.count += 1;
        Ok(())
    }

    fn push_reals(&mut self, values: impl IntoIterator<Item = f64>, are_ints: bool) {
        self.reals.extend(values);
        self.written_as_ints.resize(self.reals.len(), are_ints);
    }

    /// Takes the ints so far as reals, if these tell them again.
    fn becomes_real(&mut self) -> bool {
        if !self.ints.iter().all(|i| is_exact(*i)) {
            return false;
        }
        let ints = std::mem::take(&mut self.ints);
        self.push_reals(ints.into_iter().map(|i| i as f64), true);
        true
    }

    /// The list; nothing if it has no elements.
    fn numbers(mut self) -> Option<Numbers> {
        if self.count == 0 {
            return None;
        }
        // They stay as long as the data do.
        self.ints.shrink_to_fit();
        self.reals.shrink_to_fit();
        self.written_as_ints.shrink_to_fit();
        let shape = std::iter::once(self.count).chain(self.inner);
        let array = match self.reals.is_empty() {
            true => Array::int(shape, self.ints),
            false => Array::real(shape, self.reals),
        };
        Some(Numbers { array, ints: self.written_as_ints })
    }

    fn list(self) -> Option<Value> {
        self.numbers().map(|numbers| numbers.to_value())
    }
}

/// Whether a real tells this int.
fn is_exact(i: i64) -> bool {
    i.unsigned_abs() <= EXACT
}

impl<'de> Deserialize<'de> for Datum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Found::deserialize(deserializer).map(Found::datum)
    }
}

/// A text of JSON: named values, or one value.
#[derive(Clone, PartialEq, Debug)]
pub enum Document {
    /// An object, in its order.
    Object(IndexMap<String, Datum>),
    /// Anything else.
    Other(Datum),
}

impl Document {
    /// The value as it was written.
    pub fn into_value(self) -> Value {
        match self {
            Document::Object(entries) => Found::Object(entries).into_value(),
            Document::Other(datum) => datum.into_value(),
        }
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Found::deserialize(deserializer)? {
            Found::Object(entries) => Document::Object(entries),
            other => Document::Other(other.datum()),
        })
    }
}

impl<'de> Deserialize<'de> for Found {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FoundVisitor)
    }
}

struct FoundVisitor;

impl<'de> Visitor<'de> for FoundVisitor {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Found, E> {
        Ok(Found::Other(value.into()))
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Found, E> {
        Ok(Found::Int(value))
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Found, E> {
        Ok(i64::try_from(value).map_or_else(|_| Found::Other(value.into()), Found::Int))
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Found, E> {
        Ok(Found::Real(value))
    }
    fn visit_str<E: de::Error>(self, value: &str) -> Result<Found, E> {
        Ok(Found::Other(value.into()))
    }
    fn visit_string<E: de::Error>(self, value: String) -> Result<Found, E> {
        Ok(Found::Other(value.into()))
    }
    fn visit_unit<E: de::Error>(self) -> Result<Found, E> {
        Ok(Found::Other(Value::Null))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Found, A::Error> {
        let mut list = List::Numbers(Growing::default());
        while let Some(element) = elements.next_element()? {
            list.push(element);
        }
        Ok(list.found())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Found, A::Error> {
        let mut object = IndexMap::new();
        while let Some(key) = entries.next_key::<String>()? {
            if object.contains_key(&key) {
                // Of two values under one name it cannot be told which is meant.
                return Err(de::Error::custom(format_args!("the key `{key}` stands twice")));
            }
            object.insert(key, entries.next_value()?);
        }
        Ok(Found::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Datum {
        serde_json::from_str(text).expect("it is JSON")
    }

    /// The array of a list of numbers.
    fn array(text: &str) -> Option<Array> {
        match read(text) {
            Datum::Numbers(numbers) => Some(numbers.array().clone()),
            Datum::Json(_) => None,
        }
    }

    #[test]
    fn rectangular_lists_of_numbers_are_arrays() {
        assert_eq!(array("[1, 2]"), Some(Array::int([2], vec![1, 2])));
        assert_eq!(array("[1, 2.5, 3]"), Some(Array::real([3], vec![1.0, 2.5, 3.0])));
        assert_eq!(array("[[[1], [2.0]], [[3], [4]]]"), Some(Array::real([2, 2, 1], vec![1.0, 2.0, 3.0, 4.0])));
        assert_eq!(array("[9007199254740993]"), Some(Array::int([1], vec![9_007_199_254_740_993])));
        // A real does not tell the int again, lists differ in length or in depth, or something is no number.
        for text in [
            "[9007199254740993, 0.5]",
            "[0.5, 9007199254740993]",
            "[[9007199254740993], [0.5]]",
            "[[0.5], [9007199254740993]]",
            "[[1, 2], [3]]",
            "[1, [2]]",
            "[[1], 2]",
            "[[1], []]",
            "[[], [1]]",
            "[]",
            "[[], []]",
            "[1, true]",
            "[1, \"NaN\"]",
            "[18446744073709551615]",
            "3",
            "{\"a\": [1]}",
        ] {
            assert_eq!(array(text), None, "{text}");
        }
    }

    #[test]
    fn what_was_written_is_told_again() {
        for value in [
            json!([1, 2.5, 3.0, -0.0, -7]),
            json!([[1, 2], [3, 4.0]]),
            json!([[1.5, 2], [3, 4]]),
            json!([9_007_199_254_740_993_i64, 0.5]),
            json!([[1], [0.5], "NaN", {"b": [1, 2.0]}, null, []]),
            json!(18_446_744_073_709_551_615_u64),
        ] {
            let datum = Datum::from(&value);
            assert_eq!(datum.as_value().into_owned(), value);
            assert_eq!(read(&serde_json::to_string(&datum).unwrap()), datum);
            assert_eq!(datum.as_value().into_owned().to_string(), value.to_string());
            if let Some(rows) = datum.rows() {
                assert_eq!(rows.iter().map(|row| row.as_value().into_owned()).collect::<Value>(), value);
            }
        }
        let document: Document = serde_json::from_str(r#"{"b": [1, 2.0], "a": {"c": 1}}"#).unwrap();
        assert_eq!(document.into_value().to_string(), r#"{"b":[1,2.0],"a":{"c":1}}"#);
    }

    #[test]
    fn arrays_of_the_host_may_have_what_is_not_finite() {
        let datum = Datum::from(&Array::real([2], vec![f64::NAN, f64::NEG_INFINITY]));
        assert_eq!(datum.as_value().into_owned(), json!(["NaN", "-Inf"]));
        assert!(matches!(&datum, Datum::Numbers(numbers) if numbers.array().as_real().unwrap()[0].is_nan()));
        assert_eq!(Datum::from(&Array::bool([2], vec![true, false])), Datum::Json(json!([true, false])));
        assert_eq!(Datum::from(&Array::int([], vec![3])), Datum::Json(json!(3)));
    }
}
