// Products of matrices, factors and solves in one lane. The order of every sum is that of `vmath::dot`: chains of fused
// multiply-adds in blocks of AB_BLOCK, which are added in order.

// The sum of `n` products of elements that stand so far apart.
#define AB_DOT(name, fma)                                                                                                 \
    AB_FN real name(const real *a, int64_t a_step, const real *b, int64_t b_step, int64_t n) {                            \
        real total = 0;                                                                                                   \
        for (int64_t first = 0; first < n; first += AB_BLOCK) {                                                           \
            const int64_t end = n - first < AB_BLOCK ? n : first + AB_BLOCK;                                              \
            real block = 0;                                                                                               \
            for (int64_t k = first; k < end; k++) block = fma(a[k * a_step], b[k * b_step], block);                       \
            total = first == 0 ? block : total + block;                                                                   \
        }                                                                                                                 \
        return total;                                                                                                     \
    }
AB_DOT(ab_dot, r_fma)
AB_DOT(ab_chain_dot, r_chain_fma)

// A product, of matrices whose elements stand so far apart in a column and in a row.
#define AB_PRODUCT_IN_LANE(name, dot)                                                                                             \
    AB_CALLED void name(const real *a, int64_t a_row, int64_t a_column, const real *b, int64_t b_row, int64_t b_column,   \
                        real *to, int64_t rows, int64_t columns, int64_t inner) {                                         \
        for (int64_t i = 0; i < rows; i++)                                                                                \
            for (int64_t j = 0; j < columns; j++)                                                                         \
                to[i * columns + j] = dot(a + i * a_row, a_column, b + j * b_column, b_row, inner);                       \
    }
AB_PRODUCT_IN_LANE(ab_product, ab_dot)
AB_PRODUCT_IN_LANE(ab_chain_product, ab_chain_dot)

// The lower triangular factor of a matrix of `n` rows. A pivot that is not positive is NaN.
AB_CALLED void ab_cholesky(const real *a, real *l, int64_t n) {
    for (int64_t i = 0; i < n * n; i++) l[i] = 0;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j; i < n; i++) {
            const real rest = a[i * n + j] - ab_dot(l + i * n, 1, l + j * n, 1, j);
            l[i * n + j] = i > j ? rest / l[j * n + j] : rest > 0 ? r_sqrt(rest) : (real)__builtin_nan("");
        }
}

// The solution of l x = b, or of the transpose of l, for `columns` columns; in the arithmetic of the chain rule where that is
// wanted and the plain one gives no number.
AB_CALLED void ab_solve(const real *l, const real *b, real *x, int64_t n, int64_t columns, int transposed, int chain) {
    for (int64_t column = 0; column < columns; column++) {
        int is_nan = 0;
        for (int64_t step = 0; step < n; step++) {
            const int64_t i = transposed ? n - 1 - step : step, at = i * columns + column;
            const real known = transposed ? ab_dot(l + (i + 1) * n + i, n, x + at + columns, columns, step)
                                          : ab_dot(l + i * n, 1, x + column, columns, step);
            x[at] = (b[at] - known) / l[i * n + i];
            is_nan |= x[at] != x[at];
        }
        if (!chain || !is_nan) continue;
        for (int64_t step = 0; step < n; step++) {
            const int64_t i = transposed ? n - 1 - step : step, at = i * columns + column;
            const real known = transposed ? ab_chain_dot(l + (i + 1) * n + i, n, x + at + columns, columns, step)
                                          : ab_chain_dot(l + i * n, 1, x + column, columns, step);
            x[at] = r_chain_div(b[at] - known, l[i * n + i]);
        }
    }
}

// Of the tangent `a` of a matrix that of its factor `l`: `vmath::chain_cholesky_tangent`.
AB_CALLED void ab_cholesky_tangent(const real *l, const real *a, real *x, int64_t n) {
    for (int64_t i = 0; i < n * n; i++) x[i] = 0;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j; i < n; i++) {
            const real below = ab_chain_dot(x + i * n, 1, l + j * n, 1, j);
            const real beside = ab_chain_dot(x + j * n, 1, l + i * n, 1, j);
            const real rest = a[i * n + j] - (below + beside);
            x[i * n + j] = i == j ? r_chain_div(rest * (real)0.5, l[j * n + j])
                                  : r_chain_div(rest - r_chain_mul(x[j * n + j], l[i * n + j]), l[j * n + j]);
        }
}

// Of the cotangent `g` of a factor `l` that of the matrix: `vmath::chain_cholesky_cotangent`. The symmetric matrix stands where
// the result will.
AB_CALLED void ab_cholesky_cotangent(const real *l, const real *g, real *s, int64_t n) {
    for (int64_t j = n - 1; j >= 0; j--)
        for (int64_t i = n - 1; i >= j; i--) {
            const real known = ab_chain_dot(s + i * n + j + 1, 1, l + (j + 1) * n + j, n, n - 1 - j);
            s[i * n + j] = s[j * n + i] = r_chain_div(g[i * n + j] - known, l[j * n + j]);
        }
    for (int64_t i = 0; i < n; i++) {
        s[i * n + i] = s[i * n + i] * (real)0.5;
        for (int64_t j = i + 1; j < n; j++) s[i * n + j] = 0;
    }
}
