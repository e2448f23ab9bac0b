// What generated functions share: how they are called, traps and stacks.
#include "lanes.h"
#include "vmath.h"

_Static_assert(LANES <= AB_PADDING, "buffers are padded for a whole group of lanes");

// Lanes of a group, for the caller to know; the parts of a text all have it.
__attribute__((weak)) const int64_t autobatch_group = LANES;

// The memory of a stack: level h, laid out like a lane buffer, holds the values with h values below them.
struct ab_stack {
    void *memory;
    uint32_t *heights;
    uint64_t pushes;
    uint32_t highest;
    // For which there is memory.
    uint32_t levels;
};
struct ab_trap {
    uint32_t lane, site;
    // The index that is out of range.
    int64_t index;
};
// What a function of a tile works on: what it reads, from the first row of the tile on; where its results go.
struct ab_tile {
    const void *const *reads;
    void *const *stores;
    int64_t rows, width;
    // Whether results for all rows go on from those of the tiles before.
    int64_t goes_on;
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
    // Where the lanes wait, for functions that send them on: by unit a mask of whole words, and how many; the units at which
    // some do.
    uint64_t *waiting;
    uint32_t *counts;
    uint64_t *occupied;
    // Gets the lanes that are done, and how many; zeros before.
    uint64_t *done;
    int64_t finished;
    // The stacks of return addresses, and how high they may be.
    struct ab_stack *returns;
    uint32_t deepest;
    // For regions: how high tapes may be; makes room for one more level of a tape, or returns 0; how often the blocks run, if
    // that is counted; by which exit the lanes left; whether they are to stop, for whom, and whether they did.
    uint32_t tape_limit;
    int (*grow)(struct ab_call *, int64_t);
    void *tapes;
    uint64_t *ran;
    int64_t left;
    const uint8_t *stop;
    const uint8_t *ended;
    int64_t stopped;
    // For arrays that are too large for the stack.
    void *scratch;
    // For straight code: the block that the lane enters at; how often it may still come to the unit whose visits are counted;
    // notes how high stacks and tapes are when it makes an attempt.
    int64_t entry, visits;
    void (*note)(struct ab_call *, uint32_t, uint32_t, const uint32_t *);
    // Compute a function of each of so many reals, by its number.
    void (*map1)(int64_t, const void *, void *, int64_t);
    void (*map2)(int64_t, const void *, const void *, void *, int64_t);
    // Computes log1p_exp and inv_logit of each of so many reals.
    void (*twins)(const void *, void *, void *, int64_t);
    // Computes the sum of log1p_exp of so many reals, and inv_logit of each.
    void (*sum_and_map)(const void *, void *, void *, int64_t);
    // Makes so many draws of reals, by the number of the kind: of this seed and lane, from this draw on.
    void (*random)(int64_t, uint64_t, uint64_t, int64_t, void *, int64_t);
    // Runs a kernel, by its number, with operands that stand here.
    void (*kernel)(struct ab_call *, int64_t, const void *const *, void *);
    // Notes a message, by its number, with values that stand here: what the lane is told that traps next.
    void (*tell)(struct ab_call *, int64_t, const void *const *);
};

#define AB_RARE(x) __builtin_expect(!!(x), 0)
// Stands before functions that lanes come to rarely.
#define AB_RARELY

// Adds what lanes have of a row of a tile to what they have at a place, in a function of a tile.
#define AB_TILE_ADD(place, value)                                                                                         \
    {                                                                                                                     \
        real *p = place;                                                                                                  \
        r_store_masked(p, g + 1 < groups ? b_splat(1) : last, r_add(r_load(p), value));                                   \
    }

// Whether the lanes of a region are to stop.
static inline int ab_is_stopped(const struct ab_call *c) {
    return __atomic_load_n(c->stop, __ATOMIC_RELAXED) | __atomic_load_n(c->ended, __ATOMIC_RELAXED);
}
// The same in straight code, once in so many turns: one of a small loop takes as long as the look does.
#define AB_LOOKS 64
#define AB_LOOK_AT_STOP if (AB_RARE(--looks == 0)) { looks = AB_LOOKS; if (ab_is_stopped(c)) { c->stopped = 1; goto leave; } }

