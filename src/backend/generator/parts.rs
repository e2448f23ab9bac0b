//! Which parts of the blocks of a body become functions, and what these read, store and route.

use std::collections::HashSet;
use std::ops::Range;

use crate::backend::generator::ending::{Ending, Exit, Route};
use crate::backend::generator::frame::{Frame, Limits, Signature};
use crate::backend::generator::lockstep::{Lockstep, lockstep};
use crate::backend::generator::scope::{Scope, Storage};
use crate::backend::generator::ssa::Ssa;
use crate::backend::generator::takes::takes;
use crate::backend::generator::text;
use crate::backend::generator::tiles::TileSegment;
use crate::base::{Id as _, IdVec, Loc};
use crate::parts::StorageClass;
use crate::plan::{ConstantId, Origin, SlotId, StackId};
use crate::prim::Prim;
use crate::run::TrapKind;
use crate::unit::{Block, BlockId, Body, OpKind, Operand, SideEffect, UnitId, ValueId, VarId};

/// What a block runs, in its order.
#[derive(Clone, PartialEq, Debug)]
pub enum BlockPart {
    /// Steps as they are.
    Steps(Range<usize>),
    /// A generated function in the place of steps.
    Native(Segment),
    /// A step that runs tile by tile, with functions in the place of some of the steps of its group.
    Tiles(usize, Vec<TileSegment>),
}

/// A part of a block that is one generated function.
#[derive(Clone, PartialEq, Debug)]
pub struct Segment {
    /// The steps of the block whose operations it does.
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
    /// The primitives that its steps run.
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
    /// Numbers that a lane has drawn before it in the function: the lane may go on.
    pub draws: u64,
    /// Of an index that may be out of range, the extent of its axis and the entries that are taken from there on.
    pub extent: Option<(usize, usize)>,
}

/// The parts of all blocks, of those that are left out the steps; the functions are appended to `out`, their names begin with `prefix`.
pub(in crate::backend) fn parts<'a, T: Ending>(
    frame: &dyn Frame,
    (body, storage): (&'a Body<T>, &'a Storage<'a>),
    is_left_out: impl Fn(BlockId) -> bool,
    prefix: &str,
    out: &mut String,
) -> IdVec<BlockId, Vec<BlockPart>> {
    let (limits, units) = (frame.limits(), unit_of(body));
    let scope = |(id, block): (BlockId, &'a Block<T>)| {
        // A temporary lives within one execution of a region.
        let region = body.units[units[id]].region;
        let outlives = |var: VarId| region || body.vars[var].class != StorageClass::Temporary;
        Scope::of(block, (storage.blocks[id.index()], storage), outlives)
    };
    let scopes: IdVec<BlockId, Scope<'_>> = body.blocks.iter().map(scope).collect();
    let ranges = scopes.iter().map(|(id, scope)| match is_left_out(id) {
        true => vec![(0..scope.homes.steps.len(), false)],
        false => ranges(scope, &limits),
    });
    let ranges: Vec<Vec<(Range<usize>, bool)>> = ranges.collect();
    let runs = scopes.values().zip(&ranges).map(|(scope, ranges)| {
        (scope, ranges.iter().map(|(range, _)| &scope.homes.steps[range.clone()]).collect::<Vec<_>>())
    });
    let mut returns: Vec<BlockId> = body.blocks.values().filter_map(|b| b.term.returned_to()).collect();
    returns.sort_unstable();
    returns.dedup();
    let lockstep = lockstep(storage.stack_count, runs);
    let parting = Parting { frame, body, scopes: &scopes, lockstep, units, returns };
    let blocks = body.blocks.ids().zip(&ranges);
    blocks.map(|(id, ranges)| parting.block(id, ranges, prefix, out)).collect()
}

/// The longest runs of steps that are alike in whether they can be part of a function.
fn ranges(scope: &Scope<'_>, limits: &Limits) -> Vec<(Range<usize>, bool)> {
    let mut ranges: Vec<(Range<usize>, bool)> = Vec::new();
    for (i, origin) in scope.homes.steps.iter().enumerate() {
        let takes = takes(origin, scope, limits);
        match ranges.last_mut() {
            Some((range, same)) if *same == takes => range.end = i + 1,
            _ => ranges.push((i..i + 1, takes)),
        }
    }
    ranges
}

/// Of each block its unit.
fn unit_of<T>(body: &Body<T>) -> IdVec<BlockId, UnitId> {
    let mut units = IdVec::filled(UnitId::new(0), body.blocks.len());
    for (id, unit) in body.units.iter() {
        unit.blocks.iter().for_each(|block| units[*block] = id);
    }
    units
}

/// Makes the parts of a body.
struct Parting<'a, T> {
    frame: &'a dyn Frame,
    body: &'a Body<T>,
    scopes: &'a IdVec<BlockId, Scope<'a>>,
    lockstep: Lockstep,
    units: IdVec<BlockId, UnitId>,
    /// The blocks that calls return to.
    returns: Vec<BlockId>,
}

