//! What came out of a run: draws as arrays, and what the chains told beside them.

use indexmap::IndexMap;

use super::records::{Chain, number};
use super::{Axes, FailedDraws, Metric, Reached, Setting};
use crate::mcmc::protocol::{GRADIENTS, INV_METRIC, ITERATION, N_LEAPFROG, Q, STEPSIZE};
use crate::parts::Stream;
use crate::program::{Error, Results};
use crate::run::{Caught, Stats, Trap, TrapKind};
use crate::store::Coordinates;
use crate::types::{Array, ArrayData, DType, Type};

/// How many times as many draws must be left for chains to be left out of a run that was stopped.
const FAR_MORE: usize = 4;

/// What came out.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Draws {
    /// Constrained parameters, chain × draw × event shape, under the model's names; the unconstrained `q` where the
    /// model does not export `parameters`.
    pub parameters: IndexMap<String, Array>,
    /// The other fields of the sampler's records, chain × draw: `lp`, `accept_stat`, `stepsize`, …
    pub statistics: IndexMap<String, Array>,
    /// What the axes of parameters behind those of chains and draws are called, and those of data, where the model tells:
    /// `J` of `theta: real[J]`.
    pub axes: IndexMap<String, Axes>,
    /// What stands along axes, where that was told.
    pub coords: Coordinates,
    /// The numbers of the chains that the arrays hold: all but those that trapped before the others were done, and,
    /// when the run was stopped, those that had made so few draws that more are kept without them.
    pub chains: Vec<usize>,
    /// Draws of each chain that the arrays hold: fewer than asked for when the run was stopped.
    pub draws: usize,
    /// Draws of each chain that were asked for.
    pub asked: usize,
    /// How far the chains came: less than all the way when the run was stopped.
    pub reached: Reached,
    /// The states of warmup, where `save_warmup` asks for them.
    pub warmup_states: Option<WarmupStates>,
    /// Of a run that was stopped all that each chain has, those included that the arrays hold in part or not at all.
    pub each_chain: Vec<ChainDraws>,
    /// What was learnt of the metric.
    pub metric: Metric,
    /// The inverse metric of each chain of the arrays at the end of warmup: 1 × dimension, the variances, or dimension ×
    /// dimension of a dense metric.
    pub inv_metrics: Vec<Array>,
    /// Seconds of warmup and of sampling of each chain of the arrays. They run side by side.
    pub chain_seconds: Vec<(f64, f64)>,
    /// Of so many iterations one is kept.
    pub thin: usize,
    /// What a chain said that ended the run, as `fatal_error` of Stan does: the others were stopped. Or what was said
    /// of a draw, when all were there.
    pub fatal: Option<Error>,
    /// Draws for which the model's `parameters` trapped.
    pub failed: Option<FailedDraws>,
    /// Chains that trapped.
    pub traps: Vec<Trap>,
    /// By chain, where the density failed: it counts as NaN there, so that the point is rejected. Warmup included.
    pub rejected: Vec<Caught>,
    /// Of these, by chain, those after warmup, as far as the sampler tells its end: the draws are of a chain that met
    /// them.
    pub rejected_after_warmup: Vec<Caught>,
    /// Gradients that were evaluated, warmup included, as far as the sampler tells.
    pub gradients: u64,
    /// Doublings after which the sampler ends a trajectory, of one that builds trees.
    pub max_treedepth: Option<i64>,
    /// The acceptance statistic that warmup aimed at; nothing where the step size was given.
    pub target_accept: Option<f64>,
    /// Warmup iterations of each chain.
    pub warmup: usize,
    /// All settings of the sampler and its chain, with the values that they had.
    pub settings: Vec<Setting>,
    /// The step size that was given, if one was.
    pub stepsize: Option<f64>,
    /// The step sizes that the chains of the arrays had at the end of warmup, as far as the sampler tells.
    pub adapted: Vec<f64>,
    /// The number of groups of chains, one after the other and equally many in each, that started at one point each.
    pub superchains: Option<usize>,
    /// Where each data set has chains of its own, one after the other: how many data sets there are, and chains of each.
    pub data_sets: Option<(usize, usize)>,
    /// Seconds of the sampling run.
    pub seconds: f64,
    /// Statistics of the machine.
    pub stats: Stats,
}