// Draws of a lane that are made before they are asked for. A call for some takes as long as two of them, so the first
// of those that follow upon one another are made one by one, and then as many as the last time and as many again.
struct ab_ahead {
    uint64_t first, made, next, singly;
    real draws[32];
};
// Whether this draw is there.
static inline int ab_is_ahead(struct ab_call *c, struct ab_ahead *ahead, int64_t kind, int64_t lane, uint64_t draw) {
    if (draw - ahead->first < ahead->made) return 1;
    if (draw != ahead->next) ahead->made = ahead->singly = 0;
    ahead->next = draw + 1;
    if (ahead->singly++ < 3) return 0;
    ahead->first = draw;
    ahead->made = ahead->made == 0 ? 8 : ahead->made < 32 ? 2 * ahead->made : 32;
    ahead->next = draw + ahead->made;
    c->random(kind, c->seed, (uint64_t)lane, (int64_t)draw, ahead->draws, (int64_t)ahead->made);
    return 1;
}

// Stands in loops that add up several sums side by side: a compiler must not make vectors of them, whose elements would be
// added one by one.
#define AB_IN_ORDER __asm__ volatile("")

// The bits of the group of lanes from `at` on.
LANES_FN unsigned ab_bits(const uint8_t *mask, int64_t at) { return (mask[at / 8] >> (at & 7)) & ((1u << LANES) - 1); }

// Takes the lanes of `bad` out of `m`.
static __attribute__((noinline, cold, unused)) B ab_trap_at(struct ab_call *c, int64_t at, B m, B bad, uint32_t site, int64_t index) {
    unsigned bits = b_bits(b_and(bad, m));
    for (unsigned l = 0; l < LANES; l++)
        if ((bits >> l) & 1) c->traps[c->trapped++] = (struct ab_trap){(uint32_t)at + l, site, index};
    return b_andnot(m, bad);
}
// The same of indices, one a lane.
static __attribute__((noinline, cold, unused)) B ab_trap_indices(struct ab_call *c, int64_t at, B m, B bad, uint32_t site, I index) {
    unsigned bits = b_bits(b_and(bad, m));
    int64_t of[LANES];
    i_store(of, index);
    for (unsigned l = 0; l < LANES; l++)
        if ((bits >> l) & 1) c->traps[c->trapped++] = (struct ab_trap){(uint32_t)at + l, site, of[l]};
    return b_andnot(m, bad);
}
LANES_FN B ab_trap(struct ab_call *c, int64_t at, B m, B bad, uint32_t site) { return ab_trap_at(c, at, m, bad, site, 0); }
// The value of the first active lane.
LANES_FN int64_t ab_first(I x, B m) {
    int64_t of[LANES];
    i_store(of, x);
    return of[lanes_lowest(b_bits(m))];
}

