//! One call of a kernel: its operands, the lanes that count, what the others keep, and what traps.

use crate::backend::cpu::buffer::{Buffer, Values};
use crate::prim::Prim;
use crate::run::TrapKind;
use crate::types::{DType, Type};
use crate::vmath::Real;

/// An operand: its values have the width of the call, or width 1 when the value is the same for all lanes (`broadcast`).
#[derive(Clone, Copy, Debug)]
pub struct KernelArg<'a, R> {
    /// The values; there may be more of them than the type has.
    pub buffer: Values<'a, R>,
    /// Event type.
    pub ty: &'a Type,
    /// Whether the values have width 1 and serve all lanes.
    pub broadcast: bool,
    /// For a matrix of width 1 that a matrix product reads where it does not stand row after row: how far one row is from
    /// the next, and one column.
    pub strides: Option<[usize; 2]>,
}

impl<'a, R: Real> KernelArg<'a, R> {
    /// An operand that is a whole buffer.
    pub fn new(buffer: &'a Buffer<R>, ty: &'a Type, broadcast: bool) -> Self {
        Self { buffer: buffer.values(0), ty, broadcast, strides: None }
    }
}

/// The lanes for which a kernel must be right. It may compute the others too: their operands are junk and their results
/// are never read, but they must not trap, draw, or hang.
#[derive(Clone, Copy, Debug)]
pub enum Active<'a> {
    /// All lanes of the call.
    All,
    /// The lanes whose bits are set, 64 a word.
    Mask(&'a [u64]),
}

impl Active<'_> {
    /// Whether this lane counts.
    pub fn contains(self, lane: usize) -> bool {
        match self {
            Active::All => true,
            Active::Mask(words) => words[lane / 64] >> (lane % 64) & 1 == 1,
        }
    }
}

/// What lanes keep that do not count.
#[derive(Clone, Copy, Debug)]
pub struct Keep<'a, R> {
    /// Their values.
    pub values: &'a Buffer<R>,
    /// For every lane of the call -1 if it counts, else 0.
    pub mask: &'a [i8],
}

/// The random streams of the lanes of a call.
#[derive(Debug)]
pub struct Streams<'a> {
    /// Seed of the run.
    pub seed: u64,
    /// The number of each lane.
    pub lanes: &'a [u64],
    /// How many draws each lane has made: advanced by one for each element, in active lanes only.
    pub draws: &'a mut [u64],
}

/// One execution of a primitive.
#[derive(Debug)]
pub struct KernelCall<'a, R> {
    /// The primitive.
    pub prim: Prim,
    /// Its operands.
    pub args: &'a [KernelArg<'a, R>],
    /// Event type of the result.
    pub ty: &'a Type,
    /// Number of lanes: the width of the result.
    pub width: usize,
    /// The lanes that count.
    pub active: Active<'a>,
    /// What the lanes that do not count shall have in the result, laid out like it: for primitives that [`can_keep`](super::can_keep).
    /// Otherwise these lanes get junk.
    pub keep: Option<Keep<'a, R>>,
    /// For reductions and products: whether the result goes on from what `out` holds, the result for the elements before
    /// these, whose number is a multiple of [`BLOCK`](crate::vmath::BLOCK). A product has an operand of each lane then.
    pub accumulate: bool,
    /// Gets `(lane, kind)` for every active lane that traps, each lane at most once in a call, ascending.
    pub traps: &'a mut Vec<(u32, TrapKind)>,
}

impl<R: Real> KernelCall<'_, R> {
    /// Elements of the result in one lane.
    pub(super) fn elements(&self) -> usize {
        self.ty.elements()
    }

    /// Traps every active lane for which `bad` holds.
    pub(super) fn trap_where(&mut self, kind: TrapKind, bad: impl Fn(usize) -> bool) {
        for lane in 0..self.width {
            if bad(lane) && self.active.contains(lane) {
                self.traps.push((lane as u32, kind));
            }
        }
    }
}

/// Whether the operands are of this element type.
pub(super) fn is<R>(call: &KernelCall<'_, R>, dtype: DType) -> bool {
    call.args.first().is_some_and(|a| a.ty.dtype == dtype)
}
