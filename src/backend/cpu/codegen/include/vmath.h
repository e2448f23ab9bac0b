// Elementary functions and random draws of groups of lanes, line by line the twin of `src/vmath/*.rs`, with equal bits.
//
//   R r_exp(R x) and all other functions of the table in `src/vmath/functions.rs`
//   R r_uniform(uint64_t seed, I lane, I draw)    R r_normal(uint64_t seed, I lane, I draw)
//   I i_drawn(uint64_t seed, I lane, I draw)
//
// Each is also there with the prefix d_, of doubles; with floats r_ is the twin of `exp_log_single.rs` for its functions and d_
// rounded for the others. What the functions do and where they come
// from stands in the Rust text. Where this text differs from it, it is for speed, and in one of three ways: a NaN is not
// put in where it comes through by itself; work that only some lanes need is left out when no lane of the group needs it;
// and AVX-512 takes numbers apart and scales them by instructions.
#ifndef VMATH_H
#define VMATH_H
#include "lanes.h"

// Functions that the compiler may call instead of copying them into their callers.
#ifndef VMATH_FN
#ifdef __CUDACC__
#define VMATH_FN static __device__ inline
#else
#define VMATH_FN static inline __attribute__((unused))
#endif
#endif
#ifdef __CUDACC__
#define VMATH_FAR_FN static __device__ __noinline__
#define VMATH_TABLE static __device__ const
#else
#define VMATH_FAR_FN static __attribute__((noinline, unused))
#define VMATH_TABLE static const
#endif

// c0 + c1·x + c2·x² + … with this number of coefficients.
#define H1(x, c) d_splat(c)
#define H2(x, c, ...) d_fma(H1(x, __VA_ARGS__), x, d_splat(c))
#define H3(x, c, ...) d_fma(H2(x, __VA_ARGS__), x, d_splat(c))
#define H4(x, c, ...) d_fma(H3(x, __VA_ARGS__), x, d_splat(c))
#define H5(x, c, ...) d_fma(H4(x, __VA_ARGS__), x, d_splat(c))
#define H6(x, c, ...) d_fma(H5(x, __VA_ARGS__), x, d_splat(c))
#define H7(x, c, ...) d_fma(H6(x, __VA_ARGS__), x, d_splat(c))
#define H8(x, c, ...) d_fma(H7(x, __VA_ARGS__), x, d_splat(c))
#define H9(x, c, ...) d_fma(H8(x, __VA_ARGS__), x, d_splat(c))
#define H10(x, c, ...) d_fma(H9(x, __VA_ARGS__), x, d_splat(c))
#define H11(x, c, ...) d_fma(H10(x, __VA_ARGS__), x, d_splat(c))
#define H12(x, c, ...) d_fma(H11(x, __VA_ARGS__), x, d_splat(c))
#define H13(x, c, ...) d_fma(H12(x, __VA_ARGS__), x, d_splat(c))
#define H14(x, c, ...) d_fma(H13(x, __VA_ARGS__), x, d_splat(c))
#define H15(x, c, ...) d_fma(H14(x, __VA_ARGS__), x, d_splat(c))
#define H16(x, c, ...) d_fma(H15(x, __VA_ARGS__), x, d_splat(c))
#define H17(x, c, ...) d_fma(H16(x, __VA_ARGS__), x, d_splat(c))
#define H18(x, c, ...) d_fma(H17(x, __VA_ARGS__), x, d_splat(c))
#define H19(x, c, ...) d_fma(H18(x, __VA_ARGS__), x, d_splat(c))
#define H20(x, c, ...) d_fma(H19(x, __VA_ARGS__), x, d_splat(c))
#define H21(x, c, ...) d_fma(H20(x, __VA_ARGS__), x, d_splat(c))
#define H22(x, c, ...) d_fma(H21(x, __VA_ARGS__), x, d_splat(c))
#define H23(x, c, ...) d_fma(H22(x, __VA_ARGS__), x, d_splat(c))

#ifdef __CUDACC__
#define VMATH_INFINITY __longlong_as_double(0x7ff0000000000000)
#define VMATH_NAN __longlong_as_double(0x7ff8000000000000)
#else
#define VMATH_INFINITY __builtin_inf()
#define VMATH_NAN __builtin_nan("")
#endif
#define VMATH_MAX 0x1.fffffffffffffp1023
#define VMATH_SHIFT 0x1.8p52
#define VMATH_LOG2_E 1.4426950408889634
#define VMATH_LN2 0.6931471805599453
#define VMATH_LN2_HIGH 0.6931471803691238
#define VMATH_LN2_LOW 1.9082149292705877e-10
#define VMATH_PI 3.141592653589793
#define VMATH_FRAC_PI_2 1.5707963267948966
#define VMATH_FRAC_PI_2_MID 6.123233995736766e-17
#define VMATH_FRAC_PI_4 0.7853981633974483

// x with its sign turned around where bit `bit` of q is set.
LANES_FN D vmath_turn(D x, I q, int bit) {
    return d_from_bits(i_xor(d_bits(x), i_shl(i_shr(q, bit), 63)));
}

// ---------------------------------------------------------------------------------------------------- double_double

typedef struct {
    D high, low;
} D2;

LANES_FN D2 vmath_pair(D high, D low) {
    D2 a;
    a.high = high;
    a.low = low;
    return a;
}

LANES_FN D2 vmath_two_sum(D a, D b) {
    D s = a + b;
    D bb = s - a;
    return vmath_pair(s, (a - (s - bb)) + (b - bb));
}

LANES_FN D2 vmath_fast_two_sum(D a, D b) {
    D s = a + b;
    return vmath_pair(s, b - (s - a));
}

LANES_FN D2 vmath_two_product(D a, D b) {
    D p = a * b;
    return vmath_pair(p, d_fma(a, b, -p));
}

LANES_FN D2 vmath_divide(D2 a, D2 b) {
    D q = a.high / b.high;
    D rest = d_fma(-q, b.high, a.high) + d_fma(-q, b.low, a.low);
    return vmath_pair(q, rest / b.high);
}

LANES_FN D2 vmath_multiply(D2 a, D2 b) {
    D2 p = vmath_two_product(a.high, b.high);
    return vmath_pair(p.high, d_fma(a.high, b.low, d_fma(a.low, b.high, p.low)));
}

// 2^k for a whole k from −1022 to 1023, whose bits the addition puts into the low end of the sum.
LANES_FN D vmath_power_of_two(D k) { return d_from_bits(i_shl(d_bits(k + d_splat(VMATH_SHIFT + 1023.0)), 52)); }

// x · 2^k for a whole k up to 2000 in magnitude, and 1 ≤ 2 |x| ≤ 4 wherever the result is subnormal: one rounding.
LANES_FN D vmath_scale(D x, D k) {
#ifdef LANES_AVX512
    return _mm512_scalef_pd(x, k);
#else
    D half = d_fma(k, d_splat(0.5), d_splat(VMATH_SHIFT)) - d_splat(VMATH_SHIFT);
    return x * vmath_power_of_two(half) * vmath_power_of_two(k - half);
#endif
}

// ---------------------------------------------------------------------------------------------------------- exp_log

// k is whole here, and a double.
typedef struct {
    D k, r, c;
} VmathReduced;

LANES_FN VmathReduced vmath_reduced(D k, D r, D c) {
    VmathReduced a;
    a.k = k;
    a.r = r;
    a.c = c;
    return a;
}

LANES_FN D vmath_expm1_polynomial(D r) {
    return H12(r, 0.5, 0.16666666666666666, 0.041666666666666664, 8.333333333333333e-03, 1.388888888888889e-03,
               1.984126984126984e-04, 2.48015873015873e-05, 2.7557319223985893e-06, 2.755731922398589e-07,
               2.505210838544172e-08, 2.08767569878681e-09, 1.6059043836821613e-10);
}

LANES_FN VmathReduced vmath_reduce(D x, D tail) {
    D k = d_fma(x, d_splat(VMATH_LOG2_E), d_splat(VMATH_SHIFT)) - d_splat(VMATH_SHIFT);
    D high = d_fma(k, d_splat(-VMATH_LN2_HIGH), x);
    D low = k * d_splat(VMATH_LN2_LOW);
    D2 r = vmath_two_sum(high - low, ((high - (high - low)) - low) + tail);
    D p = vmath_expm1_polynomial(r.high);
    return vmath_reduced(k, r.high, d_fma(p, r.high * r.high, d_fma(r.low, r.high, r.low)));
}