// A group of heights of a stack. They are loaded once, changed in a register and stored whole: a processor hands what was
// stored on to the next load only where the store was of all that is loaded.
#ifdef LANES_AVX512
typedef __m256i H;
LANES_FN H h_none(void) { return _mm256_setzero_si256(); }
LANES_FN H h_load(const uint32_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
LANES_FN void h_store(uint32_t *p, H h) { _mm256_storeu_si256((__m256i *)p, h); }
LANES_FN H h_raise(H h, B m) { return _mm256_mask_add_epi32(h, m, h, _mm256_set1_epi32(1)); }
LANES_FN H h_lower(H h, B m) { return _mm256_mask_sub_epi32(h, m, h, _mm256_set1_epi32(1)); }
LANES_FN H h_max(H a, H b) { return _mm256_max_epu32(a, b); }
LANES_FN uint32_t h_highest(H h) {
    __m128i most = _mm_max_epu32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
    most = _mm_max_epu32(most, _mm_shuffle_epi32(most, 0x4e));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epu32(most, _mm_shuffle_epi32(most, 0xb1)));
}
LANES_FN unsigned h_equal(H h, uint32_t height) { return _mm256_cmpeq_epi32_mask(h, _mm256_set1_epi32((int)height)); }
LANES_FN unsigned h_at_least(H h, uint32_t height) { return _mm256_cmpge_epu32_mask(h, _mm256_set1_epi32((int)height)); }
LANES_FN I h_wide(H h) { return _mm512_cvtepu32_epi64(h); }
LANES_FN H h_splat(uint32_t x) { return _mm256_set1_epi32((int)x); }
LANES_FN H h_select(B c, H a, H b) { return _mm256_mask_blend_epi32(c, b, a); }
LANES_FN void h_store_masked(uint32_t *p, B m, H h) { _mm256_mask_storeu_epi32(p, m, h); }
LANES_FN H h_gather(const uint32_t *base, I index, B m) {
    return _mm512_mask_i64gather_epi32(_mm256_setzero_si256(), m, index, base, 4);
}
LANES_FN void h_scatter(uint32_t *base, I index, B m, H h) { _mm512_mask_i64scatter_epi32(base, m, index, h, 4); }
#else
typedef struct {
    uint32_t of[LANES];
} H;
LANES_FN H h_none(void) { return (H){{0}}; }
LANES_FN H h_load(const uint32_t *p) {
    H h;
    __builtin_memcpy(&h, p, sizeof h);
    return h;
}
LANES_FN void h_store(uint32_t *p, H h) { __builtin_memcpy(p, &h, sizeof h); }
LANES_FN H h_raise(H h, B m) {
    for (unsigned l = 0; l < LANES; l++) h.of[l] += (b_bits(m) >> l) & 1;
    return h;
}
LANES_FN H h_lower(H h, B m) {
    for (unsigned l = 0; l < LANES; l++) h.of[l] -= (b_bits(m) >> l) & 1;
    return h;
}
LANES_FN H h_max(H a, H b) {
    for (unsigned l = 0; l < LANES; l++) a.of[l] = a.of[l] > b.of[l] ? a.of[l] : b.of[l];
    return a;
}
LANES_FN uint32_t h_highest(H h) {
    uint32_t most = h.of[0];
    for (unsigned l = 1; l < LANES; l++) most = h.of[l] > most ? h.of[l] : most;
    return most;
}
LANES_FN unsigned h_equal(H h, uint32_t height) {
    unsigned same = 0;
    for (unsigned l = 0; l < LANES; l++) same |= (unsigned)(h.of[l] == height) << l;
    return same;
}
LANES_FN unsigned h_at_least(H h, uint32_t height) {
    unsigned high = 0;
    for (unsigned l = 0; l < LANES; l++) high |= (unsigned)(h.of[l] >= height) << l;
    return high;
}
LANES_FN H h_splat(uint32_t x) {
    H h;
    for (unsigned l = 0; l < LANES; l++) h.of[l] = x;
    return h;
}
LANES_FN H h_select(B c, H a, H b) {
    for (unsigned l = 0; l < LANES; l++) b.of[l] = (b_bits(c) >> l) & 1 ? a.of[l] : b.of[l];
    return b;
}
LANES_FN void h_store_masked(uint32_t *p, B m, H h) { h_store(p, h_select(m, h, h_load(p))); }
LANES_FN H h_gather(const uint32_t *base, I index, B m) {
    int64_t places[LANES];
    H h = h_none();
    i_store(places, index);
    for (unsigned rest = b_bits(m); rest; rest &= rest - 1) h.of[lanes_lowest(rest)] = base[places[lanes_lowest(rest)]];
    return h;
}
LANES_FN void h_scatter(uint32_t *base, I index, B m, H h) {
    int64_t places[LANES];
    i_store(places, index);
    for (unsigned rest = b_bits(m); rest; rest &= rest - 1) base[places[lanes_lowest(rest)]] = h.of[lanes_lowest(rest)];
}
#ifdef LANES_AVX2
LANES_FN I h_wide(H h) { return _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)h.of)); }
#else
LANES_FN I h_wide(H h) { return h.of[0]; }
#endif
#endif

// Of the lanes of `rest`, which are some, those that are as high as the first of them, and how high that is. `h` are the
// heights in memory.
LANES_FN unsigned ab_level(H h, const uint32_t *heights, unsigned rest, uint32_t *height) {
    *height = heights[__builtin_ctz(rest)];
    return h_equal(h, *height) & rest;
}
// Counts what was pushed: `highest` are the largest heights.
LANES_FN void ab_pushed(struct ab_stack *stack, H highest, uint64_t pushes) {
    uint32_t most = h_highest(highest);
    if (most > stack->highest) stack->highest = most;
    stack->pushes += pushes;
}

