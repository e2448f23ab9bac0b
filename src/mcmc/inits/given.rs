//! Starts of a `model` of the language of which a file has some parameters: the others are drawn.

use super::super::by_value::ByValue;
use super::super::sampling::{ModelSource, PARAMETERS, dimension, refuse_missing};
use super::{Inits, lacks_some};
use crate::program::{Error, ErrorKind, Function, Inputs, Program, Results};
use crate::run::NoSink;
use crate::types::Array;

/// The function of a `model` that puts the numbers of given values in the place of others.
const UNCONSTRAIN_GIVEN: &str = "unconstrain_given";

/// That function and `parameters`, with their data.
#[derive(Debug)]
pub(super) struct OfGiven {
    program: Program,
    data: Inputs,
    data_of_parameters: Inputs,
    /// Which parameters are given, in the order of the signature.
    given: Vec<bool>,
    dimension: usize,
}

impl OfGiven {
    /// Of a model with its data.
    ///
    /// # Errors
    /// For a module that is no `model`, and data that are not all there.
    pub(super) fn new(
        model: &ModelSource<'_>,
        by_value: &ByValue,
        named: &dyn Fn(&str) -> bool,
        read_data: &dyn Fn(&Function<'_>) -> Result<Inputs, Error>,
    ) -> Result<Self, Error> {
        let program = model.program()?;
        if !program.functions().any(|name| name == UNCONSTRAIN_GIVEN) {
            let left_out = by_value.takes().iter().find(|taken| !named(&taken.name));
            return Err(lacks_some(model, left_out.map_or("", |taken| &taken.name)));
        }
        let function = program.function(UNCONSTRAIN_GIVEN)?;
        let data = read_data(&function)?.restricted_to(function.signature());
        let of_parameters = program.function(PARAMETERS)?;
        let data_of_parameters = read_data(&of_parameters)?;
        refuse_missing(&of_parameters, &data_of_parameters)?;
        let Some(dimension) = dimension(&of_parameters, &data_of_parameters) else {
            let message = "no data tell the number of unconstrained coordinates: say what its dimensions are in the data \
                           or by --shared";
            return Err(Error::new(ErrorKind::Input, message));
        };
        let data_of_parameters = data_of_parameters.restricted_to(of_parameters.signature());
        let given = by_value.takes().iter().map(|taken| named(&taken.name)).collect();
        drop((function, of_parameters));
        Ok(Self { program, data, data_of_parameters, given, dimension })
    }

    /// Unconstrained coordinates.
    pub(super) fn dimension(&self) -> usize {
        self.dimension
    }

    /// The starts of these rows of the files, with random numbers for each.
    pub(super) fn run(&self, inits: &Inits<'_>, rows: &[usize], random: &[f64]) -> Result<Results, Error> {
        self.run_with(&self.given, inits, rows, random)
    }

    fn run_with(&self, given: &[bool], inits: &Inits<'_>, rows: &[usize], random: &[f64]) -> Result<Results, Error> {
        let options = inits.host_options();
        let state = Array::real([rows.len(), self.dimension], random.to_vec());
        // All values: of what is not given those of the random numbers, for their sizes.
        let function = self.program.function(PARAMETERS)?;
        let name = &function.signature().ports[0].name;
        let inputs = self.data_of_parameters.clone().lane(name, state.clone()).lanes(rows.len());
        let drawn = function.bind(&inputs, &options)?.run(&options, &NoSink)?;
        let function = self.program.function(UNCONSTRAIN_GIVEN)?;
        let [state_port, flags, ..] = &function.signature().ports[..] else {
            unreachable!("it takes the numbers, and which values are given")
        };
        let mut inputs = self.data.clone().lane(&state_port.name, state).lanes(rows.len());
        inputs = inputs.shared(&flags.name, Array::bool([given.len()], given.to_vec()));
        for (taken, given) in inits.by_value.takes().iter().zip(given) {
            let value = match given {
                true => inits.values_of_rows(taken, rows)?,
                false => drawn.output(&taken.name).cloned().expect("a draw has all parameters"),
            };
            inputs = inputs.lane(&taken.name, value);
        }
        function.bind(&inputs, &options)?.run(&options, &NoSink)
    }

    /// The first given parameter whose value alone makes a start of this file that is no number.
    pub(super) fn guilty(&self, inits: &Inits<'_>, row: usize) -> Result<Option<String>, Error> {
        let zeros = vec![0.0; self.dimension];
        for (at, taken) in inits.by_value.takes().iter().enumerate().filter(|(at, _)| self.given[*at]) {
            let mut alone = vec![false; self.given.len()];
            alone[at] = true;
            let results = self.run_with(&alone, inits, &[row], &zeros)?;
            let points = results.outputs().values().next().and_then(Array::as_real);
            if points.is_some_and(|points| points.iter().any(|x| !x.is_finite())) {
                return Ok(Some(taken.name.clone()));
            }
        }
        Ok(None)
    }
}
