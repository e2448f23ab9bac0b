//! Gives the instructions of a group their slots: what lives for a tile only gets a slot of a tile.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;

use super::groups::{Group, Member};
use super::{Builder, How, Inst, RawBlock, Read};
use crate::base::IdVec;
use crate::parts::{Operand, StorageClass};
use crate::plan::{
    Arg, Block, BlockId, Compute, Part, RowLoad, SlotId, Source, StepKind, TileResult, Tiled, TiledStep, VarId, Write,
    bytes,
};
use crate::types::Type;

/// Bytes of a real where loads are compared.
const REAL_BYTES: usize = 8;

/// The slots of a group while they are given out.
#[derive(Default)]
struct Tiles {
    /// The slots of the variables that members have set.
    places: IndexMap<VarId, SlotId>,
    /// Slots of tiles that are in use, by the member that must have run before they are free.
    held: BTreeMap<usize, Vec<SlotId>>,
}

impl Builder<'_> {
    pub(super) fn tiled<T>(&mut self, source: &RawBlock<T>, group: &Group) -> Tiled {
        let (mut tiles, mut steps, mut spared) = (Tiles::default(), Vec::new(), 0);
        let insts = group.members.iter().map(|m| &source.insts[m.inst].0);
        let read: BTreeSet<VarId> = insts.flat_map(|inst| self.aliases.reads(inst)).collect();
        for (index, member) in group.members.iter().enumerate() {
            let (Inst::Compute { how, dst, prim, args }, loc) = &source.insts[member.inst] else {
                unreachable!("a member computes");
            };
            let operands = args.iter().zip(&member.rule.parts);
            let (args, parts): (Vec<Arg>, Vec<Part>) =
                operands.map(|(read, part)| self.operand(*read, *part, &tiles)).unzip();
            let ty = self.vars[*dst].ty.clone();
            if !member.kept {
                spared += bytes(ty.dtype, ty.elements(), REAL_BYTES);
            }
            let reads = read.contains(dst);
            let (result, write, slot, scratch) = self.result(member, (*how, *dst), &ty, reads, &mut tiles);
            // The kernel is given other memory than its operands have.
            let (reads_slot, in_place, uniform) = (false, false, false);
            let compute = Compute { prim: *prim, args, ty, write, slot, scratch, reads_slot, in_place, uniform };
            steps.push(TiledStep { compute, parts, result, loc: loc.clone() });
            let done = tiles.held.remove(&index).into_iter().flatten();
            done.for_each(|slot| self.slots.give_back(slot));
        }
        let load = load(&steps, group.rows);
        Tiled { rows: group.rows, steps, load, spared }
    }

    /// An operand of a member, and the part of it that a tile reads.
    fn operand(&mut self, read: Read, part: Part, tiles: &Tiles) -> (Arg, Part) {
        match read {
            Operand::Var(v) if part == Part::Rows => {
                match self.aliases.root(read).var().and_then(|r| tiles.places.get(&r)) {
                    Some(tile) => {
                        let source = Source::Slot(*tile);
                        (Arg { source, ty: self.vars[v].ty.clone(), broadcast: false }, Part::Tile)
                    }
                    None => (self.arg(read), part),
                }
            }
            // The matrix itself is at hand: its transpose need not be.
            Operand::Shared(s) if part == Part::Columns => match self.constants.transposed(s) {
                Some(of) => {
                    let source = Source::Constant(self.constants.shared(of).0);
                    (Arg { source, ty: self.constants.ty(s).clone(), broadcast: true }, Part::Transposed)
                }
                None => (self.arg(read), part),
            },
            _ => (self.arg(read), part),
        }
    }

    /// Where the result of a member goes. `reads`: whether a member reads the variable.
    fn result(
        &mut self,
        member: &Member,
        (how, dst): (How, VarId),
        ty: &Type,
        reads: bool,
        tiles: &mut Tiles,
    ) -> (TileResult, Write, SlotId, Option<SlotId>) {
        let write = match (how, self.vars[dst].class) {
            (How::Push, _) => Write::Push(self.vars[dst].stack.expect("only stacks are pushed")),
            (How::Set, StorageClass::Temporary) => Write::Temporary,
            (How::Set, _) => Write::State,
        };
        if member.rule.total {
            // Until it is complete, the variable has the value that it had.
            let own = write == Write::Temporary && !reads;
            let total = (!own).then(|| self.slots.take(ty, false));
            return (TileResult::Total, write, self.place(dst), total);
        }
        let tile = self.slots.tile(ty);
        tiles.held.entry(member.until).or_default().push(tile);
        tiles.places.insert(dst, tile);
        if member.kept {
            (TileResult::Rows, write, self.place(dst), Some(tile))
        } else {
            (TileResult::Tile, Write::Temporary, tile, None)
        }
    }
}

/// What a row of the group takes in the cache.
fn load(steps: &[TiledStep], rows: usize) -> RowLoad {
    let mut met: IndexMap<Source, (usize, bool)> = IndexMap::new();
    for step in steps {
        let c = &step.compute;
        let each = |ty: &Type| bytes(ty.dtype, ty.elements() / rows, REAL_BYTES);
        for (arg, part) in c.args.iter().zip(&step.parts) {
            if *part != Part::Whole {
                met.insert(arg.source, (each(&arg.ty), arg.broadcast));
            }
        }
        if step.result != TileResult::Total {
            let slots = [Some(c.slot), c.scratch].into_iter().flatten();
            met.extend(slots.map(|s| (Source::Slot(s), (each(&c.ty), false))));
        }
    }
    met.values().fold(RowLoad::default(), |mut load, (bytes, shared)| {
        *if *shared { &mut load.shared } else { &mut load.lane } += bytes;
        load
    })
}

/// The most that a row of any group takes, and the most rows.
pub(super) fn loads<T>(blocks: &IdVec<BlockId, Block<T>>) -> Option<(RowLoad, usize)> {
    let steps = blocks.values().flat_map(|b| &b.steps);
    let groups = steps.filter_map(|s| match &s.kind {
        StepKind::Tiled(group) => Some((group.load, group.rows)),
        _ => None,
    });
    groups.reduce(|(a, rows), (b, other)| {
        (RowLoad { lane: a.lane.max(b.lane), shared: a.shared.max(b.shared) }, rows.max(other))
    })
}
