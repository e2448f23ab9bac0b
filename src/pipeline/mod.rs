//! Layer 7: the ordered passes: from a checked program, or from an IR text, to what the engines run.

mod warnings;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::{Diagnostic, Finding, SourceMap, work};
use crate::hir::{self, FnId};
use crate::interp;
use crate::lower::cfg_to_stack::Saves;
use crate::lower::hir_to_cfg::{Padding, Shapes};
use crate::lower::to_plan::Making;
use crate::lower::to_unit::Stores;
use crate::lower::{cfg_to_stack, hir_to_cfg, to_plan, to_unit};
use crate::plan::{CallPlan, Plan, TargetMachine};
use crate::transform::Pass;
use crate::transform::cfg::{BATCH_PASSES, CFG_PASSES, LANE_PASSES};
use crate::transform::stack::{self as stack_passes, STACK_PASSES, StorageClasses};
use crate::transform::{expansion, vectorize};
use crate::{cfg, stack, unit};

pub use warnings::Deny;

/// Which passes are switched off; none by default. Results never depend on it, with two exceptions: the limit on active
/// calls and on blocks (`tail-calls`, `inline`, `shared-code` and others take some away), and `vectorize`, which does one operation for all elements of a
/// comprehension after the other: of several traps another may be met first, and derivatives differ in their last bits.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Passes {
    off: BTreeSet<&'static str>,
    check_nan: bool,
}

impl Passes {
    /// All passes off.
    pub fn none() -> Self {
        Self { off: all_passes().map(|(name, _)| name).collect(), check_nan: false }
    }
    /// Switches a pass off; `false` when there is no pass of this name.
    pub fn switch_off(&mut self, name: &str) -> bool {
        let found = all_passes().find(|(n, _)| *n == name);
        self.off.extend(found.map(|(n, _)| n));
        found.is_some()
    }
    /// Switches a pass on again.
    pub fn switch_on(&mut self, name: &str) {
        self.off.retain(|off| *off != name);
    }
    /// For a run that looks for the birth of NaNs: nothing is computed that the program does not say.
    pub fn for_nan_checks(&mut self) {
        // They evaluate both arms: a NaN would be born in the one that is not taken.
        self.switch_off("if-convert");
        self.switch_off("guard-arms");
        self.switch_off("join-conditions");
        // A value that nobody wants may be where a NaN is born: all engines compute what the CFG program says.
        self.switch_off("dead-stores");
        self.switch_off("copy-coalesce");
        // What is computed before the lanes start belongs to none that could trap.
        self.switch_off("hoist-shared");
        self.switch_off("shared-code");
        // Whether a NaN is born is asked of all rows of a value, and steps change places.
        self.switch_off("tile-rows");
        self.check_nan = true;
    }
    /// The passes by whose plan it is decided which comprehensions are loops: all but those that looking for NaNs leaves out.
    fn deciding(&self) -> Passes {
        let mut passes = Passes::default();
        if self.check_nan {
            passes.for_nan_checks();
        }
        passes
    }
    /// Switches off what fuses steps: every primitive then runs by itself, over all lanes of a shard. With a shard as wide as
    /// the batch that is how a framework without a compiler runs a batched program.
    pub fn without_fusion(&mut self) {
        for name in FUSING {
            self.switch_off(name);
        }
    }
    /// Whether some pass runs that makes one step of several.
    pub fn fuse(&self) -> bool {
        FUSING.iter().any(|name| self.is_on(name))
    }
    /// Whether a pass runs.
    pub fn is_on(&self, name: &str) -> bool {
        !self.off.contains(name)
    }
}

/// Not a pass from program to program, but switched off like one.
const VECTORIZE: (&str, &str) = ("vectorize", "makes whole-array code of comprehensions whose bounds are known");
/// What the lowering to the stack can be told to leave out.
const SAVE_LIVE: (&str, &str) =
    ("save-live", "saves at a call what is live and may be written; without it all variables of the caller");
/// What storage classes can be told to leave out, beside the pass `storage`.
const TEMPORARIES: (&str, &str) =
    ("temporaries", "gives no storage to variables that never live across a block's edge");
const STORAGE: &str = "storage";
const POP_PUSH_FUSION: &str = "pop-push-fusion";
/// What the machine can be told to leave out.
const CACHED_TOPS: (&str, &str) = (
    "cached-tops",
    "keeps the tops of stacks in registers; without it each access reads or writes the memory of the stack",
);
/// What the making of plans can be told to leave out.
const TILE_ROWS: (&str, &str) = (
    "tile-rows",
    "runs the steps that share a long row axis tile by tile, so that what is between them needs no memory",
);

