//! What a store of a run has: its arrays, and their names.

use std::collections::BTreeSet;

use indexmap::IndexMap;

use super::axes::Shaped;
use super::parameters::Phase;
use super::{Metric, Sampling, axes};
use crate::mcmc::protocol::{ACCEPT_STAT, DIVERGENT, DRAW, ENERGY, LP, N_LEAPFROG, Q, STEPSIZE, TREEDEPTH};
use crate::program::{Bound, Error, ErrorKind, Options};
use crate::store::{Coordinate, DATA_SET, RunStore, StoredArray, StoredElement, coordinate};
use crate::types::{Array, DType, Type};

/// Statistics of a sampler, by the names that `ArviZ` has for them, and by ours.
pub const ARVIZ_STATISTICS: [(&str, &str); 7] = [
    (LP, LP),
    ("acceptance_rate", ACCEPT_STAT),
    ("step_size", STEPSIZE),
    ("tree_depth", TREEDEPTH),
    ("n_steps", N_LEAPFROG),
    ("diverging", DIVERGENT),
    (ENERGY, ENERGY),
];
/// The group of parameters, and that of statistics.
pub(super) const POSTERIOR: &str = "posterior";
pub(super) const SAMPLE_STATS: &str = "sample_stats";
/// A statistic that is computed: whether a tree was ended by its depth.
pub(super) const REACHED_DEPTH: &str = "reached_max_treedepth";
/// Another: whether the model's `parameters` failed for the draw.
pub(super) const PARAMETERS_FAILED: &str = "parameters_failed";
/// Names that a store has of its own in every group.
const AXES: [&str; 2] = ["chain", "draw"];

/// What `ArviZ` calls a statistic.
pub(super) fn stored_name(name: &str) -> &str {
    ARVIZ_STATISTICS.iter().find(|(_, own)| *own == name).map_or(name, |(stored, _)| stored)
}

/// What this project calls a statistic of `ArviZ`.
pub(super) fn own_name(stored: &str) -> &str {
    ARVIZ_STATISTICS.iter().find(|(name, _)| *name == stored).map_or(stored, |(_, own)| own)
}

/// The arrays of a store: those along chains and draws, and those along chains.
pub(super) struct Layout {
    pub(super) posterior: Vec<StoredArray>,
    pub(super) statistics: Vec<StoredArray>,
    pub(super) q: Option<StoredArray>,
    pub(super) stepsize: StoredArray,
    pub(super) inv_metric: StoredArray,
}

impl Layout {
    /// The statistic of this name.
    pub(super) fn statistic(&self, name: &str) -> Option<&StoredArray> {
        self.statistics.iter().find(|of| of.path.split_once('/') == Some((SAMPLE_STATS, name)))
    }

    /// The arrays along chains alone.
    pub(super) fn along_chains(&self) -> Vec<StoredArray> {
        vec![self.stepsize.clone(), self.inv_metric.clone()]
    }
}

/// The array of a phase: those of warmup are in groups of their own.
pub(super) fn of_phase(of: &StoredArray, phase: Phase) -> StoredArray {
    let path = if phase == Phase::Warmup { format!("warmup_{}", of.path) } else { of.path.clone() };
    StoredArray { path, ..of.clone() }
}

impl Sampling {
    /// The variables of the model, of no draws.
    fn variables(&self, options: &Options) -> Result<IndexMap<String, Array>, Error> {
        let none = Array::zeros(&Type::new(DType::Real, [1, 0, self.dimension]));
        match self.has_parameters() {
            true => Ok(self.parameters(&none, &|_| (0, 0), Phase::Sampling, options)?.arrays),
            false => Ok(IndexMap::from([(Q.to_owned(), none)])),
        }
    }

