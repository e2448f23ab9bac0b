//! The cost model: the one place that knows what running a unit costs. It decides between masked and gathered execution,
//! says which units are heavy, and weighs the statistics; it never changes a result.
//!
//! Times are in nanoseconds of one core of a current x86 server, rounded: only their ratios matter.

use super::{Block, Compute, RowLoad, SHARD_BYTES, Step, StepKind, TILE_BLOCK, Unit, UnitId, Write};
use crate::base::IdVec;
use crate::prim::Prim;
use crate::types::Type;

/// To dispatch one step: resolve operands, call the kernel.
pub const STEP_NS: f64 = 20.0;
/// One addition of one element in one lane, operands in L1 or L2. Costs of primitives are in these.
pub const ADDITION_NS: f64 = 0.25;
/// To store one element of one lane under the mask.
pub const BLEND_NS: f64 = 0.35;
/// To compact or scatter one element of one lane.
pub const GATHER_NS: f64 = 1.0;
/// How often a loop inside a region is taken to run, for want of knowledge.
pub const REGION_TRIPS: u64 = 10;
/// A unit is heavy when it costs at least this many times the median of all units. Waiting for more lanes at a unit saves
/// a part of its arithmetic and costs some executions of cheaper units with fewer lanes. A lane runs a handful of cheap
/// units for each heavy one (down and up a recursion), so the saving is sure to exceed the cost from about this ratio on.
pub const HEAVY_RATIO: u64 = 8;

/// What one execution of a unit costs.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct UnitCost {
    /// In one lane, in additions.
    pub weight: u64,
    /// Time a lane of the shard, all computed.
    pub full_ns: f32,
    /// Time a lane of the shard that masking adds.
    pub blend_ns: f32,
    /// Time an active lane, when these are compacted.
    pub gathered_ns: f32,
    /// Time that compacting takes whatever the number of lanes.
    pub staging_ns: f32,
}

impl UnitCost {
    /// Whether `active` lanes of a shard of `width` should be compacted. `blend`: whether lanes that are not active must
    /// keep their values.
    pub fn prefers_gather(&self, active: usize, width: usize, blend: bool) -> bool {
        let per_lane = self.full_ns + if blend { self.blend_ns } else { 0.0 };
        active as f32 * self.gathered_ns + self.staging_ns < width as f32 * per_lane
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
        staged += usize::from(gather) + usize::from(scatter);
    }
    let full_ns = weight as f64 * ADDITION_NS;
    UnitCost {
        weight,
        full_ns: full_ns as f32,
        blend_ns: (blended as f64 * BLEND_NS) as f32,
        gathered_ns: (full_ns + moved as f64 * GATHER_NS + 1.0) as f32,
        staging_ns: (staged as f64 * STEP_NS) as f32,
    }
}

/// Cost of a step in one lane, in additions.
fn step_weight(step: &Step) -> u64 {
    match &step.kind {
        StepKind::Compute(c) => compute_weight(c),
        StepKind::Tiled(group) => group.steps.iter().map(|s| compute_weight(&s.compute)).sum(),
        StepKind::TapePush { value, .. } => value.ty.elements() as u64,
        StepKind::Pop { .. } | StepKind::Assert { .. } | StepKind::TapePop { .. } => 1,
        // Text and records are made lane by lane.
        StepKind::Print(_) | StepKind::Emit { .. } => 100,
    }
}

fn compute_weight(c: &Compute) -> u64 {
    let types: Vec<Type> = c.args.iter().map(|a| a.ty.clone()).collect();
    let spill = if matches!(c.write, Write::Push(_)) { c.ty.elements() as u64 } else { 0 };
    spill
        + match c.prim {
            _ if c.uniform => 0,
            // A push that leaves the top as it is.
            Prim::Copy if c.reads_slot => 0,
            prim if c.in_place && prim.changes_part() => types[1].elements() as u64,
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

/// Rows of a tile in a shard of this width: as many, in blocks of [`TILE_BLOCK`], as keep what moves through the cache
/// within half of an L2 cache; one block at least.
pub fn tile_rows(load: RowLoad, width: usize) -> usize {
    let row = load.lane.saturating_mul(width).saturating_add(load.shared).max(1);
    (SHARD_BYTES / row / TILE_BLOCK).max(1) * TILE_BLOCK
}

/// The weight from which on a unit is heavy; `u64::MAX` when none is.
pub fn heavy_weight(units: &IdVec<UnitId, Unit>) -> u64 {
    let mut weights: Vec<u64> = units.values().map(|u| u.cost.weight).collect();
    weights.sort_unstable();
    let median = weights.get(weights.len() / 2).copied().unwrap_or(0).max(1);
    median.saturating_mul(HEAVY_RATIO)
}
