//! Sets of lanes as bits.

pub use crate::vmath::{bits_equal, bits_of, byte_mask};

/// A set of lanes of a shard: one bit a lane, 64 a word.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LaneMask {
    words: Vec<u64>,
    width: usize,
}

impl LaneMask {
    /// No lane of `width`.
    pub fn none(width: usize) -> Self {
        Self { words: vec![0; width.div_ceil(64)], width }
    }
    /// All lanes of `width`.
    pub fn all(width: usize) -> Self {
        let mut mask = Self::none(width);
        mask.fill(width);
        mask
    }
    /// Makes it the first `width` lanes of `width`. Keeps its memory.
    pub fn fill(&mut self, width: usize) {
        self.reset(width);
        self.words.fill(u64::MAX);
        if !width.is_multiple_of(64)
            && let Some(last) = self.words.last_mut()
        {
            *last = (1 << (width % 64)) - 1;
        }
    }
    /// Makes it no lane of `width`. Keeps its memory.
    pub fn reset(&mut self, width: usize) {
        self.width = width;
        self.words.clear();
        self.words.resize(width.div_ceil(64), 0);
    }
    /// The bits.
    pub fn words(&self) -> &[u64] {
        &self.words
    }
    /// The bits, mutable. Bits past the width stay 0.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }
    /// How many lanes there could be.
    pub fn width(&self) -> usize {
        self.width
    }
    /// How many lanes there are.
    pub fn count(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|w| *w == 0)
    }
    /// Whether a lane is in it.
    pub fn contains(&self, lane: usize) -> bool {
        self.words[lane / 64] >> (lane % 64) & 1 == 1
    }
    /// Puts a lane in.
    pub fn insert(&mut self, lane: usize) {
        self.words[lane / 64] |= 1 << (lane % 64);
    }
    /// Takes a lane out.
    pub fn remove(&mut self, lane: usize) {
        self.words[lane / 64] &= !(1 << (lane % 64));
    }
    /// Its lanes, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        lanes_of(&self.words)
    }
}

/// The lanes whose bits are set, ascending.
pub fn lanes_of(words: &[u64]) -> impl Iterator<Item = usize> + '_ {
    words.iter().enumerate().flat_map(|(i, word)| {
        let mut rest = *word;
        std::iter::from_fn(move || {
            if rest == 0 {
                return None;
            }
            let bit = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            Some(i * 64 + bit)
        })
    })
}

/// The places of the bits of a word, ascending.
#[derive(Clone, Copy, Debug)]
pub struct Bits(pub u64);

impl Iterator for Bits {
    type Item = usize;
    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        let bit = (self.0 != 0).then(|| self.0.trailing_zeros() as usize)?;
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

/// Calls `f` for every lane whose bit is set, ascending. The loop that [`lanes_of`] is, without its iterator.
#[inline]
pub fn for_each_lane(words: &[u64], mut f: impl FnMut(usize)) {
    for (i, word) in words.iter().enumerate() {
        let mut rest = *word;
        if rest == u64::MAX {
            (0..64).for_each(|bit| f(i * 64 + bit));
            continue;
        }
        while rest != 0 {
            f(i * 64 + rest.trailing_zeros() as usize);
            rest &= rest - 1;
        }
    }
}

/// Lanes in groups of so many (a power of two up to 64) in which one bit at least is set.
pub fn lanes_in_groups(words: &[u64], group: usize) -> usize {
    let ones = u64::MAX >> (64 - group);
    let groups = |word: &u64| (0..64).step_by(group).filter(|at| word >> at & ones != 0).count();
    words.iter().map(groups).sum::<usize>() * group
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_knows_its_lanes_at_every_width() {
        for width in [0, 1, 63, 64, 65, 128, 200] {
            let mut mask = LaneMask::all(width);
            assert_eq!(mask.count(), width);
            assert!(mask.iter().eq(0..width));
            let mut seen = Vec::new();
            for_each_lane(mask.words(), |l| seen.push(l));
            assert!(seen.into_iter().eq(0..width));
            if width > 1 {
                mask.remove(1);
                assert!(!mask.contains(1) && mask.contains(0));
                mask.insert(1);
            }
            assert_eq!(mask, LaneMask::all(width));
        }
    }

    #[test]
    fn groups_count_whole() {
        assert_eq!(lanes_in_groups(&[0b1000_0001, 0], 8), 8);
        assert_eq!(lanes_in_groups(&[0b1000_0001, 1 << 63], 4), 12);
        assert_eq!(lanes_in_groups(&[3, 1], 1), 3);
        assert_eq!(lanes_in_groups(&[1, 0], 64), 64);
    }
}
