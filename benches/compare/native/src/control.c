/* The control programs in C; build.rs keeps the calls of fib. */

#include <stdint.h>

int64_t collatz_c(int64_t n) {
    int64_t steps = 0;
    while (n != 1) {
        n = n % 2 == 0 ? n / 2 : 3 * n + 1;
        steps += 1;
    }
    return steps;
}

int64_t fib_c(int64_t n) { return n < 3 ? 1 : fib_c(n - 1) + fib_c(n - 2); }
