//! Values of Python and of the library.

use autobatch::Array;
use autobatch::program::io::{Data, parse_data};
use autobatch::types::{ArrayData, Document};
use numpy::{Element, PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors::refused;

fn elements<T: Element + Copy>(array: &Bound<'_, PyAny>) -> PyResult<Vec<T>> {
    let array: PyReadonlyArrayDyn<'_, T> = array.extract()?;
    Ok(array.as_slice().map_err(|e| PyTypeError::new_err(e.to_string()))?.to_vec())
}

/// The elements of an array that is as it should be.
fn plain<T: Element + Copy>(value: &Bound<'_, PyAny>) -> Option<(Vec<usize>, Vec<T>)> {
    // A slice is there of arrays in column-major order, too.
    let array = value.cast::<PyArrayDyn<T>>().ok().filter(|array| array.is_c_contiguous())?;
    let elements = array.try_readonly().ok()?.as_slice().ok()?.to_vec();
    Some((array.shape().to_vec(), elements))
}

/// The values of a NumPy array, in row-major order: a copy, since the machine has lanes last.
pub(crate) fn array(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Array> {
    if let Some((shape, elements)) = plain(value) {
        return Ok(Array::real(shape, elements));
    }
    if let Some((shape, elements)) = plain(value) {
        return Ok(Array::int(shape, elements));
    }
    let numpy = value.py().import("numpy")?;
    let kind: String = value.getattr("dtype")?.getattr("kind")?.extract()?;
    let shape = value.cast::<PyUntypedArray>()?.shape().to_vec();
    let typed = |dtype: &str| numpy.call_method1("ascontiguousarray", (value, dtype));
    let data = match kind.as_str() {
        "f" => ArrayData::Real(elements(&typed("f8")?)?),
        "i" => ArrayData::Int(elements(&typed("i8")?)?),
        "u" => {
            let widest: bool = value.getattr("dtype")?.getattr("itemsize")?.extract::<usize>()? == 8;
            if widest && elements::<u64>(&typed("u8")?)?.iter().any(|x| i64::try_from(*x).is_err()) {
                return Err(refused(value.py(), format!("`{name}` has ints past 64 bits with a sign")));
            }
            ArrayData::Int(elements(&typed("i8")?)?)
        }
        "b" => ArrayData::Bool(elements(&typed("bool")?)?),
        _ => {
            let dtype: String = value.getattr("dtype")?.str()?.extract()?;
            let message = format!("`{name}` is an array of {dtype}: wanted are reals, ints or bools");
            return Err(refused(value.py(), message));
        }
    };
    Ok(Array::new(shape, data))
}

/// The same, or a text of JSON.
pub(crate) fn data(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Data> {
    let Ok(text) = value.extract::<String>() else { return array(name, value).map(Data::Array) };
    let parsed = parse_data(&text, &format!("the value of `{name}`"));
    Ok(match parsed.map_err(|error| refused(value.py(), error.to_string()))? {
        Document::Other(value) => value.into(),
        object => Data::Json(object.into_value()),
    })
}

/// An array of NumPy's, which takes the elements over: there is no copy.
pub(crate) fn to_numpy(py: Python<'_>, array: Array) -> PyResult<Bound<'_, PyAny>> {
    let shape: Vec<usize> = array.shape.to_vec();
    Ok(match array.data {
        ArrayData::Real(elements) => PyArray1::from_vec(py, elements).reshape(shape)?.into_any(),
        ArrayData::Int(elements) => PyArray1::from_vec(py, elements).reshape(shape)?.into_any(),
        ArrayData::Bool(elements) => PyArray1::from_vec(py, elements).reshape(shape)?.into_any(),
    })
}
