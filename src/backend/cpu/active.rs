//! The active set of the unit that runs, and the mode in which it runs.

use crate::backend::cpu::compact::Selection;
use crate::backend::cpu::frame::Frame;
use crate::base::IdVec;
use crate::exec::mask::{byte_mask, for_each_lane};
use crate::exec::{Columns, LaneMask, Waiting};
use crate::plan::cost::ByCode;
use crate::plan::{Slot, SlotId, Unit};
use crate::run::{Costs, Execution};
use crate::vmath::Real;

/// The active lanes of a unit. Lane buffers are read and written in *columns*: the lanes of the shard, or, when the
/// lanes are gathered, only those that were active when the unit started.
#[derive(Debug)]
pub(super) struct ActiveSet {
    /// The active columns; a lane that traps is taken out at once.
    pub(super) mask: LaneMask,
    /// How many.
    pub(super) count: usize,
    /// Whether lanes that are not active must keep what the machine's state holds for them.
    pub(super) blend: bool,
    /// Whether the lanes are gathered.
    pub(super) gathered: bool,
    /// Where the last condition held, in columns.
    pub(super) taken: LaneMask,
    /// For every lane -1 if it is active, else 0: made when a kernel asks for it first, since native code and units that
    /// write no state do without. A lane that traps later stays as it is: nobody reads its values.
    pub(super) bytes: Vec<i8>,
    bytes_made: bool,
    /// The lane of each column, when gathered.
    lanes: Vec<u32>,
    /// The same for the streams of random numbers.
    pub(super) numbers: Vec<u64>,
    pub(super) draws: Vec<u64>,
    /// The same as bits, and as groups.
    chosen: LaneMask,
    selection: Selection,
    width: usize,
    scratch: LaneMask,
}

impl ActiveSet {
    pub(super) fn new(width: usize) -> Self {
        Self {
            mask: LaneMask::none(width),
            count: 0,
            blend: false,
            gathered: false,
            taken: LaneMask::none(width),
            bytes: vec![0; width],
            bytes_made: false,
            lanes: Vec::with_capacity(width),
            numbers: Vec::with_capacity(width),
            draws: Vec::with_capacity(width),
            chosen: LaneMask::none(width),
            selection: Selection::default(),
            width,
            scratch: LaneMask::none(width),
        }
    }

    /// The number of columns.
    pub(super) fn columns(&self) -> usize {
        self.mask.width()
    }
    /// Whether all columns are active.
    pub(super) fn is_full(&self) -> bool {
        self.count == self.mask.width()
    }
    /// The lane of a column.
    pub(super) fn lane(&self, column: usize) -> usize {
        if self.gathered { self.lanes[column] as usize } else { column }
    }
    /// The first active column.
    pub(super) fn first(&self) -> Option<usize> {
        self.mask.iter().next()
    }
    /// The active columns whose lanes are the highest of all by this measure.
    pub(super) fn highest(&self, height: impl Fn(usize) -> usize) -> Vec<usize> {
        let height = |column| height(self.lane(column));
        let highest = self.mask.iter().map(height).max();
        self.mask.iter().filter(|column| Some(height(*column)) == highest).collect()
    }
    /// Takes a column out.
    pub(super) fn remove(&mut self, column: usize) {
        if self.mask.contains(column) {
            self.mask.remove(column);
            self.count -= 1;
        }
    }
    /// What a push or pop needs to know.
    pub(super) fn for_stacks(&self) -> Columns<'_> {
        Columns {
            mask: self.mask.words(),
            width: self.mask.width(),
            lanes: self.gathered.then_some(&self.lanes),
            all: !self.gathered && self.is_full(),
        }
    }

    /// Makes `bytes`, if it is not made.
    #[inline]
    pub(super) fn make_bytes(&mut self) {
        if !self.bytes_made {
            self.bytes_made = true;
            for (bytes, word) in self.bytes.chunks_mut(64).zip(self.mask.words()) {
                bytes.copy_from_slice(&byte_mask(*word)[..bytes.len()]);
            }
        }
    }

    /// Takes the lanes that wait at a unit: they are active now.
    #[inline]
    pub(super) fn take(&mut self, waiting: &mut Waiting, unit: usize) {
        if self.mask.width() != self.width {
            self.mask.reset(self.width);
        }
        self.count = waiting.take(unit, self.mask.words_mut());
    }

    /// Chooses how the unit runs for the lanes of `mask`, `count` of them, when `live` lanes of the shard have values
    /// that matter; compacts them if they are gathered.
    pub(super) fn start<R: Real>(
        &mut self,
        unit: &Unit,
        frame: &mut Frame<R>,
        slots: &IdVec<SlotId, Slot>,
        live: usize,
        (execution, costs, by_code): (Execution, &Costs, ByCode),
    ) {
        self.blend = self.count < live;
        self.gathered = self.count < self.width
            && match execution {
                Execution::Mask => false,
                Execution::Gather => true,
                Execution::Auto => unit.cost.prefers_gather(costs, self.count, self.width, self.blend, by_code),
            };
        self.bytes_made = false;
        if !self.gathered {
            return;
        }
        self.blend = false;
        self.lanes.clear();
        let lanes = &mut self.lanes;
        for_each_lane(self.mask.words(), |l| lanes.push(l as u32));
        std::mem::swap(&mut self.mask, &mut self.chosen);
        self.mask.fill(self.count);
        self.selection.choose(&self.chosen);
        let chosen = &self.selection;
        for stage in &unit.stages {
            let (slot, dense) = (stage.slot.0 as usize, stage.dense.0 as usize);
            if stage.gather {
                let mut out = frame.take(dense);
                let elements = slots[stage.slot].elements;
                out.gather(&frame.slots[slot], elements, chosen);
                frame.slots[dense] = out;
            }
            frame.slots.swap(slot, dense);
        }
    }

    /// Ends the unit: scatters gathered lanes. From here on columns are lanes.
    pub(super) fn end<R: Real>(&mut self, unit: &Unit, frame: &mut Frame<R>, slots: &IdVec<SlotId, Slot>) {
        if !self.gathered {
            return;
        }
        let chosen = &self.selection;
        for stage in &unit.stages {
            let (slot, dense) = (stage.slot.0 as usize, stage.dense.0 as usize);
            frame.slots.swap(slot, dense);
            if stage.scatter {
                let mut state = frame.take(slot);
                let elements = slots[stage.slot].elements;
                state.scatter(&frame.slots[dense], elements, chosen);
                frame.slots[slot] = state;
            }
        }
        self.gathered = false;
        for mask in [&mut self.mask, &mut self.taken] {
            self.scratch.reset(self.width);
            let (lanes, scratch) = (&self.lanes, &mut self.scratch);
            if mask.width() == lanes.len() {
                for_each_lane(mask.words(), |c| scratch.insert(lanes[c] as usize));
            }
            std::mem::swap(mask, &mut self.scratch);
        }
    }

    /// Compacts the random streams of the shard.
    pub(super) fn gather_streams(&mut self, numbers: &[u64], draws: &[u64]) {
        let lanes = self.lanes.iter().map(|l| *l as usize);
        self.numbers.clear();
        self.draws.clear();
        self.numbers.extend(lanes.clone().map(|l| numbers[l]));
        self.draws.extend(lanes.map(|l| draws[l]));
    }
    /// The reverse.
    pub(super) fn scatter_streams(&self, draws: &mut [u64]) {
        for (lane, drawn) in self.lanes.iter().zip(&self.draws) {
            draws[*lane as usize] = *drawn;
        }
    }
}
