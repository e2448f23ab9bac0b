//! Regions as one function: the loops of a region become loops of the text, with what is equal in all lanes in plain
//! variables, what its blocks hand on to each other in local ones, and tapes at their heights.
//!
//! The text follows the operations of the units one by one: their order is their meaning, and the compiler of the text
//! finds what stays in registers. An array that a block changes is changed where it is, if nothing reads what it was
//! before.

mod fusion;
mod log_sums;
mod loops;
mod machine;
mod matrices;
mod meeting;
mod operations;
mod place;
mod shapes;
mod straight;
mod sums;
mod text;
mod updates;
mod varying;

use indexmap::IndexSet;

use crate::backend::generator::ending::Ending;
use crate::backend::generator::frame::Access;
use crate::backend::generator::parts::{Site, prim};
use crate::backend::generator::scope::{Scope, Storage};
use crate::backend::generator::takes::takes;
use crate::base::{Id as _, IdVec};
use crate::parts::TapeId;
use crate::plan::{ConstantId, SlotId, StackId};
use crate::prim::Prim;
use crate::types::DType;
use crate::unit::{BlockEnd, BlockId, Body, Op, OpKind, SideEffect};

pub(in crate::backend) use machine::Ports;
pub(in crate::backend) use machine::{MachineSegment, RECORD_HEAD};
pub(in crate::backend) use meeting::{Rows, SharedProduct};
pub use straight::{KernelOp, KernelOperand, KernelSource, StraightSegment, TrapMessage};
pub(in crate::backend) use straight::{Mapped, StraightFrame, machine, straight};
use text::{Extent, MOST_MOVED, MOST_MOVED_OFTEN, Writer};

/// What a target that runs regions has besides.
///
/// A function of a region has the label `next`, where a group goes whose lanes have all trapped or left. Each group of lanes goes
/// through the region by itself: its tapes are equally high in all of its active lanes.
pub(in crate::backend) trait RegionFrame: Access {
    /// All that stands before the declarations of a group of lanes.
    fn begin_region(&self, function: &RegionFunction<'_>, out: &mut String);
    /// All that stands behind its statements, the label `next` included.
    fn end_region(&self, function: &RegionFunction<'_>, out: &mut String);
    /// The statement at the start of a block, which counts how often it runs, if that is counted.
    fn count(&self, block: usize) -> Option<String>;
    /// The statement that takes the lanes of `bad` out, with the number of the place.
    fn trap_some(&self, bad: &str, site: usize) -> String;
    /// The same of indices that are out of range.
    fn trap_indices(&self, bad: &str, site: usize, index: &str) -> String;
    /// The elements of the lanes of a group, each at a place of its own, as an expression.
    fn gather(&self, slot: SlotId, elements: &str, dtype: DType) -> String;
    /// The statement that sets them, in the active lanes.
    fn scatter(&self, slot: SlotId, elements: &str, dtype: DType, value: &str) -> String;
    /// The statement that takes all lanes out where a plain condition holds; of an index, which it was.
    fn trap_all(&self, condition: &str, site: usize, index: Option<&str>) -> String;
    /// Whether a bool holds that is the same in all active lanes.
    fn holds(&self, condition: &str) -> String;
    /// The value of an int that is the same in all active lanes.
    fn first(&self, value: &str) -> String;
    /// The value of a buffer of one value for all lanes, an int or bool, as it was when the function was called.
    fn load_plain(&self, slot: SlotId) -> String;
    /// The statement that sets it.
    fn store_plain(&self, slot: SlotId, value: &str) -> String;
    /// The statement that stores a group at an element of a lane buffer, in the active lanes.
    fn store_at(&self, slot: SlotId, at: &str, dtype: DType, value: &str) -> String;
    /// The declaration of an array that does not stand on the stack, so many values of a group of lanes from its beginning.
    fn scratch(&self, name: &str, ty: &str, first: usize) -> String;
    /// The statement before a jump back, which looks whether the run was stopped.
    fn stop(&self) -> String;
    /// The statements that make room for one more value; the numbers of the places say where a tape is too high, and
    /// where there is no memory.
    fn raise(&self, pile: Pile, high: Option<usize>, full: usize) -> Vec<String>;
    /// The statement that puts an element of a value, which has so many, on top.
    fn put(&self, pile: Pile, elements: usize, dtype: DType, at: &str, value: &str) -> String;
    /// The statement behind a push.
    fn pushed(&self, pile: Pile) -> String;
    /// The statements that take one value off; the number of the place says where a tape is empty.
    fn lower(&self, pile: Pile, empty: Option<usize>) -> Vec<String>;
    /// An element of the value that was taken off, which has so many, as an expression.
    fn take(&self, pile: Pile, elements: usize, dtype: DType, at: &str) -> String;
    /// The statements that leave the region by an exit, with the condition that the machine asks for, if it does.
    fn leave(&self, exit: usize, condition: Option<&str>) -> Vec<String>;
}

/// What a function pushes on, by its number among those of the function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::backend) enum Pile {
    /// A tape.
    Tape(usize),
    /// The memory of a stack variable.
    Stack(usize),
}

/// A function of a region, when its statements are written.
pub(in crate::backend) struct RegionFunction<'a> {
    pub(in crate::backend) name: &'a str,
    /// The block where it begins.
    pub(in crate::backend) block: BlockId,
    pub(in crate::backend) signature: &'a RegionSignature,
    pub(in crate::backend) storage: &'a Storage<'a>,
    /// How many blocks it has.
    pub(in crate::backend) blocks: usize,
}