/// What chains went through in warmup, as [`Draws`] have it.
#[derive(Clone, Debug)]
pub struct WarmupStates {
    /// Constrained parameters, chain × state × event shape.
    pub parameters: IndexMap<String, Array>,
    /// The other fields of the records, chain × state.
    pub statistics: IndexMap<String, Array>,
    /// States of each chain.
    pub states: usize,
}

/// All that a chain has of a run that was stopped.
#[derive(Clone, Debug)]
pub struct ChainDraws {
    /// Its number.
    pub chain: usize,
    /// Constrained parameters, 1 × draw × event shape, as [`Draws`] have them.
    pub parameters: IndexMap<String, Array>,
    /// The other fields of the records, 1 × draw.
    pub statistics: IndexMap<String, Array>,
    /// Its draws.
    pub draws: usize,
    /// Its states of warmup, where they are asked for.
    pub warmup_states: Option<WarmupStates>,
    /// Iterations of warmup that it has made, as far as is known.
    pub warmup: usize,
    /// The step size at the end of warmup.
    pub adapted: Option<f64>,
    /// The inverse metric there.
    pub inv_metric: Option<Array>,
    /// Seconds of warmup and of sampling.
    pub seconds: (f64, f64),
}

impl Draws {
    /// The data sets of which the arrays have all chains, and where these begin there.
    pub fn whole_data_sets(&self) -> Vec<(usize, usize)> {
        let Some((sets, each)) = self.data_sets else { return vec![] };
        let first = |set: usize| {
            // The numbers of chains ascend.
            let at = self.chains.partition_point(|chain| *chain < set * each);
            let is = |at: usize, chain: usize| self.chains.get(at) == Some(&chain);
            (is(at, set * each) && is(at + each - 1, set * each + each - 1)).then_some((set, at))
        };
        (0..sets).filter_map(first).collect()
    }

    /// The draws of the chains of a data set, all draws where there are no data sets. How far the chains came, the gradients
    /// and the time are those of the whole run.
    #[must_use]
    pub fn of_data_set(&self, set: usize) -> Draws {
        let Some((_, each)) = self.data_sets else { return self.clone() };
        let own = |chain: usize| chain / each == set;
        let positions: Vec<usize> = (0..self.chains.len()).filter(|at| own(self.chains[*at])).collect();
        let rows = positions.first().map_or(0..0, |first| *first..first + positions.len());
        let arrays = |all: &IndexMap<String, Array>| -> IndexMap<String, Array> {
            all.iter().map(|(name, array)| (name.clone(), array.rows(rows.clone()))).collect()
        };
        let part = |len: usize| rows.start.min(len)..rows.end.min(len);
        let caught = |all: &[Caught]| all.iter().filter(|caught| own(caught.first.position)).cloned().collect();
        let draws = self.draws;
        let places = rows.start * draws..rows.end * draws;
        Draws {
            parameters: arrays(&self.parameters),
            statistics: arrays(&self.statistics),
            axes: self.axes.clone(),
            coords: self.coords.clone(),
            chains: self.chains[rows.clone()].to_vec(),
            warmup_states: self.warmup_states.as_ref().map(|states| WarmupStates {
                parameters: arrays(&states.parameters),
                statistics: arrays(&states.statistics),
                states: states.states,
            }),
            each_chain: self.each_chain.iter().filter(|chain| own(chain.chain)).cloned().collect(),
            inv_metrics: self.inv_metrics[part(self.inv_metrics.len())].to_vec(),
            chain_seconds: self.chain_seconds[part(self.chain_seconds.len())].to_vec(),
            failed: self
                .failed
                .as_ref()
                .and_then(|failed| failed.moved(&|at| places.contains(&at).then(|| at - places.start))),
            traps: self.traps.iter().filter(|trap| own(trap.position)).cloned().collect(),
            rejected: caught(&self.rejected),
            rejected_after_warmup: caught(&self.rejected_after_warmup),
            adapted: self.adapted[part(self.adapted.len())].to_vec(),
            data_sets: None,
            settings: self.settings.clone(),
            reached: self.reached.clone(),
            stats: self.stats.clone(),
            fatal: self.fatal.clone(),
            ..*self
        }
    }
}

