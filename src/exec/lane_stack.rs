//! The memory of one stack variable for all lanes of a shard: what lies below the cached tops, or, where they are not
//! cached ([`LaneStack::with_tops`]), the tops too.
//!
//! A *level* is laid out like a lane buffer, `[element][lane]`. Level `h` holds, for each lane that is that high, the
//! value with `h` values below it, so a push or a pop touches the active lanes only, and when all lanes are equally high
//! it is the copy of one block of memory. Lanes are taken 64 at a time, a word of the mask: those of a word that are equally
//! high, if they are many, move as vectors, the others one by one. Memory grows by whole levels, by at least half of what
//! there is where the budget has so much left, and is kept for reuse.

mod tops;

use std::collections::TryReserveError;
use std::sync::Arc;

use super::aligned::AlignedVec;
use super::mask::{Bits, bits_equal, byte_mask, lanes_of};
use crate::run::{MemoryBudget, NoMemory, Reservation};
use crate::vmath::multiversioned;

/// So many lanes of a word that are equally high move as vectors.
const MANY: u32 = 12;

/// Why a stack could not do what was asked. It is unchanged then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StackError {
    /// A lane has nothing to pop.
    Empty,
    /// No memory for another level: none that is free, or none in the budget.
    NoMemory,
}

impl From<NoMemory> for StackError {
    fn from(_: NoMemory) -> Self {
        StackError::NoMemory
    }
}

impl From<TryReserveError> for StackError {
    fn from(_: TryReserveError) -> Self {
        StackError::NoMemory
    }
}

/// The active lanes of a push or pop, and where their values stand in the buffer of tops.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {
    /// The active columns of the buffer of tops.
    pub mask: &'a [u64],
    /// Its width.
    pub width: usize,
    /// The lane of each column; `None` when column `l` is lane `l`.
    pub lanes: Option<&'a [u32]>,
    /// Whether all lanes of the shard are active, each in its own column.
    pub all: bool,
}

impl<'a> Columns<'a> {
    /// The active columns with their lanes.
    fn iter(self) -> impl Iterator<Item = (usize, usize)> + 'a {
        lanes_of(self.mask).map(move |column| (column, self.lanes.map_or(column, |lanes| lanes[column] as usize)))
    }
}

/// What is pushed.
trait Pushed<T>: Copy {
    /// Element `element` of a column.
    fn at(self, element: usize, column: usize) -> T;
    /// Element `element` of the columns from `first` on, where the mask says so.
    fn blend_to(self, element: usize, first: usize, to: &mut [T], mask: &[i8; 64]);
    /// The same of all columns.
    fn copy_to(self, element: usize, first: usize, to: &mut [T]);
}

/// The value of each column of a buffer of this width.
#[derive(Clone, Copy)]
struct Tops<'a, T> {
    values: &'a [T],
    width: usize,
}

impl<T: Copy> Pushed<T> for Tops<'_, T> {
    #[inline(always)]
    fn at(self, element: usize, column: usize) -> T {
        self.values[element * self.width + column]
    }
    #[inline(always)]
    fn blend_to(self, element: usize, first: usize, to: &mut [T], mask: &[i8; 64]) {
        blend(to, &self.values[element * self.width + first..][..to.len()], mask);
    }
    #[inline(always)]
    fn copy_to(self, element: usize, first: usize, to: &mut [T]) {
        to.copy_from_slice(&self.values[element * self.width + first..][..to.len()]);
    }
}

/// One value for all columns, by its elements.
#[derive(Clone, Copy)]
struct One<'a, T>(&'a [T]);

impl<T: Copy> Pushed<T> for One<'_, T> {
    #[inline(always)]
    fn at(self, element: usize, _: usize) -> T {
        self.0[element]
    }
    #[inline(always)]
    fn blend_to(self, element: usize, _: usize, to: &mut [T], mask: &[i8; 64]) {
        fill(to, self.0[element], mask);
    }
    #[inline(always)]
    fn copy_to(self, element: usize, _: usize, to: &mut [T]) {
        to.fill(self.0[element]);
    }
}

/// The memory of a stack in the hands of somebody else.
#[derive(Debug)]
pub struct Opened<'a, T> {
    /// Its levels.
    pub memory: &'a mut [T],
    /// By lane.
    pub heights: &'a mut [u32],
    /// Values pushed.
    pub pushes: u64,
    /// Largest height that any lane had.
    pub highest: u32,
    /// For which there is memory.
    pub levels: u32,
}

