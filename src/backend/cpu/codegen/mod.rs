//! The C code generator for the CPU (`--codegen cc` and `auto`).
//!
//! Parts of blocks that compute on small values become C functions, which the machine calls in the place of their steps.
//! Their text is made by the `generator`; `groups` is the frame around it, or `straight` of one lane. The text is plain
//! C over the functions of `include/lanes.h` and `include/vmath.h`, which are the same arithmetic as that of the
//! interpreter; the system's C compiler makes a library of it, which is kept on disk.

pub mod abi;
mod beside;
#[cfg(feature = "codegen")]
pub(in crate::backend) mod cache;
mod choice;
#[cfg_attr(not(feature = "codegen"), path = "no_compiler.rs")]
pub mod compiler;
#[cfg(feature = "codegen")]
mod group;
mod groups;
#[cfg(feature = "codegen")]
mod library;
mod loaded;
mod lookout;
mod rarely;
mod straight;
#[cfg(test)]
#[cfg(feature = "codegen")]
mod tests;
#[cfg(feature = "codegen")]
mod text_parts;

use std::collections::HashSet;

use crate::backend::cpu::PADDING;
use crate::backend::generator::{self, Ending, Storage, all_in_tiles, parts, regions, tile_segments};
use crate::backend::{Form, Units};
use crate::base::{Id as _, IdVec};
use crate::plan::{self, BlockId, CallPlan, Plan, Step, StepKind, cost};
use crate::prim::BLOCK;
use crate::unit;
use compiler::Target;
use groups::Groups;

pub use crate::backend::generator::{
    BlockPart, KernelOp, KernelOperand, KernelSource, RegionExit, RegionSegment, Segment, Site, StraightSegment,
    TileSegment, TrapMessage,
};
pub use beside::Beside;
pub use choice::{Choice, Turns};
pub(super) use choice::{Course, FEW};
pub use compiler::end_all;
pub use loaded::{Native, NativeBody, NativePart, NativeRegion, NativeSegment, NativeStraight, NativeTile};
pub use lookout::Generated;
pub(super) use lookout::{Arrived, Lookout, RunClock};

/// Stands before a function whose block lanes come to rarely, for the compiler to tell.
const RARELY: &str = "AB_RARELY ";

/// What every text begins with.
const PRELUDE: &str = include_str!("include/prelude.h");

/// The C text of the bodies of a plan.
#[derive(Clone, PartialEq, Debug)]
pub struct Code {
    /// The text.
    pub text: String,
    /// For each body, and each of its blocks, what the block runs.
    pub bodies: Vec<IdVec<BlockId, Vec<BlockPart>>>,
    /// For each body, by their first blocks, the regions, and the loops in regions, that are one function.
    pub regions: Vec<IdVec<BlockId, Option<RegionSegment>>>,
    /// The straight function; the bodies and regions have what is not in it.
    pub straight: Option<StraightSegment>,
    /// What it is like.
    pub form: Form,
}

impl Code {
    /// The code of the units of a stack program, of which this plan was made; it has one body.
    pub fn of_units(units: &unit::Program, plan: &Plan) -> Self {
        let mut code = Self::new();
        let rarely = rarely::blocks((units.entry, &units.body), &plan.body);
        code.body(&units.body, (&plan.body, &plan.globals), &Groups { rarely });
        code
    }

    /// The code of a program.
    pub fn of(program: &Units, form: Form) -> Self {
        match (program, form) {
            (Units::Machine(units, plan), Form::Groups) => Self::of_units(units, plan),
            (Units::Machine(units, plan), Form::OneLane) => Self::straight(units, plan),
            (Units::Calls(units, plan), _) => Self::of_calls(units, plan),
        }
    }

    /// The straight code of the units of a stack program, of which this plan was made.
    pub fn straight(units: &unit::Program, plan: &Plan) -> Self {
        let mut code = Self { form: Form::OneLane, ..Self::new() };
        let storage = Storage::of(&plan.body, &plan.globals);
        let heaviest = cost::heaviest(&plan.body.units).map(|unit| plan.body.units[unit].blocks[0]);
        let visited = heaviest.map(|block| unit::BlockId::new(block.index()));
        let (body, text) = ((&units.body, &storage), &mut code.text);
        code.straight = generator::straight(&straight::Straight, body, visited, "ab_straight", text);
        let there = code.straight.iter().flat_map(|straight| &straight.region.blocks).copied().collect();
        code.body_without(&units.body, (&plan.body, &storage), there, &Groups::default());
        code
    }

    /// What it is compiled for.
    fn target(&self) -> Target {
        if self.form == Form::Groups { Target::Native } else { Target::Scalar }
    }

    /// The code of the units of a CFG program, as [`Code::of_units`]: one body for each function.
    pub fn of_calls(units: &unit::CallProgram, plan: &CallPlan) -> Self {
        let mut code = Self::new();
        for (func, planned) in units.funcs.values().zip(plan.funcs.values()) {
            code.body(&func.body, (&planned.body, &plan.globals), &Groups::default());
        }
        code
    }

