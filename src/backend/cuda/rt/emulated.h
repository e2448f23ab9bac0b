// A GPU of threads of the host: what the text for one asks of CUDA, for tests. Collectives and barriers wait for all threads of a
// block that have not come back; blocks run one after the other. The threads take turns in one thread of the host, from one wait
// to the next, which is quick. Under ThreadSanitizer each is a thread of the host.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SANITIZE_THREAD__
#include <pthread.h>
#include <sched.h>
#define AB_OF_BLOCK static
#define AB_OF_THREAD static thread_local
static void ab_take_turns(void) { sched_yield(); }
#else
#include <sys/mman.h>
#include <ucontext.h>
// A run is in one thread of the host, and other runs are in others.
#define AB_OF_BLOCK static thread_local
#define AB_OF_THREAD static thread_local
static thread_local ucontext_t ab_all_threads, *ab_own_thread;
static void ab_take_turns(void) { swapcontext(ab_own_thread, &ab_all_threads); }
#endif

#define __CUDACC__
#define __global__
#define __device__
#define __shared__ AB_OF_BLOCK
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_assume(x)
#define AB_DYNAMIC(name) AB_OF_BLOCK real name[AB_TILES * AB_BLOCK * AB_TILE_WIDTH + 1]

// Threads that wait for one another: those that are there. All see the or of what each brought.
struct ab_gate {
    uint32_t locked, there, waiting, turns;
    int brought, seen;
};
static void ab_gate_begin(ab_gate *gate, uint32_t threads) { *gate = ab_gate{0, threads, 0, 0, 0, 0}; }
static void ab_gate_lock(ab_gate *gate) {
    while (__atomic_exchange_n(&gate->locked, 1, __ATOMIC_ACQUIRE) != 0) ab_take_turns();
}
static void ab_gate_unlock(ab_gate *gate) { __atomic_store_n(&gate->locked, 0, __ATOMIC_RELEASE); }
static void ab_gate_opens(ab_gate *gate) {
    gate->seen = gate->brought, gate->brought = 0, gate->waiting = 0;
    __atomic_fetch_add(&gate->turns, 1, __ATOMIC_RELEASE);
}
static int ab_gate_wait(ab_gate *gate, int brings) {
    ab_gate_lock(gate);
    gate->brought |= brings;
    const uint32_t turn = gate->turns;
    if (++gate->waiting == gate->there) ab_gate_opens(gate);
    ab_gate_unlock(gate);
    while (__atomic_load_n(&gate->turns, __ATOMIC_ACQUIRE) == turn) ab_take_turns();
    // Nobody opens the gate again before this thread comes back to it.
    return gate->seen;
}
static void ab_gate_leave(ab_gate *gate) {
    ab_gate_lock(gate);
    if (--gate->there == gate->waiting && gate->waiting > 0) ab_gate_opens(gate);
    ab_gate_unlock(gate);
}

struct ab_index { uint32_t x; };
AB_OF_THREAD ab_index threadIdx, blockIdx, blockDim;
AB_OF_BLOCK ab_gate ab_block_gate, ab_warp_gates[32];
AB_OF_BLOCK uint64_t ab_exchanged[32][32];

static ab_gate *ab_own_warp() { return &ab_warp_gates[threadIdx.x / 32]; }
static void __syncthreads() { ab_gate_wait(&ab_block_gate, 0); }
static int __syncthreads_or(int x) { return ab_gate_wait(&ab_block_gate, x != 0); }
static void __syncwarp() { ab_gate_wait(ab_own_warp(), 0); }
// What all threads of the warp bring, which they must all do.
struct ab_brought { uint64_t of[32]; };
static ab_brought ab_exchange(uint32_t mask, uint64_t value) {
    if (mask != 0xffffffffu) abort();
    uint64_t *const all = ab_exchanged[threadIdx.x / 32];
    all[threadIdx.x % 32] = value;
    ab_gate_wait(ab_own_warp(), 0);
    ab_brought brought;
    memcpy(brought.of, all, sizeof brought.of);
    ab_gate_wait(ab_own_warp(), 0);
    return brought;
}
static uint32_t __ballot_sync(uint32_t mask, int holds) {
    const ab_brought all = ab_exchange(mask, holds != 0);
    uint32_t bits = 0;
    for (int i = 0; i < 32; i++) bits |= (uint32_t)all.of[i] << i;
    return bits;
}
static int __any_sync(uint32_t mask, int holds) { return __ballot_sync(mask, holds) != 0; }
static uint32_t __match_any_sync(uint32_t mask, uint32_t value) {
    const ab_brought all = ab_exchange(mask, value);
    uint32_t bits = 0;
    for (int i = 0; i < 32; i++) bits |= (uint32_t)(all.of[i] == value) << i;
    return bits;
}
static uint32_t __shfl_sync(uint32_t mask, uint32_t value, int from) { return (uint32_t)ab_exchange(mask, value).of[from & 31]; }
static uint32_t __reduce_add_sync(uint32_t mask, uint32_t value) {
    const ab_brought all = ab_exchange(mask, value);
    uint32_t sum = 0;
    for (int i = 0; i < 32; i++) sum += (uint32_t)all.of[i];
    return sum;
}
static uint32_t __reduce_max_sync(uint32_t mask, uint32_t value) {
    const ab_brought all = ab_exchange(mask, value);
    uint32_t most = 0;
    for (int i = 0; i < 32; i++) most = all.of[i] > most ? (uint32_t)all.of[i] : most;
    return most;
}
template <class T, class N> static T atomicAdd(T *at, N n) { return __atomic_fetch_add(at, (T)n, __ATOMIC_RELAXED); }
template <class T, class N> static T atomicOr(T *at, N n) { return __atomic_fetch_or(at, (T)n, __ATOMIC_RELAXED); }
static int __popc(uint32_t x) { return __builtin_popcount(x); }
static int __ffs(int x) { return __builtin_ffs(x); }
static int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
static uint64_t __umul64hi(uint64_t a, uint64_t b) { return (uint64_t)(((unsigned __int128)a * b) >> 64); }
static int64_t __mul64hi(int64_t a, int64_t b) { return (int64_t)(((__int128)a * b) >> 64); }
template <class To, class From> static To ab_bits_as(From from) {
    To to;
    static_assert(sizeof to == sizeof from, "the same bits");
    memcpy(&to, &from, sizeof to);
    return to;
}
static uint32_t __float_as_uint(float x) { return ab_bits_as<uint32_t>(x); }
static int __float_as_int(float x) { return ab_bits_as<int>(x); }
static float __int_as_float(int x) { return ab_bits_as<float>(x); }
static float __uint_as_float(uint32_t x) { return ab_bits_as<float>(x); }
static long long __double_as_longlong(double x) { return ab_bits_as<long long>(x); }
static double __longlong_as_double(long long x) { return ab_bits_as<double>(x); }

struct ab_run;
extern "C" void ab_machine(const ab_run run);
