// Groups of lanes: what generated C functions compute with. A group fills one vector register; the names and their
// results are the same on every target, and so are the bits (`src/vmath/README.md` says why).
//
//   target      chosen when                                        LANES
//   AVX-512     the compiler has F, DQ, VL and BW                      8
//   AVX2        the compiler has AVX2 and FMA                          4
//   scalar      otherwise, or LANES_SCALAR is defined                  1   (plain C; CUDA too)
//
//   type   a group of                     prefix   in memory
//   D      doubles                        d_
//   R      reals: doubles, or floats      r_       real
//          where REAL_F32 is defined
//   I      64-bit ints                    i_       int64_t
//   J      32-bit ints, the bits of       j_
//          floats (not with AVX-512)
//   B      bools (a mask)                 b_       uint8_t, 0 or 1
//
// Arithmetic of ints wraps around. Functions that can go wrong in a lane have an argument `B *bad`, which is set to the
// lanes that did; their results are junk there, and nothing faults. Memory is read a whole group at a time, so buffers are
// padded; what is stored under a mask changes no other lane.
//
// On D and R the C operators + - * / and the unary - may be used as well, with a plain constant on one side too.
#ifndef LANES_H
#define LANES_H

#ifdef __CUDACC_RTC__
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned int uint32_t;
typedef unsigned char uint8_t;
#define INT64_MAX 0x7fffffffffffffffLL
#define INT64_MIN (-INT64_MAX - 1)
#else
#include <stdint.h>
#endif

#ifndef LANES_FN
#ifdef __CUDACC__
#define LANES_FN static __device__ __forceinline__
#else
#define LANES_FN static inline __attribute__((always_inline, unused))
#endif
#endif

// What the C library is asked for: all of these have one right answer.
#ifdef __CUDACC__
#define LANES_C(f) f
#else
#define LANES_C(f) __builtin_##f
#endif

#if defined(LANES_SCALAR)
#elif defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && defined(__AVX512BW__)
#define LANES_AVX512
#elif defined(__AVX2__) && defined(__FMA__)
#define LANES_AVX2
#else
#define LANES_SCALAR
#endif

#ifndef LANES_SCALAR
#if defined(__clang__) || !defined(__GNUC__) || __GNUC__ < 9 || __GNUC__ > 13
#include <immintrin.h>
#else
// A part of immintrin.h, which takes half the time to read.
#ifndef _IMMINTRIN_H_INCLUDED
#define _IMMINTRIN_H_INCLUDED
#include <smmintrin.h>
#include <avxintrin.h>
#include <avx2intrin.h>
#include <fmaintrin.h>
#ifdef LANES_AVX512
#include <avx512fintrin.h>
#include <avx512vlintrin.h>
#include <avx512bwintrin.h>
#include <avx512dqintrin.h>
#include <avx512vlbwintrin.h>
#include <avx512vldqintrin.h>
#endif
#endif
#endif
#endif

// The number of the lowest bit that is set.
LANES_FN int lanes_lowest(unsigned bits) {
#ifdef __CUDACC__
    return __ffs((int)bits) - 1;
#else
    return __builtin_ctz(bits);
#endif
}

#ifdef REAL_F32
typedef float real;
#else
typedef double real;
#endif

// ---------------------------------------------------------------------------------------------------------- AVX-512
#ifdef LANES_AVX512

#define LANES 8
typedef __m512d D;
typedef __m512i I;
typedef __mmask8 B;

LANES_FN B b_splat(int a) { return a ? 0xff : 0; }
LANES_FN B b_and(B a, B b) { return a & b; }
LANES_FN B b_or(B a, B b) { return a | b; }
LANES_FN B b_xor(B a, B b) { return a ^ b; }
LANES_FN B b_not(B a) { return (B)~a; }
LANES_FN B b_andnot(B a, B b) { return (B)(a & ~b); }
LANES_FN B b_eq(B a, B b) { return (B)~(a ^ b); }
LANES_FN B b_select(B c, B a, B b) { return (B)((a & c) | (b & ~c)); }
LANES_FN int b_none(B a) { return a == 0; }
LANES_FN int b_all(B a) { return a == 0xff; }
LANES_FN unsigned b_bits(B a) { return a; }
LANES_FN B b_from_bits(unsigned bits) { return (B)bits; }
LANES_FN B b_load(const uint8_t *p) {
    __m128i bytes = _mm_loadl_epi64((const __m128i *)p);
    return (B)_mm_test_epi8_mask(bytes, bytes);
}
LANES_FN void b_store(uint8_t *p, B a) {
    _mm_storel_epi64((__m128i *)p, _mm_maskz_mov_epi8(a, _mm_set1_epi8(1)));
}
LANES_FN void b_store_masked(uint8_t *p, B mask, B a) {
    _mm_mask_storeu_epi8(p, mask, _mm_maskz_mov_epi8(a, _mm_set1_epi8(1)));
}

