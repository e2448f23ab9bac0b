//! From the units of a program to its plan: values get places, operands become slots and constants, temporaries share
//! slots, and every unit learns what it touches and what it costs. Steps that share a long row axis are grouped to run
//! tile by tile, unless that is switched off.

mod aliases;
mod blocks;
mod constants;
mod fallbacks;
mod groups;
mod rows;
mod slots;
mod tiled;
mod whole;

use std::collections::BTreeSet;

use smallvec::SmallVec;

pub use fallbacks::fallbacks;
pub use whole::{calls_to_plan, units_to_plan};

use crate::base::{Id, IdVec, Loc};
use crate::parts::{Operand, SideEffect, StorageClass};
use crate::plan::{
    Arg, Block, BlockId, Body, Compute, Home, Homes, Origin, SlotId, Source, Stage, Step, StepKind, TargetMachine,
    Unit, UnitId, Var, VarId, Write, cost,
};
use crate::prim::{BatchRule, Prim};
use crate::types::Type;
use crate::unit::{self, ValueId};
use aliases::Aliases;
use constants::Constants;
use groups::Item;
use slots::Slots;

/// What an instruction reads.
type Read = Operand<VarId>;

/// Values, and where they are from some instruction on.
type Moves = SmallVec<[(ValueId, VarId); 1]>;

/// A block before its operands are resolved.
struct RawBlock<T> {
    insts: Vec<(Inst, Loc)>,
    /// By instruction: what it does of the block of the units, and the values that have a place from then on.
    origins: Vec<(Origin, Moves)>,
    /// Whether a value goes elsewhere, since its variable gets another: from which step on it is there is known only
    /// where instructions keep their order. The compiler makes no such block, but a text may have one.
    in_order: bool,
    /// Values of the block.
    values: usize,
    /// The condition of its branch: read while the lanes are still compacted.
    cond: Option<Read>,
    term: T,
    loc: Loc,
}

/// An instruction over places.
enum Inst {
    Compute { how: How, dst: VarId, prim: Prim, args: Vec<Read> },
    Pop(VarId),
    Save { stack: VarId, value: VarId },
    Effect(SideEffect<Read, VarId>),
}

#[derive(Clone, Copy, PartialEq)]
enum How {
    Set,
    Push,
}

impl Inst {
    fn reads(&self) -> impl Iterator<Item = VarId> {
        let (args, saved, effect): (&[Read], _, _) = match self {
            Inst::Compute { args, .. } => (args, None, None),
            Inst::Save { value, .. } => (&[], Some(*value), None),
            Inst::Effect(effect) => (&[], None, Some(effect)),
            Inst::Pop(_) => (&[], None, None),
        };
        let effect = effect.into_iter().flat_map(SideEffect::reads);
        args.iter().chain(effect).filter_map(|o| o.var()).chain(saved)
    }
    fn writes(&self) -> Option<VarId> {
        match self {
            Inst::Compute { dst, .. } | Inst::Pop(dst) => Some(*dst),
            Inst::Effect(effect) => effect.dst().copied(),
            Inst::Save { .. } => None,
        }
    }
}

/// How plans are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Making {
    /// The machine that they are made for.
    pub machine: TargetMachine,
    /// Whether steps that share a long row axis run tile by tile; results do not depend on it.
    pub tile_rows: bool,
}

/// Makes the body of a plan.
struct Builder<'a> {
    vars: IdVec<VarId, Var>,
    slots: Slots,
    /// Those of the variables of the units, as far as they are known.
    homes: IdVec<unit::VarId, Option<SlotId>>,
    constants: &'a mut Constants,
    /// What the plan is made for.
    making: Making,
    /// Of the block at hand.
    aliases: Aliases,
}

impl<'a> Builder<'a> {
    /// Starts with variables whose slots and stacks are not yet given; the first are those of the units.
    fn new((mut vars, of_units): (IdVec<VarId, Var>, usize), constants: &'a mut Constants, making: Making) -> Self {
        let slots = Slots::for_state(&mut vars);
        let homes = vars.values().take(of_units).map(|v| v.slot).collect();
        Self { vars, slots, homes, constants, making, aliases: Aliases::default() }
    }

