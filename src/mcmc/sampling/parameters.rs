//! The constrained parameters of draws: the model's `parameters`, with every draw as a lane.

use indexmap::IndexMap;

use super::failed::{self, Computed, FailedDraws};
use super::{DataSets, Draws, PARAMETERS, Sampling};
use crate::mcmc::by_value;
use crate::mcmc::protocol::{DRAW, Q};
use crate::mcmc::streams::OF_DRAWS;
use crate::program::{Bound, Codegen, Engine, Error, ErrorKind, Function, Inputs, Options, Prints, Speakers};
use crate::run::TrapKind;
use crate::types::{Array, DType, Type};

/// Draws whose constrained parameters are computed in one run.
pub(in crate::mcmc) const AT_ONCE: usize = 1 << 16;

/// Bytes of data sets that are repeated for the draws of a run, at most.
const MOST_BYTES: usize = 64 << 20;

/// What iterations are made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Warmup,
    Sampling,
}

/// The random stream of `parameters` in a draw of a chain: none that a chain has, nor another draw, whatever the number
/// of draws, of chains, or of what runs together. (2^31 chains and 2^32 draws of each are told apart.)
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
        let state = Array::zeros(&Type::new(DType::Real, [1, *dimension]));
        let inputs = self.parameter_inputs(&function, state, &|_| 0);
        Ok(function.bind(&inputs, &options)?.output_bytes())
    }

    /// What `parameters` takes for these draws, one a lane, of these chains.
    fn parameter_inputs(&self, function: &Function<'_>, q: Array, chain: &dyn Fn(usize) -> usize) -> Inputs {
        let (name, lanes) = (function.signature().ports[0].name.clone(), q.shape[0]);
        let mut data = self.of_parameters.as_ref().unwrap_or(&self.data).clone();
        if let Some(sets) = &self.data_sets {
            let of: Vec<usize> = (0..lanes).map(|lane| sets.of_chain(chain(lane), self.chains)).collect();
            data = sets.as_lanes(data, &of);
        }
        data.lane(name, q).lanes(lanes).restricted_to(function.signature())
    }

    /// The constrained parameters of all draws, in the place of the states.
    pub(super) fn constrain(&self, draws: &mut Draws, options: &Options) -> Result<(), Error> {
        let (chains, count) = (&draws.chains, draws.draws.max(1));
        let of = |at: usize| (chains[at / count], at % count);
        let q = draws.parameters.shift_remove(Q).expect("the state is there");
        let made = self.parameters(&q, &of, Phase::Sampling, options)?;
        (draws.parameters, draws.failed) = (made.arrays, made.failed);
        draws.fatal = draws.fatal.take().or(made.fatal);
        if let Some(warmup) = &mut draws.warmup_states {
            let count = warmup.states.max(1);
            let of = |at: usize| (chains[at / count], at % count);
            let q = warmup.parameters.shift_remove(Q).expect("the state is there");
            let made = self.parameters(&q, &of, Phase::Warmup, options)?;
            warmup.parameters = made.arrays;
            draws.fatal = draws.fatal.take().or(made.fatal);
        }
        Ok(())
    }

    /// The same of chains of different lengths, and of the arrays that hold a part of each.
    pub(super) fn constrain_each(&self, draws: &mut Draws, options: &Options) -> Result<(), Error> {
        let (numbers, count) = (draws.chains.clone(), draws.draws);
        let parts = draws.each_chain.iter_mut().map(|chain| (chain.chain, &mut chain.parameters)).collect();
        let made = self.constrain_parts(parts, (&numbers, count), Phase::Sampling, options)?;
        (draws.parameters, draws.failed) = (made.arrays, made.failed);
        draws.fatal = draws.fatal.take().or(made.fatal);
        if let Some(warmup) = &mut draws.warmup_states {
            let chains = draws.each_chain.iter_mut();
            let parts = chains.filter_map(|c| Some((c.chain, &mut c.warmup_states.as_mut()?.parameters))).collect();
            let made = self.constrain_parts(parts, (&numbers, warmup.states), Phase::Warmup, options)?;
            warmup.parameters = made.arrays;
            draws.fatal = draws.fatal.take().or(made.fatal);
        }
        Ok(())
    }

    /// The constrained parameters of chains in the places of their states, all in one run; gives those of these chains,
    /// so many of each.
    fn constrain_parts(
        &self,
        mut parts: Vec<(usize, &mut IndexMap<String, Array>)>,
        (chains, count): (&[usize], usize),
        phase: Phase,
        options: &Options,
    ) -> Result<QuantitiesOfDraws, Error> {
        let mut q: Option<Array> = None;
        let mut places: Vec<(usize, usize)> = Vec::new();
        let mut starts: Vec<usize> = Vec::with_capacity(parts.len());
        for (chain, part) in &mut parts {
            let mut states = part.shift_remove(Q).expect("the state is there");
            states.shape.remove(0);
            starts.push(places.len());
            places.extend((0..states.shape[0]).map(|draw| (*chain, draw)));
            match &mut q {
                None => q = Some(states),
                Some(q) => q.append_rows(&states),
            }
        }
        let Some(mut q) = q else { return Ok(QuantitiesOfDraws::default()) };
        q.shape.insert(0, 1);
        let QuantitiesOfDraws { arrays: mut all, failed, fatal } =
            self.parameters(&q, &|at| places[at], phase, options)?;
        for array in all.values_mut() {
            array.shape.remove(0);
        }
        let with_chain = |mut array: Array| {
            array.shape.insert(0, 1);
            array
        };
        let mut kept: Vec<usize> = Vec::with_capacity(chains.len() * count);
        for ((chain, part), start) in parts.iter_mut().zip(&starts) {
            let rows = *start..*start + places[*start..].iter().take_while(|(of, _)| of == chain).count();
            **part = all.iter().map(|(name, array)| (name.clone(), with_chain(array.rows(rows.clone())))).collect();
            if chains.contains(chain) {
                kept.extend(*start..*start + count);
            }
        }
        let arrays = all.into_iter().map(|(name, array)| {
            let mut array = array.chosen_rows(&kept);
            failed::by_chain(&mut array, (chains.len(), count));
            (name, array)
        });
        // Chains and draws ascend in both.
        let failed = failed.and_then(|failed| failed.moved(&|at| kept.binary_search(&at).ok()));
        Ok(QuantitiesOfDraws { arrays: arrays.collect(), failed, fatal })
    }

    /// The constrained parameters of states, chain × draw × coordinate. `of` gives the numbers of the chain and of the
    /// draw of a state, by its place.
    pub(super) fn parameters(
        &self,
        q: &Array,
        of: &(dyn Fn(usize) -> (usize, usize) + Sync),
        phase: Phase,
        options: &Options,
    ) -> Result<QuantitiesOfDraws, Error> {
        let function = self.model.function(PARAMETERS)?;
        let dimension = q.shape[2];
        let options = options_of_draws(options);
        let number = |at: usize| {
            let (chain, draw) = of(at);
            let chain = options.first_lane.wrapping_add(chain as u64);
            // From the other end, so that draws have theirs whether states of warmup are kept or not.
            stream(chain, if phase == Phase::Warmup { u64::MAX - draw as u64 } else { draw as u64 })
        };
        let bind = |stage: usize, positions: &[usize]| {
            let rows = rows_of(q, dimension, positions);
            let chain = |lane: usize| of(positions[lane]).0;
            if stage == 0 {
                return function.bind(&self.parameter_inputs(&function, rows, &chain), &options).map(Some);
            }
            let Some((function, data)) = self.lesser.stage(Some(&self.model), stage)? else { return Ok(None) };
            let inputs = match data {
                Some(data) => data.clone().lane("q", rows).lanes(positions.len()),
                None => self.parameter_inputs(&function, rows, &chain),
            };
            function.bind(&inputs, &options).map(Some)
        };
        let names = self.renamed.as_deref().unwrap_or_default();
        let who = |at: usize| {
            let (chain, draw) = of(at);
            let what = if phase == Phase::Warmup { "state of warmup" } else { "draw" };
            format!("{what} {draw} of chain {chain}")
        };
        // Data of each draw of its own take room, too.
        let own = self.data_sets.as_ref().map_or(0, DataSets::bytes);
        let at_once = (MOST_BYTES / own.max(1)).clamp(1, AT_ONCE);
        each_draw((&bind, at_once), (q.shape[0], q.shape[1]), (&number, &who), names, &options)
    }
}

