// Where lanes meet: the threads of a block do together what all lanes that wait at a unit want of a large shared matrix. Of each
// product a column is a lane; threads without a lane help. For the host a block is one thread, and there is one column.
//
// The order of every sum is that of `vmath::dot`: chains of fused multiply-adds within AB_BLOCK elements, added in order. A
// thread has all of the chain of its elements, so any division of rows and columns among threads gives the same bits. Nothing is
// filled up with zeros along a chain.

#ifdef AB_MEETS
#ifdef __CUDACC__
#define AB_TEAM AB_THREADS
#define AB_TOGETHER() __syncthreads()
// By column where its lane stands in the memory of lanes, for reals; how many lanes of each warp are here, and of all.
__shared__ uint64_t ab_bases[AB_TEAM];
__shared__ uint32_t ab_of_warps[AB_TEAM / 32];
__shared__ uint32_t ab_columns;
// What is row by row, for as many columns as there is room for.
AB_DYNAMIC(ab_tiles);
// Parts of both matrices of a product: AB_DEEP elements of each chain at a time.
#define AB_DEEP (64 / (int)sizeof(real))
#define AB_MOST_COLUMNS (512 / (int)sizeof(real))
__shared__ __align__(16) real ab_staged[AB_DEEP * (AB_TEAM + 16 / sizeof(real) + AB_MOST_COLUMNS)];

// By all threads: those that are here get a column each, in the order of the threads; gives that of the thread.
AB_FN uint32_t ab_meet(int here, uint64_t base) {
    const uint32_t lanes = __ballot_sync(0xffffffffu, here), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (lane == 0) ab_of_warps[warp] = (uint32_t)__popc(lanes);
    __syncthreads();
    uint32_t before = 0, all = 0;
    for (uint32_t w = 0; w < AB_TEAM / 32; w++) {
        if (w < warp) before += ab_of_warps[w];
        all += ab_of_warps[w];
    }
    const uint32_t own = before + (uint32_t)__popc(lanes & ((1u << lane) - 1));
    if (here) ab_bases[own] = base;
    if (threadIdx.x == 0) ab_columns = all;
    __syncthreads();
    return own;
}

// Columns that go through all rows together, as many as tiles have, evenly divided where one pass has not all.
#define AB_PASSES                                                                                                         \
    for (uint32_t ab_from = 0, all_ = ab_columns, passes_ = (all_ + AB_TILE_WIDTH - 1) / AB_TILE_WIDTH,                   \
                  each_ = (all_ + passes_ - 1) / passes_, ab_to;                                                          \
         ab_to = ab_from + each_ < all_ ? ab_from + each_ : all_, ab_from < all_; ab_from = ab_to)
#define AB_ALL_COLUMNS const uint32_t ab_from = 0, ab_to = ab_columns;
// An operand of a product in the memory of lanes, or in a tile: its element in a row and a column.
struct ab_lanes {
    char *at;
    __device__ __forceinline__ real *place(int64_t row, uint32_t column) const {
        char *const place = at + ab_bases[column] + row * (int64_t)(AB_WIDTH * sizeof(real));
        AB_GLOBAL(place);
        return (real *)place;
    }
};
struct ab_tile_of {
    // Of its first column, were that the first of all.
    int first;
    __device__ __forceinline__ real *place(int row, uint32_t column) const {
        return ab_tiles + (first + row * AB_TILE_WIDTH + (int)column);
    }
};
#define AB_LANES(p) (ab_lanes{(char *)(p) - ab_base})
#define AB_FROM(lanes, first) (ab_lanes{(lanes).at + (int64_t)(first) * (int64_t)(AB_WIDTH * sizeof(real))})
#define AB_OF_LANE(lanes, row, column) (*(lanes).place((row), (column)))
#define AB_TILE(k) (ab_tile_of{(k) * (AB_BLOCK * AB_TILE_WIDTH) - (int)ab_from})
// What a function of a meeting is called with.
#define AB_MEETING_PARAMETERS real *const numbers, const uint64_t ab_base
#define AB_MEETING_ARGUMENTS numbers, ab_base
// All rows of all columns; so many things of all columns. A thread stays in its column.
#define AB_EACH_COLUMN(which, column, count)                                                                              \
    for (uint32_t columns_ = ab_to - ab_from, column = ab_from + threadIdx.x % columns_, down_ = AB_TEAM / columns_,      \
                  which = threadIdx.x / columns_ < down_ ? threadIdx.x / columns_ : (count);                              \
         which < (uint32_t)(count); which += down_)
#define AB_EACH(r, column, rows) AB_UNROLL(4) AB_EACH_COLUMN(r, column, rows)