/// One stack for each lane.
#[derive(Debug)]
pub struct LaneStack<T> {
    elements: usize,
    width: usize,
    /// What memory holds before it is pushed to.
    zero: T,
    memory: AlignedVec<T>,
    heights: Vec<u32>,
    /// The height of all lanes, if it is known that they are equally high.
    level: Option<u32>,
    /// Largest height that any lane had since memory was last given back.
    highest: u32,
    /// And before.
    highest_before: u32,
    pushes: u64,
    /// Elements behind the last level, and heights behind that of the last lane.
    padding: usize,
    /// Levels for tops: one if they stand in memory, else none.
    tops: usize,
    /// What `memory` has taken of a budget; none where there is no limit.
    reserved: Option<Reservation>,
}

impl<T: Copy> LaneStack<T> {
    /// Empty stacks of values of `elements` elements for `width` lanes.
    pub fn new(elements: usize, width: usize, zero: T) -> Self {
        Self {
            elements,
            width,
            zero,
            memory: AlignedVec::new(),
            heights: vec![0; width],
            padding: 0,
            level: Some(0),
            highest: 0,
            highest_before: 0,
            pushes: 0,
            tops: 0,
            reserved: None,
        }
    }
    /// The same, empty, for readers of groups of lanes, which read so many lanes behind the last one.
    #[must_use]
    pub fn padded(mut self, padding: usize) -> Self {
        self.heights.resize(self.width + padding, 0);
        Self { padding, ..self }
    }
    /// The same, empty, with its memory from a budget.
    #[must_use]
    pub fn within(self, budget: &Arc<MemoryBudget>) -> Self {
        Self { reserved: Some(Reservation::of(budget)), ..self }
    }
    /// Number of values of a lane (below its cached top).
    pub fn height(&self, lane: usize) -> usize {
        self.heights[lane] as usize
    }
    /// Empties the stacks of some lanes.
    pub fn reset(&mut self, lanes: &[u32]) {
        lanes.iter().for_each(|lane| self.heights[*lane as usize] = 0);
        self.level = self.level.filter(|height| *height == 0);
    }
    /// The stack of a lane becomes that of a lane of another, of values alike.
    ///
    /// # Errors
    /// Where there is no memory: nothing has changed.
    pub fn set_lane(&mut self, lane: usize, (from, other): (&Self, usize)) -> Result<(), StackError> {
        debug_assert!(self.elements == from.elements && self.tops == 0 && from.tops == 0, "the stacks are alike");
        let height = from.heights[other];
        if let Some(top) = height.checked_sub(1) {
            self.reserve(top)?;
        }
        for row in 0..height as usize * self.elements {
            self.memory[row * self.width + lane] = from.memory[row * from.width + other];
        }
        (self.heights[lane], self.level) = (height, None);
        Ok(())
    }
    /// What lies above this height in a lane goes. A stack that is lower already stays.
    pub fn cut(&mut self, lane: usize, height: usize) {
        let known = &mut self.heights[lane];
        *known = (*known).min(height as u32);
        self.level = None;
    }
    /// Largest height that any lane had.
    pub fn highest(&self) -> usize {
        self.highest.max(self.highest_before) as usize
    }
    /// Gives back the memory above the highest lane.
    pub fn trim(&mut self) {
        let highest = self.heights[..self.width].iter().copied().max().unwrap_or(0);
        self.highest_before = self.highest_before.max(self.highest);
        self.highest = highest;
        self.memory.shrink((highest as usize + self.tops) * self.elements * self.width + self.padding);
        if let Some(reserved) = &mut self.reserved {
            reserved.resize(self.memory.len() * size_of::<T>()).expect("it gets no larger");
        }
    }
    /// Values pushed, summed over lanes.
    pub fn pushes(&self) -> u64 {
        self.pushes
    }
    /// Bytes pushed, summed over lanes.
    pub fn bytes_pushed(&self) -> u64 {
        self.pushes * (self.elements * size_of::<T>()) as u64
    }

    /// Puts the value of each active column of `top` on the stack of its lane.
    pub fn push(&mut self, top: &[T], columns: Columns<'_>) -> Result<(), StackError> {
        self.push_each(Tops { values: &top[..self.elements * columns.width], width: columns.width }, columns)
    }

