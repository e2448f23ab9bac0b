//! Named values for a program's parameters, from files and from the command line, before their types are known.

use std::borrow::{Borrow, Cow};
use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value;

use super::json::array_from_json;
use super::{IoError, JsonArray, file, parse_data, parse_json, read_npy, read_npz, write_atomically, write_npz};
use crate::types::{Array, ArrayData, ComplexPart, DType, Datum, Document, Numbers, Precision};

/// What a parameter wants of its value before dimensions are bound: `real[_, _]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArrayType {
    /// Element type.
    pub dtype: DType,
    /// Number of axes, the one over the lanes included where there is one; 0 for a scalar.
    pub rank: usize,
}

impl fmt::Display for ArrayType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.dtype)?;
        if self.rank > 0 {
            write!(f, "[{}]", vec!["_"; self.rank].join(", "))?;
        }
        Ok(())
    }
}

/// A value whose type the parameter that takes it decides.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Data {
    /// From a text: lists and numbers.
    Json(Value),
    /// From a text: a rectangular list of numbers.
    Numbers(Arc<Numbers>),
    /// From NumPy, or made by the host.
    Array(Array),
}

impl Data {
    /// The value as an array of the type that the parameter `name` wants. Ints become reals where reals are wanted;
    /// nothing else is converted.
    pub fn to_array(&self, name: &str, expected: ArrayType) -> Result<Array, IoError> {
        match self {
            Data::Json(value) => array_from_json(name, value, expected),
            // What does not fit is told by the elements as they were written.
            Data::Numbers(numbers) => converted(name, numbers.array(), expected)
                .or_else(|_| array_from_json(name, &numbers.to_value(), expected)),
            Data::Array(array) => converted(name, array, expected),
        }
    }

    /// Of pairs, which stand on the last axis, those at this place.
    fn of_pairs(&self, at: usize) -> Option<Data> {
        match self {
            Data::Json(value) => of_json_pairs(value, at).map(Data::Json),
            Data::Numbers(numbers) => of_json_pairs(&numbers.to_value(), at).map(Data::Json),
            Data::Array(array) => match (array.shape.split_last(), array.as_real()) {
                (Some((2, shape)), Some(values)) => {
                    let part = values.iter().skip(at).step_by(2).copied().collect();
                    Some(Data::Array(Array::real(shape.iter().copied(), part)))
                }
                _ => None,
            },
        }
    }

    /// How many leading axes of `array`, which was made of it, have an extent that the value tells: of `[]` as a matrix only
    /// the first, since nothing stands in the list. Arrays tell all of theirs.
    pub fn known_axes(&self, array: &Array) -> usize {
        let rank = array.shape.len();
        match self {
            Data::Json(_) => array.shape.iter().position(|extent| *extent == 0).map_or(rank, |axis| axis + 1),
            Data::Array(_) | Data::Numbers(_) => rank,
        }
    }

    /// The value of type "whatever it is": the narrowest of bool, int and real that holds every element. For values
    /// that no parameter takes and for tools.
    pub fn guess_type(&self) -> ArrayType {
        let of_array = |array: &Array| ArrayType { dtype: array.dtype(), rank: array.shape.len() };
        match self {
            Data::Array(array) => of_array(array),
            Data::Numbers(numbers) => of_array(numbers.array()),
            Data::Json(value) => guess_json_type(value),
        }
    }

    /// What a text has to say, as JSON.
    pub fn as_json(&self) -> Option<Cow<'_, Value>> {
        match self {
            Data::Json(value) => Some(Cow::Borrowed(value)),
            Data::Numbers(numbers) => Some(Cow::Owned(numbers.to_value())),
            Data::Array(_) => None,
        }
    }
}

impl From<&Data> for Datum {
    fn from(data: &Data) -> Self {
        match data {
            Data::Json(value) => value.into(),
            Data::Numbers(numbers) => Datum::Numbers(numbers.clone()),
            Data::Array(array) => array.into(),
        }
    }
}

impl From<Datum> for Data {
    fn from(datum: Datum) -> Self {
        match datum {
            Datum::Numbers(numbers) => Data::Numbers(numbers),
            Datum::Json(value) => Data::Json(value),
        }
    }
}

/// Of each pair, a list of two that are no lists, the one at this place; `None` where something is no pair.
fn of_json_pairs(value: &Value, at: usize) -> Option<Value> {
    match value.as_array()?.as_slice() {
        pair @ [re, im] if !re.is_array() && !im.is_array() => Some(pair[at].clone()),
        items => items.iter().map(|item| of_json_pairs(item, at)).collect::<Option<_>>().map(Value::Array),
    }
}

