//! The cost model: the one place that knows what running a unit costs. It decides between masked and gathered execution,
//! says which units are heavy, and weighs the statistics; it never changes a result.
//!
//! What it counts, the settings of a run weigh ([`Costs`]).

use super::{Block, Compute, SideEffect, Step, StepKind, Unit, UnitId, Write};
use crate::base::IdVec;
use crate::prim::Prim;
use crate::run::Costs;
use crate::types::Type;

/// How often a loop inside a region is taken to run, for want of knowledge.
pub const REGION_TRIPS: u64 = 10;

/// Operations of a product with a shared matrix in the time of one addition of arrays, whose operands come from the cache and
/// whose result goes there: tiles have them in registers, and two in an instruction. A matrix of each lane comes from memory.
const FLOPS: u64 = 8;

/// How many times as fast as kernels generated code is, but for what calling kernels takes: with 1,000 chains, which hide
/// that, 1.7 to 2.7 times (`benches/RESULTS.md`).
const CODE: f64 = 2.0;

/// What pushing an element takes, in additions: it goes to memory that was not written for long.
const PUSH: u64 = 3;

/// What one execution of a unit does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UnitCost {
    /// Cost in one lane, in additions.
    pub weight: u64,
    /// Elements of a lane that are stored under the mask when lanes must keep their values.
    pub blended: u64,
    /// Elements of a lane that are compacted or scattered, when lanes are gathered.
    pub moved: u64,
    /// Variables that are compacted, and that are scattered.
    pub staged: u64,
}

impl UnitCost {
    /// Whether `active` lanes of a shard of `width` should be compacted. `blend`: whether lanes that are not active must
    /// keep their values. `by_code`: what generated code has, which serves under a mask alone.
    pub fn prefers_gather(&self, costs: &Costs, active: usize, width: usize, blend: bool, by_code: ByCode) -> bool {
        let compute = self.weight as f64 * costs.addition;
        let spared = by_code.weight as f64 * (1.0 - 1.0 / CODE) * costs.addition;
        let masked = compute - spared + if blend { self.blended as f64 * costs.blend } else { 0.0 };
        // one more for the list of the lanes
        let gathered = compute + (self.moved + 1) as f64 * costs.gather;
        // Few lanes hardly fill the kernels that are called instead of the code.
        let steps = (self.staged + by_code.steps) as f64 * costs.step;
        active as f64 * gathered + steps < width as f64 * masked
    }
}

/// What of a unit generated code has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ByCode {
    /// Cost in one lane by kernels, in additions.
    pub weight: u64,
    /// Steps that run as kernels without it.
    pub steps: u64,
}

impl ByCode {
    /// All of these steps; of a block that `is_looped` inside its unit, in all its turns.
    pub fn of(steps: &[Step], is_looped: bool) -> Self {
        let trips = if is_looped { REGION_TRIPS } else { 1 };
        let weight = trips * steps.iter().map(step_weight).sum::<u64>();
        Self { weight, steps: trips * steps.len() as u64 }
    }
}

impl std::iter::Sum for ByCode {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |a, b| Self { weight: a.weight + b.weight, steps: a.steps + b.steps })
    }
}

/// The cost of a unit with these blocks. `looped` tells of each block whether it is in a loop inside the unit; of each
/// stage of the unit the elements are given beside what is done with them.
pub fn unit_cost<'a, T: 'a>(
    blocks: impl Iterator<Item = (&'a Block<T>, bool)>,
    stages: impl Iterator<Item = (usize, bool, bool)>,
) -> UnitCost {
    let (mut weight, mut blended) = (0, 0);
    for (block, looped) in blocks {
        let trips = if looped { REGION_TRIPS } else { 1 };
        for step in &block.steps {
            weight += trips * step_weight(step);
            blended += trips * blended_elements(step);
        }
        weight += trips;
    }
    let (mut moved, mut staged) = (0, 0);
    for (elements, gather, scatter) in stages {
        moved += elements * (usize::from(gather) + usize::from(scatter));
        staged += u64::from(gather) + u64::from(scatter);
    }
    UnitCost { weight, blended, moved: moved as u64, staged }
}

/// Cost of a step in one lane, in additions.
fn step_weight(step: &Step) -> u64 {
    match &step.kind {
        StepKind::Compute(c) => compute_weight(c),
        StepKind::Tiled(group) => group.steps.iter().map(|s| compute_weight(&s.compute)).sum(),
        StepKind::Effect(SideEffect::TapePush { value, .. }) => value.ty.elements() as u64,
        StepKind::Pop { .. } | StepKind::Effect(SideEffect::Assert { .. } | SideEffect::TapePop { .. }) => 1,
        // Text and records are made lane by lane.
        StepKind::Effect(SideEffect::Print(_) | SideEffect::Emit { .. }) => 100,
    }
}

fn compute_weight(c: &Compute) -> u64 {
    let types: Vec<Type> = c.args.iter().map(|a| a.ty.clone()).collect();
    let spill = if matches!(c.write, Write::Push(_)) { PUSH * c.ty.elements() as u64 } else { 0 };
    spill
        + match c.prim {
            _ if c.uniform => 0,
            // A push that leaves the top as it is.
            Prim::Copy if c.reads_slot => 0,
            prim if c.in_place && prim.changes_part() => types[1].elements() as u64,
            Prim::MatMul | Prim::ChainMatMul if c.args.iter().any(|a| a.broadcast) => {
                c.prim.cost(&types, &c.ty).div_ceil(FLOPS)
            }
            prim => prim.cost(&types, &c.ty),
        }
}

fn blended_elements(step: &Step) -> u64 {
    let blended = |c: &Compute| match c.write {
        Write::Temporary => 0,
        _ if c.in_place => 0,
        _ if c.prim == Prim::Copy && c.reads_slot => 0,
        _ => c.ty.elements() as u64,
    };
    match &step.kind {
        StepKind::Compute(c) => blended(c),
        StepKind::Tiled(group) => group.steps.iter().map(|s| blended(&s.compute)).sum(),
        _ => 0,
    }
}

/// The unit that weighs most.
pub fn heaviest(units: &IdVec<UnitId, Unit>) -> Option<UnitId> {
    units.iter().max_by_key(|(_, unit)| unit.cost.weight).map(|(id, _)| id)
}

/// The weight from which on a unit is heavy; `u64::MAX` when none is.
pub fn heavy_weight(units: &IdVec<UnitId, Unit>, costs: &Costs) -> u64 {
    let mut weights: Vec<u64> = units.values().map(|u| u.cost.weight).collect();
    weights.sort_unstable();
    let median = weights.get(weights.len() / 2).copied().unwrap_or(0).max(1);
    (median as f64 * costs.heavy).ceil() as u64
}
