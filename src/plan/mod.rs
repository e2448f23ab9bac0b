//! Layer 2: the plan: what a back end runs. Made once from a specialised program, with no number of lanes in it: every
//! operand is resolved to a *slot* (a lane buffer) or a *constant* (one value for all lanes), every unit of scheduling
//! knows what it reads, what it writes and what it costs.
//!
//! A [`Plan`] comes from a stack program and is run by program-counter autobatching; a [`CallPlan`] comes from a CFG
//! program and is run by local static autobatching. Both are made of [`Body`]s, so both share the execution of steps.
//!
//! *Slots.* A register and the top of a stack own a slot each. Temporaries, scratch results and staged copies take slots
//! from one pool: two of them share a slot when they never live at the same time. Slots of the pool are shared only among
//! values of one element type and one number of elements, so that any two buffers of such slots may be swapped.
//!
//! *Machine.* A plan names no processor: how many lanes a shard should have, and rows a tile, follows from the [`TargetMachine`]
//! that it was made for, which its back end describes.
//!
//! *Homes.* [`Homes`] say of each step which operations of the units it does, and of each value of the units which slots
//! hold it: all that generated code, which is made of the units, must know of the plan.
//!
//! *Tiles.* Steps that share a long row axis stand together in a [`Tiled`] step and run for some rows at a time.

mod batch;
pub mod cost;
mod homes;
mod memory;
mod print;
mod tiles;
mod width;

use crate::base::{IdVec, Loc};
use crate::parts::{SharedId, StorageClass, TapeId};
use crate::prim::Prim;
use crate::types::{DType, Scalar, Shape, Type};
use crate::unit;

pub use crate::unit::Passing;
pub use batch::BatchKernel;
pub use cost::UnitCost;
pub use homes::{Home, Homes, Origin};
pub use memory::{MemoryEstimate, estimate};
pub use tiles::{Part, RowLoad, TILE_BLOCK, TileResult, Tiled, TiledStep};
pub use width::{TargetMachine, Work};

crate::define_id!(
    /// A lane buffer of a [`Body`].
    SlotId, "%"
);
crate::define_id!(
    /// A value that is the same for all lanes.
    ConstantId, "c"
);
crate::define_id!(
    /// A variable of a [`Body`].
    VarId, "v"
);
crate::define_id!(
    /// The stack memory of a stack variable of a [`Body`].
    StackId, "k"
);
crate::define_id!(
    /// A basic block of a [`Body`].
    BlockId, "b"
);
crate::define_id!(
    /// A unit of scheduling of a [`Body`]: a block, or a region.
    UnitId, "u"
);
crate::define_id!(
    /// A function of a [`CallPlan`].
    FuncId, "f"
);

/// The plan of a stack program.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// Name of the entry function.
    pub name: String,
    /// Its code.
    pub body: Body<Terminator>,
    /// Where lanes start.
    pub entry: BlockId,
    /// Whether the slot of a stack variable holds its top; else the top stands in the memory of the stack too, and the
    /// slot has it only while a step reads or writes it.
    pub cached_tops: bool,
    /// The lane inputs.
    pub inputs: Vec<Port>,
    /// The outputs.
    pub outputs: Vec<Port>,
    /// What is the same for all lanes.
    pub globals: Globals,
}

/// The plan of a CFG program.
#[derive(Clone, PartialEq, Debug)]
pub struct CallPlan {
    /// The functions.
    pub funcs: IdVec<FuncId, Func>,
    /// Where lanes start.
    pub entry: FuncId,
    /// Names of the outputs, one for each result of the entry.
    pub outputs: Vec<String>,
    /// What is the same for all lanes.
    pub globals: Globals,
}