    /// Refuses variables that the model does not have, and those that a store has no place for.
    ///
    /// # Errors
    /// For these, and as [`run`](Self::run).
    pub(super) fn check_kept(&self, keep: Option<&[String]>, options: &Options) -> Result<(), Error> {
        let made = self.variables(options)?;
        let refused = |message: String| Err(Error::new(ErrorKind::Option, message));
        if let Some(name) = keep.into_iter().flatten().find(|name| *name != Q && !made.contains_key(*name)) {
            let there: Vec<String> = made.keys().map(|name| format!("`{name}`")).collect();
            return refused(format!(
                "--keep: the model has no `{name}`, but {}, and `{Q}`, its state",
                there.join(", ")
            ));
        }
        let of_sets = self.data_sets.as_ref().map(|_| DATA_SET);
        let mut own = AXES.into_iter().chain(of_sets);
        match own.find(|name| made.contains_key(*name) && keeps(keep, name)) {
            Some(name) => refused(format!(
                "a variable `{name}` has no place in a store, where the axis of that name is: rename it, or --keep the others"
            )),
            None => Ok(()),
        }
    }

    /// Refuses names of axes, and what stands along them, that do not fit the variables and the data.
    ///
    /// # Errors
    /// For these, and as [`run`](Self::run).
    pub(super) fn check_axes(&self, options: &Options) -> Result<(), Error> {
        if self.dims.is_empty() && self.coords.is_empty() {
            return Ok(());
        }
        let made = self.variables(options)?;
        let of_variables = made.iter().map(|(name, array)| Shaped { name, shape: &array.shape[2..], is_datum: false });
        let of_data = self.data_shapes.iter().map(|(name, shape)| Shaped { name, shape, is_datum: true });
        let shapes: Vec<Shaped<'_>> = of_variables.chain(of_data).collect();
        axes::check(&self.dims, &self.coords, &self.axes, &shapes)
    }

    /// The arrays of a store of this plan.
    pub(super) fn layout(&self, store: &RunStore, bound: &Bound, options: &Options) -> Result<Layout, Error> {
        let plan = store.plan();
        let sizes = (plan.chains, self.kept());
        let block = (store.chains_of_block(), plan.rows);
        let has_parameters = self.has_parameters();
        let made = self.variables(options)?;
        let stored = |group: &str, name: &str, ty: DType, event: &[usize]| {
            StoredArray::of_draws((group, name), StoredElement::of(ty, plan.single), sizes, event, block)
        };
        let kept = made.iter().filter(|(name, _)| keeps(plan.keep.as_deref(), name) || !has_parameters);
        let posterior = kept.map(|(name, array)| {
            let mut of = stored(POSTERIOR, name, array.ty().dtype, &array.shape[2..]);
            of.axes.truncate(2);
            of.axes.extend(axes::axis_names(name, &self.axes, array.shape.len() - 2));
            of
        });
        let posterior = posterior.collect();
        let streams = &bound.compiled().units.globals.streams;
        let draw = streams.values().find(|stream| stream.name == DRAW.name);
        let fields = draw.map(|draw| &draw.fields[..]).unwrap_or_default();
        let mut statistics: Vec<StoredArray> = (fields.iter().filter(|(name, _)| name != Q))
            .map(|(name, ty)| stored(SAMPLE_STATS, stored_name(name), ty.dtype, &ty.shape))
            .collect();
        if self.method.max_treedepth().is_some() {
            statistics.push(stored(SAMPLE_STATS, REACHED_DEPTH, DType::Bool, &[]));
        }
        if has_parameters {
            statistics.push(stored(SAMPLE_STATS, PARAMETERS_FAILED, DType::Bool, &[]));
        }
        let wants_q = has_parameters && plan.keep.as_ref().is_some_and(|keep| keep.iter().any(|name| name == Q));
        let q = wants_q.then(|| stored("unconstrained_posterior", Q, DType::Real, &[self.dimension]));
        let d = self.dimension;
        let rows = if self.metric == Metric::Dense { vec![d, d] } else { vec![d] };
        let along_chains = |name: &str, event: &[usize]| StoredArray {
            path: format!("adaptation/{name}"),
            element: StoredElement::Float64,
            shape: [plan.chains].into_iter().chain(event.iter().copied()).collect(),
            chunk: [block.0].into_iter().chain(event.iter().map(|n| (*n).max(1))).collect(),
            axes: ["chain".to_owned()].into_iter().chain((0..event.len()).map(|i| format!("{name}_dim_{i}"))).collect(),
        };
        Ok(Layout {
            posterior,
            statistics,
            q,
            stepsize: along_chains("step_size", &[]),
            inv_metric: along_chains("inv_metric", &rows),
        })
    }

