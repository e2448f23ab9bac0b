//! Choosing between two values without a branch.

/// Values that are chosen between bit by bit. In a loop that vectorises, an `if` would become a load under a mask, which is
/// slow.
pub trait Blend: Copy {
    /// `new` where the mask is −1, `old` where it is 0.
    fn blend(mask: i8, new: Self, old: Self) -> Self;
}

impl Blend for i64 {
    #[inline(always)]
    fn blend(mask: i8, new: Self, old: Self) -> Self {
        let mask = i64::from(mask);
        (new & mask) | (old & !mask)
    }
}

impl Blend for f64 {
    #[inline(always)]
    fn blend(mask: i8, new: Self, old: Self) -> Self {
        let mask = i64::from(mask) as u64;
        f64::from_bits((new.to_bits() & mask) | (old.to_bits() & !mask))
    }
}

impl Blend for f32 {
    #[inline(always)]
    fn blend(mask: i8, new: Self, old: Self) -> Self {
        let mask = i32::from(mask) as u32;
        f32::from_bits((new.to_bits() & mask) | (old.to_bits() & !mask))
    }
}

impl Blend for bool {
    #[inline(always)]
    fn blend(mask: i8, new: Self, old: Self) -> Self {
        let mask = mask != 0;
        (new & mask) | (old & !mask)
    }
}
