//! Tops that no lane buffer caches: they stand in the memory of the stack, one level above the values that were pushed.

use super::{Columns, LaneStack, MANY, StackError, blend};
use crate::exec::mask::{Bits, bits_equal, byte_mask};

/// Which way values go between the tops and a buffer.
enum Copying<'a, T> {
    Out(&'a mut [T]),
    In(&'a [T]),
}

impl<T: Copy> LaneStack<T> {
    /// The same, with a level for the tops above all others.
    ///
    /// # Errors
    /// [`StackError::NoMemory`].
    pub fn with_tops(mut self) -> Result<Self, StackError> {
        self.tops = 1;
        self.grow(0)?;
        Ok(self)
    }

    /// Copies the tops of the active lanes into their columns of a buffer.
    pub fn load_tops(&mut self, to: &mut [T], columns: Columns<'_>) {
        self.copy_tops(&mut Copying::Out(to), columns);
    }

    /// The reverse.
    pub fn store_tops(&mut self, from: &[T], columns: Columns<'_>) {
        self.copy_tops(&mut Copying::In(from), columns);
    }

    /// The tops of the active lanes are pushed where they stand; the new ones are to be stored.
    ///
    /// # Errors
    /// [`StackError::NoMemory`]; nothing is changed then.
    pub fn raise(&mut self, columns: Columns<'_>) -> Result<(), StackError> {
        self.make_room(columns)?;
        self.level = None;
        let (heights, mut highest, mut count) = (&mut self.heights, self.highest, 0);
        for (_, lane) in columns.iter() {
            heights[lane] += 1;
            highest = highest.max(heights[lane]);
            count += 1;
        }
        (self.highest, self.pushes) = (highest, self.pushes + count);
        Ok(())
    }

    /// The tops of the active lanes go; those below are the tops, where they stand.
    ///
    /// # Errors
    /// [`StackError::Empty`]; nothing is changed then.
    pub fn lower(&mut self, columns: Columns<'_>) -> Result<(), StackError> {
        if columns.iter().any(|(_, lane)| self.heights[lane] == 0) {
            return Err(StackError::Empty);
        }
        self.level = None;
        columns.iter().for_each(|(_, lane)| self.heights[lane] -= 1);
        Ok(())
    }

    fn copy_tops(&mut self, copying: &mut Copying<'_, T>, columns: Columns<'_>) {
        let level = self.elements * self.width;
        if let (true, Some(height)) = (columns.all, self.level_of_all()) {
            let memory = &mut self.memory[height as usize * level..][..level];
            match copying {
                Copying::Out(to) => to[..level].copy_from_slice(memory),
                Copying::In(from) => memory.copy_from_slice(&from[..level]),
            }
            return;
        }
        if columns.lanes.is_some() {
            self.copy_lanes(copying, columns.width, columns.iter());
            return;
        }
        for (i, bits) in columns.mask.iter().enumerate() {
            self.copy_word(copying, i * 64, *bits);
        }
    }

    /// Copies in up to 64 lanes from `first` on, those of `bits`; columns are lanes.
    fn copy_word(&mut self, copying: &mut Copying<'_, T>, first: usize, bits: u64) {
        let lanes = first..(first + 64).min(self.width);
        let mut rest = bits;
        while rest != 0 {
            let heights = &self.heights[lanes.clone()];
            let height = heights[rest.trailing_zeros() as usize];
            let same = bits_equal(heights, height) & rest;
            if same.count_ones() < MANY {
                break;
            }
            rest &= !same;
            let mask = byte_mask(same);
            for element in 0..self.elements {
                let row = (height as usize * self.elements + element) * self.width;
                let memory = &mut self.memory[row + lanes.start..row + lanes.end];
                let column = element * self.width + first;
                match copying {
                    Copying::Out(to) => blend(&mut to[column..][..lanes.len()], memory, &mask),
                    Copying::In(from) => blend(memory, &from[column..][..lanes.len()], &mask),
                }
            }
        }
        self.copy_lanes(copying, self.width, Bits(rest).map(|bit| (first + bit, first + bit)));
    }

    /// Copies lane by lane, given as columns and lanes.
    fn copy_lanes(&mut self, copying: &mut Copying<'_, T>, width: usize, lanes: impl Iterator<Item = (usize, usize)>) {
        for (column, lane) in lanes {
            let level = self.heights[lane] as usize * self.elements;
            for element in 0..self.elements {
                let place = (level + element) * self.width + lane;
                let column = element * width + column;
                match copying {
                    Copying::Out(to) => to[column] = self.memory[place],
                    Copying::In(from) => self.memory[place] = from[column],
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::exec::LaneMask;

    const WIDTH: usize = 130;
    const ELEMENTS: usize = 2;

    proptest! {
        /// Stacks that keep their tops in memory are lists whose last value is the top, gathered or not.
        #[test]
        fn the_tops_are_the_last_values_of_lists(seeds in prop::collection::vec(any::<u64>(), 1..60)) {
            let mut stack = LaneStack::new(ELEMENTS, WIDTH, 0_i64).with_tops().unwrap();
            let mut lists = vec![vec![[0; ELEMENTS]]; WIDTH];
            for (step, seed) in seeds.into_iter().enumerate() {
                let mut mask = LaneMask::all(WIDTH);
                if !seed.is_multiple_of(4) {
                    for (i, word) in mask.words_mut().iter_mut().enumerate() {
                        *word &= (seed ^ i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17);
                    }
                }
                let active: Vec<u32> = mask.iter().map(|lane| lane as u32).collect();
                let gathered = seed & 16 != 0;
                let dense = LaneMask::all(active.len());
                let columns = match gathered {
                    true => Columns { mask: dense.words(), width: active.len(), lanes: Some(&active), all: false },
                    false => Columns { mask: mask.words(), width: WIDTH, lanes: None, all: active.len() == WIDTH },
                };
                let of = |lane: usize, column: usize| if gathered { column } else { lane };
                let value = |lane: usize, e: usize| (step * 1000 + lane * 2 + e) as i64;
                if seed & 8 != 0 {
                    stack.raise(columns).unwrap();
                    active.iter().for_each(|lane| lists[*lane as usize].push([0; ELEMENTS]));
                } else if active.iter().all(|lane| lists[*lane as usize].len() > 1) {
                    stack.lower(columns).unwrap();
                    active.iter().for_each(|lane| _ = lists[*lane as usize].pop());
                } else {
                    prop_assert_eq!(stack.lower(columns), Err(StackError::Empty));
                }
                if seed & 24 != 0 {
                    let mut from = vec![-1; ELEMENTS * columns.width];
                    for (column, lane) in active.iter().enumerate() {
                        for e in 0..ELEMENTS {
                            let lane = *lane as usize;
                            from[e * columns.width + of(lane, column)] = value(lane, e);
                            lists[lane].last_mut().unwrap()[e] = value(lane, e);
                        }
                    }
                    stack.store_tops(&from, columns);
                }
                let mut to = vec![-7; ELEMENTS * columns.width];
                stack.load_tops(&mut to, columns);
                for (column, lane) in active.iter().enumerate() {
                    for e in 0..ELEMENTS {
                        let lane = *lane as usize;
                        let found = to[e * columns.width + of(lane, column)];
                        prop_assert_eq!(found, lists[lane].last().unwrap()[e]);
                    }
                }
                if !gathered {
                    let untouched = (0..WIDTH).filter(|lane| !mask.contains(*lane));
                    prop_assert!(untouched.into_iter().all(|lane| to[lane] == -7));
                }
            }
            for (lane, list) in lists.iter().enumerate() {
                prop_assert_eq!(stack.height(lane) + 1, list.len());
            }
        }
    }
}