/// The options for what is computed of draws.
pub(in crate::mcmc) fn options_of_draws(options: &Options) -> Options {
    let mut options = options.clone();
    // What is drawn is drawn, though the run was stopped.
    options.settings.stop = None;
    // Each draw is a lane that runs once: where code pays for so little it is made beside, and no compiler waited for.
    // The interpreter has no code that comes beside.
    if options.codegen == Codegen::Cc && options.engine != Engine::Scalar {
        options.codegen = Codegen::Auto;
    }
    options
}

/// Some rows of a state, chain × draw × coordinate.
pub(in crate::mcmc) fn rows_of(q: &Array, dimension: usize, positions: &[usize]) -> Array {
    let values = q.as_real().expect("a state is real");
    let rows = positions.iter().flat_map(|at| &values[at * dimension..(at + 1) * dimension]).copied();
    Array::real([positions.len(), dimension], rows.collect())
}

/// What is computed of draws.
#[derive(Clone, Default, Debug)]
pub struct QuantitiesOfDraws {
    /// Its variables, chain × draw × event shape.
    pub arrays: IndexMap<String, Array>,
    /// The draws that lack some.
    pub failed: Option<FailedDraws>,
    /// What one of them said that ends a command when all is written, as `fatal_error` of Stan does.
    pub fatal: Option<Error>,
}

