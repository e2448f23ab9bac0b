//! Draws for which a model's `parameters` fail: what of them is there all the same.
//!
//! As in Stan, parameters and transformed parameters do not go with generated quantities that fail: for such draws a
//! function is called that computes no more than these, or, should it fail as well, the parameters alone.

use std::sync::{Arc, OnceLock};

use indexmap::IndexMap;

use super::{ModelSource, PARAMETERS};
use crate::mcmc::by_value::QUANTITIES;
use crate::program::{Error, Function, Inputs, Program, StanFunction, StanOrigin};
use crate::run::Trap;
use crate::types::{Array, ArrayData, Shape};

/// How many times there is less of a draw than all.
const LESSER: usize = 2;
/// What a model makes of draws beside its functions of public names: `check::models` has them.
const OF_STATE: &[&str] = &["%parameters", "%constrained"];
const BY_VALUE: &[&str] = &["%transformed"];

/// Draws for which a model's `parameters` trapped. What is lost of them is NaN, and variables of ints and bools among which
/// something is lost are reals.
#[derive(Clone, PartialEq, Debug)]
pub struct FailedDraws {
    /// Where they stand in the arrays, chain · draws + draw, ascending; not empty.
    pub positions: Vec<usize>,
    /// Why the first of them did.
    pub first: Trap,
    /// Variables, and the draws that have lost them, ascending.
    lost: Vec<(Vec<String>, Vec<usize>)>,
}

impl FailedDraws {
    pub(super) fn new(positions: Vec<usize>, first: Trap, lost: Vec<(Vec<String>, Vec<usize>)>) -> Self {
        Self { positions, first, lost }
    }

    /// The draws that have lost a variable, chain · draws + draw, ascending.
    pub fn of(&self, variable: &str) -> &[usize] {
        let of = self.lost.iter().find(|(names, _)| names.iter().any(|name| name == variable));
        of.map_or(&[], |(_, positions)| positions)
    }

    /// The variables that some draws have lost.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.lost.iter().flat_map(|(names, _)| names.iter().map(String::as_str))
    }

    /// With variables under other names.
    pub(in crate::mcmc) fn renamed(mut self, names: &[(String, String)]) -> Self {
        for known in self.lost.iter_mut().flat_map(|(names, _)| names) {
            if let Some((_, name)) = names.iter().find(|(field, _)| field == known) {
                name.clone_into(known);
            }
        }
        self
    }

    /// Those of a part of the draws, and where they stand there; `None` where there are none.
    pub(super) fn moved(&self, to: &dyn Fn(usize) -> Option<usize>) -> Option<Self> {
        let moved = |all: &[usize]| -> Vec<usize> { all.iter().filter_map(|at| to(*at)).collect() };
        let positions = moved(&self.positions);
        let lost = self.lost.iter().map(|(names, all)| (names.clone(), moved(all))).filter(|(_, all)| !all.is_empty());
        (!positions.is_empty()).then(|| Self { positions, first: self.first.clone(), lost: lost.collect() })
    }
}

/// What a function gives for draws, and which of them it gives nothing for.
pub(super) struct Computed {
    pub(super) arrays: IndexMap<String, Array>,
    /// Ascending.
    pub(super) failed: Vec<usize>,
    pub(super) first: Option<Trap>,
    /// What one of them says that ends the run of a program.
    pub(super) fatal: Option<Error>,
}

impl Computed {
    /// Takes what `less` gives for draws that have failed so far: it is there, and those that fail there, too, are those for
    /// which the rest is lost. `lost` gets what was not there.
    pub(super) fn fill(&mut self, less: Computed, lost: &mut Vec<(Vec<String>, Vec<usize>)>) {
        let asked = std::mem::take(&mut self.failed);
        for (name, array) in &less.arrays {
            if let Some(whole) = self.arrays.get_mut(name) {
                asked.iter().enumerate().for_each(|(row, at)| copy_row(whole, *at, array, row));
            }
        }
        let known = |name: &String| lost.iter().any(|(names, _)| names.contains(name));
        let names = self.arrays.keys().filter(|name| !less.arrays.contains_key(*name) && !known(name));
        let names: Vec<String> = names.cloned().collect();
        self.failed = less.failed.iter().map(|row| asked[*row]).collect();
        lost.push((names, asked));
    }
}