/// Adds a value, or the parts of tuples in it.
fn add_parts(
    name: String,
    value: &Value,
    whole: &HashSet<&str>,
    values: &mut IndexMap<String, Data>,
) -> Result<(), String> {
    // The names `name.1:1`, `name.2:1`, … of the elements of an array of tuples, up to the largest number.
    let number = |other: &&str| {
        let rest = other.strip_prefix(&*name)?.strip_prefix('.')?;
        rest.split(['.', ':']).next()?.parse::<usize>().ok()
    };
    let elements = || whole.iter().filter_map(number).max();
    let has_parts = || whole.iter().any(|other| other.strip_prefix(&*name).is_some_and(|rest| rest.starts_with(':')));
    match value {
        Value::Object(parts) if !parts.is_empty() || has_parts() => {
            parts.iter().try_for_each(|(key, part)| add_parts(format!("{name}:{key}"), part, whole, values))
        }
        Value::Array(items) if !whole.contains(&*name) && !has_parts() => match (elements(), items.len()) {
            (Some(wanted), found) if wanted != found => {
                Err(format!("`{name}` has {found} tuples, where the program has {wanted}"))
            }
            // An array of tuples without elements has no names.
            (None, 1..) => insert_once(name, Data::Json(value.clone()), values),
            _ => (items.iter().enumerate())
                .try_for_each(|(i, item)| add_parts(format!("{name}.{}", i + 1), item, whole, values)),
        },
        _ => insert_once(name, Data::Json(value.clone()), values),
    }
}

fn insert_once(name: String, data: Data, values: &mut IndexMap<String, Data>) -> Result<(), String> {
    let twice = format!("`{name}` is there twice");
    values.insert(name, data).map_or(Ok(()), |_| Err(twice))
}

fn converted(name: &str, array: &Array, expected: ArrayType) -> Result<Array, IoError> {
    let same_rank = array.shape.len() == expected.rank;
    match &array.data {
        ArrayData::Int(ints) if same_rank && expected.dtype == DType::Real => {
            Ok(Array { shape: array.shape.clone(), data: ArrayData::Real(ints.iter().map(|i| *i as f64).collect()) })
        }
        _ if same_rank && array.dtype() == expected.dtype => Ok(array.clone()),
        _ => Err(IoError::Mismatch {
            place: name.to_owned(),
            expected: expected.to_string(),
            found: array.ty().to_string(),
        }),
    }
}

fn guess_json_type(value: &Value) -> ArrayType {
    match value {
        Value::Array(list) => {
            let inner: Vec<ArrayType> = list.iter().map(guess_json_type).collect();
            let dtype = inner.iter().map(|ty| ty.dtype).max().unwrap_or(DType::Real);
            ArrayType { dtype, rank: 1 + inner.first().map_or(0, |ty| ty.rank) }
        }
        Value::Bool(_) => ArrayType { dtype: DType::Bool, rank: 0 },
        Value::Number(number) if number.is_i64() => ArrayType { dtype: DType::Int, rank: 0 },
        _ => ArrayType { dtype: DType::Real, rank: 0 },
    }
}

/// Named values from one place, in their order there.
#[derive(Clone, PartialEq, Debug)]
pub struct NamedValues {
    origin: String,
    values: IndexMap<String, Data>,
}

impl NamedValues {
    /// Reads a file whose every entry is a variable: Stan's JSON data format (one object), or a `.npz` archive.
    pub fn read(path: &Path) -> Result<Self, IoError> {
        let origin = file::shown(path);
        match extension(path).as_str() {
            "npz" => {
                let arrays = read_npz(path)?.into_iter();
                Ok(Self { origin, values: arrays.map(|(name, array)| (name, Data::Array(array))).collect() })
            }
            "json" => match parse_data(&file::read_text(path)?, &origin)? {
                Document::Object(object) => {
                    let values = object.into_iter().map(|(name, value)| (name, value.into())).collect();
                    Ok(Self { origin, values })
                }
                Document::Other(_) => {
                    Err(IoError::Malformed { origin, message: "expected an object with one key a variable".to_owned() })
                }
            },
            _ => Err(IoError::UnknownFormat { path: path.to_owned(), expected: ".json or .npz" }),
        }
    }

