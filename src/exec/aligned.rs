//! Vectors that begin where a cache line does.

use std::collections::TryReserveError;
use std::ops::{Deref, DerefMut};

/// Bytes of a cache line, which are those of the widest vector register: what generated code loads and stores at once, a
/// group of lanes, then lies in one line.
const LINE: usize = 64;

/// A vector of plain values whose first one stands at the start of a cache line if it was made by
/// [`try_grow`](AlignedVec::try_grow). What was made in another way stands anywhere: speed depends on it, never a result.
#[derive(Debug, Default)]
pub struct AlignedVec<T> {
    memory: Vec<T>,
    start: usize,
    len: usize,
}

impl<T: Copy> AlignedVec<T> {
    /// No values.
    pub fn new() -> Self {
        Self { memory: Vec::new(), start: 0, len: 0 }
    }
    /// So many values that are alike.
    ///
    /// # Errors
    /// Where there is no memory for them.
    pub fn try_filled(value: T, len: usize) -> Result<Self, TryReserveError> {
        let mut new = Self::new();
        new.try_grow(len, value)?;
        Ok(new)
    }
    /// Makes it at least so long; new values are `value`.
    ///
    /// # Errors
    /// Where there is no memory for them; it stays as it was.
    pub fn try_grow(&mut self, len: usize, value: T) -> Result<(), TryReserveError> {
        if len <= self.len {
            return Ok(());
        }
        let slack = LINE / size_of::<T>().clamp(1, LINE) - 1;
        let needed = len.saturating_add(slack);
        self.memory.try_reserve_exact(needed.saturating_sub(self.memory.len()))?;
        self.memory.resize(needed, value);
        let start = Some(self.memory.as_ptr().align_offset(LINE)).filter(|s| *s <= slack).unwrap_or(0);
        let before = self.start..self.start + self.len;
        if start != before.start {
            // The memory has moved.
            self.memory.copy_within(before.clone(), start);
        }
        self.memory[start + self.len..before.end.max(start + self.len)].fill(value);
        (self.start, self.len) = (start, len);
        Ok(())
    }
}

impl<T> AlignedVec<T> {
    /// Gives back the memory of all but the first so many values.
    pub fn shrink(&mut self, len: usize) {
        if len < self.len {
            self.memory.truncate(self.start + len);
            self.memory.shrink_to_fit();
            self.len = len;
        }
    }
}

impl<T> Deref for AlignedVec<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.memory[self.start..self.start + self.len]
    }
}

impl<T> DerefMut for AlignedVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

impl<T> From<Vec<T>> for AlignedVec<T> {
    fn from(memory: Vec<T>) -> Self {
        let len = memory.len();
        Self { memory, start: 0, len }
    }
}

impl<T> FromIterator<T> for AlignedVec<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Vec::from_iter(values).into()
    }
}

impl<T: Clone> Clone for AlignedVec<T> {
    fn clone(&self) -> Self {
        self.to_vec().into()
    }
}

impl<T: PartialEq> PartialEq for AlignedVec<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_when_memory_moves_and_lines_are_met() {
        fn go<T: Copy + PartialEq + std::fmt::Debug>(of: impl Fn(usize) -> T, zero: T) {
            let (mut vec, mut others) = (AlignedVec::new(), Vec::new());
            for len in [0, 1, 7, 8, 9, 100, 101, 5000, 4000, 80_000] {
                let before = vec.len();
                vec.try_grow(len, zero).expect("so much memory is there");
                assert_eq!(vec.len(), before.max(len));
                assert!(vec[before..].iter().all(|v| *v == zero));
                (before..vec.len()).for_each(|i| vec[i] = of(i));
                assert!(vec.iter().enumerate().all(|(i, v)| *v == of(i)));
                assert!(vec.is_empty() || vec.as_ptr().align_offset(LINE) == 0);
                // So that the next growth finds no room in its place.
                others.push(vec![zero; len]);
            }
            assert_eq!(vec.clone(), vec);
            assert_eq!(AlignedVec::from(vec.to_vec()), vec);
        }
        go(|i| i as f64, -1.0);
        go(|i| i as i64, -1);
        go(|i| i as f32, -1.0);
        go(|i| i % 3 == 0, false);
    }

    #[test]
    fn what_has_no_room_stays_as_it_was() {
        let mut vec = AlignedVec::try_filled(1.0, 3).expect("so much memory is there");
        assert!(vec.try_grow(usize::MAX, 0.0).is_err());
        assert_eq!(*vec, [1.0; 3]);
        vec.shrink(5);
        vec.shrink(2);
        assert_eq!(*vec, [1.0; 2]);
        vec.try_grow(100, 2.0).expect("so much memory is there");
        assert_eq!((&vec[..2], &vec[2..]), (&[1.0; 2][..], &[2.0; 98][..]));
    }
}
