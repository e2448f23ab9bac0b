// The machine of a warp: each thread has a lane, and a scheduler that all threads of the warp share says which unit runs next.
// The same text is compiled for a GPU, with warps of 32 threads, and as C for the host, with warps of one.
#define LANES_SCALAR
#ifdef __CUDACC__
#define __builtin_expect(x, y) (x)
// As an initialiser must be.
#define __builtin_inf() (1e300 * 1e300)
#define __builtin_nan(text) (__longlong_as_double(0x7ff8000000000000LL))
#endif
#ifdef __CUDACC_RTC__
typedef unsigned short uint16_t;
#endif
#include "lanes.h"
#include "vmath.h"

#ifdef __CUDACC__
#define AB_FN static __device__ __forceinline__
#define AB_CALLED static __device__ __noinline__ __attribute__((unused))
#define AB_TABLE static __device__ const
#define AB_PRAGMA(x) _Pragma(#x)
#define AB_UNROLL(n) AB_PRAGMA(unroll n)
#define AB_ROLLED AB_PRAGMA(unroll 1)
// Before a loop of many turns: written out as a whole, as the compiler likes to, one of 100 turns takes it many seconds, and what
// a warp runs no longer stays in the cache of instructions.
#ifndef AB_LONG
#define AB_LONG AB_UNROLL(8)
#endif
// What is told of a pointer: it names memory that all threads see.
#define AB_GLOBAL(p) __builtin_assume(__isGlobal(p))
#else
#define AB_FN static inline __attribute__((unused))
#define AB_CALLED static __attribute__((noinline, unused))
#define AB_TABLE static const
#define AB_PRAGMA(x) _Pragma(#x)
#define AB_UNROLL(n) AB_PRAGMA(GCC unroll n)
#define AB_ROLLED
#define AB_LONG
#define AB_GLOBAL(p)
#endif
// Threads of a block.
#ifndef AB_THREADS
#define AB_THREADS 256
#endif
#define AB_RARE(x) __builtin_expect(!!(x), 0)
#define AB_IN_ORDER

// Where a lane waits that is nowhere, and one that waits for the host.
#define AB_NONE 0xffffffffu
#define AB_BLOCKED 0xfffffffeu
#define AB_NOBODY (~(uint64_t)0)
// In the place of a share: the first unit in the order of the program runs.
#define AB_EARLIEST 0xffffffffu
// Records: what they are.
#define AB_EMIT 1
#define AB_PRINT 2
#define AB_TRAPPED 3
#define AB_CAUGHT 4
// Return addresses that the report of a trap has, those of the innermost calls.
#define AB_ADDRESSES 16

struct ab_run {
    // Of the program.
    const void *const *constants;
    // Of the lanes of the run, by position.
    const void *const *inputs;
    void *const *outputs;
    const uint64_t *numbers;
    const uint64_t *drawn;
    uint64_t lanes;
    // How many of them have been taken.
    uint64_t *queue;
    // Of the warps and threads: lane buffers; what is pushed, by pile, and for how many levels there is room; heights noted.
    char *arena;
    void *const *piles;
    const uint32_t *levels;
    uint32_t *notes;
    // Of threads, between two calls: where they wait, whose lane they have, draws made, heights of piles, and of a trap its site
    // and index.
    uint32_t *pcs;
    uint64_t *positions;
    int64_t *draws;
    uint32_t *heights;
    uint32_t *sites;
    int64_t *indices;
    uint64_t *told;
    uint64_t *steps;
    // What lives within a region where lanes wait, word after word.
    uint64_t *kept;
    // Arrays that are too large for variables of the function.
    int64_t *scratch;
    // Of the blocks of threads, where their lanes meet.
    void *numbers_met;
    // Records, where the next goes, and from where on lanes wait.
    uint64_t *log;
    uint64_t *cursor;
    uint64_t high_water;
    // By unit, how often it ran, and for how many lanes, if that is counted.
    uint64_t *counts;
    // Set from outside; set here where there is no room for a pile, whose bit is set.
    const uint32_t *stop;
    uint64_t *overflowed;
    // Piles for which there is no more memory.
    uint64_t capped;
    uint64_t seed;
    // Blocks that a lane may run; 0 is no limit.
    uint64_t most_steps;
    uint64_t threads;
    uint32_t deepest, tape_limit;
    // Of 256 live lanes, so many make a heavy unit ready.
    uint32_t theta;
    // Threads of a block that have lanes; where lanes meet, a multiple of its warps.
    uint32_t columns;
};

