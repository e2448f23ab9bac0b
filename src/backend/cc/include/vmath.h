// Elementary functions and random draws of groups of lanes, line by line the twin of `src/vmath/*.rs`, with equal bits.
//
//   R r_exp(R)      r_expm1  r_log  r_log1p  r_log2  r_log10  r_inv_logit  r_log1p_exp  r_log_inv_logit
//     r_sin  r_cos  r_tan  r_asin  r_acos  r_atan  r_sinh  r_cosh  r_tanh
//     r_erf  r_erfc  r_phi  r_inv_phi  r_lgamma  r_digamma  r_trigamma
//   R r_pow(R x, R y)    R r_atan2(R y, R x)
//   R r_uniform(uint64_t seed, I lane, I draw)    R r_normal(uint64_t seed, I lane, I draw)
//
// Each is also there with the prefix d_, of doubles; with floats r_ is d_ rounded. What the functions do and where they come
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

// ln(1 + x) for finite x > −1, except for the sign of a zero.
LANES_FN D vmath_log1p_inside(D x, D above) {
    D e = vmath_split(above).e;
    D factor = vmath_scale(d_splat(1.0), -e);
    return vmath_log_split(e, d_fma(x, factor, factor - 1.0));
}

VMATH_FN D d_log1p(D x) {
    D above = 1.0 + x;
    return d_copysign(vmath_log_special(above, vmath_log1p_inside(x, above)), x);
}

VMATH_FN D d_inv_logit(D x) {
    D e = vmath_exp_inside(d_at_least(-d_abs(x), -746.0));
    return d_select(d_lt(x, d_splat(0.0)), e, d_splat(1.0)) / (1.0 + e);
}

VMATH_FN D d_log1p_exp(D x) {
    D e = vmath_exp_inside(d_at_least(-d_abs(x), -746.0));
    return d_at_least(x, 0.0) + vmath_log1p_inside(e, 1.0 + e);
}

VMATH_FN D d_log_inv_logit(D x) { return -d_log1p_exp(-x); }

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

// ------------------------------------------------------------------------------------------------------------ reals

#ifdef REAL_F32
#define VMATH_REAL(name) \
    LANES_FN R r_##name(R x) { return r_from_d(d_##name(d_from_r(x))); }
VMATH_REAL(exp)
VMATH_REAL(expm1)
VMATH_REAL(log)
VMATH_REAL(log1p)
VMATH_REAL(inv_logit)
VMATH_REAL(log1p_exp)
VMATH_REAL(log_inv_logit)
VMATH_REAL(sin)
VMATH_REAL(cos)
VMATH_REAL(tan)
// The upper 23 bits of the second word make a number that is a float exactly.
LANES_FN R r_uniform(uint64_t seed, I lane, I draw) {
    VmathBlock b = vmath_block(seed, lane, draw);
    I fraction = i_shl(i_shr(i_shl(b.c1, 32), 41), 29);
    return r_from_d(d_from_bits(i_or(fraction, i_splat(0x3ff0000000000000))) - (1.0 - 0x1p-24));
}
LANES_FN R r_normal(uint64_t seed, I lane, I draw) { return r_from_d(d_normal(seed, lane, draw)); }
#else
#define r_exp d_exp
#define r_expm1 d_expm1
#define r_log d_log
#define r_log1p d_log1p
#define r_inv_logit d_inv_logit
#define r_log1p_exp d_log1p_exp
#define r_log_inv_logit d_log_inv_logit
#define r_sin d_sin
#define r_cos d_cos
#define r_tan d_tan
#define r_uniform d_uniform
#define r_normal d_normal
#endif

#endif