/// What a function is called with.
#[derive(Clone, Debug, Default)]
pub(in crate::backend) struct RegionSignature {
    pub(in crate::backend) slots: IndexSet<SlotId>,
    pub(in crate::backend) constants: IndexSet<ConstantId>,
    pub(in crate::backend) tapes: IndexSet<TapeId>,
    /// Of a straight function.
    pub(in crate::backend) stacks: IndexSet<StackId>,
}

/// A region, or a loop in one, that is one generated function.
#[derive(Clone, PartialEq, Debug)]
pub struct RegionSegment {
    /// Name of the function.
    pub name: String,
    /// The lane buffers that it is called with, in this order.
    pub slots: Vec<SlotId>,
    /// The shared values.
    pub constants: Vec<ConstantId>,
    /// The tapes.
    pub tapes: Vec<TapeId>,
    /// The traps that it reports, by their numbers.
    pub sites: Vec<Site>,
    /// Its blocks, the one first where it is entered: those of a region, or of a loop in one.
    pub blocks: Vec<BlockId>,
    /// The primitives that the steps of its blocks run, in the order in which it counts them.
    pub prims: Vec<Vec<Prim>>,
    /// Values of a group of lanes that it wants room for.
    pub scratch: usize,
    /// How its lanes leave it, by number.
    pub exits: Vec<RegionExit>,
}

/// How lanes leave a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionExit {
    /// The block that they leave from.
    pub from: BlockId,
    /// The block that they go to; none where its end says that, for which the function tells where a condition holds.
    pub to: Option<BlockId>,
}

/// The functions of the regions of a body, by their first blocks; where a region does what no function can, those of the
/// loops in it that do not. A block by itself that parts of blocks do not cover is written as a region, too. The functions
/// are appended to `out`, and their names begin with `prefix`.
pub(in crate::backend) fn regions<'a, T: Ending>(
    frame: &'a dyn RegionFrame,
    (body, storage): (&'a Body<T>, &'a Storage<'a>),
    is_left_out: impl Fn(BlockId) -> bool,
    prefix: &str,
    out: &mut String,
) -> IdVec<BlockId, Option<RegionSegment>> {
    let mut made: IdVec<BlockId, Option<RegionSegment>> = IdVec::filled(None, body.blocks.len());
    for unit in body.units.values() {
        if is_left_out(unit.blocks[0]) || !unit.region && !gains(frame, (body, storage), &unit.blocks) {
            continue;
        }
        let mut taken: Vec<BlockId> = Vec::new();
        let loops = loops(body, &unit.blocks);
        for blocks in std::iter::once(&unit.blocks).chain(&loops) {
            if blocks.iter().any(|block| taken.contains(block)) {
                continue;
            }
            let first = blocks[0];
            let name = format!("{prefix}{first}_region");
            let outer = |other: &Vec<BlockId>| other.len() > blocks.len() && other.contains(&first);
            let most_moved = if loops.iter().any(outer) { MOST_MOVED_OFTEN } else { MOST_MOVED };
            let region = if unit.region { &unit.blocks[..] } else { &[] };
            let extent = Extent { blocks, region, most_moved };
            made[first] = self::region(frame, (body, storage), extent, &name, out);
            if made[first].is_some() {
                taken.extend(blocks.iter().copied());
            }
        }
    }
    made
}

