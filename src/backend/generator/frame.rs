//! How a generated function meets the machine that calls it.

use indexmap::IndexSet;

use crate::backend::generator::ending::Route;
use crate::backend::generator::ssa::{LocalId, Op, Ssa};
use crate::backend::generator::text::Writer;
use crate::plan::{ConstantId, Slot, SlotId, StackId};
use crate::prim::BLOCK;
use crate::run::TrapKind;
use crate::types::DType;
use crate::unit::BlockId;

/// What differs between targets: a loop over the groups of lanes of a shard, or one call for a lane.
///
/// The text of a function is over the groups of `lanes.h` (`R`, `I` and `B`, with `r_add` and its kin), whatever their
/// width. A frame gives the text around it, and where the function reads and writes what is not its own.
pub(in crate::backend) trait Frame: Access {
    /// All that stands before the local variables of a function.
    fn begin(&self, function: &Function<'_>, out: &mut String);
    /// All that stands behind its statements.
    fn end(&self, function: &Function<'_>, out: &mut String);
    /// The statement that takes the lanes of `bad` out, with the number of the place.
    fn trap(&self, bad: &str, site: usize) -> String;
    /// The statement that notes where the condition of the branch holds, for [`Frame::send`] or for the machine.
    fn decide(&self, condition: &str, routes: bool) -> String;
    /// The declarations of what an array that is popped is read through where it stands on its stack; none where it is
    /// put together in an array of its own.
    fn borrow(&self, local: LocalId, elements: usize, dtype: DType) -> Option<String>;
    /// Takes values off stacks; more than one of stacks that go in lockstep.
    fn pop(&self, ops: &[&Op], text: &mut Writer<'_>);
    /// Puts values on stacks, as [`Frame::pop`].
    fn push(&self, ops: &[&Op], text: &mut Writer<'_>);
    /// Sends the active lanes on.
    fn send(&self, route: &Route<'_>, text: &mut Writer<'_>);
}

/// Where the text of a function finds what is not its own, and how much of its own it may hold.
pub(in crate::backend) trait Access {
    /// What a function may hold.
    fn limits(&self) -> Limits;
    /// A group of elements at a place, as an expression.
    fn load(&self, from: Stored, at: &str, dtype: DType) -> String;
    /// The statement that stores a group in the active lanes, at element 0, or at the element `e` of a loop.
    fn store(&self, slot: SlotId, looped: bool, dtype: DType, value: &str) -> String;
    /// The address of a shared value, as an expression.
    fn constant(&self, constant: ConstantId) -> String;
    /// Whether a function may have arrays without elements, and indices that are always out of range: there are no steps that
    /// it could leave them to.
    fn has_all(&self) -> bool {
        false
    }
    /// The line before a loop of so many turns that is written out.
    fn unrolled(&self, turns: usize) -> String {
        format!("_Pragma(\"GCC unroll {turns}\")")
    }
    /// The line before a loop of more turns than are written out; none where the compiler of the text may do with it what it
    /// likes.
    fn rolled(&self) -> String {
        String::new()
    }
    /// The draw of this number, counted from those that the lane has made, as an expression; `function` draws.
    fn draw(&self, function: &str, number: &str) -> String;
}

/// What a function may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::backend) struct Limits {
    /// Elements of a value: no more than a block of sums, since a sum or a dot product is one chain here.
    pub(in crate::backend) elements: usize,
    /// Elements of a shared matrix in a product.
    pub(in crate::backend) matrix: usize,
    /// Elements of all local variables.
    pub(in crate::backend) locals: usize,
    /// Elements of arrays of the function that do not stand on the stack.
    pub(in crate::backend) scratch: usize,
}

impl Limits {
    /// Limits that keep sums what they are.
    pub(in crate::backend) const fn new(elements: usize, matrix: usize, locals: usize, scratch: usize) -> Self {
        assert!(elements <= BLOCK, "of more than a block it would be another sum than the kernels'");
        Self { elements, matrix, locals, scratch }
    }
}

/// Where a function finds what is not its own.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::backend) enum Stored {
    /// In a lane buffer.
    Slot(SlotId),
    /// In a buffer of one value for all lanes.
    Uniform(SlotId),
    /// In a shared value.
    Constant(ConstantId),
    /// On a stack, where a pop left it.
    Stack(LocalId),
}

/// What a function is called with, beside its text.
#[derive(Clone, Debug, Default)]
pub(in crate::backend) struct Signature {
    /// The lane buffers, in the order in which the call hands them over.
    pub(in crate::backend) slots: IndexSet<SlotId>,
    /// The shared values.
    pub(in crate::backend) constants: IndexSet<ConstantId>,
    /// The stacks.
    pub(in crate::backend) stacks: IndexSet<StackId>,
    /// Those that are pushed.
    pub(in crate::backend) pushed: IndexSet<StackId>,
    /// What traps are: the operation of the block of the units, and the kind.
    pub(in crate::backend) sites: Vec<(usize, TrapKind)>,
}

/// A function, when its statements are written.
pub(in crate::backend) struct Function<'a> {
    pub(in crate::backend) name: &'a str,
    /// The block that it is of.
    pub(in crate::backend) block: BlockId,
    pub(in crate::backend) signature: &'a Signature,
    /// How it sends lanes on, if it does.
    pub(in crate::backend) route: Option<&'a Route<'a>>,
    pub(in crate::backend) ssa: &'a Ssa<'a>,
}

impl Function<'_> {
    /// A lane buffer.
    pub(in crate::backend) fn slot(&self, slot: SlotId) -> Slot {
        self.ssa.scope.storage.slots[slot]
    }
    /// The element type of a shared value.
    pub(in crate::backend) fn constant_type(&self, constant: ConstantId) -> DType {
        self.ssa.scope.storage.constant_type(constant)
    }
    /// Numbers that each lane draws, where it looks at its random stream.
    pub(in crate::backend) fn draws(&self) -> Option<usize> {
        self.ssa.draws
    }
}