// The element of each lane of `m` at its height; heights are `stride` elements apart, fewer than 2^32. `level` is the height
// of all lanes of `m` where they are `alike`.
LANES_FN I ab_places(H h, int64_t stride) { return i_add(i_mul_u32(h_wide(h), i_splat(stride)), i_iota()); }
// `single`: whether values have one element.
#define AB_STACK(p, memory, group)                                                                                        \
    LANES_FN void p##_put(memory *to, int64_t stride, H h, B m, int alike, uint32_t level, int single, group x) {         \
        memory *row = to + (int64_t)level * stride;                                                                       \
        if (!alike)                                                                                                       \
            p##_scatter(to, ab_places(h, stride), m, x);                                                                  \
        else if (single)                                                                                                  \
            p##_store_whole(row, m, x);                                                                                   \
        else                                                                                                              \
            p##_store_masked(row, m, x);                                                                                  \
    }                                                                                                                     \
    LANES_FN group p##_take(const memory *from, int64_t stride, H h, B m, int alike, uint32_t level) {                    \
        return alike ? p##_load(from + (int64_t)level * stride) : p##_gather(from, ab_places(h, stride), m);              \
    }
// Stores under a mask with what the other lanes have, so that the next load gets it without waiting for the cache. Not for
// arrays: in narrow shards their rows overlap, and each store would wait for the one before.
#define AB_WHOLE(p, memory, group) \
    LANES_FN void p##_store_whole(memory *to, B m, group x) { p##_store(to, p##_select(m, x, p##_load(to))); }
AB_WHOLE(b, uint8_t, B)
AB_WHOLE(i, int64_t, I)
AB_WHOLE(r, real, R)
AB_WHOLE(h, uint32_t, H)
AB_STACK(h, uint32_t, H)
AB_STACK(b, uint8_t, B)
AB_STACK(i, int64_t, I)
AB_STACK(r, real, R)

// The lanes that wait at a unit wait no more: the function has their mask.
LANES_FN void ab_leave(struct ab_call *c, int64_t unit) {
    c->counts[unit] = 0;
    c->occupied[unit / 64] &= ~((uint64_t)1 << (unit & 63));
}
// So many lanes more wait at a unit.
LANES_FN void ab_arrive(struct ab_call *c, int64_t unit, uint32_t lanes) {
    c->counts[unit] += lanes;
    c->occupied[unit / 64] |= (uint64_t)(lanes > 0) << (unit & 63);
}
// The lanes of a group, at its place in a word.
LANES_FN uint64_t ab_word(unsigned bits, int64_t at) { return (uint64_t)bits << (at & 63); }
// The lanes of `m` go back to where they were called from: their return addresses are taken off. Those that have none are
// done; they go into `gone`. Returns the others.
LANES_FN B ab_return(struct ab_call *c, int64_t at, B m, H *addresses, uint64_t *gone) {
    uint32_t *heights = c->returns->heights + at;
    H before = h_load(heights);
    unsigned none = h_equal(before, 0) & b_bits(m), rest = b_bits(m) & ~none;
    *gone |= ab_word(none, at);
    *addresses = h_none();
    if (!rest) return b_splat(0);
    uint32_t level;
    unsigned same = ab_level(before, heights, rest, &level);
    B w = b_from_bits(rest);
    H h = h_lower(before, w);
    h_store(heights, h);
    const uint32_t *memory = (const uint32_t *)c->returns->memory + at;
    *addresses = h_take(memory, c->width, h, w, same == rest, level - 1);
    return w;
}
// The lanes of `m`, which are some, are called from the same place.
LANES_FN H ab_put_address(struct ab_call *c, int64_t at, B m, uint32_t address) {
    uint32_t *heights = c->returns->heights + at, level;
    H before = h_load(heights);
    unsigned same = ab_level(before, heights, b_bits(m), &level);
    h_put((uint32_t *)c->returns->memory + at, c->width, before, m, same == b_bits(m), level, 1, h_splat(address));
    H h = h_raise(before, m);
    h_store(heights, h);
    return h;
}