    /// Whether there is a function in it.
    pub fn is_empty(&self) -> bool {
        let mut parts = self.bodies.iter().flat_map(|body| body.values().flatten());
        let mut regions = self.regions.iter().flat_map(IdVec::values);
        let none = parts.all(|part| matches!(part, BlockPart::Steps(_))) && regions.all(Option::is_none);
        none && self.straight.is_none()
    }

    fn new() -> Self {
        let text = format!("#define AB_PADDING {PADDING}\n#define AB_BLOCK {BLOCK}\n{PRELUDE}");
        Self { text, bodies: Vec::new(), regions: Vec::new(), straight: None, form: Form::Groups }
    }

    fn body<T: Ending, P>(
        &mut self,
        units: &unit::Body<T>,
        (planned, globals): (&plan::Body<P>, &plan::Globals),
        frame: &Groups,
    ) {
        self.body_without(units, (planned, &Storage::of(planned, globals)), HashSet::new(), frame);
    }

    /// The functions of a body, but for blocks that are elsewhere.
    fn body_without<T: Ending, P>(
        &mut self,
        units: &unit::Body<T>,
        (planned, storage): (&plan::Body<P>, &Storage<'_>),
        elsewhere: HashSet<unit::BlockId>,
        frame: &Groups,
    ) {
        let prefix = format!("ab_{}_", self.bodies.len());
        // Functions of tiles are quicker than that of a region, if all of a block is in functions.
        let in_tiles = if self.form == Form::Groups { in_tiles((units, storage), planned) } else { HashSet::new() };
        let is_left_out = |block| elsewhere.contains(&block) || in_tiles.contains(&block);
        let regions = regions(frame, (units, storage), is_left_out, &prefix, &mut self.text);
        let mut left_out = elsewhere;
        left_out.extend(regions.values().flatten().flat_map(|region| &region.blocks).copied());
        let is_left_out = |block| left_out.contains(&block);
        let mut made = parts(frame, (units, storage), is_left_out, &prefix, &mut self.text);
        // Of one lane at a time the kernels, which take rows at once, are quicker.
        if self.form == Form::Groups {
            for (id, parts) in made.iter_mut().filter(|(id, _)| !left_out.contains(id)) {
                let steps = &planned.blocks[BlockId::new(id.index())].steps;
                *parts = self.with_tiles(std::mem::take(parts), steps, &format!("{prefix}{id}_"));
            }
        }
        self.bodies.push(made.into_values().collect());
        self.regions.push(regions.into_values().collect());
    }

    /// The parts of a block, with functions for those of its steps that run tile by tile.
    fn with_tiles(&mut self, parts: Vec<BlockPart>, steps: &[Step], prefix: &str) -> Vec<BlockPart> {
        let mut all = Vec::with_capacity(parts.len());
        for part in parts {
            let BlockPart::Steps(range) = part else {
                all.push(part);
                continue;
            };
            let mut first = range.start;
            for at in range.clone() {
                let StepKind::Tiled(group) = &steps[at].kind else { continue };
                let segments = tile_segments(group, &format!("{prefix}{at}_tile_"), &mut self.text);
                if !segments.is_empty() {
                    all.extend((first < at).then_some(BlockPart::Steps(first..at)));
                    all.push(BlockPart::Tiles(at, segments));
                    first = at + 1;
                }
            }
            all.extend((first < range.end).then_some(BlockPart::Steps(first..range.end)));
        }
        all
    }
}

/// The blocks with steps that run tile by tile whose other steps are all in functions, and of these all but what kernels
/// are made for.
fn in_tiles<T: Ending, P>(
    (units, storage): (&unit::Body<T>, &Storage<'_>),
    planned: &plan::Body<P>,
) -> HashSet<unit::BlockId> {
    let tiled = |step: &Step| if let StepKind::Tiled(group) = &step.kind { Some(all_in_tiles(group)) } else { None };
    let has_tiles = |block: unit::BlockId| {
        let block = &planned.blocks[BlockId::new(block.index())];
        !planned.units[block.unit].region && block.steps.iter().any(|step| tiled(step) == Some(true))
    };
    let some: HashSet<unit::BlockId> = units.blocks.ids().filter(|block| has_tiles(*block)).collect();
    if some.is_empty() {
        return some;
    }
    let made = parts(&Groups::default(), (units, storage), |block| !some.contains(&block), "", &mut String::new());
    let is_whole = |block: &unit::BlockId| {
        let steps = &planned.blocks[BlockId::new(block.index())].steps;
        made[*block].iter().all(|part| match part {
            BlockPart::Steps(range) => steps[range.clone()].iter().all(|step| tiled(step) == Some(true)),
            BlockPart::Native(_) | BlockPart::Tiles(..) => true,
        })
    };
    some.into_iter().filter(is_whole).collect()
}