    /// The objects of a JSON file that is a list of them, as one has values for each of several chains; `None` for any other.
    ///
    /// # Errors
    /// For a file that cannot be read or is no JSON, and a list that has other things, too.
    pub fn list(path: &Path) -> Result<Option<Vec<Self>>, IoError> {
        let origin = file::shown(path);
        let Value::Array(items) = parse_json(&file::read_text(path)?, &origin)? else { return Ok(None) };
        if !items.first().is_some_and(Value::is_object) {
            return Ok(None);
        }
        let object = |(i, item): (usize, Value)| match item {
            Value::Object(object) => {
                let values = object.into_iter().map(|(name, value)| (name, Data::Json(value))).collect();
                Ok(Self { origin: format!("{origin}[{i}]"), values })
            }
            _ => {
                let message = format!("[{i}] is no object, as [0] is");
                Err(IoError::Malformed { origin: origin.clone(), message })
            }
        };
        items.into_iter().enumerate().map(object).collect::<Result<_, _>>().map(Some)
    }

    /// Values that are there, and where they come from, for messages.
    pub fn of(origin: String, arrays: IndexMap<String, Array>) -> Self {
        Self { origin, values: arrays.into_iter().map(|(name, array)| (name, Data::Array(array))).collect() }
    }

    /// The same of values that may be JSON.
    pub fn of_data(origin: String, values: impl IntoIterator<Item = (String, Data)>) -> Self {
        Self { origin, values: values.into_iter().collect() }
    }

    /// The same with the parts `t:1`, `t:2`, … in the place of each tuple `t`, which is an object with the keys "1", "2", …,
    /// and `a.1:1`, … in that of a list of tuples. What is among `names` stays whole.
    ///
    /// # Errors
    /// For a list of as many tuples as `names` do not have, and for a part that is there twice.
    pub fn with_tuple_parts(&self, names: &[String]) -> Result<Self, IoError> {
        let whole: HashSet<&str> = names.iter().map(String::as_str).collect();
        let mut values = IndexMap::new();
        for (name, data) in &self.values {
            match data {
                Data::Json(value) => add_parts(name.clone(), value, &whole, &mut values),
                // A list of numbers has no tuples; where there should be some, it is told what it has.
                Data::Numbers(_) if whole.contains(name.as_str()) => {
                    insert_once(name.clone(), data.clone(), &mut values)
                }
                Data::Numbers(numbers) => add_parts(name.clone(), &numbers.to_value(), &whole, &mut values),
                Data::Array(_) => {
                    values.insert(name.clone(), data.clone());
                    Ok(())
                }
            }
            .map_err(|message| IoError::Malformed { origin: self.origin.clone(), message })?;
        }
        Ok(Self { origin: self.origin.clone(), values })
    }

    /// The same with the parts `z.real` and `z.imag` in the place of each `z` of these names: complex numbers are pairs.
    ///
    /// # Errors
    /// For a `z` that has no pairs.
    pub fn with_complex_parts(&self, names: &[String]) -> Result<Self, IoError> {
        let mut values = IndexMap::new();
        for (name, data) in &self.values {
            if !names.contains(name) {
                values.insert(name.clone(), data.clone());
                continue;
            }
            let (Some(re), Some(im)) = (data.of_pairs(0), data.of_pairs(1)) else {
                let message = format!("`{name}` is complex: each of its numbers is a list of two, [real, imaginary]");
                return Err(IoError::Malformed { origin: self.origin.clone(), message });
            };
            values.insert(ComplexPart::Real.of(name), re);
            values.insert(ComplexPart::Imaginary.of(name), im);
        }
        Ok(Self { origin: self.origin.clone(), values })
    }

    /// Where the values come from, for messages: a file name in backquotes.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// All names, in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    /// Every name with its value, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Data)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The value of this name, if there is one.
    pub fn get(&self, name: &str) -> Option<&Data> {
        self.values.get(name)
    }

    /// The value of this name as an array of this type.
    pub fn array(&self, name: &str, expected: ArrayType) -> Result<Array, IoError> {
        self.required(name)?.to_array(name, expected)
    }

    fn required(&self, name: &str) -> Result<&Data, IoError> {
        self.values.get(name).ok_or_else(|| IoError::Missing {
            variable: name.to_owned(),
            origin: self.origin.clone(),
            names: self.values.keys().cloned().collect(),
        })
    }

    /// Takes the value of this name, or the only one there is.
    fn take_named_or_only(mut self, name: &str) -> Result<Data, IoError> {
        if self.values.len() == 1
            && let Some((_, only)) = self.values.pop()
        {
            return Ok(only);
        }
        self.required(name).cloned()
    }
}