/// A function of a [`CallPlan`]. It starts at its first block.
#[derive(Clone, PartialEq, Debug)]
pub struct Func {
    /// Its name.
    pub name: String,
    /// The variables that are set when it starts.
    pub params: Vec<VarId>,
    /// Types of its results.
    pub results: Vec<Type>,
    /// Its code.
    pub body: Body<CallTerminator>,
    /// Where it stands in the source.
    pub loc: Loc,
}

/// What is the same for all lanes of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Globals {
    /// The constants that operands name.
    pub constants: IdVec<ConstantId, Constant>,
    /// Those of the units that it was made of: shared values, streams, tapes.
    pub units: unit::Globals,
}

impl Globals {
    /// Bytes that one value on every tape takes in one lane, when a real has `real_bytes`.
    pub fn tape_bytes(&self, real_bytes: usize) -> usize {
        self.units.tapes.values().map(|t| bytes(t.ty.dtype, t.ty.elements(), real_bytes)).sum()
    }
}

/// A value that is the same for all lanes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Constant {
    /// A shared value.
    Shared(SharedId),
    /// A scalar of the program text.
    Literal(Scalar),
}

/// A lane input or an output.
#[derive(Clone, PartialEq, Debug)]
pub struct Port {
    /// The user's name.
    pub name: String,
    /// Where its value is.
    pub slot: SlotId,
    /// Its type.
    pub ty: Type,
}

/// Blocks over one set of variables; `T` is the type of their terminators.
#[derive(Clone, PartialEq, Debug)]
pub struct Body<T> {
    /// The variables, in program order.
    pub vars: IdVec<VarId, Var>,
    /// The lane buffers.
    pub slots: IdVec<SlotId, Slot>,
    /// The stack variables.
    pub stacks: IdVec<StackId, VarId>,
    /// By variable of the units: its slot, if a step meets it. Variables that outlive a unit have one of their own.
    pub homes: IdVec<unit::VarId, Option<SlotId>>,
    /// The blocks, in program order.
    pub blocks: IdVec<BlockId, Block<T>>,
    /// The units, in the order of their first blocks.
    pub units: IdVec<UnitId, Unit>,
    /// What a row of the groups that run tile by tile takes, and the rows of the longest one: the most of each.
    pub tiles: Option<(RowLoad, usize)>,
    /// What it was made for.
    pub machine: TargetMachine,
}

/// A lane buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// Element type.
    pub dtype: DType,
    /// Elements in one lane.
    pub elements: usize,
    /// Whether it holds one value for all lanes: its width is 1.
    pub uniform: bool,
    /// Whether it holds the rows of a tile; `elements` are those of [`TILE_BLOCK`] rows then.
    pub tile: bool,
    /// What it holds.
    pub role: Role,
}

/// What a slot holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A register, or the top of a stack.
    State,
    /// Values that do not outlive a unit.
    Pool,
}

/// A variable.
#[derive(Clone, PartialEq, Debug)]
pub struct Var {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// How it is stored.
    pub class: StorageClass,
    /// Whether it is stored once for all lanes.
    pub uniform: bool,
    /// Its slot, if it has one of its own: a register, or the top of a stack.
    pub slot: Option<SlotId>,
    /// Its stack memory, if it is a stack.
    pub stack: Option<StackId>,
}

/// What runs as one superstep: a block, or a region.
#[derive(Clone, PartialEq, Debug)]
pub struct Unit {
    /// Its blocks; it is entered at the first. More than one, or a block that jumps to itself, for a region.
    pub blocks: Vec<BlockId>,
    /// Whether it is a region: its branches do not diverge, and it runs until its lanes leave it.
    pub region: bool,
    /// What it costs.
    pub cost: UnitCost,
    /// The variables that gathered execution compacts and scatters.
    pub stages: Vec<Stage>,
    /// Whether it draws random numbers.
    pub draws: bool,
}

/// A variable of a unit in gathered execution: compacted before, scattered after.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stage {
    /// The slot of the variable.
    pub slot: SlotId,
    /// A slot of the pool that takes its place.
    pub dense: SlotId,
    /// Whether its value is needed: it may be read before it is written, or not be written at all.
    pub gather: bool,
    /// Whether the unit may write it.
    pub scatter: bool,
}