// So many reals that are moved as one.
template <int N> struct alignas(N * sizeof(real)) ab_few {
    real at[N];
};
template <int N, int OF> AB_FN void ab_copy(const real *from, real *to) {
    static_assert(N % OF == 0, "whole parts");
#pragma unroll
    for (int i = 0; i < N; i += OF) {
        const ab_few<OF> part = *(const ab_few<OF> *)(from + i);
#pragma unroll
        for (int j = 0; j < OF; j++) to[i + j] = part.at[j];
    }
}

// One step of the chains of a thread: M rows and N columns, these in pairs.
template <int M, int N> AB_FN void ab_product_step(const real *a, const real *b, real (&sum)[M][N]) {
    real rows[M], columns[N];
    ab_copy<M, (M < 16 / (int)sizeof(real) ? M : 16 / (int)sizeof(real))>(a, rows);
#pragma unroll
    for (int j = 0; j < N; j += 2) ab_copy<2, 2>(b + j * 8, columns + j);
#pragma unroll
    for (int i = 0; i < M; i++)
#pragma unroll
        for (int j = 0; j < N; j++) sum[i][j] = r_fma(rows[i], columns[j], sum[i][j]);
}

// A chain that ended as no number: a zero that met such a one wins, and nothing else makes a difference.
template <class From>
static __device__ __noinline__ real ab_chain_again(const real *row, int64_t a_column, int first, int end, const From from,
                                                   uint32_t column) {
    real sum = 0;
    for (int k = first; k < end; k++) sum = r_chain_fma(row[k * a_column], *from.place(k, column), sum);
    return sum;
}

// A product for columns from `begin` on, at most 8 N: 8 threads side by side have N columns each, and all of them M rows.
// ALONG: whether the elements of a row of the matrix stand side by side.
template <int M, int N, int CHAIN, int ALONG, class From, class To>
static __device__ __noinline__ void ab_product_columns(const real *a, const int64_t a_row, const int64_t a_column,
                                                       const int rows, const int inner, const From from, const To to,
                                                       const int adds, const int begin, const int end_column) {
    enum {
        ROWS = AB_TEAM / 8 * M,
        STRIDE = ROWS + 16 / (int)sizeof(real),
        COLUMNS = 8 * N,
        OF_A = AB_DEEP * ROWS / AB_TEAM,
        OF_B = (AB_DEEP * COLUMNS + AB_TEAM - 1) / AB_TEAM
    };
    real *const as = ab_staged, *const bs = ab_staged + AB_DEEP * STRIDE;
    const int thread = (int)threadIdx.x, x = thread % 8, y = thread / 8, columns = end_column - begin;
    for (int row = 0; row < rows; row += ROWS)
        for (int block = 0; block < inner; block += AB_BLOCK) {
            const int end = inner - block < AB_BLOCK ? inner : block + AB_BLOCK;
            real sum[M][N], next_a[OF_A], next_b[OF_B];
#pragma unroll
            for (int i = 0; i < M; i++)
#pragma unroll
                for (int j = 0; j < N; j++) sum[i][j] = 0;
            const auto fetch = [&](int first) {
#pragma unroll
                for (int s = 0; s < OF_A; s++) {
                    const int at = thread + s * AB_TEAM, k = first + (ALONG ? at % AB_DEEP : at / ROWS);
                    const int r = row + (ALONG ? at / AB_DEEP : at % ROWS);
                    next_a[s] = r < rows && k < end ? a[r * a_row + k * a_column] : (real)0;
                }
#pragma unroll
                for (int s = 0; s < OF_B; s++) {
                    const int at = thread + s * AB_TEAM, k = first + at / COLUMNS, column = at % COLUMNS;
                    next_b[s] = at < AB_DEEP * COLUMNS && k < end && column < columns
                                    ? *from.place(k, (uint32_t)(begin + column))
                                    : (real)0;
                }
            };
            fetch(block);
            for (int first = block; first < end; first += AB_DEEP) {
                __syncthreads();
#pragma unroll
                for (int s = 0; s < OF_A; s++) {
                    const int at = thread + s * AB_TEAM;
                    as[(ALONG ? at % AB_DEEP : at / ROWS) * STRIDE + (ALONG ? at / AB_DEEP : at % ROWS)] = next_a[s];
                }
#pragma unroll
                for (int s = 0; s < OF_B; s++) {
                    const int at = thread + s * AB_TEAM;
                    if (at < AB_DEEP * COLUMNS) bs[at] = next_b[s];
                }
                __syncthreads();
                if (first + AB_DEEP < end) fetch(first + AB_DEEP);
                if (end - first >= AB_DEEP) {
#pragma unroll 4
                    for (int k = 0; k < AB_DEEP; k++)
                        ab_product_step<M, N>(as + k * STRIDE + y * M, bs + k * COLUMNS + x * 2, sum);
                } else {
#pragma unroll 1
                    for (int k = 0; k < end - first; k++)
                        ab_product_step<M, N>(as + k * STRIDE + y * M, bs + k * COLUMNS + x * 2, sum);
                }
            }
            const int goes_on = block > 0 || adds;
#pragma unroll
            for (int i = 0; i < M; i++) {
                const int r = row + y * M + i;
                // All that is added to is read before any is written: nobody knows that these are different places.
                real before[N];
#pragma unroll
                for (int j = 0; j < N; j++) {
                    const int column = j / 2 * 16 + x * 2 + j % 2;
                    before[j] = goes_on && r < rows && column < columns ? *to.place(r, (uint32_t)(begin + column)) : (real)0;
                }
#pragma unroll
                for (int j = 0; j < N; j++) {
                    const int column = j / 2 * 16 + x * 2 + j % 2;
                    if (r >= rows || column >= columns) continue;
                    real value = sum[i][j];
                    if (CHAIN && AB_RARE(value != value))
                        value = ab_chain_again(a + r * a_row, a_column, block, end, from, (uint32_t)(begin + column));
                    *to.place(r, (uint32_t)(begin + column)) = goes_on ? before[j] + value : value;
                }
            }
        }
    __syncthreads();
}