    /// Puts one value, given by its elements, on the stack of the lane of each active column.
    pub fn push_value(&mut self, value: &[T], columns: Columns<'_>) -> Result<(), StackError> {
        self.push_each(One(&value[..self.elements]), columns)
    }

    fn push_each(&mut self, pushed: impl Pushed<T>, columns: Columns<'_>) -> Result<(), StackError> {
        if columns.all
            && let Some(height) = self.level_of_all()
        {
            self.reserve(height)?;
            let at = height as usize * self.elements * self.width;
            for element in 0..self.elements {
                pushed.copy_to(element, 0, &mut self.memory[at + element * self.width..][..self.width]);
            }
            self.heights[..self.width].fill(height + 1);
            self.level = Some(height + 1);
            self.pushes += self.width as u64;
            return Ok(());
        }
        self.make_room(columns)?;
        self.level = None;
        if columns.lanes.is_some() {
            self.push_lanes(pushed, columns.iter());
            return Ok(());
        }
        for (i, bits) in columns.mask.iter().enumerate() {
            self.push_word(pushed, i * 64, *bits);
        }
        Ok(())
    }

    /// Pushes in up to 64 lanes from `first` on, those of `bits`. There is room.
    #[inline]
    fn push_word(&mut self, pushed: impl Pushed<T>, first: usize, bits: u64) {
        let mut rest = bits;
        while rest != 0 {
            let lanes = first..(first + 64).min(self.width);
            let heights = &mut self.heights[lanes.clone()];
            let height = heights[rest.trailing_zeros() as usize];
            let same = bits_equal(heights, height) & rest;
            if same.count_ones() < MANY {
                break;
            }
            rest &= !same;
            let mask = byte_mask(same);
            fill(heights, height + 1, &mask);
            self.highest = self.highest.max(height + 1);
            self.pushes += u64::from(same.count_ones());
            for element in 0..self.elements {
                let row = (height as usize * self.elements + element) * self.width;
                let to = &mut self.memory[row + lanes.start..row + lanes.end];
                match same {
                    u64::MAX => pushed.copy_to(element, first, to),
                    _ => pushed.blend_to(element, first, to, &mask),
                }
            }
        }
        self.push_lanes(pushed, Bits(rest).map(|bit| (first + bit, first + bit)));
    }

    /// Pushes lane by lane, given as columns and lanes. There is room.
    #[inline(always)]
    fn push_lanes(&mut self, pushed: impl Pushed<T>, lanes: impl Iterator<Item = (usize, usize)>) {
        // what the loop changes is in locals: it would be stored and loaded again in each turn
        let (elements, width) = (self.elements, self.width);
        let (memory, heights) = (&mut self.memory[..], &mut self.heights[..]);
        let (mut highest, mut count) = (self.highest, 0);
        for (column, lane) in lanes {
            let height = heights[lane];
            heights[lane] = height + 1;
            highest = highest.max(height + 1);
            count += 1;
            let mut place = height as usize * elements * width + lane;
            for element in 0..elements {
                memory[place] = pushed.at(element, column);
                place += width;
            }
        }
        (self.highest, self.pushes) = (highest, self.pushes + count);
    }

    /// Takes the last value of each active column's lane off its stack, into `top`.
    pub fn pop(&mut self, top: &mut [T], columns: Columns<'_>) -> Result<(), StackError> {
        let level = self.elements * self.width;
        if columns.all
            && let Some(height) = self.level_of_all()
        {
            let below = height.checked_sub(1).ok_or(StackError::Empty)?;
            let at = below as usize * level;
            top[..level].copy_from_slice(&self.memory[at..at + level]);
            self.heights[..self.width].fill(below);
            self.level = Some(below);
            return Ok(());
        }
        if columns.lanes.is_some() {
            if columns.iter().any(|(_, lane)| self.heights[lane] == 0) {
                return Err(StackError::Empty);
            }
            self.level = None;
            self.pop_lanes(top, columns.width, columns.iter());
            return Ok(());
        }
        let words = self.heights[..self.width].chunks(64).zip(columns.mask);
        if words.fold(0, |empty, (heights, bits)| empty | (bits_equal(heights, 0) & bits)) != 0 {
            return Err(StackError::Empty);
        }
        self.level = None;
        for (i, bits) in columns.mask.iter().enumerate() {
            self.pop_word(top, (self.width, i * 64), i * 64, *bits);
        }
        Ok(())
    }

