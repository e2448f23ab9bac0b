// What generated functions share: how they are called, traps and stacks.
#include "lanes.h"
#include "vmath.h"

_Static_assert(LANES <= AB_PADDING, "buffers are padded for a whole group of lanes");

// Lanes of a group, for the caller to know.
const int64_t autobatch_group = LANES;

// The memory of a stack: level h, laid out like a lane buffer, holds the values with h values below them.
struct ab_stack {
    void *memory;
    uint32_t *heights;
    uint64_t pushes;
    uint32_t highest;
};
struct ab_trap {
    uint32_t lane, site;
};
struct ab_call {
    void *const *slots;
    const void *const *constants;
    struct ab_stack *stacks;
    const uint8_t *mask;
    uint8_t *taken;
    int64_t width;
    uint64_t seed;
    const int64_t *numbers;
    int64_t *draws;
    struct ab_trap *traps;
    int64_t trapped;
};

#define AB_RARE(x) __builtin_expect(!!(x), 0)

// The bits of the group of lanes from `at` on.
LANES_FN unsigned ab_bits(const uint8_t *mask, int64_t at) { return (mask[at / 8] >> (at & 7)) & ((1u << LANES) - 1); }

// Takes the lanes of `bad` out of `m`.
static __attribute__((noinline, cold, unused)) B ab_trap(struct ab_call *c, int64_t at, B m, B bad, uint32_t site) {
    unsigned bits = b_bits(b_and(bad, m));
    for (unsigned l = 0; l < LANES; l++)
        if ((bits >> l) & 1) c->traps[c->trapped++] = (struct ab_trap){(uint32_t)at + l, site};
    return b_andnot(m, bad);
}

// Of the lanes of `rest` those that are as high as the first of them, and how high that is.
LANES_FN unsigned ab_level(const uint32_t *heights, unsigned rest, uint32_t *height) {
    uint32_t h = heights[__builtin_ctz(rest)];
    *height = h;
#ifdef LANES_AVX512
    __m256i all = _mm256_loadu_si256((const __m256i *)heights);
    return _mm256_mask_cmpeq_epi32_mask((__mmask8)rest, all, _mm256_set1_epi32((int)h));
#else
    unsigned same = 0;
    for (unsigned l = 0; l < LANES; l++) same |= (unsigned)(heights[l] == h) << l;
    return same & rest;
#endif
}
LANES_FN void ab_set_heights(uint32_t *heights, unsigned lanes, uint32_t height) {
#ifdef LANES_AVX512
    _mm256_mask_storeu_epi32(heights, (__mmask8)lanes, _mm256_set1_epi32((int)height));
#else
    for (unsigned l = 0; l < LANES; l++)
        if ((lanes >> l) & 1) heights[l] = height;
#endif
}
LANES_FN void ab_raise(struct ab_stack *stack, uint32_t *heights, unsigned lanes, uint32_t height) {
    ab_set_heights(heights, lanes, height);
    if (height > stack->highest) stack->highest = height;
    stack->pushes += (unsigned)__builtin_popcount(lanes);
}
