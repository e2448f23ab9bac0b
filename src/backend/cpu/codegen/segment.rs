//! Which steps of the blocks of a body become C functions.

use std::ops::Range;

use crate::backend::cpu::codegen::ssa::{self, Ssa};
use crate::backend::cpu::codegen::text;
use crate::base::{IdVec, Loc};
use crate::plan::{
    Arg, BlockId, Body, CallTerminator, ConstantId, Globals, SideEffect, SlotId, Source, StackId, Step, StepKind,
    Terminator, UnitId, Write,
};
use crate::prim::Prim;
use crate::run::TrapKind;

/// What a block runs, in its order.
#[derive(Clone, PartialEq, Debug)]
pub enum BlockPart {
    /// Steps as they are.
    Steps(Range<usize>),
    /// A C function in the place of steps.
    Native(Segment),
}

/// Steps that are one C function.
#[derive(Clone, PartialEq, Debug)]
pub struct Segment {
    /// The steps of the block.
    pub steps: Range<usize>,
    /// Name of the function.
    pub name: String,
    /// The lane buffers that it is called with, in this order.
    pub slots: Vec<SlotId>,
    /// The shared values.
    pub constants: Vec<ConstantId>,
    /// The stacks, each with the most values that a lane pushes.
    pub stacks: Vec<(StackId, usize)>,
    /// The traps that the function reports, by their numbers.
    pub sites: Vec<Site>,
    /// The primitives that it runs.
    pub prims: Vec<Prim>,
    /// Whether it tells where the branch of the block goes.
    pub decides: bool,
    /// Whether it is all of its block, the end included: it takes the lanes that wait there and sends them on.
    pub routes: bool,
    /// Whether lanes may be done at its end.
    pub ends: bool,
    /// Whether it calls a function.
    pub calls: bool,
}

/// A trap that a function may report.
#[derive(Clone, PartialEq, Debug)]
pub struct Site {
    /// Where.
    pub loc: Loc,
    /// Of which kind.
    pub kind: TrapKind,
    /// What it says.
    pub text: String,
    /// Numbers that a lane has drawn before it in the segment: the lane may go on.
    pub draws: u64,
}

/// Where a block sends its lanes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Exit<'a> {
    /// To a block.
    Jump(BlockId),
    /// To the first block where the condition holds, else to the second.
    Branch(BlockId, BlockId),
    /// To a block; the second is where they return to.
    Call(BlockId, BlockId, &'a Loc),
    /// To where they were called from; those that were not are done.
    Return,
    /// Nowhere: they are done.
    Halt,
}

/// How a function sends its lanes on.
pub(super) struct Route<'a> {
    /// The unit where they wait.
    pub(super) unit: UnitId,
    pub(super) exit: Exit<'a>,
    /// Of each block its unit.
    pub(super) units: &'a IdVec<BlockId, UnitId>,
    /// The blocks that calls return to.
    pub(super) returns: &'a [BlockId],
}

/// How a block ends, as far as segments must know.
pub trait Ending {
    /// The condition of a branch.
    fn condition(&self) -> Option<&Arg>;
    /// All operands.
    fn operands(&self) -> Vec<&Arg>;
    /// Where it sends lanes, where generated code can do that.
    fn exit(&self) -> Option<Exit<'_>>;
    /// The block that a call returns to, where generated code can return.
    fn returned_to(&self) -> Option<BlockId>;
}

impl Ending for Terminator {
    fn condition(&self) -> Option<&Arg> {
        match self {
            Terminator::Branch(cond, ..) => Some(cond),
            _ => None,
        }
    }
    fn operands(&self) -> Vec<&Arg> {
        self.condition().into_iter().collect()
    }
    fn exit(&self) -> Option<Exit<'_>> {
        Some(match self {
            Terminator::Jump(block) => Exit::Jump(*block),
            Terminator::Branch(_, a, b) => Exit::Branch(*a, *b),
            // the machine notes heights
            Terminator::PushJump { attempt: Some(attempt), .. } if attempt.has_heights() => return None,
            Terminator::PushJump { target, ret, loc, .. } => Exit::Call(*target, *ret, loc),
            Terminator::Return => Exit::Return,
            Terminator::Halt => Exit::Halt,
        })
    }
    fn returned_to(&self) -> Option<BlockId> {
        match self {
            Terminator::PushJump { ret, .. } => Some(*ret),
            _ => None,
        }
    }
}