    /// Hands the memory over, with room for `pushes` more values in each lane and as many elements more as it is
    /// [padded](Self::padded) by.
    pub fn open(&mut self, pushes: usize) -> Result<Opened<'_, T>, StackError> {
        let highest = self.highest;
        let levels = (highest as usize).checked_add(pushes).ok_or(StackError::NoMemory)?;
        if let Some(top) = levels.checked_sub(1) {
            self.reserve(u32::try_from(top).map_err(|_| StackError::NoMemory)?)?;
        }
        self.highest = highest;
        self.level = None;
        self.open_levels(levels)
    }
    /// Hands it over again, with room for one more level than when it was handed over last, when there was room for so many.
    ///
    /// # Errors
    /// Where there is no memory: nothing has changed.
    pub fn open_more(&mut self, levels: u32) -> Result<Opened<'_, T>, StackError> {
        self.open_levels(levels.checked_add(1).ok_or(StackError::NoMemory)? as usize)
    }
    /// Hands the memory over, with room for at least so many levels.
    fn open_levels(&mut self, levels: usize) -> Result<Opened<'_, T>, StackError> {
        let level = self.elements * self.width;
        let needed = levels.checked_mul(level).and_then(|all| all.checked_add(self.padding));
        self.grow_to(needed.ok_or(StackError::NoMemory)?)?;
        let levels = ((self.memory.len() - self.padding) / level.max(1)).min(u32::MAX as usize - 1) as u32;
        let (pushes, highest) = (self.pushes, self.highest);
        Ok(Opened { memory: &mut self.memory, heights: &mut self.heights, pushes, highest, levels })
    }
    /// What was handed over is as it was left: values pushed, and the largest height.
    pub fn close(&mut self, pushes: u64, highest: u32) {
        self.pushes = pushes;
        self.highest = highest;
    }

    /// Pops in up to 64 lanes from `first` on, those of `bits`; none is empty. Elements are rows of `columns` in `top`, where the
    /// first of these lanes stands at `at`.
    #[inline(always)]
    fn pop_word(&mut self, top: &mut [T], (columns, at): (usize, usize), first: usize, bits: u64) {
        let mut rest = bits;
        while rest != 0 {
            let lanes = first..(first + 64).min(self.width);
            let heights = &mut self.heights[lanes.clone()];
            let height = heights[rest.trailing_zeros() as usize];
            let same = bits_equal(heights, height) & rest;
            if same.count_ones() < MANY {
                break;
            }
            rest &= !same;
            let mask = byte_mask(same);
            fill(heights, height - 1, &mask);
            for element in 0..self.elements {
                let row = ((height - 1) as usize * self.elements + element) * self.width;
                let to = &mut top[element * columns + at..][..lanes.len()];
                let from = &self.memory[row + lanes.start..row + lanes.end];
                match same {
                    u64::MAX => to.copy_from_slice(from),
                    _ => blend(to, from, &mask),
                }
            }
        }
        self.pop_lanes(top, columns, Bits(rest).map(|bit| (at + bit, first + bit)));
    }

    /// Pops lane by lane, given as columns and lanes. None is empty.
    #[inline(always)]
    fn pop_lanes(&mut self, top: &mut [T], columns: usize, lanes: impl Iterator<Item = (usize, usize)>) {
        let (elements, width) = (self.elements, self.width);
        let (memory, heights) = (&self.memory[..], &mut self.heights[..]);
        for (column, lane) in lanes {
            let height = heights[lane] - 1;
            heights[lane] = height;
            let mut place = height as usize * elements * width + lane;
            for element in 0..elements {
                top[element * columns + column] = memory[place];
                place += width;
            }
        }
    }

    /// The height of all lanes, if they are equally high.
    fn level_of_all(&mut self) -> Option<u32> {
        if self.level.is_none() {
            let heights = &self.heights[..self.width];
            let first = *heights.first()?;
            let equal = |heights: &[u32]| heights.iter().fold(0, |other, h| other | (h ^ first)) == 0;
            self.level = heights.chunks(64).all(equal).then_some(first);
        }
        self.level
    }

    /// Makes room for one more value of each active column.
    fn make_room(&mut self, columns: Columns<'_>) -> Result<(), StackError> {
        // Room above the highest lane ever is room for all, and nobody need be looked at.
        let levels = self.highest as usize + 1;
        if self.highest < u32::MAX
            && (self.memory.len() >= (levels + self.tops) * self.elements * self.width || self.grow(levels).is_ok())
        {
            return Ok(());
        }
        let tallest = columns.iter().map(|(_, lane)| self.heights[lane]).max();
        tallest.map_or(Ok(()), |tallest| self.reserve(tallest))
    }

    /// Makes room for level `height`, which a value goes to.
    fn reserve(&mut self, height: u32) -> Result<(), StackError> {
        // heights are counted in 32 bits
        if height == u32::MAX {
            return Err(StackError::NoMemory);
        }
        self.grow(height as usize + 1)?;
        self.highest = self.highest.max(height + 1);
        Ok(())
    }

    /// Makes memory for so many levels, and for tops that stand there.
    fn grow(&mut self, levels: usize) -> Result<(), StackError> {
        let levels = levels.checked_add(self.tops).ok_or(StackError::NoMemory)?;
        self.grow_to(levels.checked_mul(self.elements * self.width).ok_or(StackError::NoMemory)?)
    }

    /// Makes memory at least so long, in elements.
    fn grow_to(&mut self, needed: usize) -> Result<(), StackError> {
        if self.memory.len() >= needed {
            return Ok(());
        }
        let ample = self.memory.len() + self.memory.len() / 2;
        if ample > needed && self.try_grow(ample).is_ok() {
            return Ok(());
        }
        self.try_grow(needed)
    }

    fn try_grow(&mut self, len: usize) -> Result<(), StackError> {
        let bytes = |len: usize| len.checked_mul(size_of::<T>()).ok_or(StackError::NoMemory);
        if let Some(reserved) = &mut self.reserved {
            reserved.resize(bytes(len)?)?;
        }
        let grown = self.memory.try_grow(len, self.zero);
        if let (Err(_), Some(reserved)) = (&grown, &mut self.reserved) {
            reserved.resize(bytes(self.memory.len())?)?;
        }
        Ok(grown?)
    }
}