impl<T: Ending> Parting<'_, T> {
    fn block(&self, id: BlockId, ranges: &[(Range<usize>, bool)], prefix: &str, out: &mut String) -> Vec<BlockPart> {
        // A block that is all generated code, but for regions, whose branches are asked of the machine.
        let whole = !self.body.units[self.units[id]].region && ranges.iter().all(|(_, takes)| *takes);
        let term = &self.body.blocks[id].term;
        // The machine notes heights.
        if let Some(exit) = term.exit().filter(|_| whole && term.noted().is_none()) {
            let route = Route { unit: self.units[id], exit, units: &self.units, returns: &self.returns };
            let name = format!("{prefix}{id}");
            let routed = self.segment(id, 0..self.scopes[id].homes.steps.len(), name, Some(&route), out);
            if let Some(segment) = routed {
                return vec![BlockPart::Native(segment)];
            }
        }
        let part = |(range, takes): &(Range<usize>, bool)| {
            let name = format!("{prefix}{id}_{}", range.start);
            let made = takes.then(|| self.segment(id, range.clone(), name, None, out));
            made.flatten().map_or(BlockPart::Steps(range.clone()), BlockPart::Native)
        };
        ranges.iter().map(part).collect()
    }

    /// The function of what some steps do; none where there is nothing to do.
    fn segment(
        &self,
        id: BlockId,
        range: Range<usize>,
        name: String,
        route: Option<&Route<'_>>,
        out: &mut String,
    ) -> Option<Segment> {
        let scope = &self.scopes[id];
        let mut ssa = Ssa::new(scope, range.start);
        range.clone().for_each(|step| ssa.add(step));
        let cond = self.decided(id, &range, route.is_some());
        let read = self.read_after(id, range.end, cond);
        for (slot, held) in ssa.written() {
            let is_read = held.var().is_some_and(|value| read.contains(&(slot, value)));
            if is_read || scope.is_stored(slot, held) {
                ssa.store(slot, ssa.value(held));
            }
        }
        if let Some(cond) = cond {
            ssa.decide(ssa.value(cond));
        }
        if ssa.ops.is_empty() && ssa.draws.is_none() && route.is_none() {
            return None;
        }
        if ssa.locals.values().map(|l| l.elements).sum::<usize>() > self.frame.limits().locals {
            return None;
        }
        let signature = text::function((&name, id), &ssa, &self.lockstep, self.frame, route, out);
        let steps = &scope.homes.steps[range.clone()];
        let exit = route.map(|r| r.exit);
        Some(Segment {
            sites: sites(scope, steps, &signature, exit),
            prims: steps.iter().filter_map(|origin| prim(scope, origin)).collect(),
            name,
            stacks: signature.stacks.into_iter().map(|s| (s, pushes(scope, steps, s))).collect(),
            slots: signature.slots.into_iter().collect(),
            constants: signature.constants.into_iter().collect(),
            decides: cond.is_some() && route.is_none(),
            routes: route.is_some(),
            ends: matches!(exit, Some(Exit::Return | Exit::Halt)),
            calls: matches!(exit, Some(Exit::Call(..))),
            steps: range,
        })
    }

    /// The condition that a function of some steps decides: at the end of its block, but not in a region, whose branches
    /// are asked of the machine.
    fn decided(&self, id: BlockId, steps: &Range<usize>, routes: bool) -> Option<Operand> {
        let scope = &self.scopes[id];
        let last = steps.end == scope.homes.steps.len() && !self.body.units[self.units[id]].region;
        let cond = self.body.blocks[id].term.condition();
        cond.filter(|cond| last && (routes || !scope.is_common(*cond)))
    }

    /// What steps from one on read of slots, and the branch that is not decided before.
    fn read_after(&self, id: BlockId, step: usize, decided: Option<Operand>) -> HashSet<(SlotId, ValueId)> {
        let scope = &self.scopes[id];
        let mut read = scope.read_from(step);
        let cond = self.body.blocks[id].term.condition().filter(|_| decided.is_none());
        read.extend(cond.and_then(|cond| scope.slot_of(cond, scope.homes.steps.len())));
        read
    }
}

/// The operations of some steps.
fn ops<'a>(steps: &'a [Origin]) -> impl Iterator<Item = usize> + 'a {
    let of = |origin: &'a Origin| match origin {
        Origin::Ops(ops) => ops.as_slice(),
        Origin::Copy(_) => &[],
    };
    steps.iter().flat_map(of).copied()
}

fn sites(scope: &Scope<'_>, steps: &[Origin], signature: &Signature, exit: Option<Exit<'_>>) -> Vec<Site> {
    let site = |&(at, kind): &(usize, TrapKind)| {
        let text = match &scope.ops[at].kind {
            OpKind::Effect(SideEffect::Assert { message, .. }) => message.texts.concat(),
            _ => String::new(),
        };
        let draws = ops(steps).take_while(|op| *op != at).map(|op| drawn(scope, op)).sum();
        Site { loc: scope.ops[at].loc.clone(), kind, text, draws, extent: None }
    };
    let mut sites: Vec<_> = signature.sites.iter().map(site).collect();
    // The last site is that of a call.
    if let Some(Exit::Call(_, _, loc)) = exit {
        sites.push(Site { loc: loc.clone(), kind: TrapKind::StackLimit, text: String::new(), draws: 0, extent: None });
    }
    sites
}

/// How many numbers an operation draws in each lane.
fn drawn(scope: &Scope<'_>, op: usize) -> u64 {
    match &scope.ops[op].kind {
        OpKind::Compute { dst, prim, .. } if prim.is_draw() => prim.draws(scope.values[*dst].ty.elements()) as u64,
        _ => 0,
    }
}

/// The primitive that a step runs: what is only stored, pushed or moved is a copy.
pub(super) fn prim(scope: &Scope<'_>, origin: &Origin) -> Option<Prim> {
    let Origin::Ops(ops) = origin else { return Some(Prim::Copy) };
    match &scope.ops[*ops.first()?].kind {
        OpKind::Compute { prim, .. } => Some(*prim),
        OpKind::Store { .. } | OpKind::Push { .. } => Some(Prim::Copy),
        _ => None,
    }
}

/// How often some steps push on a stack.
fn pushes(scope: &Scope<'_>, steps: &[Origin], to: StackId) -> usize {
    let pushes =
        |op: &usize| matches!(scope.ops[*op].kind, OpKind::Push { stack, .. } if scope.storage.stack(stack) == to);
    ops(steps).filter(pushes).count()
}