/// The passes that make one step of several: `tile-rows` takes all steps over a long row axis tile by tile, and `regions` makes
/// one superstep of a loop and what is around it. What decides *which* primitives run, such as selects in the place of
/// branches, does not belong here.
const FUSING: &[&str] = &["regions", "tile-rows"];

/// The optimisations of the stack machine in the paper (Radul et al., MLSys 2020), in its order, each by the name that
/// switches it off: callers save only what is live; temporaries have no storage; variables that need no stack are
/// registers; the tops of stacks are cached; a pop and the next push are an update.
pub const PAPER: &[&str] = &[SAVE_LIVE.0, TEMPORARIES.0, STORAGE, CACHED_TOPS.0, POP_PUSH_FUSION];

/// Names and descriptions of all passes, in their order; one that runs more than once stands where it runs first.
pub fn all_passes() -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut seen = BTreeSet::new();
    (std::iter::once(VECTORIZE)
        .chain(CFG_PASSES.iter().chain(LANE_PASSES).chain(BATCH_PASSES).map(|p| (p.name, p.doc))))
    .chain([SAVE_LIVE])
    .chain(STACK_PASSES.iter().map(|p| (p.name, p.doc)))
    .chain([TEMPORARIES, CACHED_TOPS, TILE_ROWS])
    .filter(move |(name, _)| seen.insert(*name))
}

/// A program as the engines want it.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// What `scalar` runs, and what the others are made of after further passes; there is none when the text of a stack
    /// program was read.
    pub cfg: Option<cfg::Program>,
    /// What the blocks compute that `local` runs.
    pub call_units: Option<Arc<unit::CallProgram>>,
    /// What `local` runs.
    pub calls: Option<Arc<CallPlan>>,
    /// What the units were made of; there is none when the text of units was read.
    pub stack: Option<stack::Program>,
    /// What the blocks compute that `pc` runs.
    pub units: Arc<unit::Program>,
    /// What `pc` runs.
    pub plan: Arc<Plan>,
    /// What is probably not meant and only the shapes of the inputs can tell: comprehensions that stay loops, operations
    /// that go lane by lane. One for each site.
    pub warnings: Vec<Diagnostic>,
}

/// The CFG program of an entry point.
#[derive(Clone, Debug)]
pub struct SpecialisedEntry {
    /// The program.
    pub program: cfg::Program,
    /// What was found on the way.
    pub findings: Vec<Finding>,
}

/// Compiles an entry point for inputs of these shapes.
///
/// # Errors
/// Diagnostics that only shapes can tell.
pub fn compile(
    program: &hir::Program,
    sources: &SourceMap,
    entry: FnId,
    shapes: &Shapes,
    passes: &Passes,
    machine: TargetMachine,
) -> Result<Compiled, Vec<Diagnostic>> {
    let specialised = |most| specialise_up_to(most, program, sources, entry, shapes, passes);
    let built = |made: SpecialisedEntry, passes: &Passes| {
        build(made.program, passes, machine, made.findings, Some((program, sources)))
    };
    let bytes = |made: &Compiled| made.plan.body.bytes_per_lane(size_of::<f64>());
    let whole = specialised(vectorize::MOST_ELEMENTS)?;
    if !passes.is_on(VECTORIZE.0) || largest_value(&whole.program) <= FEW_ELEMENTS {
        return Ok(built(whole, passes));
    }
    // Which of the two it is decides about the last bits of derivatives: it must not depend on the passes that are off.
    let deciding = passes.deciding();
    let other = (deciding != *passes).then(|| whole.clone());
    let whole = built(whole, &deciding);
    let chosen = if bytes(&whole) <= MOST_LANE_BYTES {
        (whole, other)
    } else {
        // Long comprehensions that cannot run tile by tile: as loops they take no memory.
        let few = specialised(FEW_ELEMENTS)?;
        let other_few = (deciding != *passes).then(|| few.clone());
        let few = built(few, &deciding);
        if bytes(&few) < bytes(&whole) / 2 { (few, other_few) } else { (whole, other) }
    };
    Ok(match chosen {
        (_, Some(made)) => built(made, passes),
        (compiled, None) => compiled,
    })
}

/// The elements of the largest value of a program.
fn largest_value(program: &cfg::Program) -> usize {
    let values = program.funcs.values().flat_map(|func| func.vars.values());
    values.map(|var| var.ty.elements()).max().unwrap_or(0)
}