// e^x for −746 ≤ x ≤ 710.
LANES_FN D vmath_exp_inside(D x) {
    D k = d_fma(x, d_splat(VMATH_LOG2_E), d_splat(VMATH_SHIFT)) - d_splat(VMATH_SHIFT);
    D r = d_fma(k, d_splat(-VMATH_LN2_HIGH), x);
    r = d_fma(k, d_splat(-VMATH_LN2_LOW), r);
    D t = d_fma(vmath_expm1_polynomial(r), r * r, r);
    return vmath_scale(d_splat(1.0) + t, k);
}

VMATH_FN D d_exp(D x) { return vmath_exp_inside(d_at_least(d_at_most(x, 710.0), -746.0)); }

VMATH_FN D d_exp2(D x) {
    D inside = d_at_least(d_at_most(x, 1025.0), -1080.0);
    D k = (inside + d_splat(VMATH_SHIFT)) - d_splat(VMATH_SHIFT);
    D part = inside - k;
    D2 r = vmath_two_product(part, d_splat(VMATH_LN2));
    D rest = d_fma(part, d_splat(2.3190468138462996e-17), r.low);
    D c = d_fma(vmath_expm1_polynomial(r.high), r.high * r.high, rest);
    D2 s = vmath_fast_two_sum(d_splat(1.0), r.high);
    return vmath_scale(s.high + (s.low + c), k);
}

// e^(a.high + a.low) · 2^shift
LANES_FN D vmath_exp_double(D2 a, double shift) {
    B outside = b_or(d_gt(a.high, d_splat(712.0)), d_lt(a.high, d_splat(-748.0)));
    D x = d_at_least(d_at_most(a.high, 712.0), -748.0);
    VmathReduced r = vmath_reduce(x, d_select(outside, d_splat(0.0), a.low));
    D2 s = vmath_fast_two_sum(d_splat(1.0), r.r);
    return vmath_scale(s.high + (s.low + r.c), r.k + d_splat(shift));
}

// e^x − 1 = 2^k (r + c), for −40 ≤ x ≤ 712.
LANES_FN VmathReduced vmath_expm1_reduced(D x) {
    VmathReduced r = vmath_reduce(x, d_splat(0.0));
    D one = d_splat(1.0) - vmath_scale(d_splat(1.0), -r.k);
    D2 a = vmath_two_sum(one, r.r);
    D2 b = vmath_two_sum(a.high, r.c);
    return vmath_reduced(r.k, b.high, a.low + b.low);
}

VMATH_FN D d_expm1(D x) {
    VmathReduced r = vmath_expm1_reduced(d_at_least(d_at_most(x, 710.0), -40.0));
    // e^x − 1 has the sign of x; this keeps the sign of a zero
    return d_copysign(vmath_scale(r.r + r.c, r.k), x);
}

// x = 2^e (1 + f) with √½ ≤ 1 + f < √2, for positive finite x.
typedef struct {
    D e, f;
} VmathSplit;

