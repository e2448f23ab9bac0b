//! Data of which every chain has those of its own data set: many posteriors in one batch.

use std::ops::Range;

use indexmap::IndexMap;

use super::{DENSITY, DENSITY_AND_GRADIENT, ModelSource, PARAMETERS};
use crate::program::io::NamedValues;
use crate::program::{Error, ErrorKind, Inputs, Program};
use crate::types::{Array, ArrayData, DType};

/// Data sets that differ in the values of some of a model's data, and are alike in the types of all of them. Each has as
/// many chains, one after the other.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DataSets {
    count: usize,
    arrays: IndexMap<String, Array>,
}

impl DataSets {
    /// Of data by their names, with an axis over the data sets before their own.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] where there are no data, one of them has no axis, or two have leading axes that differ.
    pub fn new(arrays: IndexMap<String, Array>) -> Result<Self, Error> {
        let refused = |message: String| Err(Error::new(ErrorKind::Input, message));
        let Some((first, one)) = arrays.first() else {
            return refused("data of each data set: there are none".to_owned());
        };
        let count = one.shape.first().copied().unwrap_or(0);
        for (name, array) in &arrays {
            match array.shape.first() {
                None => {
                    return refused(format!("`{name}` is one number: data of each data set have an axis over them"));
                }
                Some(0) => return refused(format!("`{name}` is {}: there is no data set", array.ty())),
                Some(n) if *n != count => {
                    let sets = |n: usize| if n == 1 { "one data set".to_owned() } else { format!("{n} data sets") };
                    return refused(format!("`{first}` is of {}, `{name}` of {}", sets(count), sets(*n)));
                }
                Some(_) => {}
            }
        }
        Ok(Self { count, arrays })
    }

    /// So many, which have the same data but for these, if there are any: each with an axis over the data sets.
    ///
    /// # Errors
    /// As [`new`](Self::new), and for arrays of another number of data sets.
    pub fn of(count: usize, arrays: IndexMap<String, Array>) -> Result<Self, Error> {
        if arrays.is_empty() && count > 0 {
            return Ok(Self { count, arrays });
        }
        let sets = Self::new(arrays)?;
        if sets.count == count {
            return Ok(sets);
        }
        Err(Error::new(ErrorKind::Input, format!("there are {count} data sets, and data of {}", sets.count)))
    }

    /// Of values by their names, with an axis over the data sets before their own, as far as a model takes them.
    ///
    /// # Errors
    /// As [`new`](Self::new), for arrays that have no type, and for a model that cannot be read.
    pub fn of_values(values: &NamedValues, model: &ModelSource<'_>) -> Result<Self, Error> {
        let program = model.program()?;
        let takes = |name: &str| {
            let functions = [DENSITY, DENSITY_AND_GRADIENT, PARAMETERS].map(|function| program.function(function));
            let mut ports = functions.iter().flatten().flat_map(|function| function.signature().ports.iter().skip(1));
            ports.any(|port| port.name == name)
        };
        let own = values.iter().filter(|(name, _)| takes(name));
        let arrays: Result<IndexMap<_, _>, Error> =
            own.map(|(name, data)| Ok((name.to_owned(), data.to_array(name, data.guess_type())?))).collect();
        let arrays = arrays?;
        if arrays.is_empty() {
            let message = format!("{} has no data that the model takes", values.origin());
            return Err(Error::new(ErrorKind::Input, message));
        }
        Self::new(arrays)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The data of which each has its own.
    pub fn names(&self) -> Vec<String> {
        self.arrays.keys().cloned().collect()
    }

    /// Those data, each with the axis over the data sets.
    pub fn arrays(&self) -> &IndexMap<String, Array> {
        &self.arrays
    }

    /// The same for these of so many chains in all, each of which has then a row of its own.
    #[must_use]
    pub(super) fn of_chains(&self, part: &Range<usize>, chains: usize) -> Self {
        let of: Vec<usize> = part.clone().map(|chain| self.of_chain(chain, chains)).collect();
        let arrays = self.arrays.iter().map(|(name, array)| (name.clone(), array.chosen_rows(&of))).collect();
        Self { count: part.len(), arrays }
    }

    /// The data set of a chain, of so many chains in all.
    pub(super) fn of_chain(&self, chain: usize, chains: usize) -> usize {
        chain / (chains / self.count).max(1)
    }

    /// The same for a program whose `functions` take them: ints where reals are wanted are reals.
    ///
    /// # Errors
    /// Where the data sets do not divide the chains, and for names that none of the functions takes.
    pub(super) fn fitted(&self, chains: usize, program: &Program, functions: &[&str]) -> Result<Self, Error> {
        let refused = |message: String| Err(Error::new(ErrorKind::Input, message));
        if !chains.is_multiple_of(self.count) {
            return refused(format!("{chains} chains of {} data sets: each has as many", self.count));
        }
        let mut arrays = IndexMap::new();
        for (name, array) in &self.arrays {
            let functions: Vec<_> = functions.iter().filter_map(|function| program.function(function).ok()).collect();
            let mut ports = functions.iter().flat_map(|function| function.signature().ports.iter().skip(1));
            let Some(port) = ports.find(|port| port.name == *name) else {
                return refused(format!("each data set has its own `{name}`, but the model takes no such data"));
            };
            let array = match &array.data {
                ArrayData::Int(values) if port.dtype == DType::Real => {
                    Array::real(array.shape.iter().copied(), values.iter().map(|i| *i as f64).collect())
                }
                _ => array.clone(),
            };
            arrays.insert(name.clone(), array);
        }
        Ok(Self { count: self.count, arrays })
    }

    /// With these data of the first data set, as if all had them.
    pub(super) fn as_shared(&self, data: &Inputs) -> Inputs {
        self.arrays.iter().fold(data.clone(), |data, (name, array)| {
            let mut one = array.rows(0..1);
            one.shape.remove(0);
            data.shared(name, one)
        })
    }

    /// With these data, a row for each lane, whose data sets these are.
    pub(super) fn as_lanes(&self, data: Inputs, sets: &[usize]) -> Inputs {
        self.arrays.iter().fold(data, |data, (name, array)| data.lane(name, array.chosen_rows(sets)))
    }

    /// Bytes of the data of one data set.
    pub(super) fn bytes(&self) -> usize {
        self.arrays.values().map(|array| array.len() * size_of::<f64>()).sum::<usize>() / self.count.max(1)
    }
}