impl Ending for CallTerminator {
    fn condition(&self) -> Option<&Arg> {
        match self {
            CallTerminator::Branch(cond, ..) => Some(cond),
            _ => None,
        }
    }
    fn operands(&self) -> Vec<&Arg> {
        match self {
            CallTerminator::Jump(_) => Vec::new(),
            CallTerminator::Branch(cond, ..) => vec![cond],
            CallTerminator::Call { args, .. }
            | CallTerminator::TailCall { args, .. }
            | CallTerminator::Return(args, _) => args.iter().collect(),
        }
    }
    fn exit(&self) -> Option<Exit<'_>> {
        None
    }
    fn returned_to(&self) -> Option<BlockId> {
        None
    }
}

/// The parts of all blocks; the functions are appended to `out`, their names begin with `prefix`.
pub(super) fn parts<T: Ending>(
    body: &Body<T>,
    globals: &Globals,
    prefix: &str,
    out: &mut String,
) -> IdVec<BlockId, Vec<BlockPart>> {
    let ranges: IdVec<BlockId, Vec<(Range<usize>, bool)>> =
        body.blocks.values().map(|b| ranges(&b.steps, |s| ssa::takes(s, globals, &body.slots))).collect();
    let lockstep = lockstep(body, &ranges);
    let units: IdVec<BlockId, UnitId> = body.blocks.values().map(|b| b.unit).collect();
    let mut returns: Vec<BlockId> = body.blocks.values().filter_map(|b| b.term.returned_to()).collect();
    returns.sort_unstable();
    returns.dedup();
    // A block that is all generated code, but for regions, whose branches are asked of the machine.
    let routed = |id: BlockId, ranges: &[(Range<usize>, bool)], out: &mut String| {
        let block = &body.blocks[id];
        let whole = !body.units[block.unit].region && ranges.iter().all(|(_, takes)| *takes);
        let exit = block.term.exit().filter(|_| whole)?;
        let route = Route { unit: block.unit, exit, units: &units, returns: &returns };
        let name = format!("{prefix}{id}");
        segment((body, globals, &lockstep), id, 0..block.steps.len(), name, Some(&route), out)
    };
    let part = |id: BlockId, range: &Range<usize>, takes: bool, out: &mut String| {
        let name = format!("{prefix}{id}_{}", range.start);
        let made = takes.then(|| segment((body, globals, &lockstep), id, range.clone(), name, None, out));
        made.flatten().map_or(BlockPart::Steps(range.clone()), BlockPart::Native)
    };
    let parts = |(id, ranges): (BlockId, &Vec<(Range<usize>, bool)>)| match routed(id, ranges, out) {
        Some(segment) => vec![BlockPart::Native(segment)],
        None => ranges.iter().map(|(range, takes)| part(id, range, *takes, out)).collect(),
    };
    ranges.iter().map(parts).collect()
}

/// The longest runs of steps that are alike in whether they can be part of a segment.
fn ranges(steps: &[Step], takes: impl Fn(&Step) -> bool) -> Vec<(Range<usize>, bool)> {
    let mut ranges: Vec<(Range<usize>, bool)> = Vec::new();
    for (i, step) in steps.iter().enumerate() {
        let takes = takes(step);
        match ranges.last_mut() {
            Some((range, same)) if *same == takes => range.end = i + 1,
            _ => ranges.push((i..i + 1, takes)),
        }
    }
    ranges
}

/// Numbers of the stacks, the same for those that are always equally high wherever a segment begins: they are pushed and
/// popped in the same order in each run of steps.
fn lockstep<T>(body: &Body<T>, ranges: &IdVec<BlockId, Vec<(Range<usize>, bool)>>) -> Lockstep {
    let mut histories: IdVec<StackId, Vec<(usize, bool)>> = IdVec::filled(Vec::new(), body.stacks.len());
    let mut run = 0;
    for (id, ranges) in ranges.iter() {
        for (range, _) in ranges {
            for step in &body.blocks[id].steps[range.clone()] {
                for (stack, pushed) in step.stack_moves() {
                    histories[stack].push((run, pushed));
                }
            }
            run += 1;
        }
    }
    let first = |history| histories.values().position(|h| h == history).expect("it is one of them");
    histories.values().map(first).collect()
}

/// Elements that the locals of a function may have together: a group of eight doubles each, they take 768 KiB of the stack
/// of a worker, which has 2 MiB.
const MOST_LOCAL_ELEMENTS: usize = 12 << 10;

/// By stack: the first of those that go in lockstep with it.
pub(super) type Lockstep = IdVec<StackId, usize>;