/// A basic block.
#[derive(Clone, PartialEq, Debug)]
pub struct Block<T> {
    /// Straight-line code.
    pub steps: Vec<Step>,
    /// How it ends.
    pub term: T,
    /// The location that statistics report for it.
    pub loc: Loc,
    /// The unit it belongs to.
    pub unit: UnitId,
    /// What the steps do of the block of the units.
    pub homes: Homes,
}

/// A step of a block.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// What it does.
    pub kind: StepKind,
    /// Where it stands in the source.
    pub loc: Loc,
}

/// The kinds of steps.
#[derive(Clone, PartialEq, Debug)]
pub enum StepKind {
    /// Computes a value and stores it.
    Compute(Compute),
    /// Computes values tile by tile.
    Tiled(Tiled),
    /// The top of a stack goes, the one below it is the top.
    Pop {
        /// The stack memory.
        stack: StackId,
        /// The slot of the top.
        slot: SlotId,
    },
    /// What it does besides.
    Effect(SideEffect),
}

/// A primitive and where its result goes.
#[derive(Clone, PartialEq, Debug)]
pub struct Compute {
    /// The primitive.
    pub prim: Prim,
    /// Its operands.
    pub args: Vec<Arg>,
    /// Type of the result.
    pub ty: Type,
    /// How the result is stored.
    pub write: Write,
    /// The slot of the variable that is written.
    pub slot: SlotId,
    /// A slot of the same kind for the result, where it cannot be computed into `slot`: the variable is an operand, or
    /// lanes that are not active must keep its value.
    pub scratch: Option<SlotId>,
    /// Whether the variable is an operand (other than the one that is replaced in place).
    pub reads_slot: bool,
    /// Whether the primitive replaces a part of its first operand, which is the variable: runs in place.
    pub in_place: bool,
    /// Whether the variable is uniform: computed once for all lanes.
    pub uniform: bool,
}

/// How a result is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Write {
    /// Into a temporary: lanes that are not active get junk.
    Temporary,
    /// Into a register or over the top of a stack: lanes that are not active keep what they have.
    State,
    /// As the new top of a stack.
    Push(StackId),
}

/// An operand.
#[derive(Clone, PartialEq, Debug)]
pub struct Arg {
    /// Where its value is.
    pub source: Source,
    /// Its type.
    pub ty: Type,
    /// Whether there is one value for all lanes.
    pub broadcast: bool,
}

/// Where the value of an operand is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    /// In a slot.
    Slot(SlotId),
    /// In a constant.
    Constant(ConstantId),
}

/// A string with holes and the operands that fill them.
pub type Message = crate::parts::Message<Arg>;
/// What a step does besides computing a value. A pop off a tape goes to a slot.
pub type SideEffect = crate::parts::SideEffect<Arg, SlotId>;

/// How a block of a [`Plan`] ends.
#[derive(Clone, PartialEq, Debug)]
pub enum Terminator {
    /// To a block.
    Jump(BlockId),
    /// To the first block where the bool scalar holds, else to the second.
    Branch(Arg, BlockId, BlockId),
    /// Pushes the second block on the program-counter stack and goes to the first.
    PushJump {
        /// Where it goes.
        target: BlockId,
        /// Where the callee returns to. That of an attempt is the return block of no other call.
        ret: BlockId,
        /// Where the call stands in the source, as well as it is known.
        loc: Loc,
        /// For an attempt, what a trap in the callee does before the lane goes on at `ret`.
        attempt: Option<Attempt>,
    },
    /// Pops the program-counter stack and goes there; a lane whose entry is popped halts.
    Return,
    /// The lane is done.
    Halt,
}