    /// Resolves all blocks, unit by unit. `finish` makes the terminator of the plan.
    fn body<T, U>(
        mut self,
        blocks: Vec<RawBlock<T>>,
        units: Vec<(Vec<BlockId>, bool)>,
        mut finish: impl FnMut(&RawBlock<T>, &mut Self) -> U,
    ) -> Body<U> {
        let mut resolved: Vec<Option<Block<U>>> = blocks.iter().map(|_| None).collect();
        let mut made = IdVec::new();
        for (members, region) in units {
            let id: UnitId = made.next_id();
            let stages = self.stages(&members, region, &blocks);
            let shared = shared_between(&members, &blocks);
            for block in &members {
                let source = &blocks[block.index()];
                let items = self.items(source, &shared);
                let (steps, homes) = self.steps(source, &items, region);
                let term = finish(source, &mut self);
                resolved[block.index()] = Some(Block { steps, term, loc: source.loc.clone(), unit: id, homes });
            }
            self.slots.end_unit();
            made.push(Unit { blocks: members, region, cost: cost::UnitCost::default(), stages, draws: false });
        }
        let blocks = resolved.into_iter();
        let mut body = Body {
            vars: self.vars,
            stacks: self.slots.stacks.clone(),
            slots: self.slots.finish(),
            homes: self.homes,
            blocks: blocks.map(|b| b.expect("every block is in one unit")).collect(),
            units: made,
            tiles: None,
            machine: self.making.machine,
        };
        body.tiles = tiled::loads(&body.blocks);
        finish_units(&mut body);
        body
    }

    /// The variables of the machine's state that a unit touches, each with a dense slot.
    fn stages<T>(&mut self, members: &[BlockId], region: bool, blocks: &[RawBlock<T>]) -> Vec<Stage> {
        let mut stages: indexmap::IndexMap<VarId, (bool, bool)> = indexmap::IndexMap::new();
        for block in members {
            let source = &blocks[block.index()];
            for (inst, _) in &source.insts {
                for v in inst.reads() {
                    stages.entry(v).or_insert((true, false));
                }
                if let Some(v) = inst.writes() {
                    let spills = matches!(inst, Inst::Compute { how: How::Push, .. });
                    stages.entry(v).or_insert((spills, false)).1 = true;
                }
            }
            if let Some(v) = source.cond.and_then(Operand::var) {
                stages.entry(v).or_insert((true, false));
            }
        }
        let mut out = Vec::new();
        for (var, (gather, scatter)) in stages {
            if let Some(slot) = self.vars[var].slot {
                out.push(Stage {
                    slot,
                    dense: self.slots.take(&self.vars[var].ty, false),
                    // In a region a write may be passed by.
                    gather: gather || region,
                    scatter,
                });
            }
        }
        out
    }

    /// The instructions of a block of a unit in the order in which they run. `elsewhere`: the variables that are met in several
    /// blocks of the unit.
    fn items<T>(&mut self, source: &RawBlock<T>, elsewhere: &BTreeSet<VarId>) -> Vec<Item> {
        self.aliases = Aliases::of(source, &self.vars, elsewhere);
        if !self.making.tile_rows || source.in_order {
            return groups::ungrouped(source, &self.aliases);
        }
        let operand = |read: Read| match read {
            Operand::Var(v) => (self.vars[v].ty.clone(), self.vars[v].uniform),
            Operand::Shared(s) => (self.constants.ty(s).clone(), true),
            Operand::Const(c) => (Type::scalar(c.dtype()), true),
        };
        let (vars, aliases) = (&self.vars, &self.aliases);
        groups::grouped(source, &groups::Context { vars, operand: &operand, elsewhere, aliases })
    }

