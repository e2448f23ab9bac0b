//! The order in which a forward fixed point looks at blocks.

use std::collections::BTreeSet;

use crate::base::{Id as _, IdVec};
use crate::cfg::{BlockId, Func};

/// Blocks that are to be looked at, in reverse postorder: where ways meet, after all of them, so that what a loop-free part
/// of a function says is known when each of its blocks was looked at once.
pub struct Worklist {
    order: Vec<BlockId>,
    /// The place of each block in `order`; past its end for those that are never reached.
    place: IdVec<BlockId, usize>,
    open: BTreeSet<usize>,
}

impl Worklist {
    /// The first block of a function.
    pub fn new(func: &Func) -> Self {
        let order = func.reverse_postorder();
        let mut place = IdVec::filled(order.len(), func.blocks.len());
        for (i, block) in order.iter().enumerate() {
            place[*block] = i;
        }
        Self { open: BTreeSet::from([place[BlockId::new(0)]]), order, place }
    }
    /// A block that can be reached is to be looked at.
    pub fn add(&mut self, block: BlockId) {
        self.open.insert(self.place[block]);
    }
}

impl Iterator for Worklist {
    type Item = BlockId;

    fn next(&mut self) -> Option<BlockId> {
        self.open.pop_first().map(|place| self.order[place])
    }
}
