//! Arrays by name and type: what a user of the library reads results as.

use indexmap::IndexMap;
use ndarray::ArrayViewD;

use crate::program::{Error, ErrorKind};
use crate::types::{Array, DType};

/// Arrays by name, as views of the element type that they have.
#[derive(Clone, Copy, Debug)]
pub struct Arrays<'a> {
    what: &'static str,
    arrays: &'a IndexMap<String, Array>,
}

impl<'a> Arrays<'a> {
    pub(crate) fn new(what: &'static str, arrays: &'a IndexMap<String, Array>) -> Self {
        Self { what, arrays }
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.arrays.keys().map(String::as_str)
    }

    /// An array of reals.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a name that there is not, or that has other elements.
    pub fn real(&self, name: &str) -> Result<ArrayViewD<'a, f64>, Error> {
        self.view(name, DType::Real, Array::as_real)
    }

    /// An array of ints.
    ///
    /// # Errors
    /// As [`real`](Self::real).
    pub fn int(&self, name: &str) -> Result<ArrayViewD<'a, i64>, Error> {
        self.view(name, DType::Int, Array::as_int)
    }

    /// An array of bools.
    ///
    /// # Errors
    /// As [`real`](Self::real).
    pub fn bool(&self, name: &str) -> Result<ArrayViewD<'a, bool>, Error> {
        self.view(name, DType::Bool, Array::as_bool)
    }

    fn view<T>(
        &self,
        name: &str,
        wanted: DType,
        elements: impl Fn(&'a Array) -> Option<&'a [T]>,
    ) -> Result<ArrayViewD<'a, T>, Error> {
        let refused = |message: String| Error::new(ErrorKind::Input, message);
        let array = self.arrays.get(name).ok_or_else(|| {
            let names: Vec<String> = self.names().map(|n| format!("`{n}`")).collect();
            refused(format!("there is no {} `{name}`: there is {}", self.what, names.join(", ")))
        })?;
        let elements = elements(array)
            .ok_or_else(|| refused(format!("`{name}` has elements of the type {}, not {wanted}", array.dtype())))?;
        ArrayViewD::from_shape(&array.shape[..], elements).map_err(|error| refused(format!("`{name}`: {error}")))
    }
}
