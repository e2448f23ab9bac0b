//! What the sampler did in a run, and what there is to worry about in it.

use std::convert::Infallible;
use std::fmt;

use indexmap::IndexMap;
use serde::Serialize;

use super::advice::{Advice, Concern, Warning};
use super::stored::{RunState, StoredChains};
use super::summary::{abridged, grouped, scalar_chains, significant};
use crate::mcmc::diagnostics;
use crate::mcmc::protocol::{ACCEPT_STAT, DIVERGENT, ENERGY, LP, N_LEAPFROG, STEPSIZE, TREEDEPTH};
use crate::mcmc::sampling::{COLLAPSED, Draws, INIT_RADIUS, MAX_TREEDEPTH, StoredDraws, TARGET_ACCEPT};
use crate::program::Error;
use crate::run::Caught;
use crate::store::RunStore;
use crate::types::{Array, Scalar};

/// E-BFMI below this is a warning.
pub(super) const E_BFMI_LIMIT: f64 = 0.3;
/// Draws that a chain needs for an E-BFMI of its own, and all chains for one of all.
const E_BFMI_DRAWS: usize = 100;
/// How many times as many gradients as the median chain one takes that is stuck.
const STUCK_WORK: f64 = 10.0;
/// Draws without a move after which a chain is stuck.
const STUCK_DRAWS: usize = 10;
/// The acceptance rates that are tried one after the other where transitions diverge.
const TARGETS: [f64; 4] = [0.9, 0.95, 0.99, 0.999];
/// Doublings more where trees are ended by their depth.
const MORE_DOUBLINGS: i64 = 2;
/// Doublings that are advised at most, 2^15 gradients a transition: where these do not do, the geometry is the trouble.
const MOST_DOUBLINGS: i64 = 15;
/// What is advised where no setting helps. What follows shows it.
const WRITE_OTHERWISE: &str = "reparameterise what goes with them, as this shows";

/// What the sampler did over all chains, warmup excluded except where it says so.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct SamplerStatistics {
    /// Chains.
    pub chains: usize,
    /// Draws kept, over all chains.
    pub draws: usize,
    /// Draws whose trajectory ended in a divergent transition.
    pub divergent: usize,
    /// Draws whose tree reached the largest depth.
    pub treedepth_saturated: usize,
    /// The largest tree depth, where the sampler has one.
    pub max_treedepth: Option<i64>,
    /// The acceptance statistic that warmup aimed at; nothing where the step size was given.
    pub target_accept: Option<f64>,
    /// Warmup iterations of each chain.
    pub warmup: usize,
    /// Of so many iterations one is kept; 0 counts as 1.
    pub thin: usize,
    /// Whether the run was stopped before all its draws were made.
    pub stopped: bool,
    /// E-BFMI of each chain, or of all together where they are short; empty where the sampler reports no energy, and
    /// where there are too few draws to tell.
    pub e_bfmi: Vec<f64>,
    /// The step size that was given, if one was.
    pub stepsize: Option<f64>,
    /// The step sizes at the end of warmup.
    pub adapted: Vec<f64>,
    /// How far from their origin chains start, where the sampler tells.
    pub init_radius: Option<f64>,
    /// Chains that are stuck.
    pub stuck: Vec<StuckChain>,
    /// Gradients evaluated, warmup included, over all chains.
    pub gradients: u64,
    /// Whether the chains stay where they start, as those of `fixed_param` do: what goes from draw to draw is nothing to
    /// converge.
    #[serde(skip)]
    pub stays: bool,
    /// Wall-clock time, warmup included.
    pub seconds: f64,
    /// Points that were rejected because the density failed there, over all chains.
    pub rejected: u64,
    /// Of these, those after warmup.
    pub rejected_after_warmup: u64,
    /// In how many chains that was.
    pub rejected_in: usize,
    /// The first failure of the first of these chains, in words.
    pub first_failure: Option<String>,
}

/// A chain that takes far smaller steps than the others, or far more of them, or that does not move.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StuckChain {
    /// Its number.
    pub chain: usize,
    /// Its step size.
    pub stepsize: f64,
    /// The mean of its log density.
    pub lp: f64,
    /// The mean of its tree depth.
    pub treedepth: f64,
}

impl fmt::Display for StuckChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (eps, lp) = (significant(self.stepsize, 2), significant(self.lp, 4));
        write!(f, "chain {} (step size {eps}, log density {lp}, tree depth {:.1})", self.chain, self.treedepth)
    }
}