/// The traps of a run. A sampler that gave up tells that no point would do; why the density failed is added.
pub(super) fn with_failures(results: &Results) -> Vec<Trap> {
    let mut traps = results.traps().to_vec();
    for trap in traps.iter_mut().filter(|t| t.kind == TrapKind::AssertFailed) {
        if let Some(caught) = results.caught().iter().find(|c| c.first.position == trap.position) {
            let failures = if caught.count == 1 { "once" } else { &format!("{} times", caught.count) };
            trap.message += &format!("; the density failed {failures}, first: {}", caught.first);
        }
    }
    traps
}

/// All records of a run.
pub(super) struct Recorded {
    pub(super) draw: Stream,
    pub(super) adapted: Stream,
    pub(super) progress: Stream,
    pub(super) chains: Vec<Chain>,
}

impl Recorded {
    /// As many draws of each chain as all have.
    pub(super) fn all_draws(&self, chains: Vec<usize>) -> (Vec<usize>, usize) {
        let draws = chains.iter().map(|c| self.chains[*c].draws).min().unwrap_or(0);
        (chains, draws)
    }

    /// All chains, or, where four times as many draws are left without those that had the fewest when the run was
    /// stopped, those of which most draws are left; and as many draws of each as all of these have. Of a data set, which
    /// has `each` chains, all are taken or none.
    pub(super) fn most_draws(&self, chains: Vec<usize>, each: usize) -> (Vec<usize>, usize) {
        let sets = chains.chunk_by(|a, b| a / each == b / each).filter(|set| set.len() == each);
        let draws = |set: &[usize]| set.iter().map(|c| self.chains[*c].draws).min().unwrap_or(0);
        let sets: Vec<(&[usize], usize)> = sets.map(|set| (set, draws(set))).collect();
        let mut counts: Vec<usize> = sets.iter().map(|(_, draws)| *draws).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        // Chains on different threads are seldom equally far: only much more is worth a chain.
        let least = counts.last().copied().unwrap_or(0) * FAR_MORE;
        let kept = |&(k, draws): &(usize, &usize)| {
            let all = if k + 1 == counts.len() { least } else { *draws };
            ((k + 1) * all, k)
        };
        match counts.iter().enumerate().max_by_key(kept) {
            Some((_, draws)) if *draws > 0 => {
                (sets.iter().filter(|(_, of)| of >= draws).flat_map(|(set, _)| set.iter().copied()).collect(), *draws)
            }
            _ => (chains, 0),
        }
    }

    /// The words of a record of a draw.
    fn words(&self) -> usize {
        self.draw.fields.iter().map(|(_, ty)| ty.elements()).sum()
    }

    /// States of warmup that all of these chains have.
    pub(super) fn warmup_states(&self, chains: &[usize]) -> usize {
        let words = self.words().max(1);
        chains.iter().map(|c| self.chains[*c].of_warmup.len() / words).min().unwrap_or(0)
    }

    /// All that a chain has, its states unconstrained, as `q`.
    pub(super) fn all_of(&self, of: usize, (warmup, thin, saves): (usize, usize, bool)) -> ChainDraws {
        let chain = &self.chains[of];
        let only = [of];
        let split = |mut fields: IndexMap<String, Array>| {
            let q = fields.shift_remove(Q).expect("it has the fields of a draw");
            (IndexMap::from([(Q.to_owned(), q)]), fields)
        };
        let (parameters, statistics) = split(self.fields(&only, chain.draws));
        let warmup_states = saves.then(|| {
            let states = self.warmup_states(&only);
            let (parameters, statistics) = split(self.fields_of_warmup(&only, states));
            WarmupStates { parameters, statistics, states }
        });
        let warm = chain.adapted.is_some() || chain.draws > 0;
        let reported = chain.progress.as_ref().and_then(|record| number(&self.progress, record, ITERATION));
        // A state is kept at the first of so many iterations.
        let kept = warmup_states.as_ref().map(|states| (states.states * thin).min(warmup));
        ChainDraws {
            chain: of,
            parameters,
            statistics,
            draws: chain.draws,
            warmup_states,
            warmup: if warm { warmup } else { kept.or(reported.map(|n| n as usize)).unwrap_or(0) },
            adapted: chain.adapted.as_ref().and_then(|record| number(&self.adapted, record, STEPSIZE)),
            inv_metric: self.inv_metric(of),
            seconds: chain.seconds(),
        }
    }

