//! Bits and the values that they stand for, 64 at a time: of lanes that are active, of bools, of equal values.

/// 64 bits as bytes: -1 where the bit is set, else 0.
#[inline]
pub fn byte_mask(word: u64) -> [i8; 64] {
    let mut out = [0; 64];
    for (out, bits) in out.as_chunks_mut::<16>().0.iter_mut().zip([word, word >> 16, word >> 32, word >> 48]) {
        // SAFETY: every x86-64 has SSE2; elsewhere nothing is asked of the processor.
        #[allow(unused_unsafe, reason = "the function for other processors is safe")]
        let bytes = unsafe { byte_mask_of_16(bits as u16) };
        *out = bytes;
    }
    out
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse2")]
fn byte_mask_of_16(bits: u16) -> [i8; 16] {
    use std::arch::x86_64::{__m128i, _mm_and_si128, _mm_cmpeq_epi8, _mm_set_epi64x, _mm_set1_epi64x};
    // The first byte of the bits eight times, then the second.
    let spread = |byte: u16| i64::from(byte & 0xff).wrapping_mul(0x0101_0101_0101_0101);
    let own = _mm_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    let bytes = _mm_cmpeq_epi8(_mm_and_si128(_mm_set_epi64x(spread(bits >> 8), spread(bits)), own), own);
    // SAFETY: both are 16 bytes, and every pattern of bits is a value of both.
    unsafe { std::mem::transmute::<__m128i, [i8; 16]>(bytes) }
}

#[cfg(not(target_arch = "x86_64"))]
fn byte_mask_of_16(bits: u16) -> [i8; 16] {
    std::array::from_fn(|lane| -((bits >> lane & 1) as i8))
}

/// The lanes of up to 64 for which a bool holds, as bits.
#[inline]
pub fn bits_of(holds: &[bool]) -> u64 {
    let (sixteens, rest) = holds.as_chunks::<16>();
    let tail = rest.iter().enumerate().fold(0, |bits, (i, b)| bits | u64::from(*b) << i);
    let first = (sixteens.len() * 16) as u32;
    // SAFETY: every x86-64 has SSE2; elsewhere nothing is asked of the processor.
    #[allow(unused_unsafe, reason = "the function for other processors is safe")]
    let of_16 = |s| unsafe { bits_of_16(s) };
    let bits = sixteens.iter().enumerate().fold(0, |bits, (i, s)| bits | of_16(s) << (16 * i));
    // A shift by 64 is one of nothing.
    bits | tail.checked_shl(first).unwrap_or(0)
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse2")]
fn bits_of_16(holds: &[bool; 16]) -> u64 {
    use std::arch::x86_64::{_mm_movemask_epi8, _mm_set_epi64x, _mm_slli_epi16};
    let bytes = u128::from_le_bytes(holds.map(u8::from));
    // To the sign of each byte: a bool is 0 or 1, so nothing comes over from its neighbour.
    let signs = _mm_slli_epi16::<7>(_mm_set_epi64x((bytes >> 64) as i64, bytes as i64));
    _mm_movemask_epi8(signs) as u64
}

#[cfg(not(target_arch = "x86_64"))]
fn bits_of_16(holds: &[bool; 16]) -> u64 {
    holds.iter().enumerate().fold(0, |bits, (i, b)| bits | u64::from(*b) << i)
}

/// Where a value stands among up to 64, as bits.
#[inline]
pub fn bits_equal(values: &[u32], value: u32) -> u64 {
    let (sixteens, rest) = values.as_chunks::<16>();
    let tail = rest.iter().enumerate().fold(0, |bits, (i, v)| bits | u64::from(*v == value) << i);
    let first = (sixteens.len() * 16) as u32;
    // SAFETY: every x86-64 has SSE2; elsewhere nothing is asked of the processor.
    #[allow(unused_unsafe, reason = "the function for other processors is safe")]
    let of_16 = |s| unsafe { equal_of_16(s, value) };
    let bits = sixteens.iter().enumerate().fold(0, |bits, (i, s)| bits | of_16(s) << (16 * i));
    bits | tail.checked_shl(first).unwrap_or(0)
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse2")]
fn equal_of_16(values: &[u32; 16], value: u32) -> u64 {
    use std::arch::x86_64::{
        _mm_cmpeq_epi32, _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32, _mm_set_epi32, _mm_set1_epi32,
    };
    let value = _mm_set1_epi32(value as i32);
    let [a, b, c, d] = std::array::from_fn(|i| {
        let [p, q, r, s] = std::array::from_fn(|k| values[4 * i + k] as i32);
        _mm_cmpeq_epi32(_mm_set_epi32(s, r, q, p), value)
    });
    // All bits or none: they stay so when they are narrowed.
    _mm_movemask_epi8(_mm_packs_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d))) as u64
}

#[cfg(not(target_arch = "x86_64"))]
fn equal_of_16(values: &[u32; 16], value: u32) -> u64 {
    values.iter().enumerate().fold(0, |bits, (i, v)| bits | u64::from(*v == value) << i)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_and_bytes_and_values_say_the_same() {
        for word in [0, u64::MAX, 1, 1 << 63, 0x0123_4567_89ab_cdef, 0x8040_2010_0804_0201, 0xff00_ff00_7f80_01fe] {
            let holds: Vec<bool> = (0..64).map(|l| word >> l & 1 == 1).collect();
            let expected: Vec<i8> = holds.iter().map(|h| -i8::from(*h)).collect();
            assert_eq!(byte_mask(word)[..], expected);
            let values: Vec<u32> = holds.iter().map(|h| if *h { 70_000 } else { 65_536 + u32::from(*h) }).collect();
            for width in [0, 1, 15, 16, 17, 48, 63, 64] {
                let there = u64::MAX.checked_shr(64 - width as u32).unwrap_or(0);
                assert_eq!(bits_of(&holds[..width]), word & there);
                assert_eq!(bits_equal(&values[..width], 70_000), word & there);
            }
        }
    }
}
