// Elementary functions and random draws of groups of lanes, line by line the twin of `src/vmath/*.rs`, with equal bits.
//
//   R r_exp(R)      r_expm1  r_log  r_log1p  r_log2  r_log10  r_inv_logit  r_log1p_exp  r_log_inv_logit
//     r_sin  r_cos  r_tan  r_asin  r_acos  r_atan  r_sinh  r_cosh  r_tanh
//     r_erf  r_erfc  r_phi  r_inv_phi  r_lgamma  r_digamma  r_trigamma
//   R r_pow(R x, R y)    R r_atan2(R y, R x)
//   R r_uniform(uint64_t seed, I lane, I draw)    R r_normal(uint64_t seed, I lane, I draw)
//
// Each is also there with the prefix d_, of doubles; with floats r_ is d_ rounded.
#ifndef VMATH_H
#define VMATH_H
#include "lanes.h"
#endif