/// Reads an argument `name=JSON`, `name=@file.json`, `name=@file.npy` or `name=@file.npz`. Of an archive, or of a JSON
/// object, the entry called `name` is meant, or the only one.
pub fn read_argument(argument: &str) -> Result<(String, Data), IoError> {
    let (name, value) = argument
        .split_once('=')
        .map(|(name, value)| (name.trim(), value.trim()))
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| IoError::Argument { argument: argument.to_owned() })?;
    let data = match value.strip_prefix('@') {
        Some(path) => read_value(name, Path::new(path))?,
        None => match parse_data(value, &format!("the value of `{name}`"))? {
            Document::Other(value) => value.into(),
            object => Data::Json(object.into_value()),
        },
    };
    Ok((name.to_owned(), data))
}

fn read_value(name: &str, path: &Path) -> Result<Data, IoError> {
    match extension(path).as_str() {
        "npy" => read_npy(path).map(Data::Array),
        "npz" => NamedValues::read(path)?.take_named_or_only(name),
        "json" => match parse_data(&file::read_text(path)?, &file::shown(path))? {
            Document::Object(_) => NamedValues::read(path)?.take_named_or_only(name),
            Document::Other(value) => Ok(value.into()),
        },
        _ => Err(IoError::UnknownFormat { path: path.to_owned(), expected: ".json, .npy or .npz" }),
    }
}

/// Writes named arrays to a file: a `.npz` archive, or a `.json` object of nested lists, which can be read back as data.
/// Those of `ragged` have lanes of different lengths: `.json` gets these lists instead of the array with padding.
/// `precision` is that of the run they come from: it says how many digits the reals have in `.json`.
pub fn write_arrays<A: Borrow<Array>>(
    path: &Path,
    arrays: &IndexMap<String, A>,
    ragged: &IndexMap<String, Vec<Array>>,
    precision: Precision,
) -> Result<(), IoError> {
    match extension(path).as_str() {
        "npz" => write_npz(path, arrays),
        "json" => {
            write_atomically(path, |writer| Ok(serde_json::to_writer(writer, &JsonObject(arrays, ragged, precision))?))
        }
        _ => Err(IoError::UnknownFormat { path: path.to_owned(), expected: ".npz or .json" }),
    }
}

struct JsonObject<'a, A>(&'a IndexMap<String, A>, &'a IndexMap<String, Vec<Array>>, Precision);

impl<A: Borrow<Array>> Serialize for JsonObject<'_, A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(self.0.len()))?;
        for (name, array) in self.0 {
            match self.1.get(name) {
                Some(lanes) => {
                    let lanes: Vec<JsonArray<'_>> = lanes.iter().map(JsonArray).collect();
                    object.serialize_entry(name, &lanes)?;
                }
                None if self.2 == Precision::F64 => object.serialize_entry(name, &JsonArray(array.borrow()))?,
                None => object.serialize_entry(name, &JsonArray(&array.borrow().clone().shown(self.2)))?,
            }
        }
        object.end()
    }
}