impl LaneStack<u32> {
    /// The value of a lane, of one element, with so many values below it.
    pub fn value(&self, lane: usize, level: usize) -> u32 {
        self.memory[level * self.width + lane]
    }
    /// Takes the last value, of one element, off the stacks of the lanes of a mask. `f` gets, 64 lanes at a time, the number
    /// of the word, the lanes that had the same value, and the value; `None` for lanes whose stacks were empty.
    pub fn pop_alike(&mut self, mask: &[u64], mut f: impl FnMut(usize, u64, Option<u32>)) {
        debug_assert_eq!(self.elements, 1, "a value is one address");
        self.level = None;
        for (i, bits) in mask.iter().enumerate().filter(|(_, bits)| **bits != 0) {
            let first = i * 64;
            let lanes = first..(first + 64).min(self.width);
            let empty = bits_equal(&self.heights[lanes], 0) & bits;
            if empty != 0 {
                f(i, empty, None);
            }
            let mut values = [0; 64];
            self.pop_word(&mut values, (64, 0), first, bits & !empty);
            let mut rest = bits & !empty;
            while rest != 0 {
                let value = values[rest.trailing_zeros() as usize];
                let same = bits_equal(&values, value) & rest;
                f(i, same, Some(value));
                rest &= !same;
            }
        }
    }
}