/// The chains that are stuck, of two or more. `numbers` are those of the chains of the streams.
fn stuck<E>(streams: impl Fn(&str) -> Result<Vec<Vec<f64>>, E>, numbers: &[usize]) -> Result<Vec<StuckChain>, E> {
    let mean = |chain: &Vec<f64>| diagnostics::mean(&[chain]);
    let means = |name: &str| -> Result<Vec<f64>, E> { Ok(streams(name)?.iter().map(mean).collect()) };
    let (steps, work, depth, lp) = (means(STEPSIZE)?, means(N_LEAPFROG)?, means(TREEDEPTH)?, streams(LP)?);
    // The upper one of the two in the middle.
    let median = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().filter(|_| sorted.len() > 1)
    };
    let (usual_step, usual_work) = (median(&steps), median(&work));
    let still = |c: &usize| {
        let same = |chain: &Vec<f64>| chain.len() >= STUCK_DRAWS && chain.iter().all(|x| *x == chain[0]);
        lp.get(*c).is_some_and(same)
    };
    // Where no chain moves, the density is flat.
    let all_still = (0..lp.len()).all(|c| still(&c));
    let is_stuck = |c: &usize| {
        let small = usual_step.zip(steps.get(*c)).is_some_and(|(usual, step)| step * COLLAPSED < usual);
        let long = usual_work.zip(work.get(*c)).is_some_and(|(usual, work)| *work > usual * STUCK_WORK);
        small || long || (still(c) && !all_still)
    };
    let of = |values: &[f64], c: usize| values.get(c).copied().unwrap_or(f64::NAN);
    let named = (0..numbers.len()).filter(is_stuck).map(|c| StuckChain {
        chain: numbers[c],
        stepsize: of(&steps, c),
        lp: lp.get(c).map_or(f64::NAN, mean),
        treedepth: of(&depth, c),
    });
    Ok(named.collect())
}

/// Streams that are in memory, by their names.
fn in_memory(all: &IndexMap<String, Array>) -> impl Fn(&str) -> Result<Vec<Vec<f64>>, Infallible> {
    |name| Ok(all.get(name).map_or_else(Vec::new, |array| scalar_chains(array, 0)))
}

/// E-BFMI of each chain, or of all where they are short; none where there are too few draws.
fn e_bfmi(energies: &[Vec<f64>]) -> Vec<f64> {
    let draws = energies.iter().map(Vec::len).min().unwrap_or(0);
    if draws >= E_BFMI_DRAWS {
        energies.iter().map(|chain| diagnostics::e_bfmi(chain)).collect()
    } else if draws * energies.len() >= E_BFMI_DRAWS {
        vec![diagnostics::e_bfmi_of_all(energies)]
    } else {
        vec![]
    }
}

impl SamplerStatistics {
    /// What the sampler did in a run.
    pub fn of_draws(draws: &Draws) -> Self {
        let Ok(statistics) = Self::of_run(draws, in_memory(&draws.statistics));
        statistics
    }