/// A function of draws, bound to those of these positions, chain · draws + draw: that of stage 0 gives all that there
/// is, and the later ones, as far as there are such, less and less.
pub(in crate::mcmc) type Bind<'a> = &'a dyn Fn(usize, &[usize]) -> Result<Option<Bound>, Error>;

/// What a function gives for every draw, so many in one run, chain × draw × event shape, and the draws for which it
/// traps, which keep what a function of a later stage gives. `number` is the random stream of a draw; `names` are those
/// of fields that are called otherwise, and `who` says how a draw is called.
pub(in crate::mcmc) fn each_draw(
    bind: (Bind<'_>, usize),
    (chains, draws): (usize, usize),
    (number, who): (&dyn Fn(usize) -> u64, &(dyn Fn(usize) -> String + Sync)),
    names: &[(String, String)],
    options: &Options,
) -> Result<QuantitiesOfDraws, Error> {
    let mut options = options.clone();
    (options.settings.stats, options.settings.profile) = (false, false);
    let all: Vec<usize> = (0..chains * draws).collect();
    let Some(mut computed) = run(bind, (0, &all), number, who, &options)? else {
        return Ok(QuantitiesOfDraws::default());
    };
    let (positions, mut lost) = (computed.failed.clone(), vec![]);
    for stage in 1.. {
        if computed.failed.is_empty() {
            break;
        }
        let failed = computed.failed.clone();
        // What these print was printed.
        options.prints = Prints::default();
        let Some(less) = run(bind, (stage, &failed), number, who, &options)? else { break };
        computed.fill(less, &mut lost);
    }
    let known = |name: &&String| lost.iter().any(|(names, _): &(Vec<String>, _)| names.contains(name));
    let rest: Vec<String> = computed.arrays.keys().filter(|name| !known(name)).cloned().collect();
    lost.push((rest, std::mem::take(&mut computed.failed)));
    failed::forget(&mut computed.arrays, &lost);
    let failed = computed.first.map(|first| {
        lost.retain(|(_, positions)| !positions.is_empty());
        FailedDraws::new(positions, first, lost).renamed(names)
    });
    let mut arrays = by_value::renamed(computed.arrays, names);
    arrays.values_mut().for_each(|array| failed::by_chain(array, (chains, draws)));
    Ok(QuantitiesOfDraws { arrays, failed, fatal: computed.fatal })
}

/// What the function of a stage gives for draws of these positions.
fn run(
    (bind, at_once): (Bind<'_>, usize),
    (stage, positions): (usize, &[usize]),
    number: &dyn Fn(usize) -> u64,
    who: &(dyn Fn(usize) -> String + Sync),
    options: &Options,
) -> Result<Option<Computed>, Error> {
    let mut computed = Computed { arrays: IndexMap::new(), failed: vec![], first: None, fatal: None };
    for first in (0..positions.len().max(1)).step_by(at_once) {
        let part = &positions[first..positions.len().min(first + at_once)];
        let Some(mut bound) = bind(stage, part)? else { return Ok(None) };
        bound.inputs_mut().lanes = part.iter().map(|at| number(*at)).collect();
        let who = |position: usize| who(part[position]);
        let sink = Speakers { prints: &options.prints, of_results: true, who: &who };
        let (results, fatal) = bound.run_on(options, &sink)?;
        computed.fatal = computed.fatal.or(fatal);
        if results.traps().iter().any(|trap| trap.kind == TrapKind::Interrupted) {
            let message = format!("stopped: {first} of {} draws were done, and nothing is written", positions.len());
            return Err(Error::new(ErrorKind::Interrupted, message));
        }
        for (name, array) in results.outputs() {
            append(&mut computed.arrays, name, array, positions.len());
        }
        for trap in results.traps() {
            computed.first.get_or_insert_with(|| trap.clone());
            computed.failed.push(first + trap.position);
        }
    }
    Ok(Some(computed))
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
