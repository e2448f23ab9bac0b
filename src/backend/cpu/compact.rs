//! Compacts the lanes of a mask, and scatters them back: one by one where they are sparse, else with AVX-512 eight at a time.
//! Where they are is looked up once for all rows that are moved.

use crate::exec::LaneMask;
use crate::exec::mask::Bits;

/// Which lanes of a shard are compacted.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    // What the unchecked accesses below rely on: the groups have `count` bits, of lanes that are all below `width`, and each
    // begins at the number of bits before it; the list is empty or has these lanes.
    groups: Vec<Group>,
    /// Where lanes are sparse: each of them.
    list: Vec<u32>,
    count: usize,
    width: usize,
}

/// Lanes are sparse when there are at most so many in a group on average: then moving them one by one is quicker. (On a Zen 4,
/// a group takes 1.3 ns and more however many it has, and a lane 0.32 ns.)
const SPARSE: usize = 4;

/// Eight lanes of which some are selected.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// The first lane.
    lane: u32,
    /// Where the first that is selected goes.
    at: u32,
    /// Those that are selected.
    bits: u8,
    /// As many bits, the lowest ones.
    low: u8,
}

impl Selection {
    /// The lanes of a mask.
    pub(super) fn of(mask: &LaneMask) -> Self {
        let mut selection = Self::default();
        selection.choose(mask);
        selection
    }

    /// Makes it the lanes of a mask. Keeps its memory.
    pub(super) fn choose(&mut self, mask: &LaneMask) {
        let (words, width) = (mask.words(), mask.width());
        let beyond = words.get(width / 64).is_some_and(|word| word >> (width % 64) != 0);
        assert!(words.len() == width.div_ceil(64) && !beyond, "a mask has no lanes past its width");
        assert!(u32::try_from(width).is_ok(), "lanes of a shard are counted in 32 bits");
        self.groups.clear();
        let mut at = 0;
        for (i, word) in words.iter().enumerate() {
            let mut rest = *word;
            while rest != 0 {
                let shift = rest.trailing_zeros() & !7;
                let bits = (rest >> shift) as u8;
                let n = bits.count_ones();
                let (lane, low) = ((i * 64) as u32 + shift, ((1_u32 << n) - 1) as u8);
                self.groups.push(Group { lane, at, bits, low });
                at += n;
                rest &= !(0xff << shift);
            }
        }
        (self.count, self.width) = (at as usize, width);
        self.list.clear();
        if self.count <= SPARSE * self.groups.len() {
            for group in &self.groups {
                self.list.extend(Bits(u64::from(group.bits)).map(|bit| group.lane + bit as u32));
            }
        }
    }
}