LANES_FN VmathSplit vmath_split(D x) {
#ifdef LANES_AVX512
    D mantissa = _mm512_getmant_pd(x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
    // twice the √½ of the bits below
    VmathSplit a;
    B upper = d_ge(mantissa, d_splat(0x1.6a09e667f3bcdp0));
    D e = _mm512_getexp_pd(x);
    a.e = _mm512_mask_add_pd(e, upper, e, d_splat(1.0));
    a.f = _mm512_mask_mul_pd(mantissa, upper, mantissa, d_splat(0.5)) - 1.0;
    return a;
#else
    VmathSplit a;
    B small = d_lt(x, d_splat(0x1p-1022));
    I bits = d_bits(x * d_select(small, d_splat(0x1p54), d_splat(1.0)));
    // e + 1024, which is not negative, in the upper bits
    I above = i_sub(bits, i_splat(0x3fe6a09e667f3bcd - 0x4000000000000000));
    D e = d_from_bits(i_or(i_shr(above, 52), d_bits(d_splat(0x1p52)))) - d_splat(0x1p52 + 1024.0);
    I power = i_sub(i_and(above, i_splat((int64_t)0xfff0000000000000)), i_splat(0x4000000000000000));
    a.e = e + d_select(small, d_splat(-54.0), d_splat(0.0));
    a.f = d_from_bits(i_sub(bits, power)) - 1.0;
    return a;
#endif
}

LANES_FN D vmath_log_split(D e, D f) {
    D s = f / (2.0 + f);
    D z = s * s;
    D w = z * z;
    D hf = 0.5 * f * f;
    D t1 = w * H3(w, 0.3999999999940942, 0.22222198432149784, 0.15313837699209373);
    D t2 = z * H4(w, 0.6666666666666735, 0.2857142874366239, 0.1818357216161805, 0.14798198605116586);
    D r = t1 + t2;
    D low = e * VMATH_LN2_LOW;
    return e * VMATH_LN2_HIGH - ((hf - d_fma(s, hf + r, low)) - f);
}

// y, but the logarithm of x where that is 0, infinite, negative or NaN.
LANES_FN D vmath_log_special(D x, D y) {
#ifdef LANES_AVX512
    // from the lowest digit: a NaN itself (twice), −∞ for 0, 1 left, NaN for −∞, ∞ for ∞, NaN for negative, positive left
    return _mm512_fixupimm_pd(y, x, _mm512_set1_epi64(0x03530422), 0);
#else
    y = d_select(d_eq(x, d_splat(0.0)), d_splat(-VMATH_INFINITY), y);
    y = d_select(d_lt(x, d_splat(0.0)), d_splat(VMATH_NAN), y);
    return d_select(d_le(x, d_splat(VMATH_MAX)), y, x);
#endif
}

VMATH_FN D d_log(D x) {
    VmathSplit a = vmath_split(x);
    return vmath_log_special(x, vmath_log_split(a.e, a.f));
}

VMATH_FN D d_log1p(D x) {
    D above = 1.0 + x;
    D e = vmath_split(above).e;
    D factor = vmath_scale(d_splat(1.0), -e);
    D y = vmath_log_split(e, d_fma(x, factor, factor - 1.0));
    // ln(1 + x) has the sign of x; this keeps the sign of a zero
    return d_copysign(vmath_log_special(above, y), x);
}

VMATH_FN D d_log1m(D x) { return d_log1p(-x); }

VMATH_FN D d_log1m_exp(D x) {
    B far = d_lt(x, d_splat(-VMATH_LN2));
    D y = x;
    if (!b_all(far)) y = d_log(-d_expm1(x));
    if (b_any(far)) y = d_select(far, d_log1p(-d_exp(x)), y);
    return y;
}

VMATH_FN D d_inv_cloglog(D x) { return -d_expm1(-d_exp(x)); }

VMATH_FN D d_lmultiply(D x, D y) {
    D zero = d_splat(0.0);
    return d_select(b_and(d_eq(x, zero), d_eq(y, zero)), zero, x * d_log(y));
}

// ln(1 + x) for 0 ≤ x ≤ 1, where e is 0 or 1.
LANES_FN D vmath_log1p_small(D x) {
    B upper = d_ge(1.0 + x, d_splat(0x1.6a09e667f3bcdp0));
    D f = d_select(upper, d_fma(x, d_splat(0.5), d_splat(-0.5)), x);
    return vmath_log_split(d_select(upper, d_splat(1.0), d_splat(0.0)), f);
}

VMATH_FN D d_inv_logit(D x) {
    D e = vmath_exp_inside(d_at_least(-d_abs(x), -746.0));
    return d_select(d_lt(x, d_splat(0.0)), e, d_splat(1.0)) / (1.0 + e);
}

VMATH_FN D d_log1p_exp(D x) {
    D e = vmath_exp_inside(d_at_least(-d_abs(x), -746.0));
    return d_at_least(x, 0.0) + vmath_log1p_small(e);
}

VMATH_FN D d_log_add_exp(D x, D y) {
    B first = d_ge(x, y);
    D larger = d_select(first, x, y), smaller = d_select(first, y, x);
    D distance = d_select(d_eq(x, y), d_splat(0.0), larger - smaller);
    D e = vmath_exp_inside(d_at_least(-distance, -746.0));
    return larger + vmath_log1p_small(e);
}

VMATH_FN D d_log_inv_logit(D x) { return -d_log1p_exp(-x); }

// ------------------------------------------------------------------------------------------------------------ power

// The natural logarithm of positive finite numbers in two doubles.
LANES_FN D2 vmath_log_double(D x) {
    VmathSplit a = vmath_split(x);
    D2 s = vmath_divide(vmath_pair(a.f, d_splat(0.0)), vmath_two_sum(d_splat(2.0), a.f));
    s = vmath_fast_two_sum(s.high, s.low);
    D2 z = vmath_multiply(s, s);
    z = vmath_fast_two_sum(z.high, z.low);
    D q = H11(z.high, 2.0 / 7.0, 2.0 / 9.0, 2.0 / 11.0, 2.0 / 13.0, 2.0 / 15.0, 2.0 / 17.0, 2.0 / 19.0, 2.0 / 21.0,
              2.0 / 23.0, 2.0 / 25.0, 2.0 / 27.0);
    D2 p = vmath_fast_two_sum(d_splat(0.4), z.high * q);
    D2 b = vmath_multiply(vmath_pair(p.high, p.low - 2.2204460492503132e-17), z);
    D2 c = vmath_fast_two_sum(d_splat(2.0 / 3.0), b.high);
    c.low = c.low + (b.low + 3.700743415417188e-17);
    D2 g = vmath_multiply(vmath_multiply(s, z), c);
    D2 m = vmath_fast_two_sum(2.0 * s.high, g.high);
    m.low = m.low + d_fma(d_splat(2.0), s.low, g.low);
    // + e ln 2
    D2 h = vmath_two_sum(a.e * VMATH_LN2_HIGH, m.high);
    D2 k = vmath_two_product(a.e, d_splat(VMATH_LN2_LOW));
    D2 t = vmath_two_sum(h.high, k.high);
    D low = d_fma(a.e, d_splat(1.1612227229362532e-26), k.low) + (t.low + (h.low + m.low));
    return vmath_fast_two_sum(t.high, low);
}

LANES_FN D vmath_log_to_base(D x, double inverse, double inverse_low) {
    D2 l = vmath_log_double(x);
    D2 p = vmath_two_product(l.high, d_splat(inverse));
    D y = p.high + d_fma(l.high, d_splat(inverse_low), d_fma(l.low, d_splat(inverse), p.low));
    return vmath_log_special(x, y);
}

VMATH_FN D d_log2(D x) { return vmath_log_to_base(x, VMATH_LOG2_E, 2.0355273740931033e-17); }

VMATH_FN D d_log10(D x) { return vmath_log_to_base(x, 0.4342944819032518, 1.098319650216765e-17); }

VMATH_FN D d_pow(D x, D y) {
    D ax = d_abs(x), zero = d_splat(0.0), one = d_splat(1.0);
    D2 l = vmath_log_double(ax);
    D yc = d_at_least(d_at_most(y, 7.378697629483821e+19), -7.378697629483821e+19);
    D2 p = vmath_two_product(yc, l.high);
    p.low = d_fma(yc, l.low, p.low);
    D z = vmath_exp_double(p, 0.0);

    B integer = d_eq(d_trunc(y), y);
    D half = y * 0.5;
    B odd = b_and(integer, d_ne(d_trunc(half), half));
    B nought = d_eq(ax, zero), infinite = d_gt(ax, d_splat(VMATH_MAX));
    D end = d_select(b_xor(nought, d_lt(y, zero)), zero, d_splat(VMATH_INFINITY));
    z = d_select(b_or(nought, infinite), end, z);
    z = d_select(b_and(odd, i_negative(d_bits(x))), -z, z);
    B undefined = b_andnot(b_andnot(d_lt(x, zero), infinite), integer);
    undefined = b_or(undefined, b_or(d_is_nan(x), d_is_nan(y)));
    z = d_select(undefined, d_splat(VMATH_NAN), z);
    return d_select(b_or(d_eq(y, zero), d_eq(x, one)), one, z);
}

VMATH_FN D d_cbrt(D x) {
    D ax = d_abs(x);
    D2 l = vmath_log_double(ax);
    D third = l.high / 3.0;
    D rest = d_fma(d_splat(-3.0), third, l.high);
    D y = vmath_exp_double(vmath_pair(third, (rest + l.low) / 3.0), 0.0);
    B end = b_or(d_eq(ax, d_splat(0.0)), d_gt(ax, d_splat(VMATH_MAX)));
    return d_copysign(d_select(b_or(end, d_is_nan(x)), ax, y), x);
}

// ------------------------------------------------------------------------------------------------------- hyperbolic

// e^x − 1 for 0 ≤ x ≤ 50.
LANES_FN D2 vmath_expm1_double(D x) {
    VmathReduced r = vmath_expm1_reduced(x);
    D s = vmath_power_of_two(r.k);
    return vmath_pair(r.r * s, r.c * s);
}

VMATH_FN D d_tanh(D x) {
    D2 t = vmath_expm1_double(2.0 * d_at_most(d_abs(x), 22.0));
    D2 d = vmath_two_sum(d_splat(2.0), t.high);
    d.low = d.low + t.low;
    D2 q = vmath_divide(t, d);
    return d_copysign(q.high + q.low, x);
}

VMATH_FN D d_sinh(D x) {
    D ax = d_abs(x);
    D2 t = vmath_expm1_double(d_at_most(ax, 22.0));
    D2 d = vmath_two_sum(d_splat(1.0), t.high);
    d.low = d.low + t.low;
    D2 q = vmath_divide(t, d);
    D2 s = vmath_two_sum(t.high, q.high);
    D y = 0.5 * (s.high + (s.low + (t.low + q.low)));
    B large = d_gt(ax, d_splat(22.0));
    if (b_any(large)) y = d_select(large, vmath_exp_double(vmath_pair(ax, d_splat(0.0)), -1.0), y);
    return d_copysign(y, x);
}

VMATH_FN D d_cosh(D x) {
    D half = vmath_exp_double(vmath_pair(d_abs(x), d_splat(0.0)), -1.0);
    return half + 0.25 / half;
}

// ----------------------------------------------------------------------------------------------------- inverse_trig

// (asin √z − √z) / √z for 0 ≤ z ≤ 1/4.
LANES_FN D vmath_asin_rational(D z) {
    D p = z * H6(z, 0.16666666666666666, -0.3255658186224009, 0.20121253213486293, -0.04005553450067941,
                 0.0007915349942898145, 3.479331075960212e-05);
    D q = H5(z, 1.0, -2.403394911734414, 2.0209457602335057, -0.6882839716054533, 0.07703815055590194);
    return p / q;
}

// √z, what it lacks of the true root, and vmath_asin_rational(z), for z = (1 − |x|) / 2.
LANES_FN void vmath_asin_outer(D ax, D *s, D *low, D *r) {
    D z = (1.0 - ax) * 0.5;
    *s = d_sqrt(z);
    D rest = d_fma(-*s, *s, z);
    *low = d_select(d_gt(*s, d_splat(0.0)), 0.5 * rest / *s, d_splat(0.0));
    *r = vmath_asin_rational(z);
}

VMATH_FN D d_asin(D x) {
    D ax = d_abs(x);
    B near = d_lt(ax, d_splat(0.5));
    D inner = d_fma(x, vmath_asin_rational(d_select(near, x * x, d_splat(0.0))), x);
    D s, low, r;
    vmath_asin_outer(ax, &s, &low, &r);
    D upper = d_from_bits(i_and(d_bits(s), i_splat((int64_t)0xffffffff00000000)));
    D high = VMATH_FRAC_PI_4 - 2.0 * upper;
    D rest = s - upper + low;
    D tail = d_fma(2.0 * s, r, d_fma(d_splat(2.0), rest, d_splat(-VMATH_FRAC_PI_2_MID)));
    D y = d_copysign(VMATH_FRAC_PI_4 - (tail - high), x);
    y = d_select(near, inner, y);
    return d_select(d_gt(ax, d_splat(1.0)), d_splat(VMATH_NAN), y);
}

VMATH_FN D d_acos(D x) {
    D ax = d_abs(x);
    B near = d_lt(ax, d_splat(0.5));
    D r = vmath_asin_rational(d_select(near, x * x, d_splat(0.0)));
    D inner = VMATH_FRAC_PI_2 - (x - d_fma(-x, r, d_splat(VMATH_FRAC_PI_2_MID)));
    D s, low;
    vmath_asin_outer(ax, &s, &low, &r);
    D half = s + d_fma(s, r, low);
    D positive = 2.0 * half;
    D negative = VMATH_PI - 2.0 * (s + (d_fma(s, r, low) - 0.5 * 1.2246467991473532e-16));
    D y = d_select(d_gt(x, d_splat(0.0)), positive, negative);
    y = d_select(near, inner, y);
    return d_select(d_gt(ax, d_splat(1.0)), d_splat(VMATH_NAN), y);
}

// atan(n / d) for n, d ≥ 0, not both 0 or both infinite.
LANES_FN D vmath_atan_ratio(D n, D d) {
    D a = n / d;
    B c0 = d_lt(a, d_splat(0.4375));
    B c1 = d_lt(a, d_splat(0.6875));
    B c2 = d_lt(a, d_splat(1.1875));
    B c3 = d_lt(a, d_splat(2.4375));
    D numerator = d_select(c3, a - 1.5, d_splat(-1.0));
    numerator = d_select(c2, a - 1.0, numerator);
    numerator = d_select(c1, d_fma(d_splat(2.0), a, d_splat(-1.0)), numerator);
    numerator = d_select(c0, a, numerator);
    D denominator = d_select(c3, d_fma(d_splat(1.5), a, d_splat(1.0)), a);
    denominator = d_select(c2, a + 1.0, denominator);
    denominator = d_select(c1, a + 2.0, denominator);
    denominator = d_select(c0, d_splat(1.0), denominator);
    D high = d_select(c3, d_splat(0.982793723247329), d_splat(VMATH_FRAC_PI_2));
    high = d_select(c2, d_splat(VMATH_FRAC_PI_4), high);
    high = d_select(c1, d_splat(0.4636476090008061), high);
    D low = d_select(c3, d_splat(1.3903311031230998e-17), d_splat(VMATH_FRAC_PI_2_MID));
    low = d_select(c2, d_splat(3.061616997868383e-17), low);
    low = d_select(c1, d_splat(2.2698777452961687e-17), low);
    D t = numerator / denominator;
    D z = t * t;
    D s = t * (z * H11(z, 0.3333333333333293, -0.19999999999876483, 0.14285714272503466, -0.11111110405462356,
                       0.09090887133436507, -0.0769187620504483, 0.06661073137387531, -0.058335701337905735,
                       0.049768779946159324, -0.036531572744216916, 0.016285820115365782));
    D outer = high - ((s - low) - t);
    return d_select(c0, t - s, outer);
}

VMATH_FN D d_atan(D x) { return d_copysign(vmath_atan_ratio(d_abs(x), d_splat(1.0)), x); }

VMATH_FN D d_atan2(D y, D x) {
    D ay = d_abs(y), ax = d_abs(x), one = d_splat(1.0);
    B both_infinite = b_and(d_gt(ay, d_splat(VMATH_MAX)), d_gt(ax, d_splat(VMATH_MAX)));
    B both_zero = b_and(d_eq(ay, d_splat(0.0)), d_eq(ax, d_splat(0.0)));
    D n = d_select(both_infinite, one, ay);
    D d = d_select(b_or(both_infinite, both_zero), one, ax);
    D angle = vmath_atan_ratio(n, d);
    angle = d_select(i_negative(d_bits(x)), VMATH_PI - (angle - 1.2246467991473532e-16), angle);
    return d_copysign(angle, y);
}

// --------------------------------------------------------------------------------------------------- error_function

// erf x for |x| ≤ 1.
LANES_FN D vmath_erf_small(D x) {
    D z = x * x;
    D p = H14(z, -0.37612638903183754, 0.11283791670955126, -0.026866170645131245, 0.005223977625442065,
              -0.0008548327023434811, 0.00012055332980539816, -1.4925650295261826e-05, 1.6462112197811115e-06,
              -1.6365792720871678e-07, 1.4806312810126733e-08, -1.2280051660773033e-09, 9.335964254377733e-11,
              -6.234670638215954e-12, 2.859015708185482e-13);
    return d_fma(x, d_fma(z, p, d_splat(0.1283791670955126)), x);
}

// erfc z for z ≥ 0.49, given z² in two doubles.
LANES_FN D vmath_erfc_tail(D z, D2 square) {
    z = d_at_most(z, 28.0);
    D t = (z - 3.0) / (z + 3.0);
    D p = H23(t, 1.2530080582697296, -0.1356211061245812, -0.04756229435345068, 0.12964515870276164,
              -0.11927366341531231, 0.06830802734396167, -0.023770514918525755, 0.002529391815994557,
              0.0018886903563243383, -0.0007798322678093783, -0.0001051597602438321, 0.00012509930361898067,
              4.94917719592702e-06, -2.010027821760931e-05, -7.300938805091438e-07, 3.4713639059084536e-06,
              3.528257297184754e-07, -6.142340842013089e-07, -1.345757565695529e-07, 9.841885063988726e-08,
              3.448928992712608e-08, -1.052429631387803e-08, -4.43334641759637e-09);
    D2 d = vmath_two_sum(d_splat(1.0), 2.0 * z);
    D r = p / d.high;
    D rl = d_fma(-r, d.low, d_fma(-r, d.high, p)) / d.high;
    D e = vmath_exp_double(vmath_pair(-square.high, -square.low), 0.0);
    return d_fma(e, r, e * rl);
}

VMATH_FN D d_erf(D x) {
    D z = d_at_most(d_abs(x), 30.0);
    B small = d_lt(z, d_splat(1.0));
    D y = vmath_erf_small(d_select(small, x, d_splat(0.0)));
    if (!b_all(small)) {
        D tail = vmath_erfc_tail(z, vmath_two_product(z, z));
        y = d_select(small, y, d_copysign(1.0 - tail, x));
    }
    return y;
}

VMATH_FN D d_erfc(D x) {
    D z = d_at_most(d_abs(x), 30.0);
    B small = d_lt(z, d_splat(0.5));
    D y = 1.0 - vmath_erf_small(d_select(small, x, d_splat(0.0)));
    if (!b_all(small)) {
        D tail = vmath_erfc_tail(z, vmath_two_product(z, z));
        tail = d_select(d_lt(x, d_splat(0.0)), 2.0 - tail, tail);
        y = d_select(small, y, tail);
    }
    return y;
}

VMATH_FN D d_phi(D x) {
    D ax = d_at_most(d_abs(x), 40.0);
    D z = ax * 0.7071067811865476;
    B small = d_lt(z, d_splat(0.5));
    D inner = d_copysign(vmath_erf_small(d_select(small, z, d_splat(0.0))), x);
    D y = d_fma(d_splat(0.5), inner, d_splat(0.5));
    if (!b_all(small)) {
        D2 s = vmath_two_product(ax, ax);
        D tail = 0.5 * vmath_erfc_tail(z, vmath_pair(0.5 * s.high, 0.5 * s.low));
        tail = d_select(d_lt(x, d_splat(0.0)), tail, 1.0 - tail);
        y = d_select(small, y, tail);
    }
    return y;
}

#define VMATH_PICK(near, middle, beyond) \
    d_select(central, d_splat(near), d_select(far, d_splat(beyond), d_splat(middle)))
#define VMATH_PICK_NEXT(sum, near, middle, beyond) sum = d_fma(sum, r, VMATH_PICK(near, middle, beyond))
VMATH_FN D d_inv_phi(D p) {
    D q = p - 0.5;
    B central = d_le(d_abs(q), d_splat(0.425));
    B far = b_splat(0);
    D r = d_fma(-q, q, d_splat(0.180625));
    if (!b_all(central)) {
        D side = d_select(d_lt(q, d_splat(0.0)), p, 1.0 - p);
        D root = d_sqrt(-d_log(d_select(central, d_splat(0.25), side)));
        far = d_gt(root, d_splat(5.0));
        r = d_select(central, r, root - d_select(far, d_splat(5.0), d_splat(1.6)));
    }
    D n = VMATH_PICK(2509.0809287301227, 0.0007745450142783414, 2.0103343992922881e-07);
    VMATH_PICK_NEXT(n, 33430.57558358813, 0.022723844989269184, 2.7115555687434876e-05);
    VMATH_PICK_NEXT(n, 67265.7709270087, 0.2417807251774506, 0.0012426609473880784);
    VMATH_PICK_NEXT(n, 45921.95393154987, 1.2704582524523684, 0.026532189526576124);
    VMATH_PICK_NEXT(n, 13731.69376550946, 3.6478483247632045, 0.29656057182850487);
    VMATH_PICK_NEXT(n, 1971.5909503065513, 5.769497221460691, 1.7848265399172913);
    VMATH_PICK_NEXT(n, 133.14166789178438, 4.630337846156546, 5.463784911164114);
    VMATH_PICK_NEXT(n, 3.3871328727963665, 1.4234371107496835, 6.657904643501103);
    D d = VMATH_PICK(5226.495278852854, 1.0507500716444169e-09, 2.0442631033899397e-15);
    VMATH_PICK_NEXT(d, 28729.085735721943, 0.0005475938084995345, 1.421511758316446e-07);
    VMATH_PICK_NEXT(d, 39307.89580009271, 0.015198666563616457, 1.8463183175100548e-05);
    VMATH_PICK_NEXT(d, 21213.794301586597, 0.14810397642748008, 0.0007868691311456133);
    VMATH_PICK_NEXT(d, 5394.196021424751, 0.6897673349851, 0.014875361290850615);
    VMATH_PICK_NEXT(d, 687.1870074920579, 1.6763848301838038, 0.1369298809227358);
    VMATH_PICK_NEXT(d, 42.31333070160091, 2.053191626637759, 0.599832206555888);
    d = d_fma(d, r, d_splat(1.0));
    D ratio = n / d;
    D y = d_select(central, q * ratio, d_copysign(ratio, q));
    y = d_select(d_eq(p, d_splat(0.0)), d_splat(-VMATH_INFINITY), y);
    y = d_select(d_eq(p, d_splat(1.0)), d_splat(VMATH_INFINITY), y);
    return d_select(b_and(d_le(d_splat(0.0), p), d_le(p, d_splat(1.0))), y, d_splat(VMATH_NAN));
}

// ------------------------------------------------------------------------------------------------------------- trig

#define VMATH_FAR 0x1p30

// x = q π/2 + high + low; the lowest two bits of q count.
typedef struct {
    I q;
    D high, low;
} VmathAngle;

LANES_FN VmathAngle vmath_angle_of(I q, D high, D low) {
    VmathAngle a;
    a.q = q;
    a.high = high;
    a.low = low;
    return a;
}

VMATH_TABLE uint64_t vmath_two_over_pi[21] = {
    0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41,
    0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
    0xf0cfbc209af4361d,
};

LANES_FN uint64_t vmath_mul_high(uint64_t a, uint64_t b) {
#ifdef __CUDACC__
    return __umul64hi(a, b);
#else
    return (uint64_t)(((unsigned __int128)a * b) >> 64);
#endif
}

LANES_FN int vmath_leading_zeros(uint64_t a) {
#ifdef __CUDACC__
    return __clzll((long long)a);
#else
    return __builtin_clzll(a);
#endif
}

LANES_FN uint64_t vmath_window(int start) {
    int index = start / 64, shift = start % 64;
    uint64_t high = vmath_two_over_pi[index], low = vmath_two_over_pi[index + 1];
    return shift == 0 ? high : high << shift | low >> (64 - shift);
}

LANES_FN double vmath_bits_double(uint64_t bits) {
    double a;
    LANES_C(memcpy)(&a, &bits, 8);
    return a;
}

// One lane: Payne and Hanek's reduction for |x| ≥ 2^30.
LANES_FN void vmath_reduce_far(double x, int64_t *q_out, double *high_out, double *low_out) {
    uint64_t bits;
    LANES_C(memcpy)(&bits, &x, 8);
    int minus = (int)(bits >> 63);
    bits &= INT64_MAX;
    if (bits >= 0x7ff0000000000000) {
        *q_out = 0;
        *high_out = VMATH_NAN;
        *low_out = 0.0;
        return;
    }
    uint64_t mantissa = (bits & 0x000fffffffffffff) | 0x0010000000000000;
    int start = (int)(bits >> 52) - 1075 - 2 + 64;
    // the low 192 bits of mantissa · window
    uint64_t w0 = vmath_window(start), w1 = vmath_window(start + 64), w2 = vmath_window(start + 128);
    uint64_t low = mantissa * w2;
    uint64_t carry = vmath_mul_high(mantissa, w2);
    uint64_t mid = mantissa * w1 + carry;
    uint64_t top = mantissa * w0 + vmath_mul_high(mantissa, w1) + (mid < carry);
    uint64_t q = top >> 62;
    uint64_t fraction = top << 2 | mid >> 62, fraction_low = mid << 2 | low >> 62;
    int negative = (int)(fraction >> 63);
    if (negative) {
        q += 1;
        fraction = ~fraction + (fraction_low == 0);
        fraction_low = -fraction_low;
    }
    int zeros = fraction != 0 ? vmath_leading_zeros(fraction) : 64 + vmath_leading_zeros(fraction_low);
    if (zeros >= 64) {
        fraction = fraction_low;
        fraction_low = 0;
    }
    int shift = zeros % 64;
    if (shift > 0) {
        fraction = fraction << shift | fraction_low >> (64 - shift);
        fraction_low <<= shift;
    }
    double h = (double)(int64_t)(fraction >> 11) * vmath_bits_double((uint64_t)(-53 - zeros + 1023) << 52);
    double l = (double)(int64_t)((fraction & 0x7ff) << 42 | fraction_low >> 22) *
               vmath_bits_double((uint64_t)(-106 - zeros + 1023) << 52);
    double p = h * VMATH_FRAC_PI_2;
    double e = LANES_C(fma)(h, VMATH_FRAC_PI_2, -p);
    double r = LANES_C(fma)(l, VMATH_FRAC_PI_2, LANES_C(fma)(h, VMATH_FRAC_PI_2_MID, e));
    double sum = p + r;
    double rest = r - (sum - p);
    int flip = negative != minus;
    *q_out = (int64_t)(minus ? -q : q);
    *high_out = flip ? -sum : sum;
    *low_out = flip ? -rest : rest;
}

// Puts the angles of the lanes beyond FAR in.
VMATH_FAR_FN void vmath_repair_far(const double *x, int64_t *q, double *high, double *low) {
    for (int l = 0; l < LANES; l++)
        if (x[l] > VMATH_FAR || x[l] < -VMATH_FAR) vmath_reduce_far(x[l], &q[l], &high[l], &low[l]);
}

LANES_FN VmathAngle vmath_angle(D x) {
    D kd = d_fma(x, d_splat(0.6366197723675814), d_splat(VMATH_SHIFT));
    I q = d_bits(kd);
    kd = kd - VMATH_SHIFT;
    D first = d_fma(-kd, d_splat(VMATH_FRAC_PI_2), x);
    D2 p = vmath_two_product(kd, d_splat(VMATH_FRAC_PI_2_MID));
    D2 r = vmath_two_sum(first, -p.high);
    D rl = d_fma(-kd, d_splat(-1.4973849048591698e-33), r.low - p.low);
    D2 a = vmath_fast_two_sum(r.high, rl);
    a.high = d_select(d_eq(x, d_splat(0.0)), x, a.high);
    if (b_any(d_gt(d_abs(x), d_splat(VMATH_FAR)))) {
        double xs[LANES], highs[LANES], lows[LANES];
        int64_t qs[LANES];
        d_store(xs, x);
        i_store(qs, q);
        d_store(highs, a.high);
        d_store(lows, a.low);
        vmath_repair_far(xs, qs, highs, lows);
        return vmath_angle_of(i_load(qs), d_load(highs), d_load(lows));
    }
    return vmath_angle_of(q, a.high, a.low);
}

LANES_FN D vmath_sin_kernel(D x, D tail) {
    D z = x * x;
    D v = z * x;
    D r = H5(z, 0.00833333333332249, -0.0001984126982985795, 2.7557313707070068e-06, -2.5050760253406863e-08,
             1.58969099521155e-10);
    return x - ((z * (0.5 * tail - v * r) - tail) - v * -0.16666666666666632);
}

LANES_FN D vmath_cos_kernel(D x, D tail) {
    D z = x * x;
    D r = z * H6(z, 0.0416666666666666, -0.001388888888887411, 2.480158728947673e-05, -2.7557314351390663e-07,
                 2.087572321298175e-09, -1.1359647557788195e-11);
    D hz = 0.5 * z;
    D w = 1.0 - hz;
    return w + (((1.0 - w) - hz) + (z * r - x * tail));
}

VMATH_FN D d_sin(D x) {
    VmathAngle a = vmath_angle(x);
    D s = vmath_sin_kernel(a.high, a.low);
    D c = vmath_cos_kernel(a.high, a.low);
    return vmath_turn(d_select(i_has(a.q, 1), c, s), a.q, 1);
}

VMATH_FN D d_cos(D x) {
    VmathAngle a = vmath_angle(x);
    D s = vmath_sin_kernel(a.high, a.low);
    D c = vmath_cos_kernel(a.high, a.low);
    return vmath_turn(d_select(i_has(a.q, 1), s, c), i_add(a.q, i_splat(1)), 1);
}

VMATH_FN D d_tan(D x) {
    VmathAngle a = vmath_angle(x);
    D s = vmath_sin_kernel(a.high, a.low);
    D c = vmath_cos_kernel(a.high, a.low);
    B odd = i_has(a.q, 1);
    return d_select(odd, -c, s) / d_select(odd, s, c);
}

LANES_FN void vmath_sincospi(D x, D *sine, D *cosine) {
    D kd = d_fma(x, d_splat(2.0), d_splat(VMATH_SHIFT));
    I q = d_bits(kd);
    kd = kd - VMATH_SHIFT;
    D r = d_fma(kd, d_splat(-0.5), x);
    D t = r * VMATH_PI;
    D tl = d_fma(r, d_splat(VMATH_PI), -t);
    tl = d_fma(r, d_splat(1.2246467991473532e-16), tl);
    D z = t * t;
    D p = H8(z, -0.16666666666666666, 8.333333333333333e-03, -1.984126984126984e-04, 2.7557319223985893e-06,
             -2.505210838544172e-08, 1.6059043836821613e-10, -7.647163731819816e-13, 2.8114572543455206e-15);
    D c = H7(z, 0.041666666666666664, -1.388888888888889e-03, 2.48015873015873e-05, -2.755731922398589e-07,
             2.08767569878681e-09, -1.1470745597729725e-11, 4.779477332387385e-14);
    D hz = 0.5 * z;
    D w = 1.0 - hz;
    D ct = w + (((1.0 - w) - hz) + d_fma(z * z, c, -t * tl));
    D st = t + d_fma(p * z, t, d_fma(tl, -hz, tl));
    B odd = i_has(q, 1);
    *sine = vmath_turn(d_select(odd, ct, st), q, 1);
    *cosine = vmath_turn(d_select(odd, st, ct), i_add(q, i_splat(1)), 1);
}

// ------------------------------------------------------------------------------------------------------------ gamma

#define VMATH_LARGE 8.0

LANES_FN void vmath_sincospi_any(D a, D *sine, D *cosine) {
    vmath_sincospi(d_fma(d_splat(-2.0), d_floor(0.5 * a), a), sine, cosine);
}

// What Stirling's formula for ln Γ(x) lacks, for x ≥ 8.
LANES_FN D vmath_stirling_series(D x) {
    D w = 1.0 / x;
    D w2 = w * w;
    return w * H9(w2, 1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360360.0,
                  1.0 / 156.0, -3617.0 / 122400.0, 43867.0 / 244188.0);
}

// ln |Γ(x)| for x > −1/2 (and for −0).
LANES_FN D vmath_lgamma_positive(D x) {
    B large = d_ge(x, d_splat(VMATH_LARGE));
    D argument = x, e = x;
    B near_one = b_splat(0);
    if (!b_all(large)) {
        D t = x;
        D product = d_splat(1.0);
        for (int i = 0; i < 6; i++) {
            D below = t - 1.0;
            B step = d_ge(below, d_splat(1.5));
            t = d_select(step, below, t);
            product = d_select(step, product * below, product);
        }
        B near_zero = d_lt(x, d_splat(0.5));
        near_one = d_lt(x, d_splat(1.5));
        e = d_select(near_one, x - 1.0, t - 2.0);
        e = d_select(near_zero, x, e);
        argument = d_select(near_one, x, product);
        argument = d_select(near_zero, d_abs(x) * (1.0 + x), argument);
        argument = d_select(large, x, argument);
    }
    D l = d_log(argument);
    D small = l;
    if (!b_all(large)) {
        D at_two = H20(e, 0.42278433509846713, 0.3224670334241132, -0.06735230105319814, 0.02058080842778457,
                       -0.0073855510286681535, 0.002890510330738737, -0.0011927539120010226, 0.0005096695248853096,
                       -0.00022315475074520367, 9.945750909889392e-05, -4.4926351103833334e-05, 2.050726741605779e-05,
                       -9.438458716242811e-06, 4.374374916915131e-06, -2.0449201467015115e-06, 9.578663334114758e-07,
                       -4.303558760359961e-07, 2.0304806751615227e-07, -1.3412819758517287e-07, 6.379047507619774e-08);
        small = d_fma(e, at_two, d_select(near_one, -l, l));
    }
    if (b_none(large)) return small;
    D stirling = d_fma(x - 0.5, l - 1.0, 0.4189385332046727 + vmath_stirling_series(x));
    return d_select(large, stirling, small);
}

VMATH_FN D d_lgamma(D x) {
    B reflect = d_le(x, d_splat(-0.5));
    D a = d_abs(x);
    D y = vmath_lgamma_positive(d_select(reflect, a, x));
    if (b_any(reflect)) {
        D s, c;
        vmath_sincospi_any(a, &s, &c);
        D reflected = d_log(VMATH_PI / (a * d_abs(s))) - y;
        y = d_select(reflect, reflected, y);
        y = d_select(d_lt(x, d_splat(-VMATH_MAX)), d_splat(VMATH_INFINITY), y);
    }
    return y;
}

VMATH_FN D d_lbeta(D x, D y) {
    B less = d_lt(x, y);
    D a = d_select(less, x, y), b = d_select(less, y, x);
    D sum = a + b;
    B both_large = d_ge(a, d_splat(VMATH_LARGE)), one_large = d_ge(b, d_splat(VMATH_LARGE));
    D result = a;
    D log_gamma = a;
    if (!b_all(both_large)) log_gamma = vmath_lgamma_positive(a);
    if (!b_all(one_large)) result = log_gamma + vmath_lgamma_positive(b) - vmath_lgamma_positive(sum);
    if (b_any(one_large)) {
        D share = (0.5 * a) / (0.5 * a + 0.5 * b);
        D series = vmath_stirling_series(b) - vmath_stirling_series(sum);
        D rest = d_log1p(-share);
        D one = d_fma(b - 0.5, rest, d_fma(a, 1.0 - d_log(sum), log_gamma + series));
        result = d_select(one_large, one, result);
        if (b_any(both_large)) {
            D constant = 0.9189385332046727 - 0.5 * d_log(b) + (vmath_stirling_series(a) + series);
            result = d_select(both_large, d_fma(a - 0.5, d_log(share), d_fma(b, rest, constant)), result);
        }
    }
    D zero = d_splat(0.0);
    result = d_select(d_gt(b, d_splat(VMATH_MAX)), d_splat(-VMATH_INFINITY), result);
    result = d_select(d_eq(a, zero), d_splat(VMATH_INFINITY), result);
    B outside = b_or(d_lt(a, zero), b_or(d_is_nan(a), d_is_nan(b)));
    return d_select(outside, d_splat(VMATH_NAN), result);
}

// ψ(a) for a > 0.
LANES_FN D vmath_digamma_positive(D a) {
    B large = d_ge(a, d_splat(VMATH_LARGE));
    D small = a;
    if (!b_all(large)) {
        B below_one = d_lt(a, d_splat(1.0));
        D u = d_select(below_one, a + 1.0, a);
        D numerator = d_select(below_one, d_splat(-1.0), d_splat(0.0));
        D denominator = d_select(below_one, a, d_splat(1.0));
        for (int i = 0; i < 6; i++) {
            B step = d_ge(u, d_splat(2.0));
            D below = u - 1.0;
            u = d_select(step, below, u);
            D sum = d_fma(numerator, below, denominator);
            numerator = d_select(step, sum, numerator);
            denominator = d_select(step, denominator * below, denominator);
        }
        D v = u - 1.5;
        D p = H23(v, 0.9510558760318328, -0.4236274212814606, 0.24054248424078697, -0.14840492305388092,
                  0.09498872445289039, -0.06192213327548831, 0.040760833940846085, -0.026975796659787055,
                  0.017907248317313294, -0.011908220105959716, 0.007927021796868154, -0.005279937255532708,
                  0.003518106563802472, -0.0023454947397380833, 0.0015633696313653504, -0.0010364584817312839,
                  0.0006909255761282986, -0.00048595039220036254, 0.00032395945401345196, -0.00014480643368061614,
                  9.653646261410062e-05, -0.0001782188548855923, 0.00011881232908510335);
        D from_zero = (u - 1.4616321449683622) - 9.549995429965697e-17;
        small = d_fma(from_zero, p, numerator / denominator);
    }
    if (b_none(large)) return small;
    D w = 1.0 / a;
    D z = w * w;
    D series = z * H10(z, 1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32760.0,
                       1.0 / 12.0, -3617.0 / 8160.0, 43867.0 / 14364.0, -174611.0 / 6600.0);
    D beyond = d_log(a) - d_fma(d_splat(0.5), w, series);
    return d_select(large, beyond, small);
}

VMATH_FN D d_digamma(D x) {
    D a = d_abs(x);
    D y = vmath_digamma_positive(a);
    B reflect = d_lt(x, d_splat(0.0));
    if (b_any(reflect)) {
        D s, c;
        vmath_sincospi_any(a, &s, &c);
        D reflected = y + 1.0 / a + VMATH_PI * c / s;
        B pole = b_or(d_eq(s, d_splat(0.0)), d_gt(a, d_splat(VMATH_MAX)));
        y = d_select(reflect, d_select(pole, d_splat(VMATH_NAN), reflected), y);
    }
    return d_select(d_eq(x, d_splat(0.0)), -1.0 / x, y);
}

LANES_FN D vmath_trigamma_pair(D a, double k) {
    D p = (a + k) * (a + k), q = (a + (k + 1.0)) * (a + (k + 1.0));
    return (p + q) / (p * q);
}

// ψ′(a + 1) for a ≥ 0.
LANES_FN D vmath_trigamma_after(D a) {
    B large = d_ge(a, d_splat(VMATH_LARGE));
    D seven = 1.0 / ((a + 7.0) * (a + 7.0));
    D terms = ((seven + vmath_trigamma_pair(a, 5.0)) + vmath_trigamma_pair(a, 3.0)) + vmath_trigamma_pair(a, 1.0);
    D w = 1.0 / d_select(large, a, a + VMATH_LARGE);
    D w2 = w * w;
    D series = H11(w2, 1.0 / 6.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 5.0 / 66.0, -691.0 / 2730.0, 7.0 / 6.0,
                   -3617.0 / 510.0, 43867.0 / 798.0, -174611.0 / 330.0, 854513.0 / 138.0);
    D first = d_select(large, d_splat(-0.5), d_splat(0.5));
    D tail = d_fma(w2, d_fma(w, series, first), w);
    return d_select(large, tail, tail + terms);
}

VMATH_FN D d_trigamma(D x) {
    D a = d_abs(x);
    D after = vmath_trigamma_after(a);
    D r = 1.0 / a;
    D y = d_fma(r, r, after);
    B reflect = d_lt(x, d_splat(0.0));
    if (b_any(reflect)) {
        D s, c;
        vmath_sincospi_any(a, &s, &c);
        D t = VMATH_PI / s;
        y = d_select(reflect, d_fma(t, t, -after), y);
    }
    return y;
}

// ----------------------------------------------------------------------------------------------------------- philox

// The words of a block are the lower halves; the upper ones are junk.
typedef struct {
    I c0, c1, c2, c3;
} VmathBlock;

LANES_FN VmathBlock vmath_round(VmathBlock b, uint32_t k0, uint32_t k1) {
    VmathBlock a;
    a.c1 = i_mul_u32(b.c2, i_splat(0xCD9E8D57));
    a.c3 = i_mul_u32(b.c0, i_splat(0xD2511F53));
    a.c0 = i_xor(i_xor(i_shr(a.c1, 32), b.c1), i_splat(k0));
    a.c2 = i_xor(i_xor(i_shr(a.c3, 32), b.c3), i_splat(k1));
    return a;
}

#define VMATH_ROUND(i) b = vmath_round(b, k0 + i##u * 0x9E3779B9u, k1 + i##u * 0xBB67AE85u)
LANES_FN VmathBlock vmath_block(uint64_t seed, I lane, I draw) {
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    VmathBlock b;
    b.c0 = draw;
    b.c1 = i_shr(draw, 32);
    b.c2 = lane;
    b.c3 = i_shr(lane, 32);
    VMATH_ROUND(0), VMATH_ROUND(1), VMATH_ROUND(2), VMATH_ROUND(3), VMATH_ROUND(4);
    VMATH_ROUND(5), VMATH_ROUND(6), VMATH_ROUND(7), VMATH_ROUND(8), VMATH_ROUND(9);
    return b;
}

LANES_FN D vmath_uniform(I low, I high) {
    I a = i_or(i_shr(i_shl(low, 32), 44), i_shl(high, 20));
    I fraction = i_and(a, i_splat(0x000fffffffffffff));
    return d_from_bits(i_or(fraction, i_splat(0x3ff0000000000000))) - (1.0 - 0x1p-53);
}

VMATH_FN D d_uniform(uint64_t seed, I lane, I draw) {
    VmathBlock b = vmath_block(seed, lane, draw);
    return vmath_uniform(b.c0, b.c1);
}

VMATH_FN D d_normal(uint64_t seed, I lane, I draw) {
    VmathBlock b = vmath_block(seed, lane, draw);
    D u = vmath_uniform(b.c0, b.c1);
    VmathSplit a = vmath_split(u);
    D radius = d_sqrt(-2.0 * vmath_log_split(a.e, a.f));
    D sine, cosine;
    vmath_sincospi(2.0 * vmath_uniform(b.c2, b.c3), &sine, &cosine);
    return radius * cosine;
}

#ifdef REAL_F32
// --------------------------------------------------------------------------------------------------- exp_log_single

#define VMATH_SINGLE_SHIFT 0x1.8p23f
#define VMATH_SINGLE_LN2_HIGH 0.69314575f
#define VMATH_SINGLE_LN2_LOW 1.4286068e-6f

#ifndef LANES_AVX512
// 2^k for a whole k from −126 to 127, whose bits the addition puts into the low end of the sum.
LANES_FN R vmath_single_power_of_two(R k) {
    return r_from_bits(j_shl(r_bits(k + r_splat(VMATH_SINGLE_SHIFT + 127.0f)), 23));
}
#endif

// As vmath_scale, for k up to 250 in magnitude.
LANES_FN R vmath_single_scale(R x, R k) {
#ifdef LANES_AVX512
    return _mm256_scalef_ps(x, k);
#else
    R half = r_fma(k, r_splat(0.5f), r_splat(VMATH_SINGLE_SHIFT)) - r_splat(VMATH_SINGLE_SHIFT);
    return x * vmath_single_power_of_two(half) * vmath_single_power_of_two(k - half);
#endif
}

// e^x for −105 ≤ x ≤ 89.
LANES_FN R vmath_single_exp_inside(R x) {
    R k = r_fma(x, r_splat(1.44269504f), r_splat(VMATH_SINGLE_SHIFT)) - r_splat(VMATH_SINGLE_SHIFT);
    R r = r_fma(k, r_splat(-VMATH_SINGLE_LN2_HIGH), x);
    r = r_fma(k, r_splat(-VMATH_SINGLE_LN2_LOW), r);
    R p = r_fma(r_splat(0.001386343f), r, r_splat(0.008367436f));
    p = r_fma(p, r, r_splat(0.04166724f));
    p = r_fma(p, r, r_splat(0.16666535f));
    p = r_fma(p, r, r_splat(0.5f));
    R t = r_fma(p, r * r, r);
    return vmath_single_scale(r_splat(1.0f) + t, k);
}

// x = 2^e (1 + f) with √½ ≤ 1 + f < √2, for positive finite x.
typedef struct {
    R e, f;
} VmathSingleSplit;

LANES_FN VmathSingleSplit vmath_single_split(R x) {
    VmathSingleSplit a;
#ifdef LANES_AVX512
    R mantissa = _mm256_getmant_ps(x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
    // twice the √½ of the bits below
    B upper = r_ge(mantissa, r_splat(0x1.6a09e6p0f));
    R e = _mm256_getexp_ps(x);
    a.e = _mm256_mask_add_ps(e, upper, e, r_splat(1.0f));
    a.f = _mm256_mask_mul_ps(mantissa, upper, mantissa, r_splat(0.5f)) - r_splat(1.0f);
#else
    B small = r_lt(x, r_splat(0x1p-126f));
    J bits = r_bits(x * r_select(small, r_splat(0x1p24f), r_splat(1.0f)));
    J e = j_sar(j_sub(bits, j_splat(0x3f3504f3)), 23);
    a.e = r_from_j(e) + r_select(small, r_splat(-24.0f), r_splat(0.0f));
    a.f = r_from_bits(j_sub(bits, j_shl(e, 23))) - r_splat(1.0f);
#endif
    return a;
}

LANES_FN R vmath_single_log_split(R e, R f) {
    R q = r_fma(r_splat(-0.07622316f), f, r_splat(0.1275108f));
    q = r_fma(q, f, r_splat(-0.13160583f));
    q = r_fma(q, f, r_splat(0.14203732f));
    q = r_fma(q, f, r_splat(-0.166235f));
    q = r_fma(q, f, r_splat(0.20001103f));
    q = r_fma(q, f, r_splat(-0.25000814f));
    q = r_fma(q, f, r_splat(0.33333334f));
    R low = r_fma(r_fma(q, f, r_splat(-0.5f)), f * f, e * r_splat(VMATH_SINGLE_LN2_LOW));
    return e * r_splat(VMATH_SINGLE_LN2_HIGH) + (f + low);
}

// y, but the logarithm of x where that is 0, infinite, negative or NaN.
LANES_FN R vmath_single_log_special(R x, R y) {
#ifdef LANES_AVX512
    // as vmath_log_special
    return _mm256_fixupimm_ps(y, x, _mm256_set1_epi32(0x03530422), 0);
#else
    y = r_select(r_eq(x, r_splat(0.0f)), r_splat((float)-VMATH_INFINITY), y);
    y = r_select(r_lt(x, r_splat(0.0f)), r_splat((float)VMATH_NAN), y);
    return r_select(r_le(x, r_splat(0x1.fffffep127f)), y, x);
#endif
}

LANES_FN R vmath_single_log1p_small(R x) {
    B upper = r_ge(x + r_splat(1.0f), r_splat(0x1.6a09e6p0f));
    R f = r_select(upper, r_fma(x, r_splat(0.5f), r_splat(-0.5f)), x);
    return vmath_single_log_split(r_select(upper, r_splat(1.0f), r_splat(0.0f)), f);
}

LANES_FN R vmath_single_exp_of_minus_abs(R x) { return vmath_single_exp_inside(r_at_least(-r_abs(x), -105.0f)); }

VMATH_FN R r_exp(R x) { return vmath_single_exp_inside(r_at_least(r_at_most(x, 89.0f), -105.0f)); }

VMATH_FN R r_log(R x) {
    VmathSingleSplit a = vmath_single_split(x);
    return vmath_single_log_special(x, vmath_single_log_split(a.e, a.f));
}

VMATH_FN R r_log1p(R x) {
    R above = x + r_splat(1.0f);
    R e = vmath_single_split(above).e;
    R factor = vmath_single_scale(r_splat(1.0f), -e);
    R y = vmath_single_log_split(e, r_fma(x, factor, factor - r_splat(1.0f)));
    return r_copysign(vmath_single_log_special(above, y), x);
}

VMATH_FN R r_inv_logit(R x) {
    R e = vmath_single_exp_of_minus_abs(x);
    return r_select(r_lt(x, r_splat(0.0f)), e, r_splat(1.0f)) / (e + r_splat(1.0f));
}

VMATH_FN R r_log1p_exp(R x) { return r_at_least(x, 0.0f) + vmath_single_log1p_small(vmath_single_exp_of_minus_abs(x)); }

VMATH_FN R r_log_inv_logit(R x) { return -r_log1p_exp(-x); }

#endif
// ------------------------------------------------------------------------------------------------------------ reals

// What stands in `functions.h` is made from the table in `src/vmath/functions.rs`: the functions of doubles as those of reals,
// or, for floats, these of each function that has no text above.
#define VMATH_IN_F64(name) \
    LANES_FN R r_##name(R x) { return r_from_d(d_##name(d_from_r(x))); }
#define VMATH_IN_F64_2(name) \
    LANES_FN R r_##name(R x, R y) { return r_from_d(d_##name(d_from_r(x), d_from_r(y))); }
#include "functions.h"
// Sums of logarithms: what a block begins with, an element more, and the end of the block.
LANES_FN R r_sum_log_start(void) { return r_splat(1); }
LANES_FN R r_sum_log1p_exp_start(void) { return r_splat(0); }
#ifdef REAL_F32
LANES_FN void r_sum_log_step(R *product, R *addends, R x) {
    VmathSingleSplit a = vmath_single_split(x);
    B ordinary = b_and(r_gt(x, r_splat(0.0f)), r_le(x, r_splat(0x1.fffffep127f)));
    R special = r_select(r_lt(x, r_splat(0.0f)), r_splat((float)VMATH_NAN), x);
    *product = *product * r_select(ordinary, a.f + r_splat(1.0f), special);
    *addends = *addends + r_select(ordinary, a.e, r_splat(0.0f));
}
LANES_FN R r_sum_log_end(R product, R addends) {
    VmathSingleSplit a = vmath_single_split(product);
    return vmath_single_log_special(product, vmath_single_log_split(a.e + addends, a.f));
}
LANES_FN void r_sum_log1p_exp_step(R *product, R *addends, R x) {
    R e = vmath_single_exp_of_minus_abs(x);
    *product = r_fma(*product, e + r_splat(1.0f), e);
    *addends = *addends + r_at_least(x, 0.0f);
}
#else
LANES_FN void r_sum_log_step(R *product, R *addends, R x) {
    VmathSplit a = vmath_split(x);
    B ordinary = b_and(d_gt(x, d_splat(0.0)), d_le(x, d_splat(VMATH_MAX)));
    R special = d_select(d_lt(x, d_splat(0.0)), d_splat(VMATH_NAN), x);
    *product = *product * d_select(ordinary, 1.0 + a.f, special);
    *addends = *addends + d_select(ordinary, a.e, d_splat(0.0));
}
LANES_FN R r_sum_log_end(R product, R addends) {
    VmathSplit a = vmath_split(product);
    return vmath_log_special(product, vmath_log_split(a.e + addends, a.f));
}
LANES_FN void r_sum_log1p_exp_step(R *product, R *addends, R x) {
    R e = vmath_exp_inside(d_at_least(-d_abs(x), -746.0));
    *product = d_fma(*product, 1.0 + e, e);
    *addends = *addends + d_at_least(x, 0.0);
}
#endif
LANES_FN R r_sum_log1p_exp_end(R product, R addends) { return addends + r_log1p(product); }

#ifdef REAL_F32
// The upper 23 bits of the second word make a number that is a float exactly.
LANES_FN R r_uniform(uint64_t seed, I lane, I draw) {
    VmathBlock b = vmath_block(seed, lane, draw);
    I fraction = i_shl(i_shr(i_shl(b.c1, 32), 41), 29);
    return r_from_d(d_from_bits(i_or(fraction, i_splat(0x3ff0000000000000))) - (1.0 - 0x1p-24));
}
LANES_FN R r_normal(uint64_t seed, I lane, I draw) { return r_from_d(d_normal(seed, lane, draw)); }
#else
#define r_uniform d_uniform
#define r_normal d_normal
#endif
// How many draws the lane has made.
LANES_FN I i_drawn(uint64_t seed, I lane, I draw) {
    (void)seed, (void)lane;
    return draw;
}

#endif