/// Puts NaN in the places of what is lost.
pub(super) fn forget(arrays: &mut IndexMap<String, Array>, lost: &[(Vec<String>, Vec<usize>)]) {
    for (names, positions) in lost.iter().filter(|(_, positions)| !positions.is_empty()) {
        for name in names {
            let Some(array) = arrays.get_mut(name) else { continue };
            let mut values = reals(std::mem::replace(&mut array.data, ArrayData::Real(vec![])));
            let size: usize = array.shape[1..].iter().product();
            positions.iter().for_each(|at| values[at * size..(at + 1) * size].fill(f64::NAN));
            array.data = ArrayData::Real(values);
        }
    }
}

/// No int is NaN.
fn reals(data: ArrayData) -> Vec<f64> {
    match data {
        ArrayData::Real(values) => values,
        ArrayData::Int(values) => values.into_iter().map(|i| i as f64).collect(),
        ArrayData::Bool(values) => values.into_iter().map(|b| f64::from(u8::from(b))).collect(),
    }
}

fn copy_row(to: &mut Array, row: usize, from: &Array, of: usize) {
    let size: usize = to.shape[1..].iter().product();
    let (to_places, places) = (row * size..(row + 1) * size, of * size..(of + 1) * size);
    match (&mut to.data, &from.data) {
        (ArrayData::Real(to), ArrayData::Real(from)) => to[to_places].copy_from_slice(&from[places]),
        (ArrayData::Int(to), ArrayData::Int(from)) => to[to_places].copy_from_slice(&from[places]),
        (ArrayData::Bool(to), ArrayData::Bool(from)) => to[to_places].copy_from_slice(&from[places]),
        _ => {}
    }
}

/// The functions that compute less of a draw, of a model that has such. Those of a Stan program are made when the first draw
/// needs them.
#[derive(Debug)]
pub(in crate::mcmc) struct Lesser {
    origin: Option<Arc<StanOrigin>>,
    by_value: bool,
    made: [OnceLock<Result<StanFunction, Error>>; LESSER],
}

impl Lesser {
    /// Those of a model; of its parameters `by_value`, or of the unconstrained state.
    pub(in crate::mcmc) fn new(model: &ModelSource<'_>, by_value: bool) -> Self {
        let origin = match model {
            ModelSource::Stan(model) => Some(Arc::clone(model.origin())),
            ModelSource::File(_) | ModelSource::Text(_) => None,
        };
        Self { origin, by_value, made: Default::default() }
    }

    /// Those that the program itself has, if any: of a Stan program none.
    pub(in crate::mcmc) fn of_program(by_value: bool) -> Self {
        Self { origin: None, by_value, made: Default::default() }
    }

    /// The `stage`-th of them, from 1, and its data where these are not those of the model's other functions; `None` where
    /// there are no more.
    pub(in crate::mcmc) fn stage<'a>(
        &'a self,
        program: Option<&'a Program>,
        stage: usize,
    ) -> Result<Option<(Function<'a>, Option<&'a Inputs>)>, Error> {
        let Some(place) = stage.checked_sub(1) else { return Ok(None) };
        let Some(origin) = &self.origin else {
            let Some(program) = program else { return Ok(None) };
            let names = if self.by_value { BY_VALUE } else { OF_STATE };
            let mut there = names.iter().filter(|name| program.functions().any(|other| other == **name));
            return there.nth(place).map(|name| Ok((program.function(name)?, None))).transpose();
        };
        let Some(made) = self.made.get(place) else { return Ok(None) };
        let last = (LESSER - stage) as u8;
        let function = made.get_or_init(|| origin.until(last, self.by_value)).as_ref().map_err(Error::clone)?;
        let name = if self.by_value { QUANTITIES } else { PARAMETERS };
        let Some(program) = function.program() else { return Ok(None) };
        Ok(Some((program.function(name)?, Some(function.inputs()))))
    }
}

/// Rows as chains and draws.
pub(super) fn by_chain(array: &mut Array, (chains, draws): (usize, usize)) {
    let event = array.shape[1..].to_vec();
    array.shape = [chains, draws].into_iter().chain(event).collect::<Shape>();
}