/// Bytes that the state of one lane may take because comprehensions are whole-array code: a shard of 64 lanes, the least,
/// then takes 256 MiB.
const MOST_LANE_BYTES: usize = 4 << 20;
/// Most elements of a whole array where memory is short: few enough for hundreds of them.
const FEW_ELEMENTS: usize = 1 << 10;

/// The CFG program of an entry point for inputs of these shapes, with derivatives and whole-array code of
/// comprehensions filled in, and warnings of what stays slow.
///
/// # Errors
/// Diagnostics that only shapes can tell.
pub fn specialise(
    program: &hir::Program,
    sources: &SourceMap,
    entry: FnId,
    shapes: &Shapes,
    passes: &Passes,
) -> Result<SpecialisedEntry, Vec<Diagnostic>> {
    specialise_up_to(vectorize::MOST_ELEMENTS, program, sources, entry, shapes, passes)
}

fn specialise_up_to(
    most_elements: usize,
    program: &hir::Program,
    sources: &SourceMap,
    entry: FnId,
    shapes: &Shapes,
    passes: &Passes,
) -> Result<SpecialisedEntry, Vec<Diagnostic>> {
    let padding = if passes.check_nan { Padding::Harmless } else { Padding::Anything };
    let size = |made: &Result<hir_to_cfg::Specialised, _>| made.as_ref().ok().map(|made| cfg_insts(&made.program));
    let specialise = || hir_to_cfg::specialise(program, sources, entry, shapes, padding);
    let mut made = work::stage("specialise", size, specialise)?;
    let options = vectorize::VectorizeOptions { both_arms: !passes.check_nan, most_elements };
    let options = passes.is_on(VECTORIZE.0).then_some(options);
    let expand = || {
        let refusals = expansion::expand(&mut made.program, &made.requests, options);
        (refusals, cfg_insts(&made.program))
    };
    let (refusals, _) = work::stage("derivatives and comprehensions", |(_, insts)| Some(*insts), expand);
    match refusals {
        Ok(refusals) => {
            // Where the birth of a NaN is looked for, branches make loops of comprehensions that are none otherwise.
            let told = refusals.iter().filter(|_| !passes.check_nan);
            let findings = told.map(|r| made.finding(r)).collect();
            Ok(SpecialisedEntry { program: made.program, findings })
        }
        Err(error) => Err(vec![made.diagnostic(&error, sources)]),
    }
}

/// Compiles a CFG program for a machine.
pub fn from_cfg(cfg: cfg::Program, passes: &Passes, machine: TargetMachine) -> Compiled {
    build(cfg, passes, machine, Vec::new(), None)
}

fn build(
    cfg: cfg::Program,
    passes: &Passes,
    machine: TargetMachine,
    findings: Vec<Finding>,
    source: Option<(&hir::Program, &SourceMap)>,
) -> Compiled {
    verify_cfg("lowering", &cfg);
    let common = run_cfg_passes(cfg, CFG_PASSES, passes);
    let batched = run_cfg_passes(common.clone(), BATCH_PASSES, passes);
    let cfg = run_cfg_passes(common, LANE_PASSES, passes);
    let stack = to_stack(&batched, passes);
    let findings = findings.into_iter().chain(to_plan::fallbacks(&stack)).collect();
    let mut call_units = work::stage("units of `local`", |_| None, || to_unit::cfg_to_units(&batched));
    interp::fold_known(&mut call_units.globals.shared);
    verify_units(&call_units, unit::verify_calls);
    let making = Making { machine, tile_rows: passes.is_on(TILE_ROWS.0) };
    let calls = work::stage("plan of `local`", |_| None, || to_plan::calls_to_plan(&call_units, making));
    Compiled {
        cfg: Some(cfg),
        call_units: Some(Arc::new(call_units)),
        calls: Some(Arc::new(calls)),
        warnings: warnings::from_findings(findings, source),
        ..from_stack(stack, passes, machine)
    }
}

/// Takes a stack program as it is: of the passes only those count that leave stores, tops and tiles alone
/// (`temporaries`, `storage`, `cached-tops`, `tile-rows`).
pub fn from_stack(stack: stack::Program, passes: &Passes, machine: TargetMachine) -> Compiled {
    let stores = match passes.is_on(TEMPORARIES.0) && passes.is_on(STORAGE) {
        true => Stores::Live,
        false => Stores::All,
    };
    let mut units = work::stage("units of `pc`", |_| None, || to_unit::stack_to_units(&stack, stores));
    interp::fold_known(&mut units.globals.shared);
    verify_units(&units, unit::verify);
    Compiled { stack: Some(stack), ..from_units(units, passes, machine) }
}

