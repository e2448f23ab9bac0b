//! Arrays as nested JSON lists, row-major, with Stan's spellings of numbers that JSON lacks.

use std::borrow::Cow;

use serde_json::{Number, Value};

use super::{ArrayType, IoError};
pub use crate::types::JsonArray;
use crate::types::{Array, ArrayData, DType, Document, Shape};

/// Parses JSON in which bare `NaN`, `Infinity` and `Inf` (with or without a minus sign) may stand for numbers, as
/// Stan, Python and R write them; they become strings. `origin` names the text in errors.
pub fn parse_json(text: &str, origin: &str) -> Result<Value, IoError> {
    parse_data(text, origin).map(Document::into_value)
}

/// The same of data, whose lists of numbers may be long.
pub fn parse_data(text: &str, origin: &str) -> Result<Document, IoError> {
    serde_json::from_str(&quote_non_finite(text))
        .map_err(|error| IoError::Syntax { origin: origin.to_owned(), message: error.to_string() })
}

/// Puts quotes around bare tokens of numbers that are not finite, outside of strings.
fn quote_non_finite(text: &str) -> Cow<'_, str> {
    if !text.contains("NaN") && !text.contains("Inf") {
        return Cow::Borrowed(text);
    }
    // The longest first: `Inf` starts `Infinity`.
    const TOKENS: [&str; 5] = ["NaN", "-Infinity", "Infinity", "-Inf", "Inf"];
    let mut quoted = String::with_capacity(text.len());
    let mut rest = text;
    let mut in_string = false;
    while let Some(c) = rest.chars().next() {
        let token = TOKENS.iter().find(|token| !in_string && rest.starts_with(**token));
        let taken = match (token, c) {
            (Some(token), _) => {
                quoted.extend(["\"", token, "\""]);
                rest = &rest[token.len()..];
                continue;
            }
            (None, '\\') if in_string => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            (None, _) => c.len_utf8(),
        };
        in_string ^= c == '"';
        quoted.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    quoted.into()
}

/// The array that `value` stands for, as a value of the program's variable `name`.
pub(super) fn array_from_json(name: &str, value: &Value, expected: ArrayType) -> Result<Array, IoError> {
    let mut reader = Reader { name, expected, shape: shape_of(value, expected.rank), index: Vec::new() };
    let data = match expected.dtype {
        DType::Bool => ArrayData::Bool(reader.elements(value, Reader::bool)?),
        DType::Int => ArrayData::Int(reader.elements(value, Reader::int)?),
        DType::Real => ArrayData::Real(reader.elements(value, Reader::real)?),
    };
    Ok(Array { shape: reader.shape, data })
}

/// The shape that the first element of every list promises. Empty lists end it: the extents within are 0.
fn shape_of(value: &Value, rank: usize) -> Shape {
    let mut shape = Shape::new();
    let mut inner = Some(value);
    for _ in 0..rank {
        let list = inner.and_then(Value::as_array);
        shape.push(list.map_or(0, Vec::len));
        inner = list.and_then(|list| list.first());
    }
    shape
}

struct Reader<'a> {
    name: &'a str,
    expected: ArrayType,
    shape: Shape,
    /// Where the reader is.
    index: Vec<usize>,
}