// The same for all columns, evenly divided where one pass has not all.
template <int M, int CHAIN, int ALONG, class From, class To>
static __device__ void ab_product_of_team(const real *a, const int64_t a_row, const int64_t a_column, const int rows,
                                          const int inner, const From from, const To to, const int adds,
                                          const int first, const int last) {
    const int all = last - first, passes = (all + AB_MOST_COLUMNS - 1) / AB_MOST_COLUMNS;
    const int pairs = ((all + passes - 1) / passes + 15) / 16;
    for (int begin = first; begin < last; begin += pairs * 16) {
        const int end = last - begin < pairs * 16 ? last : begin + pairs * 16;
#define AB_COLUMNS_OF(n)                                                                                                  \
    ab_product_columns<M, (n), CHAIN, ALONG>(a, a_row, a_column, rows, inner, from, to, adds, begin, end)
        switch (pairs) {
        case 1: AB_COLUMNS_OF(2); break;
        case 2: AB_COLUMNS_OF(4); break;
#ifdef REAL_F32
        case 3:
        case 4: AB_COLUMNS_OF(8); break;
        case 5: AB_COLUMNS_OF(10); break;
        case 6: AB_COLUMNS_OF(12); break;
        default: AB_COLUMNS_OF(16); break;
#else
        case 3: AB_COLUMNS_OF(6); break;
        default: AB_COLUMNS_OF(8); break;
#endif
        }
    }
}
#define AB_PRODUCT(m, chain, along, a, a_row, a_column, rows, inner, from, to, adds)                                      \
    ab_product_of_team<m, chain, along>(a, a_row, a_column, rows, inner, from, to, adds, (int)ab_from, (int)ab_to)
#define ab_tile(k, r, column) (*AB_TILE(k).place((int)(r), column))
#define ab_number(k, column) numbers[(k) * AB_TEAM + (column)]
#else
#define AB_TEAM 1
#define AB_TOGETHER()
#define ab_meet(here, base) 0
#define AB_LANES(p) (p)
#define AB_FROM(lanes, first) ((lanes) + (first))
#define AB_OF_LANE(lanes, row, column) ((lanes)[row])
#define AB_PASSES
#define AB_ALL_COLUMNS
#define AB_MEETING_PARAMETERS real *const numbers, real *const tiles
#define AB_MEETING_ARGUMENTS numbers, tiles
#define AB_TILE(k) (tiles + (k) * AB_BLOCK)
#define ab_tile(k, r, column) tiles[(k) * AB_BLOCK + (r)]
#define ab_number(k, column) numbers[k]
#define AB_EACH(r, column, rows) for (int r = 0, column = 0; (void)column, r < (rows); r++)
#define AB_EACH_COLUMN(which, column, count) for (int which = 0, column = 0; (void)column, which < (count); which++)
#define AB_PRODUCT_OF_ONE(name, fma)                                                                                      \
    AB_FN void name(const real *a, int64_t a_row, int64_t a_column, int rows, int inner, const real *from, real *to,      \
                    int adds) {                                                                                           \
        for (int row = 0; row < rows; row++)                                                                              \
            for (int block = 0; block < inner; block += AB_BLOCK) {                                                       \
                const int end = inner - block < AB_BLOCK ? inner : block + AB_BLOCK;                                      \
                real sum = 0;                                                                                             \
                for (int k = block; k < end; k++) sum = fma(a[row * a_row + k * a_column], from[k], sum);                 \
                to[row] = block == 0 && !adds ? sum : to[row] + sum;                                                      \
            }                                                                                                             \
    }
AB_PRODUCT_OF_ONE(ab_product_0, r_fma)
AB_PRODUCT_OF_ONE(ab_product_1, r_chain_fma)
#define AB_PRODUCT(m, chain, along, a, a_row, a_column, rows, inner, from, to, adds)                                      \
    ab_product_##chain(a, a_row, a_column, rows, inner, from, to, adds)
#endif
#endif