    /// What the sampler did in a run in a store, whose statistics are read one after the other.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub fn of_store(stored: &StoredDraws, store: &RunStore) -> Result<Self, Error> {
        let read = |name: &str| stored.statistic(store, name);
        Self::of_run(&stored.draws, |name| Ok(read(name)?.map_or_else(Vec::new, |array| scalar_chains(&array, 0))))
    }

    fn of_run<E>(draws: &Draws, streams: impl Fn(&str) -> Result<Vec<Vec<f64>>, E>) -> Result<Self, E> {
        let statistics = Self::of_streams(&streams, draws.max_treedepth)?;
        let statistics = Self {
            chains: draws.chains.len(),
            draws: draws.chains.len() * draws.draws,
            gradients: draws.gradients,
            seconds: draws.seconds,
            target_accept: draws.target_accept,
            warmup: draws.warmup,
            thin: draws.thin,
            stopped: draws.draws < draws.asked,
            stepsize: draws.stepsize,
            adapted: draws.adapted.clone(),
            init_radius: draws.settings.iter().find(|s| s.name == INIT_RADIUS).and_then(|s| match s.value {
                Scalar::Real(radius) => Some(radius),
                Scalar::Int(radius) => Some(radius as f64),
                Scalar::Bool(_) => None,
            }),
            stuck: stuck(&streams, &draws.chains)?,
            ..statistics
        };
        Ok(statistics.with_rejected(&draws.rejected, &draws.rejected_after_warmup))
    }

    /// What the sampler did in chains that files have.
    pub fn of_stored(chains: &StoredChains) -> Self {
        let config = |key: &str| chains.number(key);
        let depth = config("max_depth").map(|depth| depth as i64);
        let leapfrogs = chains.statistics.get(N_LEAPFROG).and_then(Array::as_real).unwrap_or_default();
        let seconds = chains.run_seconds();
        let gradients = leapfrogs.iter().sum::<f64>() as u64;
        let streams = in_memory(&chains.statistics);
        let Ok(stuck) = stuck(&streams, &chains.numbers);
        let Ok(statistics) = Self::of_streams(&streams, depth);
        let engaged = chains.config.get("engaged").is_none_or(|engaged| engaged == "1" || engaged == "true");
        Self {
            // Also of chains of which nothing but the parameters is there.
            chains: chains.numbers.len(),
            draws: chains.numbers.len() * chains.draws,
            target_accept: config("delta").filter(|_| engaged),
            warmup: config("num_warmup").map_or(0, |n| n as usize),
            thin: config("thin").map_or(1, |n| n as usize),
            stepsize: config("stepsize").filter(|_| !engaged),
            adapted: chains.stepsizes.clone(),
            stuck,
            stopped: matches!(chains.state, RunState::Running | RunState::Interrupted),
            gradients,
            seconds: seconds.0 + seconds.1,
            ..statistics
        }
    }

    /// Reads the streams `divergent`, `treedepth` and `energy`, each chain × draw, as far as the sampler has them.
    pub fn of(streams: &IndexMap<String, Array>, max_treedepth: Option<i64>, gradients: u64, seconds: f64) -> Self {
        let extent = |axis: usize| streams.values().next().and_then(|a| a.shape.get(axis)).copied().unwrap_or(0);
        let Ok(statistics) = Self::of_streams(in_memory(streams), max_treedepth);
        Self { chains: extent(0), draws: extent(0) * extent(1), gradients, seconds, ..statistics }
    }

    /// What streams tell, each of which is given by its name: chain × draw, nothing where the sampler has none.
    fn of_streams<E>(
        streams: impl Fn(&str) -> Result<Vec<Vec<f64>>, E>,
        max_treedepth: Option<i64>,
    ) -> Result<Self, E> {
        let count = |name: &str, holds: &dyn Fn(f64) -> bool| -> Result<usize, E> {
            Ok(streams(name)?.iter().flatten().filter(|x| holds(**x)).count())
        };
        // CmdStan's files have no steps of a sampler that makes none.
        let mut moves = streams(N_LEAPFROG)?;
        if moves.is_empty() {
            moves = streams(ACCEPT_STAT)?;
        }
        let stays = !moves.is_empty() && moves.iter().flatten().all(|x| *x == 0.0);
        drop(moves);
        Ok(Self {
            divergent: count(DIVERGENT, &|x| x != 0.0)?,
            treedepth_saturated: max_treedepth.map_or(Ok(0), |max| count(TREEDEPTH, &|x| x >= max as f64))?,
            max_treedepth,
            e_bfmi: e_bfmi(&streams(ENERGY)?),
            stays,
            ..Self::default()
        })
    }

    /// With the points that were rejected, by chain: all, and those after warmup.
    fn with_rejected(mut self, all: &[Caught], after_warmup: &[Caught]) -> Self {
        let count = |caught: &[Caught]| caught.iter().map(|c| c.count).sum();
        (self.rejected, self.rejected_after_warmup) = (count(all), count(after_warmup));
        self.rejected_in = all.len();
        let first = after_warmup.first().or(all.first());
        self.first_failure = first.map(|c| format!("{} (chain {})", c.first, c.first.position));
        self
    }

    /// Gradients a second; NaN when no time passed.
    pub fn gradients_per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.gradients as f64 / self.seconds } else { f64::NAN }
    }

    /// Divergent transitions, and what to do about them.
    fn of_divergences(&self) -> Option<Warning> {
        let otherwise = || (WRITE_OTHERWISE.to_owned(), Advice::Diagnose);
        let (remedy, advice) = match (self.target_accept, self.stepsize) {
            // Without warmup nothing is tuned.
            (Some(target), _) if self.warmup > 0 => match TARGETS.iter().find(|t| **t > target) {
                Some(next) => (
                    format!("reparameterise, or raise {TARGET_ACCEPT} ({target} here)"),
                    Advice::Set { name: TARGET_ACCEPT, value: next.to_string() },
                ),
                None => otherwise(),
            },
            (None, Some(stepsize)) => {
                let remedy = format!("reparameterise, or lower the step size ({stepsize} here)");
                (remedy, Advice::Stepsize(stepsize / 2.0))
            }
            _ => otherwise(),
        };
        let were = if self.divergent == 1 { "was" } else { "were" };
        let message = format!(
            "{} of {} transitions {were} divergent: the draws may miss part of the posterior; {remedy}",
            self.divergent, self.draws
        );
        (self.divergent > 0).then(|| Warning::of(Concern::Divergences, message, Some(advice)))
    }

    /// Trees that were ended by their depth.
    fn of_saturated_trees(&self) -> Option<Warning> {
        let depth = self.max_treedepth.filter(|_| self.treedepth_saturated > 0)?;
        let deeper = depth.saturating_add(MORE_DOUBLINGS).min(MOST_DOUBLINGS);
        let (remedy, advice) = if deeper > depth {
            let value = deeper.to_string();
            (format!("reparameterise, or raise {MAX_TREEDEPTH}"), Advice::Set { name: MAX_TREEDEPTH, value })
        } else {
            let remedy = format!("trees deeper than {MOST_DOUBLINGS} seldom help; {WRITE_OTHERWISE}");
            (remedy, Advice::Diagnose)
        };
        let message = format!(
            "{} of {} transitions reached the largest tree depth, {depth}: the sampler is slow here, not wrong; {remedy}",
            self.treedepth_saturated, self.draws
        );
        Some(Warning::of(Concern::TreeDepth, message, Some(advice)))
    }

    pub(super) fn warnings(&self) -> Vec<Warning> {
        let mut warnings: Vec<Warning> = self.of_divergences().into_iter().chain(self.of_saturated_trees()).collect();
        if !self.stuck.is_empty() {
            let named: Vec<String> = self.stuck.iter().map(ToString::to_string).collect();
            let names: Vec<&str> = named.iter().map(String::as_str).collect();
            let are = if named.len() == 1 { "is" } else { "are" };
            let nearer = self.init_radius.filter(|radius| *radius > 0.0).map(|radius| radius / 2.0);
            let remedy = if nearer.is_some() { "; start nearer to 0" } else { "" };
            let message = format!(
                "{} of {} chains {are} stuck, and counted in the table: {}{remedy}",
                named.len(),
                self.chains,
                abridged(&names)
            );
            let advice = nearer.map(|radius| Advice::Set { name: INIT_RADIUS, value: radius.to_string() });
            warnings.push(Warning::of(Concern::Other, message, advice));
        }
        if let Some(first) = &self.first_failure {
            let points = if self.rejected == 1 { "1 point was" } else { &format!("{} points were", self.rejected) };
            let chains = if self.rejected_in == 1 { "1 chain" } else { &format!("{} chains", self.rejected_in) };
            let (after, first_after) = match self.rejected_after_warmup {
                0 => ("none after warmup".to_owned(), ""),
                n if n == self.rejected => ("after warmup".to_owned(), ""),
                n => (format!("{} after warmup", grouped(n)), " after warmup"),
            };
            warnings.push(Warning::new(format!(
                "{points} rejected in {chains}, {after}, since the density failed there; first{first_after}: {first}; where that \
                 is the constraint of something that is computed, declare it of parameters, so that no point breaks it"
            )));
        }
        let low = self.e_bfmi.iter().filter(|value| **value < E_BFMI_LIMIT).count();
        if low > 0 {
            let of = if self.e_bfmi.len() < self.chains {
                "over all chains".to_owned()
            } else {
                format!("in {low} of {} chains", self.e_bfmi.len())
            };
            let message = format!(
                "E-BFMI is below {E_BFMI_LIMIT} {of}: the momentum explores the energies slowly; reparameterise what goes \
                 with the energy, as this shows"
            );
            warnings.push(Warning::of(Concern::Energy, message, Some(Advice::Diagnose)));
        }
        warnings
    }
}

impl fmt::Display for SamplerStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        let (chains, draws, divergent) = (self.chains, self.draws, self.divergent);
        writeln!(
            f,
            "{chains} chain{}, {draws} draw{}, {divergent} divergent transition{}",
            plural(chains),
            plural(draws),
            plural(divergent)
        )?;
        let rate = self.gradients_per_second();
        let rate = if rate.is_nan() { "-".to_owned() } else { grouped(rate.round() as u64) };
        writeln!(f, "{} gradients in {:.2} s, {rate} gradients/s", grouped(self.gradients), self.seconds)?;
        if self.draws == 0 && !self.adapted.is_empty() {
            let quantiles = diagnostics::quantiles(&[&self.adapted], &[0.0, 0.5, 1.0]);
            let [least, median, most] = [0, 1, 2].map(|i| significant(quantiles[i], 4));
            writeln!(f, "step size after warmup: median {median}, from {least} to {most}")?;
        }
        Ok(())
    }
}