fn extension(path: &Path) -> String {
    path.extension().map(|extension| extension.to_string_lossy().to_lowercase()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::io::file::tests::Folder;

    const REALS: ArrayType = ArrayType { dtype: DType::Real, rank: 1 };

    #[test]
    fn stan_data_is_read_by_name() {
        let folder = Folder::new("stan-data");
        let path = folder.0.join("eight_schools.json");
        std::fs::write(&path, "\u{feff}{\"J\": 3, \"y\": [28, 8.5, NaN], \"sigma\": [15, 10, 16]}").unwrap();
        let data = NamedValues::read(&path).unwrap();
        assert_eq!(data.names().collect::<Vec<_>>(), ["J", "y", "sigma"]);
        assert_eq!(data.array("sigma", REALS).unwrap(), Array::real([3], vec![15.0, 10.0, 16.0]));
        assert_eq!(data.array("J", ArrayType { dtype: DType::Int, rank: 0 }).unwrap(), Array::int([], vec![3]));
        let missing = data.array("tau", REALS).unwrap_err().to_string();
        assert!(missing.contains("no `tau`") && missing.contains("`J`, `y`, `sigma`"), "{missing}");
    }

    #[test]
    fn arguments_are_json_or_files() {
        let folder = Folder::new("arguments");
        let mut arrays = IndexMap::new();
        arrays.insert("x".to_owned(), Array::int([2], vec![3, 4]));
        arrays.insert("y".to_owned(), Array::real([1], vec![0.5]));
        let path = |name: &str| folder.0.join(name);
        write_arrays(&path("a.npz"), &arrays, &IndexMap::new(), Precision::F64).unwrap();
        write_arrays(&path("a.json"), &arrays, &IndexMap::new(), Precision::F64).unwrap();
        super::super::write_npy(&path("a.npy"), &arrays["x"]).unwrap();
        std::fs::write(path("list.json"), "[3, 4]").unwrap();
        let files = ["a.npz", "a.json", "a.npy", "list.json"].map(|name| format!("x=@{}", path(name).display()));
        for argument in files.iter().map(String::as_str).chain(["x=[3, 4]", " x = [3,4] "]) {
            let (name, data) = read_argument(argument).unwrap();
            assert_eq!(name, "x");
            assert_eq!(data.to_array("x", REALS).unwrap(), Array::real([2], vec![3.0, 4.0]), "{argument}");
        }
        for argument in ["x", "=3", "x=@draws.csv", "x=[1,", "x=@no/such.npy"] {
            assert!(read_argument(argument).is_err(), "{argument}");
        }
    }

    #[test]
    fn parts_of_tuples_are_there_once_and_as_many_as_the_program_has() {
        let read = |text: &str| {
            let Value::Object(object) = parse_json(text, "x").unwrap() else { panic!("{text}") };
            let values = object.iter().map(|(name, value)| (name.clone(), Datum::from(value).into()));
            NamedValues::of_data("x".to_owned(), values)
        };
        let names = ["t:1", "t:2", "a.1", "a.2", "a.3"].map(str::to_owned);
        let parts = |text: &str| read(text).with_tuple_parts(&names).map_err(|error| error.to_string());
        let whole = parts(r#"{"t": {"1": [0.5, 2], "2": 3}}"#).unwrap();
        assert_eq!(whole.array("t:1", REALS).unwrap(), Array::real([2], vec![0.5, 2.0]));
        for (text, why) in [
            (r#"{"t": {"1": [0.1, 0.2]}, "t:1": [5, 6]}"#, "`t:1` is there twice"),
            (r#"{"t:1": [5, 6], "t": {"1": [0.1, 0.2]}}"#, "`t:1` is there twice"),
            (r#"{"a": [[1, 2], [3, 4]]}"#, "`a` has 2 tuples, where the program has 3"),
        ] {
            let error = parts(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn only_ints_become_reals() {
        let reals = Data::Array(Array::real([2, 2], vec![0.0; 4]));
        let error = reals.to_array("x", ArrayType { dtype: DType::Int, rank: 2 }).unwrap_err().to_string();
        assert_eq!(error, "`x`: expected int[_, _], found real[2, 2]");
        let error = reals.to_array("x", REALS).unwrap_err().to_string();
        assert_eq!(error, "`x`: expected real[_], found real[2, 2]");
    }

    #[test]
    fn data_that_are_not_an_object_are_refused() {
        let folder = Folder::new("not-an-object");
        let path = folder.0.join("data.json");
        for text in ["[1, 2]", "3", "", "{\"a\": [1"] {
            std::fs::write(&path, text).unwrap();
            assert!(NamedValues::read(&path).unwrap_err().to_string().contains("data.json"), "{text}");
        }
        assert!(matches!(NamedValues::read(Path::new("data.csv")), Err(IoError::UnknownFormat { .. })));
    }

    #[test]
    fn tuples_are_objects_and_their_parts_have_names() {
        let text = r#"{"x": [1], "t": {"1": 1, "2": {"1": [2, 3], "9": 4}}, "a": [{"1": 5}, {"1": 6}], "none": []}"#;
        let Ok(Value::Object(object)) = parse_json(text, "x") else { panic!("an object") };
        let values = object.into_iter().map(|(name, value)| (name, Data::Json(value))).collect();
        let names = ["x", "t:1", "t:2:1", "a.1:1", "a.2:1"].map(str::to_owned);
        let parts = NamedValues { origin: "x".to_owned(), values }.with_tuple_parts(&names).unwrap();
        let mut found: Vec<&str> = parts.names().collect();
        found.sort_unstable();
        assert_eq!(found, ["a.1:1", "a.2:1", "t:1", "t:2:1", "t:2:9", "x"]);
        assert_eq!(parts.array("t:2:1", REALS).unwrap(), Array::real([2], vec![2.0, 3.0]));
    }

    #[test]
    fn types_are_guessed_narrowly() {
        let guess = |text: &str| Data::Json(parse_json(text, "x").unwrap()).guess_type().to_string();
        let cases = [("[1, 2.5]", "real[_]"), ("[[1], [2]]", "int[_, _]"), ("true", "bool"), ("NaN", "real")];
        for (text, ty) in cases {
            assert_eq!(guess(text), ty);
        }
    }
}