/// Copies the lanes of `from` that are selected to the first lanes of `to`, for so many elements.
pub(super) fn compact<T: Copy>(to: &mut [T], from: &[T], elements: usize, lanes: &Selection) {
    for e in 0..elements {
        let from = &from[e * lanes.width..(e + 1) * lanes.width];
        let to = &mut to[e * lanes.count..(e + 1) * lanes.count];
        if !lanes.list.is_empty() {
            for (to, lane) in to.iter_mut().zip(&lanes.list) {
                // SAFETY: lanes are below the width.
                *to = unsafe { *from.get_unchecked(*lane as usize) };
            }
            continue;
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(row) = avx512::row(size_of::<T>(), true) {
            // SAFETY: the lanes of the selection are in both rows, whose elements are of the size that was asked for.
            unsafe { row(to.as_mut_ptr().cast(), from.as_ptr().cast(), &lanes.groups) };
            continue;
        }
        let mut at = 0;
        for group in &lanes.groups {
            for bit in Bits(u64::from(group.bits)) {
                // SAFETY: lanes are below the width, and `count` in all.
                unsafe { *to.get_unchecked_mut(at) = *from.get_unchecked(group.lane as usize + bit) };
                at += 1;
            }
        }
    }
}

/// The reverse: copies the first lanes of `from` to those of `to` that are selected.
pub(super) fn spread<T: Copy>(to: &mut [T], from: &[T], elements: usize, lanes: &Selection) {
    for e in 0..elements {
        let to = &mut to[e * lanes.width..(e + 1) * lanes.width];
        let from = &from[e * lanes.count..(e + 1) * lanes.count];
        if !lanes.list.is_empty() {
            for (from, lane) in from.iter().zip(&lanes.list) {
                // SAFETY: lanes are below the width.
                unsafe { *to.get_unchecked_mut(*lane as usize) = *from };
            }
            continue;
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(row) = avx512::row(size_of::<T>(), false) {
            // SAFETY: the lanes of the selection are in both rows, whose elements are of the size that was asked for.
            unsafe { row(to.as_mut_ptr().cast(), from.as_ptr().cast(), &lanes.groups) };
            continue;
        }
        let mut at = 0;
        for group in &lanes.groups {
            for bit in Bits(u64::from(group.bits)) {
                // SAFETY: lanes are below the width, and `count` in all.
                unsafe { *to.get_unchecked_mut(group.lane as usize + bit) = *from.get_unchecked(at) };
                at += 1;
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{
        _mm256_mask_storeu_epi32, _mm256_maskz_compress_epi32, _mm256_maskz_expand_epi32, _mm256_maskz_loadu_epi32,
        _mm512_mask_storeu_epi64, _mm512_maskz_compress_epi64, _mm512_maskz_expand_epi64, _mm512_maskz_loadu_epi64,
    };

    use super::Group;

    /// Moves a row of values to a second one.
    ///
    /// # Safety
    /// The processor and the size of values are those for which [`row`] gave it. The first row has room for as many values as the
    /// groups have bits, and the second one the lanes of the groups; or the other way round, of one that spreads.
    type Row = unsafe fn(*mut u8, *const u8, &[Group]);

    /// What compacts or spreads values of this size, where the processor can.
    pub(super) fn row(size: usize, compacts: bool) -> Option<Row> {
        let able = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl");
        match (able, size, compacts) {
            (true, 8, true) => Some(compact8),
            (true, 8, false) => Some(spread8),
            (true, 4, true) => Some(compact4),
            (true, 4, false) => Some(spread4),
            _ => None,
        }
    }

    macro_rules! rows {
        ($($compact:ident $spread:ident: $value:ident, $load:ident, $press:ident, $expand:ident, $store:ident;)+) => {
            $(
                /// # Safety
                /// See [`Row`].
                #[target_feature(enable = "avx512f,avx512vl")]
                unsafe fn $compact(to: *mut u8, from: *const u8, groups: &[Group]) {
                    let (to, from) = (to.cast::<$value>(), from.cast::<$value>());
                    for group in groups {
                        // SAFETY: only lanes that are selected are read, and as many are written.
                        unsafe {
                            let values = $load(group.bits, from.add(group.lane as usize));
                            $store(to.add(group.at as usize), group.low, $press(group.bits, values));
                        }
                    }
                }

                /// # Safety
                /// See [`Row`].
                #[target_feature(enable = "avx512f,avx512vl")]
                unsafe fn $spread(to: *mut u8, from: *const u8, groups: &[Group]) {
                    let (to, from) = (to.cast::<$value>(), from.cast::<$value>());
                    for group in groups {
                        // SAFETY: as many values are read as lanes are selected, and only these are written.
                        unsafe {
                            let values = $load(group.low, from.add(group.at as usize));
                            $store(to.add(group.lane as usize), group.bits, $expand(group.bits, values));
                        }
                    }
                }
            )+
        };
    }
    rows! {
        compact8 spread8: i64, _mm512_maskz_loadu_epi64, _mm512_maskz_compress_epi64, _mm512_maskz_expand_epi64, _mm512_mask_storeu_epi64;
        compact4 spread4: i32, _mm256_maskz_loadu_epi32, _mm256_maskz_compress_epi32, _mm256_maskz_expand_epi32, _mm256_mask_storeu_epi32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compacted_comes_back() {
        for width in [1, 7, 64, 100, 200] {
            for seed in 0_usize..8 {
                let mut mask = LaneMask::none(width);
                (0..width).filter(|l| (l.wrapping_mul(7) ^ seed) % 5 < seed % 6).for_each(|l| mask.insert(l));
                let lanes = Selection::of(&mask);
                let from: Vec<i64> = (0..3 * width as i64).collect();
                let mut dense = vec![-1; 3 * lanes.count];
                compact(&mut dense, &from, 3, &lanes);
                let expected: Vec<i64> =
                    (0..3).flat_map(|e| mask.iter().map(move |l| (e * width + l) as i64)).collect();
                assert_eq!(dense, expected);
                let mut back = vec![-1; 3 * width];
                spread(&mut back, &dense, 3, &lanes);
                let kept = |i: usize| if mask.contains(i % width) { from[i] } else { -1 };
                assert!(back.iter().enumerate().all(|(i, v)| *v == kept(i)));
                let floats: Vec<f32> = from.iter().map(|v| *v as f32).collect();
                let mut dense = vec![-1.0; 3 * lanes.count];
                compact(&mut dense, &floats, 3, &lanes);
                assert!(dense.iter().zip(&expected).all(|(b, v)| *b == *v as f32));
                let mut back = vec![-1.0; 3 * width];
                spread(&mut back, &dense, 3, &lanes);
                let kept = |i: usize| if mask.contains(i % width) { floats[i] } else { -1.0 };
                assert!(back.iter().enumerate().all(|(i, v)| *v == kept(i)));
                let small: Vec<bool> = from.iter().map(|v| v % 3 == 0).collect();
                let mut few = vec![false; 3 * lanes.count];
                compact(&mut few, &small, 3, &lanes);
                assert!(few.iter().zip(&expected).all(|(b, v)| *b == (v % 3 == 0)));
            }
        }
    }
}
