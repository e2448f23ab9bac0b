//! Which parameter of a file has a value that no chain can start at.

use super::Inits;
use crate::mcmc::sampling::ModelSource;
use crate::program::{Error, ErrorKind};

impl Inits<'_> {
    /// What is wrong with a file whose unconstrained start has a number that is none, at a coordinate.
    pub(super) fn no_number(&self, file: usize, coordinate: usize, number: f64) -> Error {
        let origin = self.files[file].origin();
        if let Some(name) = self.with_nan(file) {
            return Error::new(ErrorKind::Input, format!("{origin}: `{name}` is no number: NaN or infinite"));
        }
        let message = match self.at_coordinate(file, coordinate) {
            Some(name) => format!(
                "{origin}: `{name}` lies on the border of its constraint, where no chain can start: give a value inside"
            ),
            None => format!(
                "{origin}: a value lies on the border of its constraint, where no chain can start: coordinate \
                 {coordinate} of the unconstrained start would be {number}"
            ),
        };
        Error::new(ErrorKind::Input, message)
    }

    /// The first parameter with a value that is no number.
    fn with_nan(&self, file: usize) -> Option<&str> {
        let taken = self.by_value.takes().iter().filter(|taken| taken.by_value);
        let wrong = |name: &str| {
            let data = self.files[file].get(name)?;
            let array = data.to_array(name, data.guess_type()).ok()?;
            Some(array.as_real()?.iter().any(|x| !x.is_finite()))
        };
        taken.map(|taken| taken.name.as_str()).find(|name| wrong(name) == Some(true))
    }

    /// The parameter that a coordinate is of.
    fn at_coordinate(&self, file: usize, coordinate: usize) -> Option<String> {
        if let Some(of_given) = &self.of_given {
            return of_given.guilty(self, file).ok()?;
        }
        let ModelSource::Stan(model) = self.model else { return None };
        // Of a parameter that is not given the numbers are the unconstrained ones.
        let free = model.unconstrain(&|_| false).ok()?;
        let mut before = 0;
        let found = free.taken().iter().find(|taken| {
            before += taken.numbers;
            coordinate < before
        });
        found.map(|taken| taken.name.clone())
    }
}