/// Takes the units of a stack program as they are, as [`from_stack`]. Where tops are not cached every step is one
/// access after another, and none runs tile by tile.
pub fn from_units(units: unit::Program, passes: &Passes, machine: TargetMachine) -> Compiled {
    let cached_tops = passes.is_on(CACHED_TOPS.0);
    let making = Making { machine, tile_rows: cached_tops && passes.is_on(TILE_ROWS.0) };
    let plan = || Plan { cached_tops, ..to_plan::units_to_plan(&units, making) };
    let plan = Arc::new(work::stage("plan of `pc`", |_| None, plan));
    Compiled {
        cfg: None,
        call_units: None,
        calls: None,
        stack: None,
        units: Arc::new(units),
        plan,
        warnings: Vec::new(),
    }
}

fn verify_units<P: std::fmt::Display>(program: &P, verify: impl Fn(&P) -> Vec<unit::UnitError>) {
    if cfg!(debug_assertions) {
        let errors = verify(program);
        assert!(errors.is_empty(), "wrong units: {errors:#?}\n{program}");
    }
}

fn run_cfg_passes(mut cfg: cfg::Program, list: &[Pass<cfg::Program>], passes: &Passes) -> cfg::Program {
    for pass in list.iter().filter(|p| passes.is_on(p.name)) {
        cfg = work::stage(pass.name, |cfg| Some(cfg_insts(cfg)), || (pass.run)(cfg));
        verify_cfg(pass.name, &cfg);
    }
    cfg
}

/// Lowers a CFG program to a stack program and runs the passes over it.
pub fn to_stack(cfg: &cfg::Program, passes: &Passes) -> stack::Program {
    let storage = StorageClasses { temporaries: passes.is_on(TEMPORARIES.0), registers: passes.is_on(STORAGE) };
    let saves = match (passes.is_on(SAVE_LIVE.0), storage.temporaries) {
        (true, _) => Saves::Live,
        (false, true) => Saves::Crossing,
        (false, false) => Saves::All,
    };
    let size = |stack: &stack::Program| Some(stack_insts(stack));
    let mut stack = work::stage("lower to the stack", size, || cfg_to_stack::lower(cfg, saves));
    verify_stack("lowering", &stack);
    for pass in STACK_PASSES.iter().filter(|p| passes.is_on(p.name)) {
        let run = if saves == Saves::Live { pass.run } else { stack_passes::keeping_saves(pass) };
        stack = work::stage(pass.name, size, || run(stack));
        verify_stack(pass.name, &stack);
    }
    if storage != StorageClasses::LEAST {
        stack = stack_passes::store_in(stack, storage);
        verify_stack("more storage", &stack);
    }
    stack
}

/// Instructions and terminators.
fn cfg_insts(program: &cfg::Program) -> usize {
    program.funcs.values().flat_map(|func| func.blocks.values()).map(|block| block.insts.len() + 1).sum()
}

fn stack_insts(program: &stack::Program) -> usize {
    program.blocks.values().map(|block| block.insts.len() + 1).sum()
}

/// A finding here is our bug: the message names the guilty pass and shows the program.
fn verify_cfg(pass: &str, program: &cfg::Program) {
    if cfg!(debug_assertions) {
        let errors = cfg::verify(program);
        assert!(errors.is_empty(), "`{pass}` broke the CFG program: {errors:#?}\n{program}");
    }
}

fn verify_stack(pass: &str, program: &stack::Program) {
    if cfg!(debug_assertions) {
        let errors = stack::verify(program);
        assert!(errors.is_empty(), "`{pass}` broke the stack program: {errors:#?}\n{program}");
    }
}

impl Compiled {
    /// Name of the entry function.
    pub fn name(&self) -> String {
        self.units.name.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So that switching one off touches one kind of program, and a wrong number is bisected in one step.
    #[test]
    fn no_two_passes_share_a_name() {
        let cfg: BTreeSet<&str> = CFG_PASSES.iter().chain(LANE_PASSES).chain(BATCH_PASSES).map(|p| p.name).collect();
        let stack: BTreeSet<&str> = STACK_PASSES.iter().map(|p| p.name).collect();
        assert_eq!(cfg.intersection(&stack).count(), 0);
        assert_eq!(all_passes().count(), cfg.len() + stack.len() + 5);
        let passes = Passes::none();
        assert!(all_passes().all(|(name, _)| !passes.is_on(name)));
        let mut passes = Passes::default();
        assert!(FUSING.iter().chain(PAPER).all(|name| passes.switch_off(name)), "each is a pass");
    }
}