    /// The steps of a block, and what they do of the block of the units.
    fn steps<T>(&mut self, source: &RawBlock<T>, items: &[Item], region: bool) -> (Vec<Step>, Homes) {
        let mut last: Vec<Vec<VarId>> = vec![Vec::new(); items.len()];
        if !region {
            for (var, at) in last_uses(source, items, &self.aliases) {
                last[at].push(var);
            }
        }
        let mut steps = Vec::new();
        let mut homes = Homes { steps: Vec::new(), values: IdVec::filled(SmallVec::new(), source.values) };
        for (i, item) in items.iter().enumerate() {
            let (first, kind) = match item {
                Item::Inst(inst) => (*inst, self.step(&source.insts[*inst].0)),
                Item::Group(group) => (group.members[0].inst, StepKind::Tiled(self.tiled(source, group))),
            };
            let origin = self.origin(source, item, &mut homes.values, i);
            homes.steps.push(origin);
            steps.push(Step { kind, loc: source.insts[first].1.clone() });
            last[i].iter().for_each(|var| self.slots.free_temporary(*var));
        }
        (steps, homes)
    }

    /// What an item does of the block of the units; the values that have a slot from then on are noted.
    fn origin<T>(
        &mut self,
        source: &RawBlock<T>,
        item: &Item,
        values: &mut IdVec<ValueId, SmallVec<[Home; 1]>>,
        step: usize,
    ) -> Origin {
        let mut note = |inst: usize, except: Option<VarId>| {
            for (value, var) in source.origins[inst].1.iter().filter(|(_, var)| Some(*var) != except) {
                values[*value].push(Home { slot: self.place(*var), step });
            }
        };
        match item {
            Item::Inst(inst) => {
                note(*inst, None);
                source.origins[*inst].0.clone()
            }
            Item::Group(group) => {
                for member in &group.members {
                    note(member.inst, source.insts[member.inst].0.writes().filter(|_| !member.kept));
                }
                let ops = group.members.iter().flat_map(|m| match &source.origins[m.inst].0 {
                    Origin::Ops(ops) => ops.as_slice(),
                    Origin::Copy(_) => &[],
                });
                Origin::Ops(ops.copied().collect())
            }
        }
    }

    fn step(&mut self, inst: &Inst) -> StepKind {
        match inst {
            Inst::Compute { how, dst, prim, args } => StepKind::Compute(self.compute(*how, *dst, *prim, args)),
            Inst::Pop(var) => StepKind::Pop {
                stack: self.vars[*var].stack.expect("only stacks are popped"),
                slot: self.vars[*var].slot.expect("stacks have a slot"),
            },
            Inst::Save { stack, value } => StepKind::Compute(self.save(*stack, *value)),
            Inst::Effect(effect) => {
                let effect = effect.map_reads(|r| self.arg(*r));
                StepKind::Effect(effect.map_dst(|v| self.place(v)))
            }
        }
    }

    fn compute(&mut self, how: How, dst: VarId, prim: Prim, reads: &[Read]) -> Compute {
        let args = self.args(reads);
        let var = &self.vars[dst];
        let (ty, uniform) = (var.ty.clone(), var.uniform);
        let write = match (how, var.class) {
            (How::Push, _) => Write::Push(var.stack.expect("only stacks are pushed")),
            (How::Set, StorageClass::Temporary) => Write::Temporary,
            (How::Set, _) => Write::State,
        };
        let write = if uniform { Write::Temporary } else { write };
        let reads_dst = |reads: &[Read]| reads.iter().any(|r| r.var() == Some(dst));
        let in_place = prim.changes_part() && how == How::Set && reads[0].var() == Some(dst) && !reads_dst(&reads[1..]);
        let reads_slot = !in_place && reads_dst(reads);
        let slot = self.place(dst);
        // Copies are stored under the mask as they are read.
        let direct = in_place || prim == Prim::Copy;
        let scratch =
            (!direct && (reads_slot || write != Write::Temporary)).then(|| self.slots.take_for_step(&ty, uniform));
        Compute { prim, args, ty, write, slot, scratch, reads_slot, in_place, uniform }
    }

    /// A push of what another variable holds: a copy of that one to itself, which spills it first.
    fn save(&mut self, stack: VarId, value: VarId) -> Compute {
        let memory = self.vars[stack].stack.expect("only stacks are pushed");
        let (ty, slot) = (self.vars[value].ty.clone(), self.place(value));
        let args = vec![self.arg(Operand::Var(value))];
        let write = Write::Push(memory);
        Compute {
            prim: Prim::Copy,
            args,
            ty,
            write,
            slot,
            scratch: None,
            reads_slot: true,
            in_place: false,
            uniform: false,
        }
    }