    /// The arrays along chains and draws.
    pub(super) fn of_draws(&self, layout: &Layout) -> Vec<StoredArray> {
        let phases: &[Phase] =
            if self.method.saves_warmup() { &[Phase::Sampling, Phase::Warmup] } else { &[Phase::Sampling] };
        let arrays = || layout.posterior.iter().chain(&layout.statistics).chain(&layout.q);
        phases.iter().flat_map(|phase| arrays().map(|array| of_phase(array, *phase))).collect()
    }

    /// Tells the store its arrays, and writes those that do not change.
    pub(super) fn declare(
        &self,
        store: &mut RunStore,
        layout: &Layout,
        data: &IndexMap<String, (Array, bool)>,
    ) -> Result<(), Error> {
        let of_draws = self.of_draws(layout);
        let plan = store.plan();
        let number = |lane: usize| i64::try_from(plan.first_lane.saturating_add(lane as u64)).unwrap_or(i64::MAX);
        let chains: Vec<i64> = (0..plan.chains).map(number).collect();
        let states = self.warmup.div_ceil(self.method.thin());
        let mut whole: Vec<(StoredArray, Array)> = Vec::new();
        let groups: BTreeSet<&str> = of_draws.iter().filter_map(|array| array.path.split('/').next()).collect();
        for group in groups {
            let rows = if group.starts_with("warmup") { states } else { self.kept() };
            whole.push(coordinate(group, "chain", chains.clone()));
            whole.push(coordinate(group, "draw", (0..rows as i64).collect()));
            if let Some(sets) = plan.data_sets {
                let each = (plan.chains / sets).max(1);
                let of = Array::int([plan.chains], (0..plan.chains).map(|chain| (chain / each) as i64).collect());
                let axes = vec!["chain".to_owned()];
                let path = format!("{group}/{DATA_SET}");
                whole.push((StoredArray::whole(path, &of, StoredElement::Int64, axes), of));
            }
        }
        whole.push(coordinate("adaptation", "chain", chains));
        if let Some(sets) = plan.data_sets {
            whole.push(coordinate("observed_data", DATA_SET, (0..sets as i64).collect()));
        }
        for (name, (array, is_of_set)) in data {
            let of_set = is_of_set.then(|| DATA_SET.to_owned());
            let rank = array.shape.len().saturating_sub(usize::from(*is_of_set));
            let inner = axes::axis_names_of_datum(name, &self.axes, rank, |name| data.contains_key(name));
            let axes: Vec<String> = of_set.into_iter().chain(inner).collect();
            let element = StoredElement::of(array.ty().dtype, false);
            let of = StoredArray::whole(format!("observed_data/{name}"), array, element, axes);
            whole.push((of, array.clone()));
        }
        let all = || of_draws.iter().chain(whole.iter().map(|(of, _)| of));
        let groups: BTreeSet<&str> = all().filter_map(|array| array.path.split('/').next()).collect();
        let mut told = Vec::new();
        for group in groups {
            let own = || all().filter(|array| array.path.strip_prefix(group).is_some_and(|rest| rest.starts_with('/')));
            let along = self.coords.iter().filter(|(axis, _)| own().any(|array| array.axes.contains(axis)));
            told.extend(along.map(|(axis, along)| (group.to_owned(), axis, along)));
        }
        for (group, axis, along) in told {
            match along {
                Coordinate::Ints(numbers) => whole.push(coordinate(&group, axis, numbers.clone())),
                Coordinate::Texts(texts) => store.put_texts(&group, axis, texts)?,
            }
        }
        whole.iter().try_for_each(|(of, values)| store.put_whole(of, values))?;
        let others = whole.into_iter().map(|(of, _)| of).chain(layout.along_chains());
        store.declare(of_draws, others.collect())
    }
}

fn keeps(keep: Option<&[String]>, name: &str) -> bool {
    keep.is_none_or(|keep| keep.iter().any(|kept| kept == name))
}
