/* The twins in C of the programs of this folder: the same algorithms, step by step. NAME_c(n) gives what the entry NAME
   of NAME.ab gives for n. To be compiled with -O2 -ffp-contract=off, so that reals agree to the bit. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The next state of a linear congruential generator. */
static int64_t next(int64_t seed) {
    return (1103515245 * seed + 12345) % 2147483648;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* sudoku */

static bool allowed(int64_t grid[9][9], int64_t row, int64_t column, int64_t digit) {
    for (int64_t k = 0; k < 9; k++) {
        if (grid[row][k] == digit || grid[k][column] == digit) {
            return false;
        }
        if (grid[row / 3 * 3 + k / 3][column / 3 * 3 + k % 3] == digit) {
            return false;
        }
    }
    return true;
}

int64_t sudoku_c(int64_t n) {
    int64_t grid[9][9] = {
        {5, 3, 4, 6, 7, 8, 9, 1, 2},
        {6, 7, 2, 1, 9, 5, 3, 4, 8},
        {1, 9, 8, 3, 4, 2, 5, 6, 7},
        {8, 5, 9, 7, 6, 1, 4, 2, 3},
        {4, 2, 6, 8, 5, 3, 7, 9, 1},
        {7, 1, 3, 9, 2, 4, 8, 5, 6},
        {9, 6, 1, 5, 3, 7, 2, 8, 4},
        {2, 8, 7, 4, 1, 9, 6, 3, 5},
        {3, 4, 5, 2, 8, 6, 1, 7, 9},
    };
    int64_t seed = n;
    for (int64_t i = 0; i < 50; i++) {
        seed = next(seed);
        int64_t cell = seed / 65536 % 81;
        grid[cell / 9][cell % 9] = 0;
    }
    int64_t blanks[81] = {0};
    int64_t count = 0;
    for (int64_t cell = 0; cell < 81; cell++) {
        if (grid[cell / 9][cell % 9] == 0) {
            blanks[count] = cell;
            count++;
        }
    }
    int64_t at = 0;
    int64_t tries = 0;
    while (at < count) {
        int64_t row = blanks[at] / 9;
        int64_t column = blanks[at] % 9;
        int64_t digit = grid[row][column] + 1;
        grid[row][column] = 0;
        while (digit <= 9 && !allowed(grid, row, column, digit)) {
            digit++;
        }
        tries++;
        if (digit <= 9) {
            grid[row][column] = digit;
            at++;
        } else {
            at--;
        }
    }
    int64_t result = 10000 * tries;
    for (int64_t i = 0; i < 9; i++) {
        for (int64_t j = 0; j < 9; j++) {
            result += (9 * i + j) * grid[i][j];
        }
    }
    return result;
}

/* knapsack */

#define ITEMS 20
#define CAPACITY 100

int64_t knapsack_c(int64_t n) {
    int64_t weights[ITEMS];
    int64_t values[ITEMS];
    int64_t seed = n;
    for (int64_t i = 0; i < ITEMS; i++) {
        seed = next(seed);
        weights[i] = 1 + seed / 65536 % 30;
        seed = next(seed);
        values[i] = 1 + seed / 65536 % 100;
    }
    int64_t best[CAPACITY + 1] = {0};
    for (int64_t i = 0; i < ITEMS; i++) {
        for (int64_t c = CAPACITY; c >= weights[i]; c--) {
            int64_t taken = best[c - weights[i]] + values[i];
            if (taken > best[c]) {
                best[c] = taken;
            }
        }
    }
    int64_t total = 0;
    for (int64_t c = 0; c < CAPACITY + 1; c++) {
        total += best[c];
    }
    return 100000 * best[CAPACITY] + total;
}

/* range_queries */

#define LEAVES 64
#define QUERIES 20

int64_t range_queries_c(int64_t n) {
    int64_t tree[2 * LEAVES] = {0};
    int64_t seed = n;
    for (int64_t i = 0; i < LEAVES; i++) {
        seed = next(seed);
        tree[LEAVES + i] = seed / 65536 % 1000;
    }
    for (int64_t node = LEAVES - 1; node > 0; node--) {
        tree[node] = larger(tree[2 * node], tree[2 * node + 1]);
    }
    int64_t nodes[16], lows[16], highs[16];
    int64_t hash = 0;
    for (int64_t query = 0; query < QUERIES; query++) {
        seed = next(seed);
        int64_t a = seed / 65536 % LEAVES;
        seed = next(seed);
        int64_t b = seed / 65536 % LEAVES;
        int64_t from = smaller(a, b);
        int64_t to = larger(a, b) + 1;
        /* The largest number of from..to. */
        int64_t largest = 0;
        nodes[0] = 1;
        lows[0] = 0;
        highs[0] = LEAVES;
        int64_t height = 1;
        while (height > 0) {
            height--;
            int64_t node = nodes[height];
            int64_t low = lows[height];
            int64_t high = highs[height];
            if (from <= low && high <= to) {
                largest = larger(largest, tree[node]);
            } else if (low < to && from < high) {
                int64_t middle = (low + high) / 2;
                nodes[height] = 2 * node;
                lows[height] = low;
                highs[height] = middle;
                nodes[height + 1] = 2 * node + 1;
                lows[height + 1] = middle;
                highs[height + 1] = high;
                height += 2;
            }
        }
        hash = (31 * hash + largest) % 1000000007;
        /* Another number at one of them. */
        int64_t node = LEAVES + a;
        seed = next(seed);
        tree[node] = seed / 65536 % 1000;
        while (node > 1) {
            node /= 2;
            tree[node] = larger(tree[2 * node], tree[2 * node + 1]);
        }
    }
    return hash;
}

/* queens */

struct count {
    int64_t solutions, tries;
};

static bool safe(const int64_t queens[6], int64_t row, int64_t column) {
    for (int64_t above = 0; above < row; above++) {
        int64_t distance = queens[above] - column;
        if (distance < 0) {
            distance = -distance;
        }
        if (distance == 0 || distance == row - above) {
            return false;
        }
    }
    return true;
}

static struct count place(int64_t queens[6], bool blocked[6][6], int64_t row) {
    if (row == 6) {
        return (struct count){1, 0};
    }
    struct count count = {0, 0};
    for (int64_t column = 0; column < 6; column++) {
        count.tries++;
        if (!blocked[row][column] && safe(queens, row, column)) {
            queens[row] = column;
            struct count below = place(queens, blocked, row + 1);
            count.solutions += below.solutions;
            count.tries += below.tries;
        }
    }
    return count;
}

int64_t queens_c(int64_t n) {
    bool blocked[6][6] = {{false}};
    int64_t seed = n;
    for (int64_t i = 0; i < 3; i++) {
        seed = next(seed);
        int64_t square = seed / 65536 % 36;
        blocked[square / 6][square % 6] = true;
    }
    int64_t queens[6] = {0};
    struct count count = place(queens, blocked, 0);
    return 10000 * count.solutions + count.tries;
}

/* sieve */

int64_t sieve_c(int64_t n) {
    int64_t limit = 401 + next(n) / 65536 % 100;
    bool composite[500] = {false};
    int64_t count = 0;
    int64_t last = 0;
    for (int64_t i = 2; i < limit; i++) {
        if (!composite[i]) {
            count++;
            last = i;
            for (int64_t multiple = i * i; multiple < limit; multiple += i) {
                composite[multiple] = true;
            }
        }
    }
    return 1000 * count + last;
}

/* merge_sort, insertion_sort and quicksort */

#define SIZE 64

static void draw(int64_t x[SIZE], int64_t seed) {
    for (int64_t i = 0; i < SIZE; i++) {
        seed = next(seed);
        x[i] = seed / 65536 % 1000;
    }
}

static int64_t hash_of(const int64_t x[SIZE]) {
    int64_t hash = 0;
    for (int64_t i = 0; i < SIZE; i++) {
        hash = (31 * hash + x[i]) % 1000000007;
    }
    return hash;
}

int64_t merge_sort_c(int64_t n) {
    int64_t x[SIZE];
    draw(x, n);
    int64_t merged[SIZE];
    for (int64_t width = 1; width < SIZE; width *= 2) {
        int64_t from = 0;
        while (from < SIZE) {
            int64_t middle = from + width;
            int64_t end = from + 2 * width;
            int64_t i = from;
            int64_t j = middle;
            for (int64_t k = from; k < end; k++) {
                if (i < middle && (j >= end || x[i] <= x[j])) {
                    merged[k] = x[i];
                    i++;
                } else {
                    merged[k] = x[j];
                    j++;
                }
            }
            from = end;
        }
        memcpy(x, merged, sizeof x);
    }
    return hash_of(x);
}

int64_t insertion_sort_c(int64_t n) {
    int64_t x[SIZE];
    draw(x, n);
    for (int64_t i = 1; i < SIZE; i++) {
        int64_t value = x[i];
        int64_t j = i;
        while (j > 0 && x[j - 1] > value) {
            x[j] = x[j - 1];
            j--;
        }
        x[j] = value;
    }
    return hash_of(x);
}

static void sort_range(int64_t x[SIZE], int64_t from, int64_t to) {
    if (to - from < 2) {
        return;
    }
    int64_t pivot = x[to - 1];
    int64_t middle = from;
    for (int64_t i = from; i < to - 1; i++) {
        if (x[i] < pivot) {
            int64_t smaller = x[i];
            x[i] = x[middle];
            x[middle] = smaller;
            middle++;
        }
    }
    x[to - 1] = x[middle];
    x[middle] = pivot;
    sort_range(x, from, middle);
    sort_range(x, middle + 1, to);
}

int64_t quicksort_c(int64_t n) {
    int64_t x[SIZE];
    draw(x, n);
    sort_range(x, 0, SIZE);
    return hash_of(x);
}

/* bellman_ford */

#define NODES 20
#define EDGES 60
#define FAR 1000000

int64_t bellman_ford_c(int64_t n) {
    int64_t from[EDGES], to[EDGES], weight[EDGES];
    int64_t seed = n;
    for (int64_t i = 0; i < EDGES; i++) {
        seed = next(seed);
        from[i] = seed / 65536 % NODES;
        seed = next(seed);
        to[i] = seed / 65536 % NODES;
        seed = next(seed);
        weight[i] = seed / 65536 % 22 - 2;
    }
    int64_t distance[NODES];
    for (int64_t i = 0; i < NODES; i++) {
        distance[i] = FAR;
    }
    distance[0] = 0;
    int64_t rounds = 0;
    bool changed = true;
    while (changed && rounds < NODES) {
        changed = false;
        for (int64_t i = 0; i < EDGES; i++) {
            if (distance[from[i]] < FAR) {
                int64_t along = distance[from[i]] + weight[i];
                if (along < distance[to[i]]) {
                    distance[to[i]] = along;
                    changed = true;
                }
            }
        }
        if (changed) {
            rounds++;
        }
    }
    int64_t hash = rounds;
    for (int64_t i = 0; i < NODES; i++) {
        hash = (31 * hash + distance[i] + 1000) % 1000000007;
    }
    return hash;
}

/* ackermann */

static int64_t value_of(int64_t m, int64_t k) {
    if (m == 0) {
        return k + 1;
    }
    if (k == 0) {
        return value_of(m - 1, 1);
    }
    return value_of(m - 1, value_of(m, k - 1));
}

int64_t ackermann_c(int64_t n) {
    int64_t hash = 0;
    int64_t seed = n;
    for (int64_t i = 0; i < 32; i++) {
        seed = next(seed);
        hash = (31 * hash + value_of(2, seed / 65536 % 5)) % 1000000007;
    }
    return hash;
}

/* life */

#define SIDE 16

int64_t life_c(int64_t n) {
    int64_t cells[SIDE][SIDE] = {{0}};
    int64_t seed = n;
    for (int64_t i = 0; i < SIDE; i++) {
        for (int64_t j = 0; j < SIDE; j++) {
            seed = next(seed);
            if (seed / 65536 % 3 == 0) {
                cells[i][j] = 1;
            }
        }
    }
    int64_t after[SIDE][SIDE];
    for (int64_t generation = 0; generation < 10; generation++) {
        for (int64_t i = 0; i < SIDE; i++) {
            int64_t up = (i + SIDE - 1) % SIDE;
            int64_t down = (i + 1) % SIDE;
            for (int64_t j = 0; j < SIDE; j++) {
                int64_t left = (j + SIDE - 1) % SIDE;
                int64_t right = (j + 1) % SIDE;
                int64_t above = cells[up][left] + cells[up][j] + cells[up][right];
                int64_t below = cells[down][left] + cells[down][j] + cells[down][right];
                int64_t neighbours = above + cells[i][left] + cells[i][right] + below;
                if (neighbours == 3 || (neighbours == 2 && cells[i][j] == 1)) {
                    after[i][j] = 1;
                } else {
                    after[i][j] = 0;
                }
            }
        }
        memcpy(cells, after, sizeof cells);
    }
    int64_t alive = 0;
    int64_t places = 0;
    for (int64_t i = 0; i < SIDE; i++) {
        for (int64_t j = 0; j < SIDE; j++) {
            alive += cells[i][j];
            places += (SIDE * i + j) * cells[i][j];
        }
    }
    return 100000 * alive + places;
}

/* event_queue */

#define ROOM 64

struct heap {
    int64_t time[ROOM], kind[ROOM], size;
};

static void push(struct heap *heap, int64_t time, int64_t kind) {
    int64_t at = heap->size;
    heap->size++;
    while (at > 0 && heap->time[(at - 1) / 2] > time) {
        heap->time[at] = heap->time[(at - 1) / 2];
        heap->kind[at] = heap->kind[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->time[at] = time;
    heap->kind[at] = kind;
}

static void pop(struct heap *heap) {
    heap->size--;
    int64_t time = heap->time[heap->size];
    int64_t kind = heap->kind[heap->size];
    int64_t at = 0;
    int64_t child = 1;
    while (child < heap->size) {
        if (child + 1 < heap->size && heap->time[child + 1] < heap->time[child]) {
            child++;
        }
        if (heap->time[child] >= time) {
            break;
        }
        heap->time[at] = heap->time[child];
        heap->kind[at] = heap->kind[child];
        at = child;
        child = 2 * at + 1;
    }
    heap->time[at] = time;
    heap->kind[at] = kind;
}

int64_t event_queue_c(int64_t n) {
    struct heap heap;
    heap.size = 0;
    int64_t seed = n;
    for (int64_t i = 0; i < 16; i++) {
        seed = next(seed);
        push(&heap, seed / 65536 % 100, i % 3);
    }
    int64_t hash = 0;
    int64_t events = 0;
    while (events < 200 && heap.size > 0) {
        int64_t now = heap.time[0];
        int64_t kind = heap.kind[0];
        pop(&heap);
        events++;
        hash = (31 * hash + 3 * now + kind) % 1000000007;
        /* Kind 0 brings one event, kind 1 two, and kind 2 none or two. */
        int64_t more = 1;
        if (kind == 1) {
            more = 2;
        } else if (kind == 2) {
            seed = next(seed);
            more = seed / 65536 % 2 * 2;
        }
        for (int64_t i = 0; i < more; i++) {
            if (heap.size < ROOM) {
                seed = next(seed);
                int64_t later = now + 1 + seed / 65536 % 50;
                seed = next(seed);
                push(&heap, later, seed / 65536 % 3);
            }
        }
    }
    return hash;
}

/* edit_distance */

#define LENGTH 24

int64_t edit_distance_c(int64_t n) {
    int64_t a[LENGTH], b[LENGTH];
    int64_t seed = n;
    for (int64_t i = 0; i < LENGTH; i++) {
        seed = next(seed);
        a[i] = seed / 65536 % 4;
        seed = next(seed);
        b[i] = seed / 65536 % 4;
    }
    int64_t table[LENGTH + 1][LENGTH + 1];
    for (int64_t i = 0; i < LENGTH + 1; i++) {
        table[i][0] = i;
        table[0][i] = i;
    }
    int64_t total = 0;
    for (int64_t i = 1; i < LENGTH + 1; i++) {
        for (int64_t j = 1; j < LENGTH + 1; j++) {
            int64_t least = table[i - 1][j - 1];
            if (a[i - 1] != b[j - 1]) {
                least++;
            }
            if (table[i - 1][j] + 1 < least) {
                least = table[i - 1][j] + 1;
            }
            if (table[i][j - 1] + 1 < least) {
                least = table[i][j - 1] + 1;
            }
            table[i][j] = least;
            total += least;
        }
    }
    return 100000 * table[LENGTH][LENGTH] + total;
}

/* automaton */

#define TEXT 200

int64_t automaton_c(int64_t n) {
    static const int64_t table[6][3] = {{1, 0, 0}, {1, 2, 0}, {3, 0, 0}, {4, 2, 0}, {1, 5, 0}, {3, 0, 0}};
    int64_t text[TEXT];
    int64_t seed = n;
    for (int64_t i = 0; i < TEXT; i++) {
        seed = next(seed);
        int64_t draw = seed / 65536 % 16;
        if (draw < 9) {
            text[i] = 0;
        } else if (draw < 15) {
            text[i] = 1;
        } else {
            text[i] = 2;
        }
    }
    int64_t state = 0;
    int64_t found = 0;
    int64_t total = 0;
    for (int64_t i = 0; i < TEXT; i++) {
        state = table[state][text[i]];
        if (state == 5) {
            found++;
        }
        total += state;
    }
    return 10000 * found + total;
}

/* hash_table */

#define SLOTS 64
#define KEYS 48

static int64_t find(const int64_t slots[SLOTS], int64_t key) {
    int64_t slot = key % SLOTS;
    while (slots[slot] != -1 && slots[slot] != key) {
        slot = (slot + 1) % SLOTS;
    }
    return slot;
}

int64_t hash_table_c(int64_t n) {
    int64_t slots[SLOTS];
    int64_t values[SLOTS] = {0};
    int64_t keys[KEYS];
    for (int64_t i = 0; i < SLOTS; i++) {
        slots[i] = -1;
    }
    int64_t seed = n;
    for (int64_t i = 0; i < KEYS; i++) {
        seed = next(seed);
        keys[i] = seed / 65536;
        int64_t slot = find(slots, keys[i]);
        slots[slot] = keys[i];
        values[slot] += i;
    }
    int64_t found = 0;
    int64_t total = 0;
    for (int64_t i = 0; i < 64; i++) {
        seed = next(seed);
        int64_t key = seed / 65536;
        if (i % 2 == 0) {
            key = keys[key % KEYS];
        }
        int64_t slot = find(slots, key);
        if (slots[slot] == key) {
            found++;
            total += values[slot];
        }
    }
    return 10000 * found + total;
}

/* mandelbrot */

static int64_t iterations(double a, double b) {
    double x = 0.0;
    double y = 0.0;
    int64_t count = 0;
    while (count < 100 && x * x + y * y <= 4.0) {
        double next_x = x * x - y * y + a;
        y = 2.0 * x * y + b;
        x = next_x;
        count++;
    }
    return count;
}

int64_t mandelbrot_c(int64_t n) {
    int64_t hash = 0;
    int64_t seed = n;
    for (int64_t i = 0; i < 8; i++) {
        seed = next(seed);
        double a = seed / 65536 / 32768.0 * 2.5 - 2.0;
        seed = next(seed);
        double b = seed / 65536 / 32768.0 * 2.5 - 1.25;
        hash = (101 * hash + iterations(a, b)) % 1000000007;
    }
    return hash;
}

/* gauss */

#define UNKNOWNS 5

static void solve(double a[UNKNOWNS][UNKNOWNS], double b[UNKNOWNS], double x[UNKNOWNS]) {
    for (int64_t k = 0; k < UNKNOWNS; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < UNKNOWNS; i++) {
            if (fabs(a[i][k]) > fabs(a[pivot][k])) {
                pivot = i;
            }
        }
        if (pivot != k) {
            for (int64_t j = 0; j < UNKNOWNS; j++) {
                double entry = a[k][j];
                a[k][j] = a[pivot][j];
                a[pivot][j] = entry;
            }
            double entry = b[k];
            b[k] = b[pivot];
            b[pivot] = entry;
        }
        for (int64_t i = k + 1; i < UNKNOWNS; i++) {
            double factor = a[i][k] / a[k][k];
            for (int64_t j = k; j < UNKNOWNS; j++) {
                a[i][j] -= factor * a[k][j];
            }
            b[i] -= factor * b[k];
        }
    }
    for (int64_t i = UNKNOWNS - 1; i >= 0; i--) {
        double rest = b[i];
        for (int64_t j = i + 1; j < UNKNOWNS; j++) {
            rest -= a[i][j] * x[j];
        }
        x[i] = rest / a[i][i];
    }
}

int64_t gauss_c(int64_t n) {
    double a[UNKNOWNS][UNKNOWNS], b[UNKNOWNS], x[UNKNOWNS];
    int64_t total = 0;
    int64_t seed = n;
    for (int64_t system = 0; system < 4; system++) {
        for (int64_t i = 0; i < UNKNOWNS; i++) {
            for (int64_t j = 0; j < UNKNOWNS; j++) {
                seed = next(seed);
                a[i][j] = seed / 65536 / 16384.0 - 1.0;
            }
            seed = next(seed);
            b[i] = seed / 65536 / 16384.0 - 1.0;
        }
        solve(a, b, x);
        for (int64_t i = 0; i < UNKNOWNS; i++) {
            total += (int64_t)round(1000000.0 * x[i]);
        }
    }
    return total;
}

/* miller_rabin */

static int64_t power(int64_t base, int64_t exponent, int64_t m) {
    int64_t result = 1;
    int64_t square = base % m;
    int64_t rest = exponent;
    while (rest > 0) {
        if (rest % 2 == 1) {
            result = result * square % m;
        }
        square = square * square % m;
        rest /= 2;
    }
    return result;
}

static bool passes(int64_t m, int64_t base, int64_t odd, int64_t twos) {
    int64_t x = power(base, odd, m);
    if (x == 1 || x == m - 1) {
        return true;
    }
    for (int64_t i = 1; i < twos; i++) {
        x = x * x % m;
        if (x == m - 1) {
            return true;
        }
    }
    return false;
}

int64_t miller_rabin_c(int64_t n) {
    static const int64_t bases[8] = {2, 3, 5, 7, 11, 13, 17, 19};
    int64_t m = next(next(n)) / 2048 / 2 * 2 + 1;
    int64_t odd = m - 1;
    int64_t twos = 0;
    while (odd > 0 && odd % 2 == 0) {
        odd /= 2;
        twos++;
    }
    int64_t passed = 0;
    for (int64_t i = 0; i < 8; i++) {
        if (passes(m, bases[i], odd, twos)) {
            passed++;
        }
    }
    return 10 * m + passed;
}

/* ray_marcher */

static double distance_from(const double point[3], const double center[3], double radius) {
    double x = point[0] - center[0];
    double y = point[1] - center[1];
    double z = point[2] - center[2];
    return sqrt(x * x + y * y + z * z) - radius;
}

int64_t ray_marcher_c(int64_t n) {
    double centers[2][3], radii[2];
    int64_t seed = n;
    for (int64_t i = 0; i < 2; i++) {
        seed = next(seed);
        centers[i][0] = seed / 65536 / 16384.0 - 1.0;
        seed = next(seed);
        centers[i][1] = seed / 65536 / 16384.0 - 1.0;
        seed = next(seed);
        centers[i][2] = seed / 65536 / 16384.0 + 3.0;
        seed = next(seed);
        radii[i] = seed / 65536 / 32768.0 + 0.5;
    }
    int64_t thousandths = 0;
    int64_t steps = 0;
    for (int64_t ray = 0; ray < 4; ray++) {
        seed = next(seed);
        double x = seed / 65536 / 32768.0 - 0.5;
        seed = next(seed);
        double y = seed / 65536 / 32768.0 - 0.5;
        double length = sqrt(x * x + y * y + 1.0);
        double direction[3] = {x / length, y / length, 1.0 / length};
        double t = 0.0;
        for (int64_t step = 0; step < 64; step++) {
            double point[3] = {t * direction[0], t * direction[1], t * direction[2]};
            double nearest = distance_from(point, centers[0], radii[0]);
            double other = distance_from(point, centers[1], radii[1]);
            if (other < nearest) {
                nearest = other;
            }
            steps++;
            if (nearest < 1e-6) {
                break;
            }
            t += nearest;
            if (t > 10.0) {
                break;
            }
        }
        thousandths += (int64_t)round(1000.0 * t);
    }
    return 1000 * thousandths + steps;
}

/* rk45 */

#define TOLERANCE 1e-8

static void rate(const double y[2], double k[2]) {
    k[0] = y[1];
    k[1] = -y[0];
}

int64_t rk45_c(int64_t n) {
    int64_t seed = next(n);
    double position = seed / 65536 / 32768.0 + 0.5;
    seed = next(seed);
    double velocity = seed / 65536 / 16384.0 - 1.0;
    seed = next(seed);
    double end = seed / 65536 / 32768.0 * 4.0 + 3.0;
    double y[2] = {position, velocity};
    double t = 0.0;
    double h = 0.1;
    double k1[2], k2[2], k3[2], k4[2], k5[2], k6[2], k7[2];
    double slope[2], at[2], next_y[2], errors[2];
    rate(y, k1);
    int64_t taken = 0;
    int64_t refused = 0;
    while (t < end) {
        if (t + h > end) {
            h = end - t;
        }
        for (int64_t i = 0; i < 2; i++) {
            at[i] = y[i] + h * (1.0 / 5.0 * k1[i]);
        }
        rate(at, k2);
        for (int64_t i = 0; i < 2; i++) {
            at[i] = y[i] + h * (3.0 / 40.0 * k1[i] + 9.0 / 40.0 * k2[i]);
        }
        rate(at, k3);
        for (int64_t i = 0; i < 2; i++) {
            at[i] = y[i] + h * (44.0 / 45.0 * k1[i] - 56.0 / 15.0 * k2[i] + 32.0 / 9.0 * k3[i]);
        }
        rate(at, k4);
        for (int64_t i = 0; i < 2; i++) {
            slope[i] = 19372.0 / 6561.0 * k1[i] - 25360.0 / 2187.0 * k2[i] + 64448.0 / 6561.0 * k3[i];
            slope[i] -= 212.0 / 729.0 * k4[i];
            at[i] = y[i] + h * slope[i];
        }
        rate(at, k5);
        for (int64_t i = 0; i < 2; i++) {
            slope[i] = 9017.0 / 3168.0 * k1[i] - 355.0 / 33.0 * k2[i] + 46732.0 / 5247.0 * k3[i];
            slope[i] += 49.0 / 176.0 * k4[i] - 5103.0 / 18656.0 * k5[i];
            at[i] = y[i] + h * slope[i];
        }
        rate(at, k6);
        for (int64_t i = 0; i < 2; i++) {
            slope[i] = 35.0 / 384.0 * k1[i] + 500.0 / 1113.0 * k3[i] + 125.0 / 192.0 * k4[i];
            slope[i] += 11.0 / 84.0 * k6[i] - 2187.0 / 6784.0 * k5[i];
            next_y[i] = y[i] + h * slope[i];
        }
        rate(next_y, k7);
        for (int64_t i = 0; i < 2; i++) {
            slope[i] = 71.0 / 57600.0 * k1[i] - 71.0 / 16695.0 * k3[i] + 71.0 / 1920.0 * k4[i];
            slope[i] += 22.0 / 525.0 * k6[i] - 17253.0 / 339200.0 * k5[i] - 1.0 / 40.0 * k7[i];
            errors[i] = h * slope[i];
        }
        double error = fabs(errors[0]);
        if (fabs(errors[1]) > error) {
            error = fabs(errors[1]);
        }
        if (error <= TOLERANCE) {
            t += h;
            memcpy(y, next_y, sizeof y);
            memcpy(k1, k7, sizeof k1);
            taken++;
        } else {
            refused++;
        }
        double factor = 0.9 * sqrt(sqrt(TOLERANCE / error));
        if (factor > 5.0) {
            factor = 5.0;
        }
        if (factor < 0.2) {
            factor = 0.2;
        }
        h *= factor;
    }
    return 10000 * (int64_t)round(1e9 * y[0]) + 100 * refused + taken;
}

/* bisection */

static double root(double p, double q, double from, double to) {
    double low = from;
    double high = to;
    bool rising = low * low * low - p * low + q < 0.0;
    while (high - low > 1e-12) {
        double middle = 0.5 * (low + high);
        double value = middle * middle * middle - p * middle + q;
        if ((value < 0.0) == rising) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return 0.5 * (low + high);
}

int64_t bisection_c(int64_t n) {
    int64_t seed = next(n);
    double p = seed / 65536 / 8192.0;
    seed = next(seed);
    double q = seed / 65536 / 8192.0 - 2.0;
    double turn = sqrt(p / 3.0);
    double borders[4] = {-4.0, -turn, turn, 4.0};
    double total = 0.0;
    int64_t roots = 0;
    for (int64_t i = 0; i < 3; i++) {
        double low = borders[i];
        double high = borders[i + 1];
        double at_low = low * low * low - p * low + q;
        double at_high = high * high * high - p * high + q;
        if ((at_low < 0.0) != (at_high < 0.0)) {
            roots++;
            total += roots * root(p, q, low, high);
        }
    }
    return 10 * (int64_t)round(1e9 * total) + roots;
}
