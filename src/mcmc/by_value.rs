//! Functions of a model that take its parameters by their constrained values: `unconstrain`, from which chains start, and
//! `generated_quantities` of draws that are there.
//!
//! A Stan program has both: they are made of its declarations. A model of the language exports
//! `unconstrain(mu: real, …, shared …) -> real[D]` and `generated_quantities(mu: real, …, shared …)`, a struct; their
//! parameters that are not shared have the names of the fields of `parameters`.

use indexmap::IndexMap;

use crate::mcmc::sampling::ModelSource;
use crate::program::io::{ArrayType, Data};
use crate::program::{Error, ErrorKind, Function, Inputs, Program, StanFunction, Taken};

use crate::types::{Array, DType, column_major};

/// Makes the starting point of parameters by their values.
pub(super) const UNCONSTRAIN: &str = "unconstrain";
/// Gives what is computed of each draw.
pub(super) const QUANTITIES: &str = "generated_quantities";

/// A function of parameters by their values, with its data.
#[derive(Debug)]
pub(super) struct ByValue {
    name: &'static str,
    program: Which,
    data: Inputs,
    takes: Vec<Taken>,
}

#[derive(Debug)]
enum Which {
    /// Of a Stan program: it takes all numbers in one array, inside of matrices column by column.
    Flat(Box<StanFunction>),
    /// Of a model of the language: it takes every parameter by its name.
    Named(Box<Program>),
}

impl ByValue {
    /// That of a Stan program.
    pub(super) fn of_stan(name: &'static str, function: StanFunction) -> Self {
        let (data, takes) = (function.inputs().clone(), function.taken().to_vec());
        Self { name, program: Which::Flat(Box::new(function)), data, takes }
    }

    /// That of a model of the language; `None` where it exports none.
    pub(super) fn of_model(
        name: &'static str,
        model: &ModelSource<'_>,
        read_data: &dyn Fn(&Function<'_>) -> Result<Inputs, Error>,
    ) -> Result<Option<Self>, Error> {
        let program = model.program()?;
        if !program.functions().any(|f| f == name) {
            return Ok(None);
        }
        let function = program.function(name)?;
        let signature = function.signature();
        let data = read_data(&function)?.restricted_to(signature);
        let takes = signature.ports.iter().filter(|port| !port.shared).map(|port| Taken {
            name: port.name.clone(),
            // Their numbers are those of the values.
            shape: vec![0; port.extents.len()],
            arrays: port.extents.len(),
            by_value: true,
            numbers: usize::MAX,
        });
        let takes = takes.collect();
        Ok(Some(Self { name, program: Which::Named(Box::new(program)), data, takes }))
    }

    /// What it takes.
    pub(super) fn takes(&self) -> &[Taken] {
        &self.takes
    }

    /// The function; none where it would give nothing.
    pub(super) fn function(&self) -> Result<Option<Function<'_>>, Error> {
        self.program().map(|program| program.function(self.name)).transpose()
    }

    /// The program that exports it.
    pub(super) fn program(&self) -> Option<&Program> {
        match &self.program {
            Which::Flat(function) => function.program(),
            Which::Named(program) => Some(&**program),
        }
    }

    /// Fields of what it gives, and what a Stan program calls them where that is another word.
    pub(super) fn renamed(&self) -> &[(String, String)] {
        match &self.program {
            Which::Flat(function) => function.renamed(),
            Which::Named(_) => &[],
        }
    }

    /// A value as the function takes it, with `leading` axes before its own; or what is wrong with it.
    pub(super) fn read(&self, taken: &Taken, data: &Data, leading: usize) -> Result<Array, Error> {
        let expected = ArrayType { dtype: DType::Real, rank: leading + taken.shape.len() };
        let array = data.to_array(&taken.name, expected)?;
        let own = &array.shape[leading..];
        let empty = taken.numbers == 0 && array.is_empty();
        if matches!(self.program, Which::Flat(_)) && own != &taken.shape[..] && !empty {
            let shown = |shape: &[usize]| shape.iter().map(usize::to_string).collect::<Vec<_>>().join(" × ");
            let message =
                format!("`{}` is of size {}, but the program declares {}", taken.name, shown(own), shown(&taken.shape));
            return Err(Error::new(ErrorKind::Input, message));
        }
        Ok(array)
    }

    /// The inputs for so many lanes, of values with one leading axis over the lanes, in the order of what is taken; with
    /// these data, if they are given, in the place of the function's own.
    pub(super) fn inputs(&self, values: &[Array], data: Option<&Inputs>, lanes: usize) -> Inputs {
        let data = data.unwrap_or(&self.data);
        match &self.program {
            Which::Named(_) => {
                let given = self.takes.iter().zip(values);
                given.fold(data.clone(), |inputs, (t, v)| inputs.lane(&t.name, v.clone())).lanes(lanes)
            }
            Which::Flat(_) => {
                let width: usize = self.takes.iter().map(|t| t.numbers).sum();
                let mut flat = Vec::with_capacity(lanes * width);
                let orders: Vec<Vec<usize>> = self.takes.iter().map(order).collect();
                for lane in 0..lanes {
                    for ((taken, value), order) in self.takes.iter().zip(values).zip(&orders) {
                        let row = &value.as_real().expect("parameters are reals")[lane * taken.numbers..];
                        flat.extend(order.iter().map(|at| row[*at]));
                    }
                }
                data.clone().lane("q", Array::real([lanes, width], flat)).lanes(lanes)
            }
        }
    }
}

/// Where the numbers of a parameter stand in row-major order, one after the other as a Stan program's function takes them.
fn order(taken: &Taken) -> Vec<usize> {
    if taken.by_value { column_major(&taken.shape, taken.arrays).collect() } else { (0..taken.numbers).collect() }
}

/// Arrays under the names of the program.
pub(super) fn renamed(mut arrays: IndexMap<String, Array>, names: &[(String, String)]) -> IndexMap<String, Array> {
    for (field, name) in names {
        if let Some(at) = arrays.get_index_of(field) {
            // The order stays.
            let _ = arrays.replace_index(at, name.clone());
        }
    }
    arrays
}