multiversioned! {
    /// `to = from` where the mask says so.
    fn blend<T: Copy>(to: &mut [T], from: &[T], mask: &[i8; 64]) {
        for ((to, from), mask) in to.iter_mut().zip(from).zip(mask) {
            let (new, old) = (*from, *to);
            *to = if *mask != 0 { new } else { old };
        }
    }

    /// `to = value` where the mask says so.
    fn fill<T: Copy>(to: &mut [T], value: T, mask: &[i8; 64]) {
        for (to, mask) in to.iter_mut().zip(mask) {
            let old = *to;
            *to = if *mask != 0 { value } else { old };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is done to all stacks at once, with a seed for masks and values.
    #[derive(Clone, Copy, Debug)]
    enum Action {
        Push(u64),
        PushValue(u64),
        Pop(u64),
        Update(u64),
        Reset(u64),
    }

    fn action() -> impl Strategy<Value = Action> {
        prop_oneof![
            4 => any::<u64>().prop_map(Action::Push),
            2 => any::<u64>().prop_map(Action::PushValue),
            4 => any::<u64>().prop_map(Action::Pop),
            2 => any::<u64>().prop_map(Action::Update),
            1 => any::<u64>().prop_map(Action::Reset),
        ]
    }

    /// A mask of `width` lanes drawn from a seed: everything, nothing, or about half.
    fn mask_of(seed: u64, width: usize) -> Vec<u64> {
        let mut words = crate::exec::LaneMask::all(width).words().to_vec();
        if !seed.is_multiple_of(4) {
            for (i, word) in words.iter_mut().enumerate() {
                *word &= (seed ^ i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17);
            }
        }
        words
    }

    struct Model {
        /// For each lane its values, the top last.
        lanes: Vec<Vec<Vec<i64>>>,
        stack: LaneStack<i64>,
        top: Vec<i64>,
        width: usize,
        elements: usize,
        gathered: bool,
    }

    impl Model {
        fn new(width: usize, elements: usize, gathered: bool) -> Self {
            Self {
                lanes: vec![vec![vec![0; elements]]; width],
                stack: LaneStack::new(elements, width, 0),
                top: vec![0; width * elements],
                width,
                elements,
                gathered,
            }
        }
        /// Runs `f` on the stack with columns that are the lanes, or the active lanes compacted.
        fn with_columns<O>(
            &mut self,
            mask: &[u64],
            f: impl FnOnce(&mut LaneStack<i64>, &mut [i64], Columns<'_>) -> O,
        ) -> O {
            let lanes: Vec<u32> = crate::exec::mask::lanes_of(mask).map(|l| l as u32).collect();
            let all = lanes.len() == self.width;
            if !self.gathered {
                let columns = Columns { mask, width: self.width, lanes: None, all };
                return f(&mut self.stack, &mut self.top, columns);
            }
            let (n, w) = (lanes.len(), self.width);
            let at = |e: usize, i: usize| e * w + lanes[i] as usize;
            let mut dense = vec![0; n * self.elements];
            for (e, i) in (0..self.elements).flat_map(|e| (0..n).map(move |i| (e, i))) {
                dense[e * n + i] = self.top[at(e, i)];
            }
            let full = crate::exec::LaneMask::all(n);
            let columns = Columns { mask: full.words(), width: n, lanes: Some(&lanes), all: false };
            let out = f(&mut self.stack, &mut dense, columns);
            for (e, i) in (0..self.elements).flat_map(|e| (0..n).map(move |i| (e, i))) {
                self.top[at(e, i)] = dense[e * n + i];
            }
            out
        }
        fn run(&mut self, action: Action) {
            let seed = match action {
                Action::Push(s) | Action::PushValue(s) | Action::Pop(s) | Action::Update(s) | Action::Reset(s) => s,
            };
            let mask = mask_of(seed, self.width);
            let active: Vec<usize> = crate::exec::mask::lanes_of(&mask).collect();
            match action {
                Action::Push(_) => {
                    self.with_columns(&mask, |stack, top, columns| stack.push(top, columns)).unwrap();
                    for lane in active {
                        let top = self.lanes[lane].last().unwrap().clone();
                        self.lanes[lane].push(top);
                    }
                }
                Action::PushValue(_) => {
                    // under the cached top, as if it had been the top when the stack was pushed
                    let value: Vec<i64> = (0..self.elements).map(|e| (seed as i64).wrapping_add(e as i64)).collect();
                    self.with_columns(&mask, |stack, _, columns| stack.push_value(&value, columns)).unwrap();
                    for lane in active {
                        let top = self.lanes[lane].pop().unwrap();
                        self.lanes[lane].extend([value.clone(), top]);
                    }
                }
                Action::Pop(_) => {
                    let result = self.with_columns(&mask, |stack, top, columns| stack.pop(top, columns));
                    let empty = active.iter().any(|l| self.lanes[*l].len() == 1);
                    assert_eq!(result.is_err(), empty, "an error exactly when a lane is empty");
                    if !empty {
                        active.iter().for_each(|l| drop(self.lanes[*l].pop()));
                    }
                }
                Action::Update(_) => {
                    for lane in active {
                        for e in 0..self.elements {
                            let value = (seed as i64).wrapping_add((lane * 31 + e) as i64);
                            self.top[e * self.width + lane] = value;
                            self.lanes[lane].last_mut().unwrap()[e] = value;
                        }
                    }
                }
                Action::Reset(_) => {
                    if let Some(lane) = active.first() {
                        self.stack.reset(&[*lane as u32]);
                        let top = self.lanes[*lane].pop().unwrap();
                        self.lanes[*lane] = vec![top];
                    }
                }
            }
        }
        fn check(&self) {
            for (lane, values) in self.lanes.iter().enumerate() {
                assert_eq!(self.stack.height(lane), values.len() - 1);
                let top = values.last().unwrap();
                (0..self.elements).for_each(|e| assert_eq!(self.top[e * self.width + lane], top[e]));
            }
        }
    }

    proptest! {
        #[test]
        fn stacks_behave_like_a_list_of_lists(
            width in prop_oneof![Just(1usize), 2usize..10, Just(64), 60usize..140],
            elements in 0usize..4,
            gathered in any::<bool>(),
            actions in prop::collection::vec(action(), 1..200),
        ) {
            let mut model = Model::new(width, elements, gathered);
            for action in actions {
                model.run(action);
                model.check();
            }
        }
    }

    #[test]
    fn a_thousand_levels_come_back_in_order() {
        let mut stack = LaneStack::new(1, 3, 0);
        let columns = Columns { mask: &[2], width: 3, lanes: None, all: false };
        for i in 0..1000 {
            stack.push_value(&[i], columns).unwrap();
        }
        assert_eq!((stack.highest(), stack.height(0), stack.pushes()), (1000, 0, 1000));
        for i in (0..1000).rev() {
            let mut top = [-1; 3];
            stack.pop(&mut top, columns).unwrap();
            assert_eq!(top, [-1, i, -1]);
        }
        assert_eq!(stack.pop(&mut [0; 3], columns), Err(StackError::Empty));
    }

    #[test]
    fn a_lane_goes_on_in_stacks_of_another_width() {
        let mut stack = LaneStack::new(2, 5, 0);
        for i in 0..7 {
            let columns = Columns { mask: &[if i < 4 { 0b11111 } else { 0b01000 }], width: 5, lanes: None, all: i < 4 };
            stack.push(&(0..10).map(|place| 100 * i + place).collect::<Vec<_>>(), columns).unwrap();
        }
        let mut other = LaneStack::new(2, 3, 0).padded(4);
        let [last, last_of_three] = [(5, 1 << 3), (3, 1 << 2)].map(|(width, mask)| {
            move |stack: &mut LaneStack<i32>| {
                let (mask, mut top) = ([mask], vec![-1; 2 * width]);
                stack.pop(&mut top, Columns { mask: &mask, width, lanes: None, all: false }).map(|()| top)
            }
        });
        other.set_lane(2, (&stack, 3)).unwrap();
        for i in (0..7).rev() {
            assert_eq!(other.height(2), i + 1);
            let (first, second) = (100 * i as i32 + 3, 100 * i as i32 + 8);
            assert_eq!(last_of_three(&mut other), Ok(vec![-1, -1, first, -1, -1, second]));
        }
        // And back into what others are in.
        stack.set_lane(3, (&other, 2)).unwrap();
        assert_eq!(last(&mut stack), Err(StackError::Empty));
        assert_eq!([0, 1, 2, 3, 4].map(|lane| stack.height(lane)), [4, 4, 4, 0, 4]);
        let mut small = LaneStack::new(2, 1, 0).within(&Arc::new(MemoryBudget::new(24)));
        assert_eq!(small.set_lane(0, (&stack, 1)), Err(StackError::NoMemory));
        assert_eq!((small.height(0), small.highest()), (0, 0));
    }

    #[test]
    fn lanes_that_pop_alike_come_together() {
        let mut stack = LaneStack::new(1, 100, 0_u32);
        let all = crate::exec::LaneMask::all(100);
        let some = [0x5555_5555_5555_5555, 0x3];
        let columns = |mask| Columns { mask, width: 100, lanes: None, all: false };
        stack.push_value(&[7], columns(&some)).unwrap();
        stack.push_value(&[8], columns(&[0xff, 0])).unwrap();
        let mut seen = Vec::new();
        stack.pop_alike(all.words(), |word, lanes, value| seen.push((word, lanes, value)));
        let seven = 0x5555_5555_5555_5500;
        let rest = (1 << 36) - 4;
        let expected =
            [(0, !(some[0] | 0xff), None), (0, 0xff, Some(8)), (0, seven, Some(7)), (1, rest, None), (1, 3, Some(7))];
        assert_eq!(seen, expected);
        assert_eq!((stack.height(0), stack.height(1), stack.height(10)), (1, 0, 0));
    }
}