/// The function of some steps; none where there is nothing to do.
fn segment<T: Ending>(
    (body, globals, lockstep): (&Body<T>, &Globals, &Lockstep),
    id: BlockId,
    range: Range<usize>,
    name: String,
    route: Option<&Route<'_>>,
    out: &mut String,
) -> Option<Segment> {
    let block = &body.blocks[id];
    let (steps, after) = (&block.steps[range.clone()], &block.steps[range.end..]);
    let mut ssa = Ssa::new(globals, &body.slots);
    steps.iter().for_each(|s| ssa.add(s));
    // The branches of a region are asked of the machine.
    let region = body.units[block.unit].region;
    let decides = |c: &&Arg| after.is_empty() && !region && (route.is_some() || !c.broadcast);
    let cond = block.term.condition().filter(decides);
    let read_later = |slot: SlotId| {
        if region {
            // Temporaries of a region live from block to block, and from turn to turn.
            let blocks = body.units[block.unit].blocks.iter().map(|b| &body.blocks[*b]);
            let mut blocks = blocks.map(|b| (&b.steps, b.term.operands()));
            return blocks.any(|(steps, ending)| steps.iter().any(|s| reads(s, slot)) || names(&ending, slot));
        }
        let mut ending = block.term.operands();
        ending.retain(|a| cond.is_none_or(|c| c != *a));
        after.iter().any(|s| reads(s, slot)) || names(&ending, slot)
    };
    let written: Vec<_> = ssa.written().collect();
    for (slot, value) in written {
        if block.live_out.binary_search(&slot).is_ok() || read_later(slot) {
            ssa.store(slot, value);
        }
    }
    if let Some(cond) = cond {
        let value = ssa.value(cond);
        ssa.decide(value);
    }
    if ssa.ops.is_empty() && ssa.draws == 0 && route.is_none() {
        return None;
    }
    if ssa.locals.values().map(|l| l.elements).sum::<usize>() > MOST_LOCAL_ELEMENTS {
        return None;
    }
    let signature = text::function(&name, &ssa, (lockstep, globals, &body.slots), route, out);
    // The last site is that of a call.
    let site = |(step, kind): (usize, TrapKind)| {
        let text = match &steps[step].kind {
            StepKind::Effect(SideEffect::Assert { message, .. }) => message.texts.concat(),
            _ => String::new(),
        };
        Site { loc: steps[step].loc.clone(), kind, text, draws: steps[..step].iter().map(drawn).sum() }
    };
    let mut sites: Vec<_> = signature.sites.into_iter().map(site).collect();
    let exit = route.map(|r| r.exit);
    if let Some(Exit::Call(_, _, loc)) = exit {
        sites.push(Site { loc: loc.clone(), kind: TrapKind::StackLimit, text: String::new(), draws: 0 });
    }
    let pushes = |stack: StackId| steps.iter().filter(|s| pushes_to(s, stack)).count();
    Some(Segment {
        name,
        slots: signature.slots.into_iter().collect(),
        constants: signature.constants.into_iter().collect(),
        stacks: signature.stacks.into_iter().map(|s| (s, pushes(s))).collect(),
        sites,
        prims: steps
            .iter()
            .filter_map(|s| match &s.kind {
                StepKind::Compute(c) => Some(c.prim),
                _ => None,
            })
            .collect(),
        decides: cond.is_some() && route.is_none(),
        routes: route.is_some(),
        ends: matches!(exit, Some(Exit::Return | Exit::Halt)),
        calls: matches!(exit, Some(Exit::Call(..))),
        steps: range,
    })
}

/// How many numbers a step draws in each lane.
fn drawn(step: &Step) -> u64 {
    match &step.kind {
        StepKind::Compute(c) if c.prim.is_draw() => c.ty.elements() as u64,
        _ => 0,
    }
}

fn pushes_to(step: &Step, stack: StackId) -> bool {
    matches!(&step.kind, StepKind::Compute(c) if c.write == Write::Push(stack))
}

fn names(operands: &[&Arg], slot: SlotId) -> bool {
    operands.iter().any(|a| a.source == Source::Slot(slot))
}

/// Whether a step may read a slot.
fn reads(step: &Step, slot: SlotId) -> bool {
    let mut found = false;
    for_each_read(step, &mut |s| found |= s == slot) || found
}

/// Calls `see` with the slots that a step reads, or returns true where it may read any.
fn for_each_read(step: &Step, see: &mut impl FnMut(SlotId)) -> bool {
    let mut args = |args: &[Arg]| {
        for arg in args {
            if let Source::Slot(slot) = arg.source {
                see(slot);
            }
        }
    };
    match &step.kind {
        StepKind::Compute(c) => {
            args(&c.args);
            if matches!(c.write, Write::Push(_)) {
                see(c.slot);
            }
        }
        StepKind::Tiled(_) => return true,
        StepKind::Pop { .. } => {}
        StepKind::Effect(effect) => effect.reads().for_each(|a| args(std::slice::from_ref(a))),
    }
    false
}