// What a warp knows of itself: supersteps, looks within regions, and in which of three arrays its block counts next.
struct ab_warp {
    uint32_t steps, looks, turn;
};

#ifdef __CUDACC__
#define AB_WIDTH 32
#define AB_RECONVERGE() __syncwarp()
AB_FN uint64_t ab_add(uint64_t *at, uint64_t n) { return atomicAdd((unsigned long long *)at, (unsigned long long)n); }
AB_FN void ab_set(uint64_t *at, uint64_t bits) { atomicOr((unsigned long long *)at, (unsigned long long)bits); }
#else
#define AB_WIDTH 1
#define AB_RECONVERGE()
AB_FN uint64_t ab_add(uint64_t *at, uint64_t n) { return __atomic_fetch_add(at, n, __ATOMIC_RELAXED); }
AB_FN void ab_set(uint64_t *at, uint64_t bits) { __atomic_fetch_or(at, bits, __ATOMIC_RELAXED); }
#endif

// Whether the warps are to come to an end.
AB_FN int ab_is_stopped(const struct ab_run *c) {
    return *(const volatile uint32_t *)c->stop != 0 || *(const volatile uint64_t *)c->overflowed != 0;
}

// Which thread of the run this is. Where lanes meet, a block has helpers, which wait nowhere and keep nothing: what they read
// where a lane begins is that of the last thread.
#ifdef __CUDACC__
#ifdef AB_MEETS
#define AB_FIND_THREAD()                                                                                                  \
    /* Lanes are spread over all warps. */                                                                                \
    const uint32_t each = c->columns / (AB_THREADS / 32), column = threadIdx.x / 32 * each + threadIdx.x % 32;            \
    uint32_t thread = blockIdx.x * c->columns + column;                                                                   \
    const int is_helper = threadIdx.x % 32 >= each || thread >= c->threads;                                               \
    if (is_helper) thread = (uint32_t)c->threads - 1
#define AB_IS_HELPER is_helper
#define AB_LEAVE_EARLY()
#define AB_HELPERS_LEAVE()                                                                                                \
    if (is_helper) return
#else
#define AB_FIND_THREAD()                                                                                                  \
    const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x
#define AB_LEAVE_EARLY()                                                                                                  \
    if (thread >= c->threads) return
#endif
#endif
#ifndef AB_IS_HELPER
#define AB_IS_HELPER 0
#define AB_HELPERS_LEAVE()
#endif
// Where the lane of this thread stands in the memory of lanes, and the numbers of its block.
#ifdef AB_MEETS
#ifdef __CUDACC__
#define AB_FIND_COLUMN(arena)                                                                                             \
    const uint64_t ab_base = (uint64_t)warp_number * (arena) + in_warp * sizeof(real);                                    \
    real *const numbers = (real *)c->numbers_met + (uint64_t)blockIdx.x * (AB_NUMBERS * AB_THREADS);                      \
    (void)ab_base, (void)numbers;                                                                                         \
    AB_GLOBAL(numbers)
#else
#define AB_FIND_COLUMN(arena)                                                                                             \
    real numbers[AB_NUMBERS + 1], tiles[AB_TILES * AB_BLOCK + 1];                                                         \
    (void)numbers, (void)tiles
#endif
#else
#define AB_FIND_COLUMN(arena)
#endif
// Memory of a block that the host says the size of, for reals.
#ifndef AB_DYNAMIC
#define AB_DYNAMIC(name) extern __shared__ __align__(16) real name[]
#endif

