//! A model with its data for algorithms that start at points and end with points: what of it all of them need.

use indexmap::IndexMap;

use super::density_text::{DensityText, free_name, uses};
use super::protocol::Q;
use super::sampling::{AT_ONCE, Lesser, ModelSource, PARAMETERS, QuantitiesOfDraws};
use super::sampling::{density_of_terms, dimension, each_draw, options_of_draws, refuse_missing, rows_of};
use crate::mcmc::streams::OF_POINTS;
use crate::program::{Error, ErrorKind, Function, Inputs, Options, Program, Terms, Varying};
use crate::types::Array;

/// A model that is read, with the data of its functions.
#[derive(Debug)]
pub(super) struct Posterior<'a> {
    pub(super) source: ModelSource<'a>,
    terms: Terms,
    model: Program,
    data: Inputs,
    of_parameters: Option<Inputs>,
    lesser: Lesser,
    dimension: usize,
}

impl<'a> Posterior<'a> {
    /// Reads a model, whose density has these terms where it knows them. `read_data` gives the shared inputs of one of its
    /// functions.
    pub(super) fn new(
        source: &ModelSource<'a>,
        terms: Terms,
        read_data: &dyn Fn(&Function<'_>) -> Result<Inputs, Error>,
    ) -> Result<Self, Error> {
        let model = source.program()?;
        let function = density_of_terms(&model, &source.name(), terms)?;
        let data = read_data(&function)?;
        refuse_missing(&function, &data)?;
        let Some(dimension) = dimension(&function, &data) else {
            let message = "no data tell the number of unconstrained coordinates: say what its dimensions are in the data \
                           or by --shared";
            return Err(Error::new(ErrorKind::Input, message));
        };
        let of_parameters = if model.functions().any(|name| name == PARAMETERS) {
            let function = model.function(PARAMETERS)?;
            Some(read_data(&function)?.restricted_to(function.signature()))
        } else {
            None
        };
        let lesser = Lesser::new(source, false);
        Ok(Self { source: *source, terms, model, data, of_parameters, lesser, dimension })
    }

    /// Unconstrained coordinates.
    pub(super) fn dimension(&self) -> usize {
        self.dimension
    }

    /// A program whose `main` gives what an algorithm makes of the density: `result` is the type of it, and `body` what
    /// is computed, of the closure `density`, the lane input `start` and other shared parameters.
    pub(super) fn join(&self, modules: &[(&str, &str)], made: &Joined<'_>) -> Result<Algorithm, Error> {
        let function = density_of_terms(&self.model, &self.source.name(), self.terms)?;
        let text = DensityText::new(&function, &self.data);
        let free = |name: &str| free_name(&function, name);
        let (start, position) = (free("start"), free("position"));
        let counts: Vec<String> = made.counts.iter().map(|(name, _)| free(name)).collect();
        let mut params = vec![format!("{start}: {}", text.state)];
        params.extend(text.params);
        params.extend(counts.iter().map(|name| format!("shared {name}: int")));
        let arguments: String = counts.iter().map(|name| format!(", {name}")).collect();
        let source = format!(
            "{}pub fn main{}({}) -> {} {{\n    let density = |{position}: {}| {}({position}{});\n    {}\n}}\n",
            uses(&self.source, modules),
            text.dims,
            params.join(", "),
            made.result.replace("{d}", &text.dimension),
            text.state,
            text.call,
            text.args,
            made.body.replace("{start}", &start).replace("{counts}", &arguments).replace("{d}", &text.dimension),
        );
        let program = Program::compile_with("<driver>", &source, self.source.module().1, Varying::default())?;
        let values = counts.into_iter().zip(made.counts.iter().map(|(_, n)| *n)).collect();
        Ok(Algorithm { program, start, counts: values, data: self.data.clone() })
    }

    /// The constrained parameters of points, chain × draw × coordinate, or `q` of a model that exports none; and those
    /// that have none.
    pub(super) fn parameters(&self, q: &Array, options: &Options) -> Result<QuantitiesOfDraws, Error> {
        let (chains, draws, d) = (q.shape[0], q.shape[1], q.shape[2]);
        let Some(data) = &self.of_parameters else {
            let arrays = IndexMap::from([(Q.to_owned(), q.clone())]);
            return Ok(QuantitiesOfDraws { arrays, ..QuantitiesOfDraws::default() });
        };
        let function = self.model.function(PARAMETERS)?;
        let name = function.signature().ports[0].name.clone();
        let options = options_of_draws(options);
        let first = options.first_lane;
        let number = |lane: usize| {
            let (chain, draw) = (first.wrapping_add((lane / draws.max(1)) as u64), (lane % draws.max(1)) as u64);
            OF_POINTS | ((chain & 0x0fff_ffff) << 32) | (draw & 0xffff_ffff)
        };
        let bind = |stage: usize, positions: &[usize]| {
            let rows = rows_of(q, d, positions);
            if stage == 0 {
                let inputs = data.clone().lane(name.clone(), rows).lanes(positions.len());
                return function.bind(&inputs, &options).map(Some);
            }
            let Some((function, own)) = self.lesser.stage(Some(&self.model), stage)? else { return Ok(None) };
            let name = function.signature().ports[0].name.clone();
            let inputs = own.unwrap_or(data).clone().lane(name, rows).lanes(positions.len());
            function.bind(&inputs.restricted_to(function.signature()), &options).map(Some)
        };
        let names: Vec<(String, String)> = match &self.source {
            ModelSource::Stan(model) => model.renamed().map(|(f, n)| (f.to_owned(), n.to_owned())).collect(),
            _ => vec![],
        };
        let who = |at: usize| format!("point {at}");
        each_draw((&bind, AT_ONCE), (chains, draws), (&number, &who), &names, &options)
    }
}

/// What joins an algorithm to a density.
pub(super) struct Joined<'a> {
    /// The type of what it gives; `{d}` stands for the extent of the state, which data may tell.
    pub(super) result: &'a str,
    /// What is computed; `{start}` and `{counts}` stand for the starting point and the arguments of `counts`, `{d}` as before.
    pub(super) body: &'a str,
    /// Shared ints, with their values.
    pub(super) counts: &'a [(&'a str, i64)],
}

/// An algorithm that is joined to a density.
pub(super) struct Algorithm {
    program: Program,
    start: String,
    counts: Vec<(String, i64)>,
    data: Inputs,
}

impl Algorithm {
    /// What it takes for these starts, a row each.
    pub(super) fn bind(&self, starts: Array, options: &Options) -> Result<crate::program::Bound, Error> {
        let function = self.program.function("main")?;
        let mut inputs = self.data.clone().restricted_to(function.signature()).lanes(starts.shape[0]);
        for (name, value) in &self.counts {
            inputs = inputs.shared(name, *value);
        }
        function.bind(&inputs.lane(&self.start, starts), options)
    }
}
