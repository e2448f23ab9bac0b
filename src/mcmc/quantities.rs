//! What a model computes of draws that are there: transformed parameters and generated quantities of a Stan program,
//! `generated_quantities` of a model of the language, or its `parameters` of unconstrained draws.

use indexmap::IndexMap;

use super::by_value::{ByValue, QUANTITIES};
use super::protocol::Q;
use super::sampling::{AT_ONCE, Lesser, ModelSource, PARAMETERS, QuantitiesOfDraws, each_draw};
use crate::mcmc::streams::OF_QUANTITIES;
use crate::program::io::Data;
use crate::program::{Error, ErrorKind, Function, Inputs, Options, Program};
use crate::types::Array;

/// A model with its data, ready for draws.
#[derive(Debug)]
pub struct Quantities {
    how: How,
    model: String,
    lesser: Lesser,
}

#[derive(Debug)]
enum How {
    ByValue(Box<ByValue>),
    /// `parameters` of the unconstrained state.
    OfState(Box<Program>, Inputs),
    /// Of a model with its parameters in the signature, from which nothing is computed.
    Nothing,
}

impl Quantities {
    /// Compiles a model for its data.
    ///
    /// # Errors
    /// For a model that cannot be read or has errors, and one of the language that exports nothing that gives quantities.
    pub fn new(
        model: &ModelSource<'_>,
        read_data: &dyn Fn(&Function<'_>) -> Result<Inputs, Error>,
    ) -> Result<Self, Error> {
        let name = model.name();
        let lesser = |by_value: bool| Lesser::new(model, by_value);
        let how = match model {
            ModelSource::Stan(stan) => How::ByValue(Box::new(ByValue::of_stan(QUANTITIES, stan.quantities()?))),
            _ => match ByValue::of_model(QUANTITIES, model, read_data)? {
                Some(by_value) => How::ByValue(Box::new(by_value)),
                None => {
                    let program = model.program()?;
                    if model.knows_jacobian()? {
                        return Ok(Self { how: How::Nothing, model: name, lesser: lesser(true) });
                    }
                    if !program.functions().any(|f| f == PARAMETERS) {
                        let message = format!(
                            "{name} exports neither `{QUANTITIES}`, a function of its parameters by their names, nor \
                             `{PARAMETERS}` of the unconstrained state"
                        );
                        return Err(Error::new(ErrorKind::Entry, message));
                    }
                    let function = program.function(PARAMETERS)?;
                    let data = read_data(&function)?.restricted_to(function.signature());
                    How::OfState(Box::new(program), data)
                }
            },
        };
        let lesser = lesser(matches!(how, How::ByValue(_)));
        Ok(Self { how, model: name, lesser })
    }

    /// The quantities of draws: `draws` gives the variable of a name, chain × draw × event shape.
    ///
    /// # Errors
    /// For draws that lack a parameter, or have it in another shape.
    pub fn of(
        &self,
        draws: &IndexMap<String, Data>,
        origin: &str,
        options: &Options,
    ) -> Result<QuantitiesOfDraws, Error> {
        let lacks = |name: &str| {
            let there: Vec<&str> = draws.keys().map(String::as_str).collect();
            let message = format!(
                "{origin} has no `{name}`, a parameter of {}: it has {}",
                self.model,
                if there.is_empty() { "nothing".to_owned() } else { there.join(", ") }
            );
            Error::new(ErrorKind::Input, message)
        };
        let size = draws.values().find_map(|data| match data {
            Data::Array(array) if array.shape.len() >= 2 => Some((array.shape[0], array.shape[1])),
            _ => None,
        });
        let (chains, count) = size.unwrap_or((0, 0));
        let (function, names, values, by_value) = match &self.how {
            How::Nothing => return Ok(QuantitiesOfDraws::default()),
            How::ByValue(by_value) => {
                let Some(function) = by_value.function()? else { return Ok(QuantitiesOfDraws::default()) };
                let mut values = Vec::new();
                for taken in by_value.takes() {
                    let value = match draws.get(&taken.name) {
                        Some(data) => by_value
                            .read(taken, data, 2)
                            .map_err(|e| Error::new(ErrorKind::Input, format!("{origin}: {e}")))?,
                        None if taken.numbers == 0 => {
                            Array::real([chains, count].into_iter().chain(taken.shape.iter().copied()), vec![])
                        }
                        None => return Err(lacks(&taken.name)),
                    };
                    values.push(by_lane(value, (chains, count), &taken.name, origin)?);
                }
                (function, by_value.renamed(), values, Ok(by_value))
            }
            How::OfState(program, data) => {
                let function = program.function(PARAMETERS)?;
                let Some(Data::Array(q)) = draws.get(Q) else { return Err(lacks(Q)) };
                (function, &[][..], vec![by_lane(q.clone(), (chains, count), Q, origin)?], Err(data))
            }
        };
        let name = function.signature().ports[0].name.clone();
        let first = options.first_lane;
        let number = |lane: usize| {
            let (chain, draw) = (first.wrapping_add((lane / count.max(1)) as u64), (lane % count.max(1)) as u64);
            OF_QUANTITIES | (chain & 0x3fff_ffff) << 32 | (draw & 0xffff_ffff)
        };
        let bind = |stage: usize, positions: &[usize]| {
            let part: Vec<Array> = values.iter().map(|value| value.chosen_rows(positions)).collect();
            let inputs = |data: Option<&Inputs>| match by_value {
                Ok(by_value) => by_value.inputs(&part, data, positions.len()),
                Err(own) => data.unwrap_or(own).clone().lane(&name, part[0].clone()).lanes(positions.len()),
            };
            if stage == 0 {
                return function.bind(&inputs(None), options).map(Some);
            }
            let program = match &self.how {
                How::ByValue(by_value) => by_value.program(),
                How::OfState(program, _) => Some(&**program),
                How::Nothing => None,
            };
            let Some((function, data)) = self.lesser.stage(program, stage)? else { return Ok(None) };
            function.bind(&inputs(data), options).map(Some)
        };
        let who = |at: usize| format!("draw {} of chain {}", at % count, at / count);
        let drawn = each_draw((&bind, AT_ONCE), (chains, count), (&number, &who), names, options);
        drawn.map_err(|error| match error.kind() {
            ErrorKind::Memory => {
                let remedy = "each draw is a lane: give fewer draws at a time, or fewer quantities";
                Error::new(ErrorKind::Memory, format!("{error}; {remedy}"))
            }
            _ => error,
        })
    }
}

/// With one leading axis in the place of chains and draws.
fn by_lane(mut array: Array, (chains, draws): (usize, usize), name: &str, origin: &str) -> Result<Array, Error> {
    if array.shape.len() < 2 || array.shape[..2] != [chains, draws] {
        let message = format!("{origin}: `{name}` is {}, where there are {chains} chains of {draws} draws", array.ty());
        return Err(Error::new(ErrorKind::Input, message));
    }
    array.shape.remove(0);
    array.shape[0] = chains * draws;
    Ok(array)
}