#ifdef __CUDACC__
// Threads of the block that take part: the last block may not be full.
AB_FN uint32_t ab_here(const struct ab_run *c) {
#ifdef AB_MEETS
    return blockDim.x;
#endif
    const uint64_t rest = c->threads - (uint64_t)blockIdx.x * blockDim.x;
    return rest < blockDim.x ? (uint32_t)rest : blockDim.x;
}
// What the warps of a block have counted.
__shared__ unsigned long long ab_counted[2 * (AB_DONE + 1)];
AB_FN void ab_counts_begin(const struct ab_run *c) {
    if (!c->counts) return;
    for (uint32_t i = threadIdx.x; i < 2 * (AB_DONE + 1); i += blockDim.x) ab_counted[i] = 0;
    __syncthreads();
}
// By the threads that take part.
AB_FN void ab_counts_end(const struct ab_run *c) {
    if (!c->counts) return;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < 2 * (AB_DONE + 1); i += ab_here(c)) ab_add(c->counts + i, ab_counted[i]);
}
#else
#define ab_counts_begin(c)
#define ab_counts_end(c)
#endif

// The unit that runs next, the same for all threads of the scope, which is a warp, or where AB_SCOPE_BLOCK is defined a block;
// AB_NONE where none can go on. `weights`: of each unit what it costs, with the highest bit set where it is heavy, and the next
// one where lanes meet. The policy is that of `exec::Scheduler`: of the units that are ready that with most lanes, else that
// which moves most lanes for its weight, and the first of equal ones.
#ifdef __CUDACC__
AB_FN uint32_t ab_key(uint32_t unit, uint32_t count, uint32_t live, uint32_t weight, uint32_t theta) {
    if (theta == AB_EARLIEST) return 0x80000000u | (0xffffu - unit);
    const int ready = !(weight >> 31) || count * 256 >= theta * live;
    const uint32_t share = __float_as_uint((float)count / (float)(weight & 0x3fffffffu)) >> 16;
    return (ready ? 0x8000u | count : share) << 16 | (0xffffu - unit);
}
AB_FN void ab_count_lanes(const struct ab_run *c, uint32_t unit, uint32_t pc) {
    if (!c->counts) return;
    const uint32_t lanes = __ballot_sync(0xffffffffu, pc == unit);
    if ((threadIdx.x & 31) == 0 && lanes != 0) {
        atomicAdd(&ab_counted[2 * unit], 1u);
        atomicAdd(&ab_counted[2 * unit + 1], (uint32_t)__popc(lanes));
    }
}
#if !defined(AB_SCOPE_BLOCK) || defined(AB_MEETS)
// The unit that runs next in a warp, for the lanes that are live.
AB_FN uint32_t ab_next_of_warp(const struct ab_run *c, uint32_t pc, int is_live, uint32_t live, const uint32_t *weights) {
    const uint32_t all = 0xffffffffu;
    const uint32_t first = __shfl_sync(all, pc, __ffs((int)live) - 1);
    uint32_t unit = first;
    if (__ballot_sync(all, is_live && pc == first) != live) {
        const uint32_t count = (uint32_t)__popc(__match_any_sync(all, pc));
        uint32_t key = 0;
        if (is_live) key = ab_key(pc, count, (uint32_t)__popc(live), weights[pc], c->theta);
        unit = 0xffffu - (__reduce_max_sync(all, key) & 0xffffu);
    }
    ab_count_lanes(c, unit, pc);
    return unit;
}
#endif
#ifdef AB_SCOPE_BLOCK
// How many lanes wait at each unit. Of three arrays one is counted in, one was read in the step before, and one is cleared.
__shared__ uint32_t ab_waiting[3][AB_DONE + 1];
AB_FN void ab_scope_begin(void) {
    for (uint32_t i = threadIdx.x; i < 3 * (AB_DONE + 1); i += blockDim.x) ab_waiting[0][i] = 0;
    __syncthreads();
}
AB_FN uint32_t ab_next(const struct ab_run *c, struct ab_warp *warp, uint32_t pc, const uint32_t *weights) {
    const uint32_t all = 0xffffffffu, lane = threadIdx.x & 31, step = warp->steps++;
    int stops = (step & 127) == 127 && __any_sync(all, ab_is_stopped(c));
#ifdef AB_MEETS
    // Each warp has its own scheduler, until all of its lanes wait where they meet those of the others.
    const int is_live = pc < AB_BLOCKED && !(weights[pc] >> 30 & 1);
    const uint32_t own = __ballot_sync(all, is_live);
    if (own != 0 && !stops) return ab_next_of_warp(c, pc, is_live, own, weights);
#endif
    uint32_t *const waiting = ab_waiting[warp->turn], *const other = ab_waiting[warp->turn == 0 ? 2 : warp->turn - 1];
    warp->turn = warp->turn == 2 ? 0 : warp->turn + 1;
    const uint32_t peers = __match_any_sync(all, pc);
    if (pc < AB_BLOCKED && lane == (uint32_t)__ffs((int)peers) - 1) atomicAdd(&waiting[pc], (uint32_t)__popc(peers));
    // The same for all threads of the block.
    if (__syncthreads_or(stops)) return AB_NONE;
    uint32_t live = 0, key = 0;
    for (uint32_t unit = lane; unit <= AB_DONE; unit += 32) live += waiting[unit];
    live = __reduce_add_sync(all, live);
    if (live == 0) return AB_NONE;
    for (uint32_t unit = lane; unit <= AB_DONE; unit += 32) {
        const uint32_t count = waiting[unit];
        if (count == 0) continue;
        const uint32_t own = ab_key(unit, count, live, weights[unit], c->theta);
        if (own > key) key = own;
    }
    const uint32_t unit = 0xffffu - (__reduce_max_sync(all, key) & 0xffffu);
    for (uint32_t i = threadIdx.x; i <= AB_DONE; i += ab_here(c)) other[i] = 0;
    ab_count_lanes(c, unit, pc);
    return unit;
}
#else
#define ab_scope_begin()
AB_FN uint32_t ab_next(const struct ab_run *c, struct ab_warp *warp, uint32_t pc, const uint32_t *weights) {
    const uint32_t all = 0xffffffffu;
    if ((++warp->steps & 127) == 0 && __any_sync(all, ab_is_stopped(c))) return AB_NONE;
    const uint32_t live = __ballot_sync(all, pc < AB_BLOCKED);
    return live == 0 ? AB_NONE : ab_next_of_warp(c, pc, pc < AB_BLOCKED, live, weights);
}
#endif
#else
#define ab_scope_begin()
AB_FN uint32_t ab_next(const struct ab_run *c, struct ab_warp *warp, uint32_t pc, const uint32_t *weights) {
    (void)weights;
    if ((++warp->steps & 127) == 0 && ab_is_stopped(c)) return AB_NONE;
    if (pc >= AB_BLOCKED) return AB_NONE;
    if (c->counts) {
        ab_add(c->counts + 2 * pc, 1);
        ab_add(c->counts + 2 * pc + 1, 1);
    }
    return pc;
}
#endif