    /// Each field of the draws as an array chain × draw × event shape.
    pub(super) fn fields(&self, chains: &[usize], draws: usize) -> IndexMap<String, Array> {
        self.fields_of(chains, draws, |chain| &chain.words)
    }

    /// The same of the states of warmup.
    pub(super) fn fields_of_warmup(&self, chains: &[usize], states: usize) -> IndexMap<String, Array> {
        self.fields_of(chains, states, |chain| &chain.of_warmup)
    }

    fn fields_of(&self, chains: &[usize], draws: usize, of: fn(&Chain) -> &Vec<u64>) -> IndexMap<String, Array> {
        let (words, mut first) = (self.words(), 0);
        let mut fields = IndexMap::new();
        for (name, ty) in &self.draw.fields {
            let place = first..first + ty.elements();
            let records = chains.iter().flat_map(|c| of(&self.chains[*c]).chunks_exact(words.max(1)).take(draws));
            let elements = records.flat_map(|record| &record[place.clone()]);
            // As large as it will be: the estimate of memory has room for one copy.
            let most = chains.len() * draws * ty.elements();
            let data = match ty.dtype {
                DType::Bool => ArrayData::Bool(sized(most, elements.map(|w| *w != 0))),
                DType::Int => ArrayData::Int(sized(most, elements.map(|w| *w as i64))),
                DType::Real => ArrayData::Real(sized(most, elements.map(|w| f64::from_bits(*w)))),
            };
            let shape = [chains.len(), draws].iter().chain(&ty.shape).copied().collect();
            fields.insert(name.clone(), Array { shape, data });
            first = place.end;
        }
        fields
    }

    /// The inverse metric of a chain at the end of its warmup.
    pub(super) fn inv_metric(&self, chain: usize) -> Option<Array> {
        let field = self.adapted.fields.iter().position(|(name, _)| name == INV_METRIC)?;
        Some(self.chains[chain].adapted.as_ref()?[field].clone())
    }

    /// The place of a field of ints in a stream.
    fn place(stream: &Stream, name: &str) -> Option<usize> {
        stream.fields.iter().position(|(n, ty)| n == name && *ty == Type::int())
    }

    pub(super) fn gradients(&self) -> u64 {
        let count = |n: i64| u64::try_from(n).unwrap_or(0);
        // Of a chain that was stopped in warmup, as many as it has reported.
        let told = |stream: &Stream, record: &Option<Vec<Array>>| {
            number(stream, record.as_ref()?, GRADIENTS).map(|n| count(n as i64))
        };
        let of_warmup = |c: &Chain| told(&self.adapted, &c.adapted).or_else(|| told(&self.progress, &c.progress));
        let warmup: u64 = self.chains.iter().filter_map(of_warmup).sum();
        let kept = Self::place(&self.draw, N_LEAPFROG).into_iter().flat_map(|f| {
            let at: usize = self.draw.fields[..f].iter().map(|(_, ty)| ty.elements()).sum();
            self.chains.iter().flat_map(move |c| c.words.chunks_exact(self.words()).map(move |record| record[at]))
        });
        warmup + kept.map(|n| count(n as i64)).sum::<u64>()
    }
}

/// The elements, in memory for so many.
fn sized<T>(most: usize, elements: impl Iterator<Item = T>) -> Vec<T> {
    let mut all = Vec::with_capacity(most);
    all.extend(elements);
    all
}