impl Reader<'_> {
    fn elements<T>(
        &mut self,
        value: &Value,
        element: fn(&Self, &Value) -> Result<T, IoError>,
    ) -> Result<Vec<T>, IoError> {
        let mut elements = Vec::new();
        self.collect(value, element, &mut elements)?;
        Ok(elements)
    }

    fn collect<T>(
        &mut self,
        value: &Value,
        element: fn(&Self, &Value) -> Result<T, IoError>,
        elements: &mut Vec<T>,
    ) -> Result<(), IoError> {
        let Some(extent) = self.shape.get(self.index.len()).copied() else {
            if value.is_array() {
                return Err(self.wrong_rank(value));
            }
            elements.push(element(self, value)?);
            return Ok(());
        };
        let Some(list) = value.as_array() else { return Err(self.wrong_rank(value)) };
        if list.len() != extent {
            let expected = format!("{extent} elements as in the lists before it");
            return Err(self.mismatch(expected, format!("{} elements", list.len())));
        }
        for (i, inner) in list.iter().enumerate() {
            self.index.push(i);
            self.collect(inner, element, elements)?;
            self.index.pop();
        }
        Ok(())
    }

    fn bool(&self, value: &Value) -> Result<bool, IoError> {
        value.as_bool().ok_or_else(|| self.wrong_element(value))
    }

    fn int(&self, value: &Value) -> Result<i64, IoError> {
        value.as_i64().ok_or_else(|| self.wrong_element(value))
    }

    fn real(&self, value: &Value) -> Result<f64, IoError> {
        let real = match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => non_finite(text),
            _ => None,
        };
        real.ok_or_else(|| self.wrong_element(value))
    }

    fn wrong_element(&self, value: &Value) -> IoError {
        self.mismatch(article(self.expected.dtype).to_owned(), described(value))
    }

    /// A list where there should be none, or none where there should be one.
    fn wrong_rank(&self, value: &Value) -> IoError {
        let found = if value.is_array() { "a list".to_owned() } else { described(value) };
        let expected = if self.index.is_empty() {
            self.expected.to_string()
        } else if value.is_array() {
            format!("{} (`{}` is {})", article(self.expected.dtype), self.name, self.expected)
        } else {
            format!("a list (`{}` is {})", self.name, self.expected)
        };
        self.mismatch(expected, found)
    }

    fn mismatch(&self, expected: String, found: String) -> IoError {
        let index: Vec<String> = self.index.iter().map(ToString::to_string).collect();
        let place =
            if index.is_empty() { self.name.to_owned() } else { format!("{}[{}]", self.name, index.join(", ")) };
        IoError::Mismatch { place, expected, found }
    }
}

/// Stan's spellings.
fn non_finite(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Inf" | "Infinity" | "+Inf" | "+Infinity" => Some(f64::INFINITY),
        "-Inf" | "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

fn article(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "a bool",
        DType::Int => "an int",
        DType::Real => "a real",
    }
}

fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => format!("the bool {b}"),
        Value::Number(number) => described_number(number),
        Value::String(text) => format!("the string {:?}", text.chars().take(40).collect::<String>()),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn described_number(number: &Number) -> String {
    if number.is_i64() {
        format!("the int {number}")
    } else if number.is_u64() {
        format!("{number}, which does not fit into 64 bits")
    } else {
        format!("the real {number}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, dtype: DType, rank: usize) -> Result<Array, String> {
        let value = parse_json(text, "`x.json`").map_err(|error| error.to_string())?;
        array_from_json("x", &value, ArrayType { dtype, rank }).map_err(|error| error.to_string())
    }

    #[test]
    fn nested_lists_are_row_major() {
        let array = read("[[1, 2, 3], [4, 5, 6]]", DType::Real, 2);
        assert_eq!(array.unwrap(), Array::real([2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        assert_eq!(read("[true, false]", DType::Bool, 1).unwrap(), Array::bool([2], vec![true, false]));
        let exact = read("[9007199254740993, -9223372036854775808]", DType::Int, 1);
        assert_eq!(exact.unwrap(), Array::int([2], vec![9_007_199_254_740_993, i64::MIN]));
        assert_eq!(read("0.1", DType::Real, 0).unwrap(), Array::real([], vec![0.1]));
    }

    #[test]
    fn numbers_that_are_not_finite_may_be_bare_or_quoted() {
        let text = r#"["NaN", NaN, Infinity, -Infinity, "Inf", -Inf, Inf, "-Infinity"]"#;
        let array = read(text, DType::Real, 1).unwrap();
        let (inf, values) = (f64::INFINITY, array.as_real().unwrap());
        assert!(values[0].is_nan() && values[1].is_nan());
        assert_eq!(values[2..], [inf, -inf, inf, -inf, inf, -inf]);
        // Within strings nothing is touched, whatever is escaped in them.
        let value = parse_json(r#"{"a\"NaN": "Inf \\", "b": NaN}"#, "x").unwrap();
        assert_eq!(value.as_object().unwrap().keys().collect::<Vec<_>>(), ["a\"NaN", "b"]);
    }

    #[test]
    fn empty_lists_have_extent_zero() {
        assert_eq!(read("[]", DType::Real, 2).unwrap(), Array::real([0, 0], vec![]));
        assert_eq!(read("[[], []]", DType::Int, 2).unwrap(), Array::int([2, 0], vec![]));
    }

    #[test]
    fn mismatches_name_variable_place_expected_and_found() {
        let cases = [
            (
                "[[1, 2], [3]]",
                DType::Real,
                2,
                "`x[1]`: expected 2 elements as in the lists before it, found 1 elements",
            ),
            ("[[1, 2], 3]", DType::Real, 2, "`x[1]`: expected a list (`x` is real[_, _]), found the int 3"),
            ("[1, [2]]", DType::Int, 1, "`x[1]`: expected an int (`x` is int[_]), found a list"),
            ("[1, 2]", DType::Int, 0, "`x`: expected int, found a list"),
            ("1", DType::Int, 1, "`x`: expected int[_], found the int 1"),
            ("[1, 2.5]", DType::Int, 1, "`x[1]`: expected an int, found the real 2.5"),
            ("[1, 2.0]", DType::Int, 1, "`x[1]`: expected an int, found the real 2.0"),
            (
                "9223372036854775808",
                DType::Int,
                0,
                "`x`: expected an int, found 9223372036854775808, which does not fit into 64 bits",
            ),
            ("[\"a\"]", DType::Real, 1, "`x[0]`: expected a real, found the string \"a\""),
            ("[1]", DType::Bool, 1, "`x[0]`: expected a bool, found the int 1"),
            ("true", DType::Real, 0, "`x`: expected a real, found the bool true"),
            ("null", DType::Real, 0, "`x`: expected a real, found null"),
            ("{}", DType::Real, 1, "`x`: expected real[_], found an object"),
        ];
        for (text, dtype, rank, message) in cases {
            assert_eq!(read(text, dtype, rank).unwrap_err(), message, "{text}");
        }
    }

    #[test]
    fn malformed_text_is_an_error() {
        let deep = "[".repeat(100_000);
        for text in ["", "[1, 2", "NaNs", "[1 2]", "\"\\", "1e999", "{\"a\": ", "[NaN NaN]", "\u{0}", deep.as_str()] {
            assert!(parse_json(text, "`x.json`").unwrap_err().to_string().starts_with("`x.json` is not valid JSON"));
        }
    }

    #[test]
    fn a_key_that_stands_twice_is_an_error() {
        let error = parse_json("{\"x\": [1],\n \"y\": {\"x\": 2, \"x\": 3}}", "`x.json`").unwrap_err().to_string();
        assert!(error.starts_with("`x.json` is not valid JSON: the key `x` stands twice at line 2"), "{error}");
        assert!(parse_json("{\"x\": 1, \"y\": {\"x\": 2}}", "x").is_ok());
    }

    #[test]
    fn arrays_written_are_read_back() {
        let arrays = [
            Array::real([2, 2], vec![0.1, f64::INFINITY, -1e-300, f64::NEG_INFINITY]),
            Array::int([], vec![i64::MIN]),
            Array::bool([3], vec![true, false, true]),
            Array::real([2, 0], vec![]),
        ];
        for array in arrays {
            let text = serde_json::to_string(&JsonArray(&array)).unwrap();
            assert_eq!(read(&text, array.dtype(), array.shape.len()).unwrap(), array, "{text}");
        }
        let nan = Array::real([1], vec![f64::NAN]);
        assert_eq!(serde_json::to_string(&JsonArray(&nan)).unwrap(), "[\"NaN\"]");
    }
}