// A lane of the run that nobody has taken up.
AB_FN uint64_t ab_take(const struct ab_run *c) {
    const uint64_t position = ab_add(c->queue, 1);
    return position < c->lanes ? position : AB_NOBODY;
}

// Whether lanes must wait until the host has taken the records. There is room behind the mark for one unit of each thread.
AB_FN int ab_is_full(const struct ab_run *c) { return *(const volatile uint64_t *)c->cursor > c->high_water; }
#define AB_ROOM(unit)                                                                                                     \
    if (AB_RARE(ab_is_full(c))) {                                                                                         \
        blocked = (unit);                                                                                                 \
        pc = AB_BLOCKED;                                                                                                  \
        goto next;                                                                                                        \
    }
// A record, without its words.
AB_FN uint64_t *ab_record(const struct ab_run *c, uint32_t kind, uint32_t id, uint64_t position, uint32_t words) {
    uint64_t *const to = c->log + ab_add(c->cursor, (uint64_t)words + 2);
    to[0] = (uint64_t)words << 32 | (uint64_t)id << 8 | kind;
    to[1] = position;
    return to + 2;
}
AB_FN uint64_t ab_word_b(B x) { return (uint64_t)(x != 0); }
AB_FN uint64_t ab_word_i(I x) { return (uint64_t)x; }
AB_FN B ab_of_word_b(uint64_t word) { return word != 0; }
AB_FN I ab_of_word_i(uint64_t word) { return (I)word; }
AB_FN R ab_of_word_r(uint64_t word) { return (R)d_from_bits((I)word); }
AB_FN uint64_t ab_word_r(R x) { return (uint64_t)d_bits((double)x); }

