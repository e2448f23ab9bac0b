//! The constrained parameters of draws: the model's `parameters`, with every draw as a lane.

use indexmap::IndexMap;

use super::{PARAMETERS, Sampling};
use crate::mcmc::protocol::{DRAW, Q};
use crate::mcmc::streams::OF_DRAWS;
use crate::program::{Bound, Error, Function, Inputs, Options};
use crate::run::{NoSink, Trap};
use crate::types::{Array, ArrayData, DType, Type};

/// Draws whose constrained parameters are computed in one run.
const AT_ONCE: usize = 1 << 16;

/// Draws for which `parameters` trapped. Reals of them are NaN, ints 0, and bools `false`.
#[derive(Clone, PartialEq, Debug)]
pub struct FailedDraws {
    /// Where they stand in the arrays, chain · draws + draw, ascending; not empty.
    pub positions: Vec<usize>,
    /// Why the first of them did.
    pub first: Trap,
}

/// What iterations are made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Warmup,
    Sampling,
}

/// The random stream of `parameters` in a draw of a chain: none that a chain has, nor another draw, whatever the number of
/// draws, of chains, or of what runs together. (2^31 chains and 2^32 draws of each are told apart.)
fn stream(chain: u64, draw: u64) -> u64 {
    OF_DRAWS | (chain & 0x7fff_ffff) << 32 | (draw & 0xffff_ffff)
}

impl Sampling {
    /// Bytes of the constrained parameters of a draw; 0 for a model that has none.
    ///
    /// # Errors
    /// Where `parameters` cannot be compiled for the data.
    pub(super) fn bytes_of_parameters(&self, chains: &Bound, options: &Options) -> Result<usize, Error> {
        let state = chains.compiled().units.globals.streams.values().filter(|stream| stream.name == DRAW.name);
        let state = state.flat_map(|stream| &stream.fields).find(|(name, _)| name == Q);
        let Some(([dimension], true)) =
            state.map(|(_, ty)| (&ty.shape[..], self.model.functions().any(|name| name == PARAMETERS)))
        else {
            return Ok(0);
        };
        let function = self.model.function(PARAMETERS)?;
        let mut options = options.clone();
        (options.settings.stats, options.settings.profile) = (false, false);
        let inputs = self.parameter_inputs(&function, Array::zeros(&Type::new(DType::Real, [1, *dimension])));
        Ok(function.bind(&inputs, &options)?.output_bytes())
    }

    /// What `parameters` takes for these draws, one a lane.
    fn parameter_inputs(&self, function: &Function<'_>, q: Array) -> Inputs {
        let (name, lanes) = (function.signature().ports[0].name.clone(), q.shape[0]);
        self.data.clone().lane(name, q).lanes(lanes).restricted_to(function.signature())
    }

    /// The constrained parameters of all draws, and the draws that have none.
    pub(super) fn parameters(
        &self,
        q: &Array,
        numbers: &[usize],
        phase: Phase,
        options: &Options,
    ) -> Result<(IndexMap<String, Array>, Option<FailedDraws>), Error> {
        let function = self.model.function(PARAMETERS)?;
        let (chains, draws) = (numbers.len(), q.shape[1]);
        let dimension = q.shape[2];
        let values = q.as_real().expect("a state is real");
        let number = |lane: usize| {
            let chain = options.first_lane.wrapping_add(numbers[lane / draws] as u64);
            let draw = (lane % draws) as u64;
            // From the other end, so that draws have theirs whether states of warmup are kept or not.
            stream(chain, if phase == Phase::Warmup { u64::MAX - draw } else { draw })
        };
        let inputs = |rows: std::ops::Range<usize>| {
            let part = values[rows.start * dimension..rows.end * dimension].to_vec();
            self.parameter_inputs(&function, Array::real([rows.len(), dimension], part))
        };
        each_draw(&function, &inputs, (chains, draws), &number, options)
    }
}

/// What a function gives for every draw, chain × draw × event shape, and the draws for which it traps. `inputs` are those
/// of some draws, chain · draws + draw, and `number` is the random stream of one.
pub(in crate::mcmc) fn each_draw(
    function: &Function<'_>,
    inputs: &dyn Fn(std::ops::Range<usize>) -> Inputs,
    (chains, draws): (usize, usize),
    number: &dyn Fn(usize) -> u64,
    options: &Options,
) -> Result<(IndexMap<String, Array>, Option<FailedDraws>), Error> {
    let lanes = chains * draws;
    let mut options = options.clone();
    options.settings.stop = None;
    (options.settings.stats, options.settings.profile) = (false, false);
    let mut parameters: IndexMap<String, Array> = IndexMap::new();
    let mut failed: Option<FailedDraws> = None;
    for first in (0..lanes.max(1)).step_by(AT_ONCE) {
        let n = AT_ONCE.min(lanes - first);
        let mut bound = function.bind(&inputs(first..first + n), &options)?;
        bound.inputs_mut().lanes = (first..first + n).map(number).collect();
        let results = bound.run(&options, &NoSink)?;
        for (name, array) in results.outputs() {
            append(&mut parameters, name, array, lanes);
        }
        for trap in results.traps() {
            let position = first + trap.position;
            let all = failed.get_or_insert_with(|| FailedDraws { positions: vec![], first: trap.clone() });
            all.positions.push(position);
            parameters.values_mut().for_each(|array| forget(array, position));
        }
    }
    for array in parameters.values_mut() {
        array.shape.remove(0);
        array.shape.insert_from_slice(0, &[chains, draws]);
    }
    Ok((parameters, failed))
}

/// Appends rows along the leading axis, which has so many in the end.
fn append(all: &mut IndexMap<String, Array>, name: &str, rows: &Array, most: usize) {
    match all.get_mut(name) {
        Some(array) => array.append_rows(rows),
        None => {
            let mut first = rows.clone();
            first.reserve_rows(most);
            all.insert(name.to_owned(), first);
        }
    }
}

/// The row of a lane that trapped: it is zero, which for a real would be a number like any other.
fn forget(array: &mut Array, row: usize) {
    let size: usize = array.shape[1..].iter().product();
    if let ArrayData::Real(values) = &mut array.data {
        values[row * size..(row + 1) * size].fill(f64::NAN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_draw_of_every_chain_has_a_stream_that_no_chain_has() {
        let mut seen = std::collections::HashSet::new();
        for chain in [0, 1, 2, 65_535, 65_536, 0x7fff_ffff] {
            for draw in [0, 1, 65_535, 65_536, 0xffff_ffff] {
                assert!(stream(chain, draw) >= OF_DRAWS && seen.insert(stream(chain, draw)));
            }
        }
    }
}
