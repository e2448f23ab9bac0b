//! Where the values of the units are, and which steps do which of their operations: what generated code, which takes the
//! place of steps, must know of a plan. All else it takes from the units.

use smallvec::SmallVec;

use crate::base::IdVec;
use crate::plan::SlotId;
use crate::unit::{Operand, ValueId};

/// How the steps of a block do what the block of the units says.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Homes {
    /// By step: what it does.
    pub steps: Vec<Origin>,
    /// By value of the block: the slots that hold it, in the order of their steps. There is none for a value that is
    /// loaded, which is where its variable is, for a reshape without a step, which is its operand under another shape,
    /// and for what only a tile has.
    pub values: IdVec<ValueId, SmallVec<[Home; 1]>>,
}

/// What a step does.
#[derive(Clone, PartialEq, Debug)]
pub enum Origin {
    /// Operations of the block of the units, by their places there.
    Ops(SmallVec<[usize; 3]>),
    /// A copy that only slots need: a value goes elsewhere.
    Copy(Operand),
}

/// The slot of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Home {
    /// The slot.
    pub slot: SlotId,
    /// The step that puts it there, or for which a copy did so; the next one reads it there.
    pub step: usize,
}

impl Homes {
    /// Where a value is before a step runs, if it has a slot by then.
    pub fn before(&self, value: ValueId, step: usize) -> Option<SlotId> {
        self.values[value].iter().rev().find(|home| home.step < step).map(|home| home.slot)
    }
    /// Where the copy of a value that a step makes goes.
    pub fn copied_to(&self, value: ValueId, step: usize) -> Option<SlotId> {
        self.values[value].iter().find(|home| home.step > step).map(|home| home.slot)
    }
}