// The lane traps: at a site, with an index that is out of range.
#define AB_TRAPS(at, of)                                                                                                  \
    {                                                                                                                     \
        site = (at);                                                                                                      \
        index = (of);                                                                                                     \
        pc = AB_TRAP;                                                                                                     \
        goto next;                                                                                                        \
    }
// Before a jump back in a region: it may take any number of turns.
#define AB_LOOK                                                                                                           \
    if (AB_RARE((++warp.looks & 255) == 0) && ab_is_stopped(c)) {                                                         \
        blocked = pc;                                                                                                     \
        pc = AB_BLOCKED;                                                                                                  \
        goto next;                                                                                                        \
    }
// A block begins: it is counted, if blocks are.
#define AB_COUNT(site)                                                                                                    \
    if (AB_RARE(c->most_steps != 0) && ++steps > c->most_steps) AB_TRAPS(site, 0)
// By site: whether an attempt catches the trap, and twice the words that it tells.
#define AB_IS_CAUGHT(site) (ab_sites[site] & 1)
#define ab_report(c, caught, site, index, depth, told)                                                                    \
    {                                                                                                                     \
        const uint32_t shown = (depth) < AB_ADDRESSES ? (depth) : AB_ADDRESSES, tells = ab_sites[site] >> 1;              \
        uint64_t *const to = ab_record(c, (caught) ? AB_CAUGHT : AB_TRAPPED, site, position, 2 + shown + tells);          \
        to[0] = (uint64_t)(index);                                                                                        \
        to[1] = (depth);                                                                                                  \
        for (uint32_t k = 0; k < shown; k++) to[2 + k] = ab_returns((depth) - 1 - k);                                     \
        for (uint32_t k = 0; k < tells; k++) to[2 + shown + k] = (told)[k * width];                                       \
    }
// There is no room on a pile: the run starts over, with more; where the device has no more memory for it, the lane traps.
#define AB_OVERFLOWS(pile, full)                                                                                          \
    {                                                                                                                     \
        if (c->capped >> ((pile) < 63 ? (pile) : 63) & 1) AB_TRAPS(full, 0)                                               \
        ab_set(c->overflowed, (uint64_t)1 << ((pile) < 63 ? (pile) : 63));                                                \
        pc = AB_NONE;                                                                                                     \
        goto next;                                                                                                        \
    }

// Plain ints: what C compilers have of themselves.
#ifdef __CUDACC__
AB_FN int ab_add_overflow(int64_t a, int64_t b, int64_t *to) { B bad; *to = i_add_over(a, b, &bad); return bad; }
AB_FN int ab_sub_overflow(int64_t a, int64_t b, int64_t *to) { B bad; *to = i_sub_over(a, b, &bad); return bad; }
AB_FN int ab_mul_overflow(int64_t a, int64_t b, int64_t *to) { B bad; *to = i_mul_over(a, b, &bad); return bad; }
#define __builtin_add_overflow ab_add_overflow
#define __builtin_sub_overflow ab_sub_overflow
#define __builtin_mul_overflow ab_mul_overflow
#endif