/// What it takes to bring a lane that trapped in the callee of an attempt back to the return block.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Attempt {
    /// Where the results are: they get NaN, 0 or `false`.
    pub results: Vec<(SlotId, Type)>,
    /// The stacks that the callee, or what it calls, may push on: they get the height that they had at the call.
    pub stacks: Vec<StackId>,
    /// The tapes that it may push on.
    pub tapes: Vec<TapeId>,
}

impl Attempt {
    /// Whether heights must be known.
    pub fn has_heights(&self) -> bool {
        !(self.stacks.is_empty() && self.tapes.is_empty())
    }
}

/// How a block of a [`CallPlan`] ends.
#[derive(Clone, PartialEq, Debug)]
pub enum CallTerminator {
    /// To a block.
    Jump(BlockId),
    /// To the first block where the bool scalar holds, else to the second.
    Branch(Arg, BlockId, BlockId),
    /// A call, then on to a block.
    Call {
        /// The function.
        func: FuncId,
        /// One operand for each parameter.
        args: Vec<Arg>,
        /// How each gets there.
        passing: Vec<Passing>,
        /// The slots that the results go to.
        dsts: Vec<SlotId>,
        /// Where it goes on.
        next: BlockId,
        /// Where the call stands in the source.
        loc: Loc,
        /// Whether a lane that traps in the callee goes on at `next`, with NaN, 0 or `false` for results.
        attempt: bool,
    },
    /// A call whose results are the results of this function.
    TailCall {
        /// The function.
        func: FuncId,
        /// One operand for each parameter.
        args: Vec<Arg>,
        /// How each gets there.
        passing: Vec<Passing>,
    },
    /// Ends the function with its results, and how each gets to the caller.
    Return(Vec<Arg>, Vec<Passing>),
}

impl<T> Body<T> {
    /// Bytes that one lane takes in the lane buffers and in one level of every stack, when a real has `real_bytes`. Tiles
    /// are counted with [`TILE_BLOCK`] rows: in narrow shards they have more, up to the bytes of a full shard, or of a few for
    /// each thread where threads share the rows.
    pub fn bytes_per_lane(&self, real_bytes: usize) -> usize {
        let slots = self.slots.values().filter(|s| !s.uniform);
        let slots: usize = slots.map(|s| bytes(s.dtype, s.elements, real_bytes)).sum();
        slots + self.level_bytes(real_bytes) + self.stacks.len() * size_of::<u32>()
    }
    /// Bytes of one level of every stack in one lane.
    pub fn level_bytes(&self, real_bytes: usize) -> usize {
        let levels = self.stacks.values().map(|v| &self.vars[*v].ty);
        levels.map(|ty| bytes(ty.dtype, ty.elements(), real_bytes)).sum()
    }
    /// Whether a block belongs to a unit.
    pub fn contains(&self, unit: UnitId, block: BlockId) -> bool {
        self.blocks[block].unit == unit
    }
}

/// Bytes of some elements of a type.
pub(crate) fn bytes(dtype: DType, elements: usize, real_bytes: usize) -> usize {
    elements
        * match dtype {
            DType::Bool => 1,
            DType::Int => 8,
            DType::Real => real_bytes,
        }
}

impl Compute {
    /// The slots that it reads and writes.
    fn slots(&self) -> impl Iterator<Item = SlotId> + '_ {
        let read = self.args.iter().filter_map(|a| match a.source {
            Source::Slot(slot) => Some(slot),
            Source::Constant(_) => None,
        });
        read.chain([self.slot]).chain(self.scratch)
    }
    /// The kernel that runs it.
    pub fn kernel(&self) -> BatchKernel {
        match self.uniform {
            true => BatchKernel::Once,
            false => BatchKernel::of(self.prim, self.args.iter().map(|a| (&a.ty, a.broadcast))),
        }
    }
}

impl Arg {
    /// The shape in one lane.
    pub fn shape(&self) -> &Shape {
        &self.ty.shape
    }
}