/// Whether blocks that are no region have steps that no function of a part of them does. None of them pushes on a tape:
/// where lanes go different ways, their tapes have different heights, and those that are too high stop alone.
fn gains<T>(frame: &dyn RegionFrame, (body, storage): (&Body<T>, &Storage<'_>), blocks: &[BlockId]) -> bool {
    let pushes = |op: &Op| matches!(op.kind, OpKind::Effect(SideEffect::TapePush { .. }));
    let has_steps = |id: &BlockId| {
        let scope = Scope::of(&body.blocks[*id], (storage.blocks[id.index()], storage), |_| true);
        scope.homes.steps.iter().any(|origin| !takes(origin, &scope, &frame.limits()))
    };
    !blocks.iter().any(|id| body.blocks[*id].ops.iter().any(pushes)) && blocks.iter().any(has_steps)
}

/// The loops in a region, large ones first, each with the block first where it is entered.
fn loops<T: BlockEnd>(body: &Body<T>, region: &[BlockId]) -> Vec<Vec<BlockId>> {
    let position = |block: BlockId| region.iter().position(|b| *b == block);
    let successors = |at: usize| body.blocks[region[at]].term.successors().into_iter().filter_map(position);
    let mut loops: Vec<Vec<BlockId>> = Vec::new();
    for head in 0..region.len() {
        let mut inside = vec![false; region.len()];
        inside[head] = true;
        let mut left: Vec<usize> = (head..region.len()).filter(|at| successors(*at).any(|to| to == head)).collect();
        if left.is_empty() {
            continue;
        }
        while let Some(at) = left.pop() {
            if !std::mem::replace(&mut inside[at], true) {
                left.extend((0..region.len()).filter(|from| successors(*from).any(|to| to == at)));
            }
        }
        // Else it is entered elsewhere, too.
        if !inside[0] || head == 0 {
            let others = (0..region.len()).filter(|at| inside[*at] && *at != head);
            loops.push(std::iter::once(head).chain(others).map(|at| region[at]).collect());
        }
    }
    loops.sort_by_key(|blocks| std::cmp::Reverse(blocks.len()));
    loops
}

/// The function of some blocks of a region, appended to `out`; none for what no function can.
fn region<'a, T: Ending>(
    frame: &'a dyn RegionFrame,
    (body, storage): (&'a Body<T>, &'a Storage<'a>),
    extent: Extent<'a>,
    name: &str,
    out: &mut String,
) -> Option<RegionSegment> {
    let blocks = extent.blocks;
    let mut writer = match Writer::new(frame, (body, storage), extent) {
        Ok(writer) => writer,
        Err(refused) => {
            out.push_str(&format!("// {name}: {refused}\n"));
            return None;
        }
    };
    if let Err(refused) = writer.blocks() {
        out.push_str(&format!("// {name}: {refused}\n"));
        return None;
    }
    let declared = writer.declarations();
    let Writer { signature, sites, exits, scratch, body: text, .. } = writer;
    let function = RegionFunction { name, block: blocks[0], signature: &signature, storage, blocks: blocks.len() };
    frame.begin_region(&function, out);
    out.push_str(&declared);
    out.push_str(&text);
    frame.end_region(&function, out);
    let prims = |id: &BlockId| {
        let scope = Scope::of(&body.blocks[*id], (storage.blocks[id.index()], storage), |_| true);
        scope.homes.steps.iter().filter_map(|origin| prim(&scope, origin)).collect()
    };
    Some(RegionSegment {
        name: name.to_owned(),
        slots: signature.slots.into_iter().collect(),
        constants: signature.constants.into_iter().collect(),
        tapes: signature.tapes.into_iter().collect(),
        sites,
        prims: blocks.iter().map(prims).collect(),
        blocks: blocks.to_vec(),
        scratch,
        exits,
    })
}