LANES_FN D d_splat(double a) { return _mm512_set1_pd(a); }
LANES_FN D d_load(const double *p) { return _mm512_loadu_pd(p); }
LANES_FN void d_store(double *p, D a) { _mm512_storeu_pd(p, a); }
LANES_FN void d_store_masked(double *p, B mask, D a) { _mm512_mask_storeu_pd(p, mask, a); }
LANES_FN D d_fma(D a, D b, D c) { return _mm512_fmadd_pd(a, b, c); }
LANES_FN D d_sqrt(D a) { return _mm512_sqrt_pd(a); }
LANES_FN D d_floor(D a) { return _mm512_roundscale_pd(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
LANES_FN D d_ceil(D a) { return _mm512_roundscale_pd(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
LANES_FN D d_trunc(D a) { return _mm512_roundscale_pd(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
LANES_FN D d_abs(D a) { return _mm512_abs_pd(a); }
LANES_FN I d_bits(D a) { return _mm512_castpd_si512(a); }
LANES_FN D d_from_bits(I a) { return _mm512_castsi512_pd(a); }
LANES_FN D d_copysign(D a, D sign) {
    I magnitude = _mm512_set1_epi64(INT64_MAX);
    return d_from_bits(_mm512_ternarylogic_epi64(magnitude, d_bits(a), d_bits(sign), 0xca));
}
LANES_FN B d_eq(D a, D b) { return _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ); }
LANES_FN B d_ne(D a, D b) { return _mm512_cmp_pd_mask(a, b, _CMP_NEQ_UQ); }
LANES_FN B d_lt(D a, D b) { return _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ); }
LANES_FN B d_le(D a, D b) { return _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ); }
LANES_FN B d_is_nan(D a) { return _mm512_cmp_pd_mask(a, a, _CMP_UNORD_Q); }
LANES_FN D d_select(B c, D a, D b) { return _mm512_mask_blend_pd(c, b, a); }
// a > limit ? limit : a, and a < limit ? limit : a; a NaN stays. The instruction gives the second operand of NaNs.
LANES_FN D d_at_most(D a, double limit) { return _mm512_min_pd(_mm512_set1_pd(limit), a); }
LANES_FN D d_at_least(D a, double limit) { return _mm512_max_pd(_mm512_set1_pd(limit), a); }
// Of equal numbers too the instruction gives the second operand: of zeros that differ `or` keeps the minus, and
// a NaN `or` anything is a NaN.
LANES_FN D d_min(D a, D b) { return _mm512_or_pd(_mm512_min_pd(a, b), _mm512_min_pd(b, a)); }
LANES_FN D d_max(D a, D b) {
    D larger = _mm512_and_pd(_mm512_max_pd(a, b), _mm512_max_pd(b, a));
    return _mm512_mask_add_pd(larger, _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q), a, b);
}

LANES_FN I i_splat(int64_t a) { return _mm512_set1_epi64(a); }
LANES_FN I i_iota(void) { return _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0); }
LANES_FN I i_load(const int64_t *p) { return _mm512_loadu_si512(p); }
LANES_FN void i_store(int64_t *p, I a) { _mm512_storeu_si512(p, a); }
LANES_FN void i_store_masked(int64_t *p, B mask, I a) { _mm512_mask_storeu_epi64(p, mask, a); }
LANES_FN I i_add(I a, I b) { return _mm512_add_epi64(a, b); }
LANES_FN I i_sub(I a, I b) { return _mm512_sub_epi64(a, b); }
LANES_FN I i_mul(I a, I b) { return _mm512_mullo_epi64(a, b); }
LANES_FN I i_mul_u32(I a, I b) { return _mm512_mul_epu32(a, b); }
LANES_FN I i_abs(I a) { return _mm512_abs_epi64(a); }
LANES_FN I i_min(I a, I b) { return _mm512_min_epi64(a, b); }
LANES_FN I i_max(I a, I b) { return _mm512_max_epi64(a, b); }
LANES_FN B i_eq(I a, I b) { return _mm512_cmpeq_epi64_mask(a, b); }
LANES_FN B i_lt(I a, I b) { return _mm512_cmplt_epi64_mask(a, b); }
LANES_FN B i_le(I a, I b) { return _mm512_cmple_epi64_mask(a, b); }
LANES_FN I i_select(B c, I a, I b) { return _mm512_mask_blend_epi64(c, b, a); }
LANES_FN I i_and(I a, I b) { return _mm512_and_si512(a, b); }
LANES_FN I i_or(I a, I b) { return _mm512_or_si512(a, b); }
LANES_FN I i_xor(I a, I b) { return _mm512_xor_si512(a, b); }
LANES_FN I i_andnot(I a, I b) { return _mm512_andnot_si512(b, a); }
LANES_FN I i_shl(I a, int k) { return _mm512_slli_epi64(a, (unsigned)k); }
LANES_FN I i_shr(I a, int k) { return _mm512_srli_epi64(a, (unsigned)k); }
LANES_FN I i_sar(I a, int k) { return _mm512_srai_epi64(a, (unsigned)k); }
LANES_FN B i_has(I a, int64_t bit) { return _mm512_test_epi64_mask(a, _mm512_set1_epi64(bit)); }
LANES_FN B i_negative(I a) { return _mm512_movepi64_mask(a); }
LANES_FN I i_from_b(B a) { return _mm512_maskz_set1_epi64(a, 1); }
LANES_FN D d_from_i(I a) { return _mm512_cvtepi64_pd(a); }
LANES_FN I i_from_whole(D a) { return _mm512_cvttpd_epi64(a); }
LANES_FN I d_to_i_trap(D a, B *bad) {
    B least = _mm512_cmp_pd_mask(a, d_splat(-0x1p63), _CMP_GE_OQ);
    *bad = b_not(_mm512_mask_cmp_pd_mask(least, a, d_splat(0x1p63), _CMP_LT_OQ));
    return _mm512_cvttpd_epi64(a);
}

LANES_FN D d_gather(const double *base, I index, B mask) {
    return _mm512_mask_i64gather_pd(_mm512_setzero_pd(), mask, index, base, 8);
}
LANES_FN I i_gather(const int64_t *base, I index, B mask) {
    return _mm512_mask_i64gather_epi64(_mm512_setzero_si512(), mask, index, base, 8);
}
LANES_FN void d_scatter(double *base, I index, B mask, D a) { _mm512_mask_i64scatter_pd(base, mask, index, a, 8); }
LANES_FN void i_scatter(int64_t *base, I index, B mask, I a) { _mm512_mask_i64scatter_epi64(base, mask, index, a, 8); }

#ifdef REAL_F32
typedef __m256 R;
LANES_FN R r_splat(real a) { return _mm256_set1_ps(a); }
LANES_FN R r_load(const real *p) { return _mm256_loadu_ps(p); }
LANES_FN void r_store(real *p, R a) { _mm256_storeu_ps(p, a); }
LANES_FN void r_store_masked(real *p, B mask, R a) { _mm256_mask_storeu_ps(p, mask, a); }
LANES_FN R r_fma(R a, R b, R c) { return _mm256_fmadd_ps(a, b, c); }
LANES_FN R r_sqrt(R a) { return _mm256_sqrt_ps(a); }
LANES_FN R r_floor(R a) { return _mm256_floor_ps(a); }
LANES_FN R r_ceil(R a) { return _mm256_ceil_ps(a); }
LANES_FN R r_trunc(R a) { return _mm256_round_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
LANES_FN R r_abs(R a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
LANES_FN R r_copysign(R a, R sign) {
    __m256i magnitude = _mm256_set1_epi32(INT32_MAX);
    __m256i bits = _mm256_ternarylogic_epi32(magnitude, _mm256_castps_si256(a), _mm256_castps_si256(sign), 0xca);
    return _mm256_castsi256_ps(bits);
}
LANES_FN B r_eq(R a, R b) { return _mm256_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
LANES_FN B r_ne(R a, R b) { return _mm256_cmp_ps_mask(a, b, _CMP_NEQ_UQ); }
LANES_FN B r_lt(R a, R b) { return _mm256_cmp_ps_mask(a, b, _CMP_LT_OQ); }
LANES_FN B r_le(R a, R b) { return _mm256_cmp_ps_mask(a, b, _CMP_LE_OQ); }
LANES_FN B r_is_nan(R a) { return _mm256_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
LANES_FN R r_select(B c, R a, R b) { return _mm256_mask_blend_ps(c, b, a); }
LANES_FN R r_at_most(R a, real limit) { return _mm256_min_ps(_mm256_set1_ps(limit), a); }
LANES_FN R r_at_least(R a, real limit) { return _mm256_max_ps(_mm256_set1_ps(limit), a); }
LANES_FN R r_min(R a, R b) { return _mm256_or_ps(_mm256_min_ps(a, b), _mm256_min_ps(b, a)); }
LANES_FN R r_max(R a, R b) {
    R larger = _mm256_and_ps(_mm256_max_ps(a, b), _mm256_max_ps(b, a));
    return _mm256_mask_add_ps(larger, _mm256_cmp_ps_mask(a, b, _CMP_UNORD_Q), a, b);
}
LANES_FN R r_from_d(D a) { return _mm512_cvtpd_ps(a); }
LANES_FN D d_from_r(R a) { return _mm512_cvtps_pd(a); }
LANES_FN R r_from_i(I a) { return _mm512_cvtepi64_ps(a); }
LANES_FN R r_gather(const real *base, I index, B mask) {
    return _mm512_mask_i64gather_ps(_mm256_setzero_ps(), mask, index, base, 4);
}
LANES_FN void r_scatter(real *base, I index, B mask, R a) { _mm512_mask_i64scatter_ps(base, mask, index, a, 4); }
#endif

#endif
// ------------------------------------------------------------------------------------------------------------- AVX2
#ifdef LANES_AVX2

#define LANES 4
typedef __m256d D;
typedef __m256i I;
typedef __m256i B; // each lane 0 or −1

LANES_FN B b_splat(int a) { return _mm256_set1_epi64x(a ? -1 : 0); }
LANES_FN B b_and(B a, B b) { return _mm256_and_si256(a, b); }
LANES_FN B b_or(B a, B b) { return _mm256_or_si256(a, b); }
LANES_FN B b_xor(B a, B b) { return _mm256_xor_si256(a, b); }
LANES_FN B b_not(B a) { return _mm256_xor_si256(a, _mm256_set1_epi64x(-1)); }
LANES_FN B b_andnot(B a, B b) { return _mm256_andnot_si256(b, a); }
LANES_FN B b_eq(B a, B b) { return _mm256_cmpeq_epi64(a, b); }
LANES_FN B b_select(B c, B a, B b) { return _mm256_blendv_epi8(b, a, c); }
LANES_FN int b_none(B a) { return _mm256_testz_si256(a, a); }
LANES_FN int b_all(B a) { return _mm256_testc_si256(a, _mm256_set1_epi64x(-1)); }
LANES_FN unsigned b_bits(B a) { return (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(a)); }
LANES_FN B b_from_bits(unsigned bits) {
    __m256i lane = _mm256_set_epi64x(8, 4, 2, 1);
    return _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(bits), lane), lane);
}
LANES_FN B b_load(const uint8_t *p) {
    int bytes;
    __builtin_memcpy(&bytes, p, 4);
    return _mm256_cmpgt_epi64(_mm256_cvtepu8_epi64(_mm_cvtsi32_si128(bytes)), _mm256_setzero_si256());
}
LANES_FN void b_store(uint8_t *p, B a) {
    // bit l goes to bit 8 l
    uint32_t bytes = (b_bits(a) * 0x00204081u) & 0x01010101u;
    __builtin_memcpy(p, &bytes, 4);
}
LANES_FN void b_store_masked(uint8_t *p, B mask, B a) {
    for (unsigned left = b_bits(mask), bits = b_bits(a); left != 0; left &= left - 1) {
        int l = lanes_lowest(left);
        p[l] = (uint8_t)((bits >> l) & 1);
    }
}

LANES_FN D d_splat(double a) { return _mm256_set1_pd(a); }
LANES_FN D d_load(const double *p) { return _mm256_loadu_pd(p); }
LANES_FN void d_store(double *p, D a) { _mm256_storeu_pd(p, a); }
LANES_FN void d_store_masked(double *p, B mask, D a) { _mm256_maskstore_pd(p, mask, a); }
LANES_FN D d_fma(D a, D b, D c) { return _mm256_fmadd_pd(a, b, c); }
LANES_FN D d_sqrt(D a) { return _mm256_sqrt_pd(a); }
LANES_FN D d_floor(D a) { return _mm256_floor_pd(a); }
LANES_FN D d_ceil(D a) { return _mm256_ceil_pd(a); }
LANES_FN D d_trunc(D a) { return _mm256_round_pd(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
LANES_FN D d_abs(D a) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), a); }
LANES_FN I d_bits(D a) { return _mm256_castpd_si256(a); }
LANES_FN D d_from_bits(I a) { return _mm256_castsi256_pd(a); }
LANES_FN D d_copysign(D a, D sign) {
    D minus = _mm256_set1_pd(-0.0);
    return _mm256_or_pd(_mm256_andnot_pd(minus, a), _mm256_and_pd(minus, sign));
}
LANES_FN B d_eq(D a, D b) { return _mm256_castpd_si256(_mm256_cmp_pd(a, b, _CMP_EQ_OQ)); }
LANES_FN B d_ne(D a, D b) { return _mm256_castpd_si256(_mm256_cmp_pd(a, b, _CMP_NEQ_UQ)); }
LANES_FN B d_lt(D a, D b) { return _mm256_castpd_si256(_mm256_cmp_pd(a, b, _CMP_LT_OQ)); }
LANES_FN B d_le(D a, D b) { return _mm256_castpd_si256(_mm256_cmp_pd(a, b, _CMP_LE_OQ)); }
LANES_FN B d_is_nan(D a) { return _mm256_castpd_si256(_mm256_cmp_pd(a, a, _CMP_UNORD_Q)); }
LANES_FN D d_select(B c, D a, D b) { return _mm256_blendv_pd(b, a, _mm256_castsi256_pd(c)); }
LANES_FN D d_at_most(D a, double limit) { return _mm256_min_pd(_mm256_set1_pd(limit), a); }
LANES_FN D d_at_least(D a, double limit) { return _mm256_max_pd(_mm256_set1_pd(limit), a); }
// As with AVX-512; a NaN beside the mask of all ones is a NaN.
LANES_FN D d_min(D a, D b) { return _mm256_or_pd(_mm256_min_pd(a, b), _mm256_min_pd(b, a)); }
LANES_FN D d_max(D a, D b) {
    D larger = _mm256_and_pd(_mm256_max_pd(a, b), _mm256_max_pd(b, a));
    return _mm256_or_pd(larger, _mm256_cmp_pd(a, b, _CMP_UNORD_Q));
}

LANES_FN I i_splat(int64_t a) { return _mm256_set1_epi64x(a); }
LANES_FN I i_iota(void) { return _mm256_set_epi64x(3, 2, 1, 0); }
LANES_FN I i_load(const int64_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
LANES_FN void i_store(int64_t *p, I a) { _mm256_storeu_si256((__m256i *)p, a); }
LANES_FN void i_store_masked(int64_t *p, B mask, I a) { _mm256_maskstore_epi64((long long *)p, mask, a); }
LANES_FN I i_add(I a, I b) { return _mm256_add_epi64(a, b); }
LANES_FN I i_sub(I a, I b) { return _mm256_sub_epi64(a, b); }
LANES_FN I i_mul_u32(I a, I b) { return _mm256_mul_epu32(a, b); }
LANES_FN I i_mul(I a, I b) {
    __m256i cross = _mm256_mullo_epi32(a, _mm256_shuffle_epi32(b, 0xb1));
    __m256i high = _mm256_add_epi32(_mm256_srli_epi64(cross, 32), cross);
    return _mm256_add_epi64(_mm256_mul_epu32(a, b), _mm256_slli_epi64(high, 32));
}
LANES_FN B i_eq(I a, I b) { return _mm256_cmpeq_epi64(a, b); }
LANES_FN B i_lt(I a, I b) { return _mm256_cmpgt_epi64(b, a); }
LANES_FN B i_le(I a, I b) { return b_not(_mm256_cmpgt_epi64(a, b)); }
LANES_FN I i_select(B c, I a, I b) { return _mm256_blendv_epi8(b, a, c); }
LANES_FN I i_min(I a, I b) { return i_select(i_lt(b, a), b, a); }
LANES_FN I i_max(I a, I b) { return i_select(i_lt(a, b), b, a); }
LANES_FN I i_and(I a, I b) { return _mm256_and_si256(a, b); }
LANES_FN I i_or(I a, I b) { return _mm256_or_si256(a, b); }
LANES_FN I i_xor(I a, I b) { return _mm256_xor_si256(a, b); }
LANES_FN I i_andnot(I a, I b) { return _mm256_andnot_si256(b, a); }
LANES_FN I i_shl(I a, int k) { return _mm256_slli_epi64(a, k); }
LANES_FN I i_shr(I a, int k) { return _mm256_srli_epi64(a, k); }
LANES_FN B i_negative(I a) { return _mm256_cmpgt_epi64(_mm256_setzero_si256(), a); }
LANES_FN I i_sar(I a, int k) {
    I sign = i_negative(a);
    return i_xor(i_shr(i_xor(a, sign), k), sign);
}
LANES_FN I i_abs(I a) {
    I sign = i_negative(a);
    return i_sub(i_xor(a, sign), sign);
}
LANES_FN B i_has(I a, int64_t bit) {
    __m256i bits = _mm256_set1_epi64x(bit);
    return _mm256_cmpeq_epi64(_mm256_and_si256(a, bits), bits);
}
LANES_FN I i_from_b(B a) { return _mm256_srli_epi64(a, 63); }
LANES_FN D d_from_i(I a) {
    // The upper half, times 2^32, is exact; a single rounding adds the lower half.
    __m256i low = _mm256_blend_epi32(_mm256_set1_epi64x(0x4330000000000000), a, 0x55);
    __m256i high = _mm256_xor_si256(_mm256_srli_epi64(a, 32), _mm256_set1_epi64x(0x4530000080000000));
    D rest = _mm256_castsi256_pd(high) - _mm256_set1_pd(0x1p84 + 0x1p63 + 0x1p52);
    return rest + _mm256_castsi256_pd(low);
}
LANES_FN D d_gather(const double *base, I index, B mask) {
    return _mm256_mask_i64gather_pd(_mm256_setzero_pd(), base, index, _mm256_castsi256_pd(mask), 8);
}
LANES_FN I i_gather(const int64_t *base, I index, B mask) {
    return _mm256_mask_i64gather_epi64(_mm256_setzero_si256(), (const long long *)base, index, mask, 8);
}
#ifdef REAL_F32
typedef __m128 R;
LANES_FN __m128 lanes_narrow(B a) {
    __m256 whole = _mm256_castsi256_ps(a);
    return _mm_shuffle_ps(_mm256_castps256_ps128(whole), _mm256_extractf128_ps(whole, 1), 0x88);
}
LANES_FN B lanes_widen(__m128 a) { return _mm256_cvtepi32_epi64(_mm_castps_si128(a)); }
LANES_FN R r_splat(real a) { return _mm_set1_ps(a); }
LANES_FN R r_load(const real *p) { return _mm_loadu_ps(p); }
LANES_FN void r_store(real *p, R a) { _mm_storeu_ps(p, a); }
LANES_FN void r_store_masked(real *p, B mask, R a) { _mm_maskstore_ps(p, _mm_castps_si128(lanes_narrow(mask)), a); }
LANES_FN R r_fma(R a, R b, R c) { return _mm_fmadd_ps(a, b, c); }
LANES_FN R r_sqrt(R a) { return _mm_sqrt_ps(a); }
LANES_FN R r_floor(R a) { return _mm_floor_ps(a); }
LANES_FN R r_ceil(R a) { return _mm_ceil_ps(a); }
LANES_FN R r_trunc(R a) { return _mm_round_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
LANES_FN R r_abs(R a) { return _mm_andnot_ps(_mm_set1_ps(-0.0f), a); }
LANES_FN R r_copysign(R a, R sign) {
    R minus = _mm_set1_ps(-0.0f);
    return _mm_or_ps(_mm_andnot_ps(minus, a), _mm_and_ps(minus, sign));
}
LANES_FN B r_eq(R a, R b) { return lanes_widen(_mm_cmp_ps(a, b, _CMP_EQ_OQ)); }
LANES_FN B r_ne(R a, R b) { return lanes_widen(_mm_cmp_ps(a, b, _CMP_NEQ_UQ)); }
LANES_FN B r_lt(R a, R b) { return lanes_widen(_mm_cmp_ps(a, b, _CMP_LT_OQ)); }
LANES_FN B r_le(R a, R b) { return lanes_widen(_mm_cmp_ps(a, b, _CMP_LE_OQ)); }
LANES_FN B r_is_nan(R a) { return lanes_widen(_mm_cmp_ps(a, a, _CMP_UNORD_Q)); }
LANES_FN R r_select(B c, R a, R b) { return _mm_blendv_ps(b, a, lanes_narrow(c)); }
LANES_FN R r_at_most(R a, real limit) { return _mm_min_ps(_mm_set1_ps(limit), a); }
LANES_FN R r_at_least(R a, real limit) { return _mm_max_ps(_mm_set1_ps(limit), a); }
typedef __m128i J;
LANES_FN J j_splat(int a) { return _mm_set1_epi32(a); }
LANES_FN J j_sub(J a, J b) { return _mm_sub_epi32(a, b); }
LANES_FN J j_shl(J a, int k) { return _mm_slli_epi32(a, k); }
LANES_FN J j_sar(J a, int k) { return _mm_srai_epi32(a, k); }
LANES_FN J r_bits(R a) { return _mm_castps_si128(a); }
LANES_FN R r_from_bits(J a) { return _mm_castsi128_ps(a); }
LANES_FN R r_from_j(J a) { return _mm_cvtepi32_ps(a); }
LANES_FN R r_min(R a, R b) { return _mm_or_ps(_mm_min_ps(a, b), _mm_min_ps(b, a)); }
LANES_FN R r_max(R a, R b) {
    R larger = _mm_and_ps(_mm_max_ps(a, b), _mm_max_ps(b, a));
    return _mm_or_ps(larger, _mm_cmp_ps(a, b, _CMP_UNORD_Q));
}
LANES_FN R r_from_d(D a) { return _mm256_cvtpd_ps(a); }
LANES_FN D d_from_r(R a) { return _mm256_cvtps_pd(a); }
LANES_FN R r_gather(const real *base, I index, B mask) {
    return _mm256_mask_i64gather_ps(_mm_setzero_ps(), base, index, lanes_narrow(mask), 4);
}
#endif

#endif
// ----------------------------------------------------------------------------------------------------------- scalar
#ifdef LANES_SCALAR

#define LANES 1
typedef double D;
typedef int64_t I;
typedef int B;

LANES_FN B b_splat(int a) { return a != 0; }
LANES_FN B b_and(B a, B b) { return a & b; }
LANES_FN B b_or(B a, B b) { return a | b; }
LANES_FN B b_xor(B a, B b) { return a ^ b; }
LANES_FN B b_not(B a) { return !a; }
LANES_FN B b_andnot(B a, B b) { return a & !b; }
LANES_FN B b_eq(B a, B b) { return a == b; }
LANES_FN B b_select(B c, B a, B b) { return c ? a : b; }
// Flat functions are those of the same name without a branch: GCC makes no vectors of a loop with one where blocks lead
// into one another from everywhere.
LANES_FN B b_select_flat(B c, B a, B b) { return (a & -c) | (b & ~-c); }
LANES_FN int b_none(B a) { return !a; }
LANES_FN int b_all(B a) { return a; }
LANES_FN unsigned b_bits(B a) { return (unsigned)a; }
LANES_FN B b_from_bits(unsigned bits) { return (B)(bits & 1); }
LANES_FN B b_load(const uint8_t *p) { return *p; }
LANES_FN void b_store(uint8_t *p, B a) { *p = (uint8_t)a; }
LANES_FN void b_store_masked(uint8_t *p, B mask, B a) {
    if (mask) *p = (uint8_t)a;
}

LANES_FN D d_splat(double a) { return a; }
LANES_FN D d_load(const double *p) { return *p; }
LANES_FN void d_store(double *p, D a) { *p = a; }
LANES_FN void d_store_masked(double *p, B mask, D a) {
    if (mask) *p = a;
}
LANES_FN D d_fma(D a, D b, D c) { return LANES_C(fma)(a, b, c); }
LANES_FN D d_sqrt(D a) { return LANES_C(sqrt)(a); }
LANES_FN D d_floor(D a) { return LANES_C(floor)(a); }
LANES_FN D d_ceil(D a) { return LANES_C(ceil)(a); }
LANES_FN D d_trunc(D a) { return LANES_C(trunc)(a); }
LANES_FN D d_abs(D a) { return LANES_C(fabs)(a); }
LANES_FN D d_copysign(D a, D sign) { return LANES_C(copysign)(a, sign); }
LANES_FN I d_bits(D a) {
    I bits;
    LANES_C(memcpy)(&bits, &a, 8);
    return bits;
}
LANES_FN D d_from_bits(I bits) {
    D a;
    LANES_C(memcpy)(&a, &bits, 8);
    return a;
}
LANES_FN B d_eq(D a, D b) { return a == b; }
LANES_FN B d_ne(D a, D b) { return a != b; }
LANES_FN B d_lt(D a, D b) { return a < b; }
LANES_FN B d_le(D a, D b) { return a <= b; }
LANES_FN B d_is_nan(D a) { return a != a; }
LANES_FN D d_select(B c, D a, D b) { return c ? a : b; }
LANES_FN D d_select_flat(B c, D a, D b) { return d_from_bits((d_bits(a) & -(I)c) | (d_bits(b) & ~-(I)c)); }
LANES_FN D d_at_most(D a, double limit) { return a > limit ? limit : a; }
LANES_FN D d_at_least(D a, double limit) { return a < limit ? limit : a; }
LANES_FN D d_min(D a, D b) {
    D rest = a == b ? d_from_bits(d_bits(a) | d_bits(b)) : a + b;
    return a < b ? a : b < a ? b : rest;
}
LANES_FN D d_max(D a, D b) {
    D rest = a == b ? d_from_bits(d_bits(a) & d_bits(b)) : a + b;
    return a > b ? a : b > a ? b : rest;
}
LANES_FN D d_min_flat(D a, D b) {
    D rest = d_select_flat(a == b, d_from_bits(d_bits(a) | d_bits(b)), a + b);
    return d_select_flat(a < b, a, d_select_flat(b < a, b, rest));
}
LANES_FN D d_max_flat(D a, D b) {
    D rest = d_select_flat(a == b, d_from_bits(d_bits(a) & d_bits(b)), a + b);
    return d_select_flat(a > b, a, d_select_flat(b > a, b, rest));
}

LANES_FN I i_splat(int64_t a) { return a; }
LANES_FN I i_iota(void) { return 0; }
LANES_FN I i_load(const int64_t *p) { return *p; }
LANES_FN void i_store(int64_t *p, I a) { *p = a; }
LANES_FN void i_store_masked(int64_t *p, B mask, I a) {
    if (mask) *p = a;
}
LANES_FN I i_add(I a, I b) { return (I)((uint64_t)a + (uint64_t)b); }
LANES_FN I i_sub(I a, I b) { return (I)((uint64_t)a - (uint64_t)b); }
LANES_FN I i_mul(I a, I b) { return (I)((uint64_t)a * (uint64_t)b); }
LANES_FN I i_mul_u32(I a, I b) { return (I)((uint64_t)(uint32_t)a * (uint32_t)b); }
LANES_FN I i_abs(I a) { return a < 0 ? i_sub(0, a) : a; }
LANES_FN I i_min(I a, I b) { return b < a ? b : a; }
LANES_FN I i_max(I a, I b) { return a < b ? b : a; }
LANES_FN B i_eq(I a, I b) { return a == b; }
LANES_FN B i_lt(I a, I b) { return a < b; }
LANES_FN B i_le(I a, I b) { return a <= b; }
LANES_FN I i_select(B c, I a, I b) { return c ? a : b; }
LANES_FN I i_select_flat(B c, I a, I b) { return (a & -(I)c) | (b & ~-(I)c); }
LANES_FN I i_and(I a, I b) { return a & b; }
LANES_FN I i_or(I a, I b) { return a | b; }
LANES_FN I i_xor(I a, I b) { return a ^ b; }
LANES_FN I i_andnot(I a, I b) { return a & ~b; }
LANES_FN I i_shl(I a, int k) { return (I)((uint64_t)a << k); }
LANES_FN I i_shr(I a, int k) { return (I)((uint64_t)a >> k); }
LANES_FN I i_sar(I a, int k) { return a >> k; }
LANES_FN B i_has(I a, int64_t bit) { return (a & bit) != 0; }
LANES_FN B i_negative(I a) { return a < 0; }
LANES_FN I i_from_b(B a) { return a; }
LANES_FN D d_from_i(I a) { return (D)a; }
LANES_FN D d_gather(const double *base, I index, B mask) { return mask ? base[index] : 0.0; }
LANES_FN I i_gather(const int64_t *base, I index, B mask) { return mask ? base[index] : 0; }

#ifdef REAL_F32
typedef float R;
LANES_FN R r_splat(real a) { return a; }
LANES_FN R r_load(const real *p) { return *p; }
LANES_FN void r_store(real *p, R a) { *p = a; }
LANES_FN void r_store_masked(real *p, B mask, R a) {
    if (mask) *p = a;
}
LANES_FN R r_fma(R a, R b, R c) { return LANES_C(fmaf)(a, b, c); }
LANES_FN R r_sqrt(R a) { return LANES_C(sqrtf)(a); }
LANES_FN R r_floor(R a) { return LANES_C(floorf)(a); }
LANES_FN R r_ceil(R a) { return LANES_C(ceilf)(a); }
LANES_FN R r_trunc(R a) { return LANES_C(truncf)(a); }
LANES_FN R r_abs(R a) { return LANES_C(fabsf)(a); }
LANES_FN R r_copysign(R a, R sign) { return LANES_C(copysignf)(a, sign); }
LANES_FN B r_eq(R a, R b) { return a == b; }
LANES_FN B r_ne(R a, R b) { return a != b; }
LANES_FN B r_lt(R a, R b) { return a < b; }
LANES_FN B r_le(R a, R b) { return a <= b; }
LANES_FN B r_is_nan(R a) { return a != a; }
LANES_FN R r_select(B c, R a, R b) { return c ? a : b; }
LANES_FN R r_from_d(D a) { return (R)a; }
LANES_FN D d_from_r(R a) { return (D)a; }
LANES_FN R r_from_i(I a) { return (R)a; }
LANES_FN R r_gather(const real *base, I index, B mask) { return mask ? base[index] : 0.0f; }
LANES_FN R r_at_most(R a, real limit) { return a > limit ? limit : a; }
LANES_FN R r_at_least(R a, real limit) { return a < limit ? limit : a; }
typedef int J;
LANES_FN J j_splat(int a) { return a; }
LANES_FN J j_sub(J a, J b) { return (J)((uint32_t)a - (uint32_t)b); }
LANES_FN J j_shl(J a, int k) { return (J)((uint32_t)a << k); }
LANES_FN J j_sar(J a, int k) { return a >> k; }
LANES_FN J r_bits(R a) {
    J bits;
    LANES_C(memcpy)(&bits, &a, 4);
    return bits;
}
LANES_FN R r_from_bits(J bits) {
    R a;
    LANES_C(memcpy)(&a, &bits, 4);
    return a;
}
LANES_FN R r_select_flat(B c, R a, R b) { return r_from_bits((r_bits(a) & -(J)c) | (r_bits(b) & ~-(J)c)); }
LANES_FN R r_from_j(J a) { return (R)a; }
// exact through doubles
LANES_FN R r_min(R a, R b) { return (R)d_min(a, b); }
LANES_FN R r_max(R a, R b) { return (R)d_max(a, b); }
LANES_FN R r_min_flat(R a, R b) { return (R)d_min_flat(a, b); }
LANES_FN R r_max_flat(R a, R b) { return (R)d_max_flat(a, b); }
#endif

#endif
// ------------------------------------------------------------------------------------------------------ all targets

LANES_FN int b_any(B a) { return !b_none(a); }
LANES_FN B b_ne(B a, B b) { return b_xor(a, b); }

LANES_FN D d_add(D a, D b) { return a + b; }
LANES_FN D d_sub(D a, D b) { return a - b; }
LANES_FN D d_mul(D a, D b) { return a * b; }
LANES_FN D d_div(D a, D b) { return a / b; }
// Of the chain rule: a zero wins over what is no number.
LANES_FN D d_chain_mul(D a, D b) {
    D zero = d_splat(0.0), product = a * b;
    return d_select(b_and(d_is_nan(product), b_or(d_eq(a, zero), d_eq(b, zero))), zero, product);
}
// A branch that is hardly ever taken: the next addition waits for this one, and for no selection behind it.
LANES_FN D d_chain_fma(D a, D b, D c) {
    D zero = d_splat(0.0), next = d_fma(a, b, c);
    if (__builtin_expect(b_any(d_is_nan(next)), 0))
        next = d_select(b_and(d_is_nan(next), b_or(d_eq(a, zero), d_eq(b, zero))), c, next);
    return next;
}
LANES_FN D d_chain_div(D a, D b) {
    D zero = d_splat(0.0), quotient = a / b;
    B wins = b_or(d_eq(a, zero), d_lt(d_splat(0x1.fffffffffffffp1023), d_abs(b)));
    return d_select(b_and(d_is_nan(quotient), wins), zero, quotient);
}
LANES_FN D d_neg(D a) { return -a; }
LANES_FN B d_gt(D a, D b) { return d_lt(b, a); }
LANES_FN B d_ge(D a, D b) { return d_le(b, a); }
// What truncation cuts off is exact, and so is whether it is a half.
LANES_FN D d_round(D a) {
    D whole = d_trunc(a);
    return d_select(d_le(d_splat(0.5), d_abs(a - whole)), whole + d_copysign(d_splat(1.0), a), whole);
}
LANES_FN D d_rem(D a, D b) {
    double x[LANES], y[LANES];
    d_store(x, a);
    d_store(y, b);
    for (int l = 0; l < LANES; l++) x[l] = LANES_C(fmod)(x[l], y[l]);
    return d_load(x);
}

LANES_FN I i_neg(I a) { return i_sub(i_splat(0), a); }
LANES_FN B i_ne(I a, I b) { return b_not(i_eq(a, b)); }
LANES_FN B i_gt(I a, I b) { return i_lt(b, a); }
LANES_FN B i_ge(I a, I b) { return i_le(b, a); }
LANES_FN I i_not(I a) { return i_xor(a, i_splat(-1)); }

#if defined(LANES_SCALAR) && !defined(__CUDACC__)
// The processor's own flag.
LANES_FN I i_add_over(I a, I b, B *over) {
    I sum;
    *over = __builtin_add_overflow(a, b, &sum);
    return sum;
}
LANES_FN I i_sub_over(I a, I b, B *over) {
    I difference;
    *over = __builtin_sub_overflow(a, b, &difference);
    return difference;
}
#else
LANES_FN I i_add_over(I a, I b, B *over) {
    I sum = i_add(a, b);
    *over = i_negative(i_and(i_xor(a, sum), i_xor(b, sum)));
    return sum;
}
LANES_FN I i_sub_over(I a, I b, B *over) {
    I difference = i_sub(a, b);
    *over = i_negative(i_and(i_xor(a, b), i_xor(a, difference)));
    return difference;
}
#endif
LANES_FN I i_neg_over(I a, B *over) {
    *over = i_eq(a, i_splat(INT64_MIN));
    return i_neg(a);
}
LANES_FN I i_abs_over(I a, B *over) {
    *over = i_eq(a, i_splat(INT64_MIN));
    return i_abs(a);
}

// Whether −2^k ≤ a < 2^k in all lanes, for k ≤ 62.
LANES_FN int i_fit(I a, int k) {
    return b_none(i_ne(i_shr(i_add(a, i_splat((int64_t)1 << k)), k + 1), i_splat(0)));
}

#ifndef LANES_AVX512
// 1.5 · 2^52: the ints from −2^51 to 2^51 are the offsets of its bits.
#define LANES_MAGIC 0x1.8p52
// The int that a whole double below 2^51 in magnitude is; junk for others.
LANES_FN I i_from_whole(D a) { return i_sub(d_bits(a + d_splat(LANES_MAGIC)), d_bits(d_splat(LANES_MAGIC))); }

LANES_FN I d_to_i_trap(D a, B *bad) {
    *bad = b_not(b_and(d_le(d_splat(-0x1p63), a), d_lt(a, d_splat(0x1p63))));
    D whole = d_trunc(a);
    if (LANES > 1 && b_all(d_lt(d_abs(whole), d_splat(0x1p51)))) return i_from_whole(whole);
    double x[LANES];
    int64_t y[LANES];
    d_store(x, whole);
    for (int l = 0; l < LANES; l++) y[l] = x[l] >= -0x1p63 && x[l] < 0x1p63 ? (int64_t)x[l] : INT64_MIN;
    return i_load(y);
}

LANES_FN void d_scatter(double *base, I index, B mask, D a) {
    double y[LANES];
    int64_t x[LANES];
    i_store(x, index);
    d_store(y, a);
    for (unsigned left = b_bits(mask); left != 0; left &= left - 1) {
        int l = lanes_lowest(left);
        base[x[l]] = y[l];
    }
}
LANES_FN void i_scatter(int64_t *base, I index, B mask, I a) {
    int64_t x[LANES], y[LANES];
    i_store(x, index);
    i_store(y, a);
    for (unsigned left = b_bits(mask); left != 0; left &= left - 1) {
        int l = lanes_lowest(left);
        base[x[l]] = y[l];
    }
}

#ifdef REAL_F32
LANES_FN void r_scatter(real *base, I index, B mask, R a) {
    real y[LANES];
    int64_t x[LANES];
    i_store(x, index);
    r_store(y, a);
    for (unsigned left = b_bits(mask); left != 0; left &= left - 1) {
        int l = lanes_lowest(left);
        base[x[l]] = y[l];
    }
}
#endif
#endif
#if defined(REAL_F32) && defined(LANES_AVX2)
// Through doubles where these are exact: two roundings might differ from one.
LANES_FN R r_from_i(I a) {
    if (i_fit(a, 53)) return r_from_d(d_from_i(a));
    int64_t x[LANES];
    real y[LANES];
    i_store(x, a);
    for (int l = 0; l < LANES; l++) y[l] = (real)x[l];
    return r_load(y);
}
#endif

LANES_FN B b_gather(const uint8_t *base, I index, B mask) {
    unsigned bits = 0;
    int64_t x[LANES];
    i_store(x, index);
    for (unsigned left = b_bits(mask); left != 0; left &= left - 1) {
        int l = lanes_lowest(left);
        bits |= (unsigned)(base[x[l]] != 0) << l;
    }
    return b_from_bits(bits);
}
LANES_FN void b_scatter(uint8_t *base, I index, B mask, B a) {
    int64_t x[LANES];
    i_store(x, index);
    for (unsigned left = b_bits(mask); left != 0; left &= left - 1) {
        int l = lanes_lowest(left);
        base[x[l]] = (uint8_t)((b_bits(a) >> l) & 1);
    }
}

LANES_FN int lanes_mul_over(int64_t x, int64_t y, int64_t *product) {
#ifdef __CUDACC__
    *product = (int64_t)((uint64_t)x * (uint64_t)y);
    return __mul64hi(x, y) != *product >> 63;
#else
    return __builtin_mul_overflow(x, y, product);
#endif
}
LANES_FN I i_mul_over(I a, I b, B *over) {
    *over = b_splat(0);
    if (LANES > 1 && i_fit(a, 31) && i_fit(b, 31)) return i_mul(a, b);
    unsigned bits = 0;
    int64_t x[LANES], y[LANES];
    i_store(x, a);
    i_store(y, b);
    for (int l = 0; l < LANES; l++) bits |= (unsigned)lanes_mul_over(x[l], y[l], &x[l]) << l;
    *over = b_from_bits(bits);
    return i_load(x);
}

// Lanes with the divisor 0, and those where INT64_MIN is divided by −1.
LANES_FN B lanes_division_bad(I a, I b) {
    B least = b_and(i_eq(a, i_splat(INT64_MIN)), i_eq(b, i_splat(-1)));
    return b_or(i_eq(b, i_splat(0)), least);
}
// Both operands are exact as doubles if they fit, and their quotient, if it is no int, is farther from the next int than
// rounding moves it (by 1 / |b|, where half a unit in the last place is below |a| / |b| · 2^−53).
LANES_FN I i_div(I a, I b, B *bad) {
    *bad = lanes_division_bad(a, b);
    if (LANES > 1 && i_fit(a, 50) && i_fit(b, 50)) return i_from_whole(d_trunc(d_from_i(a) / d_from_i(b)));
    int64_t x[LANES], y[LANES];
    i_store(x, a);
    i_store(y, i_select(*bad, i_splat(1), b));
    for (int l = 0; l < LANES; l++) x[l] /= y[l];
    return i_load(x);
}
// By −1 the remainder is 0, also where the quotient is too large: such lanes take 1 for their divisor.
LANES_FN I i_rem(I a, I b, B *bad) {
    *bad = i_eq(b, i_splat(0));
    if (LANES > 1 && i_fit(a, 50) && i_fit(b, 50)) {
        D x = d_from_i(a), y = d_from_i(b);
        return i_from_whole(x - d_trunc(x / y) * y);
    }
    int64_t x[LANES], y[LANES];
    i_store(x, a);
    i_store(y, i_select(b_or(*bad, i_eq(b, i_splat(-1))), i_splat(1), b));
    for (int l = 0; l < LANES; l++) x[l] %= y[l];
    return i_load(x);
}
// a / 2^k truncated, for 0 ≤ k ≤ 62: a negative a is rounded up by adding 2^k − 1, which cannot overflow.
LANES_FN I i_div_pow2(I a, int k) {
    return i_sar(i_add(a, i_and(i_sar(a, 63), i_splat(((int64_t)1 << k) - 1))), k);
}
LANES_FN I i_rem_pow2(I a, int k) { return i_sub(a, i_shl(i_div_pow2(a, k), k)); }

// x^y for y ≥ 0; 1 and −1 have all powers.
LANES_FN int lanes_pow(int64_t x, int64_t y, int64_t *power) {
    *power = 1;
    if (y < 0) return 1;
    if (x >= -1 && x <= 1) {
        *power = y == 0 ? 1 : x < 0 && y % 2 == 0 ? 1 : x;
        return 0;
    }
    if (y > 63) return 1;
    int over = 0;
    for (; y > 0; y--) over |= lanes_mul_over(*power, x, power);
    return over;
}
// The bad lanes are those with a negative exponent and those that overflow.
LANES_FN I i_pow(I a, I b, B *bad) {
    unsigned bits = 0;
    int64_t x[LANES], y[LANES];
    i_store(x, a);
    i_store(y, b);
    for (int l = 0; l < LANES; l++) bits |= (unsigned)lanes_pow(x[l], y[l], &x[l]) << l;
    *bad = b_from_bits(bits);
    return i_load(x);
}

#ifdef REAL_F32
LANES_FN R r_add(R a, R b) { return a + b; }
LANES_FN R r_sub(R a, R b) { return a - b; }
LANES_FN R r_mul(R a, R b) { return a * b; }
LANES_FN R r_div(R a, R b) { return a / b; }
// Of the chain rule: a zero wins over what is no number.
LANES_FN R r_chain_mul(R a, R b) {
    R zero = r_splat(0.0f), product = a * b;
    return r_select(b_and(r_is_nan(product), b_or(r_eq(a, zero), r_eq(b, zero))), zero, product);
}
LANES_FN R r_chain_fma(R a, R b, R c) {
    R zero = r_splat(0.0f), next = r_fma(a, b, c);
    if (__builtin_expect(b_any(r_is_nan(next)), 0))
        next = r_select(b_and(r_is_nan(next), b_or(r_eq(a, zero), r_eq(b, zero))), c, next);
    return next;
}
LANES_FN R r_chain_div(R a, R b) {
    R zero = r_splat(0.0f), quotient = a / b;
    B wins = b_or(r_eq(a, zero), r_lt(r_splat(0x1.fffffep127f), r_abs(b)));
    return r_select(b_and(r_is_nan(quotient), wins), zero, quotient);
}
LANES_FN R r_neg(R a) { return -a; }
LANES_FN B r_gt(R a, R b) { return r_lt(b, a); }
LANES_FN B r_ge(R a, R b) { return r_le(b, a); }
LANES_FN R r_round(R a) {
    R whole = r_trunc(a);
    return r_select(r_le(r_splat(0.5f), r_abs(a - whole)), whole + r_copysign(r_splat(1.0f), a), whole);
}
// exact through doubles
LANES_FN R r_rem(R a, R b) { return r_from_d(d_rem(d_from_r(a), d_from_r(b))); }
LANES_FN I r_to_i_trap(R a, B *bad) { return d_to_i_trap(d_from_r(a), bad); }
#else
typedef D R;
#define r_splat d_splat
#define r_load d_load
#define r_store d_store
#define r_store_masked d_store_masked
#define r_gather d_gather
#define r_scatter d_scatter
#define r_add d_add
#define r_sub d_sub
#define r_mul d_mul
#define r_div d_div
#define r_chain_mul d_chain_mul
#define r_chain_fma d_chain_fma
#define r_chain_div d_chain_div
#define r_neg d_neg
#define r_abs d_abs
#define r_fma d_fma
#define r_sqrt d_sqrt
#define r_floor d_floor
#define r_ceil d_ceil
#define r_round d_round
#define r_trunc d_trunc
#define r_min d_min
#define r_max d_max
#define r_copysign d_copysign
#define r_rem d_rem
#define r_eq d_eq
#define r_ne d_ne
#define r_lt d_lt
#define r_le d_le
#define r_gt d_gt
#define r_ge d_ge
#define r_is_nan d_is_nan
#define r_select d_select
#define r_select_flat d_select_flat
#define r_min_flat d_min_flat
#define r_max_flat d_max_flat
#define r_to_i_trap d_to_i_trap
#define r_from_i d_from_i
LANES_FN R r_from_d(D a) { return a; }
LANES_FN D d_from_r(R a) { return a; }
#endif

#ifdef LANES_SCALAR
LANES_FN R r_chain_mul_flat(R a, R b) {
    R product = a * b;
    return r_select_flat(r_is_nan(product) & (r_eq(a, 0) | r_eq(b, 0)), 0, product);
}
LANES_FN R r_chain_div_flat(R a, R b) {
    R quotient = a / b;
    B wins = r_eq(a, 0) | r_eq(r_abs(b), (real)__builtin_inf());
    return r_select_flat(r_is_nan(quotient) & wins, 0, quotient);
}
#endif

#endif