    /// The slot of a variable; a temporary gets one where it is first met.
    fn place(&mut self, var: VarId) -> SlotId {
        let v = &self.vars[var];
        let slot = v.slot.unwrap_or_else(|| self.slots.temporary(var, &v.ty, v.uniform));
        if var.index() < self.homes.len() {
            self.homes[unit::VarId::new(var.index())] = Some(slot);
        }
        slot
    }

    fn args(&mut self, reads: &[Read]) -> Vec<Arg> {
        reads.iter().map(|r| self.arg(*r)).collect()
    }

    fn arg(&mut self, read: Read) -> Arg {
        let root = self.aliases.root(read);
        if let (true, Some(v)) = (root != read, read.var()) {
            // An alias gives what it stands for another shape.
            return Arg { ty: self.vars[v].ty.clone(), ..self.arg(root) };
        }
        match read {
            Operand::Var(v) => Arg {
                source: Source::Slot(self.place(v)),
                ty: self.vars[v].ty.clone(),
                broadcast: self.vars[v].uniform,
            },
            Operand::Shared(s) => {
                let (id, ty) = self.constants.shared(s);
                Arg { source: Source::Constant(id), ty, broadcast: true }
            }
            Operand::Const(c) => Arg {
                source: Source::Constant(self.constants.literal(c)),
                ty: Type::scalar(c.dtype()),
                broadcast: true,
            },
        }
    }

    /// What a call passes.
    fn argument(&mut self, argument: unit::Argument) -> Arg {
        self.arg(argument.map(blocks::var))
    }
}

/// The variables that are met in several of these blocks.
fn shared_between<T>(members: &[BlockId], blocks: &[RawBlock<T>]) -> BTreeSet<VarId> {
    let mut shared = BTreeSet::new();
    if members.len() < 2 {
        return shared;
    }
    let mut met: std::collections::BTreeMap<VarId, BlockId> = std::collections::BTreeMap::new();
    for id in members {
        let block = &blocks[id.index()];
        let insts = block.insts.iter().flat_map(|(inst, _)| inst.reads().chain(inst.writes()));
        for v in insts.chain(block.cond.and_then(Operand::var)) {
            if *met.entry(v).or_insert(*id) != *id {
                shared.insert(v);
            }
        }
    }
    shared
}

/// Where each variable of a block is met last; those that the branch reads are left out.
fn last_uses<T>(source: &RawBlock<T>, items: &[Item], aliases: &Aliases) -> Vec<(VarId, usize)> {
    let mut last = indexmap::IndexMap::new();
    for (i, item) in items.iter().enumerate() {
        for inst in item.insts() {
            let inst = &source.insts[inst].0;
            for v in aliases.reads(inst).chain(inst.writes()) {
                last.insert(v, i);
            }
        }
    }
    let cond = source.cond.and_then(Operand::var);
    last.into_iter().filter(|(v, _)| Some(*v) != cond).collect()
}

/// What can be told of units only when all their blocks are resolved.
fn finish_units<T>(body: &mut Body<T>) {
    let units = body.units.ids().collect::<Vec<_>>();
    for id in units {
        let unit = &body.units[id];
        let slots = &body.slots;
        let blocks = unit.blocks.iter();
        // Which blocks of a region loop is not known here: all but its entry are taken to.
        let blocks = blocks.map(|b| (&body.blocks[*b], unit.region && *b != unit.blocks[0]));
        let stages = unit.stages.iter();
        let stages = stages.map(|s| (slots[s.slot].elements, s.gather, s.scatter));
        let cost = cost::unit_cost(blocks, stages);
        let draws = unit.blocks.iter().any(|b| draws(&body.blocks[*b].steps));
        let unit = &mut body.units[id];
        (unit.cost, unit.draws) = (cost, draws);
    }
}

fn draws(steps: &[Step]) -> bool {
    steps.iter().any(|s| match &s.kind {
        StepKind::Compute(c) => c.prim.row().batch == BatchRule::Random,
        _ => false,
    })
}
