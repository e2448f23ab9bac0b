"""tests/filetests/run/multivariate.ab"""

from harness import INF, NAN, Suite
from mpmath import beta, det, diag, exp, eye, gamma, inverse, log, matrix, mpf, pi, sqrt, zeros

suite = Suite("multivariate", "Densities of vectors and matrices, of regressions, and their gradients.")
MU, Y = [0.5, -0.25, 1.0], [0.7, 0.1, -2.0]
SPD = [[2.0, 0.5, -0.25], [0.5, 1.0, 0.125], [-0.25, 0.125, 3.0]]
OTHER = [[1.5, -0.5, 0.25], [-0.5, 2.0, 0.5], [0.25, 0.5, 1.0]]
INDEFINITE = [[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
FACTOR = [[1.5, 0.0, 0.0], [-0.5, 0.75, 0.0], [0.25, 0.5, 2.0]]
OTHER_FACTOR = [[0.5, 0.0, 0.0], [0.25, 1.25, 0.0], [-0.75, 0.5, 0.625]]


def form(x, a):
    return (matrix(x).T * matrix(a) * matrix(x))[0]


def product(l):
    m = matrix(l)
    return m * m.T


def minus(x, y):
    return [a - b for a, b in zip(x, y)]


def normal_with(y, mu, covariance):
    return -(form(minus(y, mu), inverse(covariance)) + log(det(covariance)) + len(y) * log(2 * pi)) / 2


def student_with(y, nu, mu, scale):
    n = len(y)
    q = 1 + form(minus(y, mu), inverse(scale)) / nu
    return log(gamma((nu + n) / 2) / gamma(nu / 2)) - (n * log(nu * pi) + log(det(scale)) + (nu + n) * log(q)) / 2


suite.add(
    "multi_normal_cholesky_lpdf", ["y: real[3]", "mu: real[3]", "factor: tril[3]"],
    lambda y, mu, l: normal_with(y, mu, product(l)),
    [(Y, MU, FACTOR), (Y, MU, OTHER_FACTOR)],
    [(([INF, 0.0, 0.0], MU, FACTOR), -INF), (([NAN, 0.0, 0.0], MU, FACTOR), NAN)], arrays=None,
)
suite.add(
    "multi_normal_lpdf", ["y: real[3]", "mu: real[3]", "covariance: sym[3]"],
    lambda y, mu, s: normal_with(y, mu, matrix(s)),
    [(Y, MU, SPD), (Y, MU, OTHER)],
    [((Y, MU, INDEFINITE), NAN), (([NAN, 0.0, 0.0], MU, SPD), NAN)], arrays=None,
)
suite.add(
    "multi_normal_prec_lpdf", ["y: real[3]", "mu: real[3]", "precision: sym[3]"],
    lambda y, mu, s: normal_with(y, mu, inverse(matrix(s))),
    [(Y, MU, SPD), (Y, MU, OTHER)],
    [((Y, MU, INDEFINITE), NAN), (([NAN, 0.0, 0.0], MU, SPD), NAN)], arrays=None,
)
suite.add(
    "multi_student_t_lpdf", ["y: real[3]", "nu: real", "mu: real[3]", "scale: sym[3]"],
    lambda y, nu, mu, s: student_with(y, nu, mu, matrix(s)),
    [(Y, 3.5, MU, SPD), (Y, 0.25, MU, OTHER)],
    [((Y, 3.5, MU, INDEFINITE), NAN), ((Y, -0.5, MU, SPD), NAN), ((Y, NAN, MU, SPD), NAN)], arrays=None,
)
suite.add(
    "multi_student_t_cholesky_lpdf", ["y: real[3]", "nu: real", "mu: real[3]", "factor: tril[3]"],
    lambda y, nu, mu, l: student_with(y, nu, mu, product(l)),
    [(Y, 3.5, MU, FACTOR), (Y, 0.25, MU, OTHER_FACTOR)],
    [((Y, -0.5, MU, FACTOR), NAN), ((Y, NAN, MU, FACTOR), NAN)], arrays=None,
)
ROWS = [[0.7, 0.1, -2.0], [0.25, -1.5, 0.5]]


def gp(y, covariance, w):
    return sum(normal_with(row, [0] * len(row), covariance / v) for row, v in zip(y, w))


suite.add(
    "multi_gp_lpdf", ["y: real[2, 3]", "covariance: sym[3]", "w: real[2]"],
    lambda y, s, w: gp(y, matrix(s), w),
    [(ROWS, SPD, [0.5, 2.0]), (ROWS, OTHER, [1.0, 3.0])],
    [((ROWS, INDEFINITE, [0.5, 2.0]), NAN), ((ROWS, SPD, [-0.5, 2.0]), NAN)], arrays=None,
)
suite.add(
    "multi_gp_cholesky_lpdf", ["y: real[2, 3]", "factor: tril[3]", "w: real[2]"],
    lambda y, l, w: gp(y, product(l), w),
    [(ROWS, FACTOR, [0.5, 2.0])], [((ROWS, FACTOR, [-0.5, 2.0]), NAN)], arrays=None,
)


def matrix_normal(y, mu, rows, columns):
    r = matrix(y) - matrix(mu)
    trace = sum((matrix(rows) * r * matrix(columns) * r.T)[i, i] for i in range(2))
    return (3 * log(det(matrix(rows))) + 2 * log(det(matrix(columns))) - trace - 6 * log(2 * pi)) / 2


suite.add(
    "matrix_normal_prec_lpdf", ["y: real[2, 3]", "mu: real[2, 3]", "rows: sym[2]", "columns: sym[3]"],
    matrix_normal,
    [(ROWS, [[0.5, 0.25, 0.0], [1.0, -1.0, 0.5]], [[1.5, 0.5], [0.5, 2.0]], SPD)],
    [((ROWS, ROWS, [[1.5, 2.5], [2.5, 2.0]], SPD), NAN), ((ROWS, ROWS, [[1.5, 0.5], [0.5, 2.0]], INDEFINITE), NAN)], arrays=None,
)


def dirichlet(theta, alpha):
    return log(gamma(sum(alpha))) + sum((a - 1) * log(t) - log(gamma(a)) for t, a in zip(theta, alpha))


ALPHA = [0.5, 2.0, 1.0]
suite.add(
    "dirichlet_lpdf", ["theta: data[3]", "alpha: real[3]"], dirichlet,
    [([0.25, 0.5, 0.25], ALPHA), ([0.125, 0.5, 0.375], [20.0, 50.0, 0.125])],
    [
        (([0.5, 0.25, 0.0], ALPHA), -INF), (([0.5, 0.5, 0.5], ALPHA), -INF), (([-0.5, 1.0, 0.5], ALPHA), -INF),
        (([0.5, 0.5, 0.0], [0.5, 2.0, 1.0]), 0.28203506914240084), (([0.25, 0.5, 0.25], [-0.5, 2.0, 1.0]), NAN),
        (([NAN, 0.5, 0.25], ALPHA), NAN), (([0.25, 0.5, 0.25], [NAN, 2.0, 1.0]), NAN),
    ],
    arrays=None,
)


def lkj(log_det, n, eta):
    """Lewandowski, Kurowicka and Joe 2009: the constant is a product of those of beta densities of partial correlations."""
    constant = mpf(0)
    for k in range(1, n):
        b = eta + mpf(n - 1 - k) / 2
        constant += (n - k) * ((2 * b - 1) * log(mpf(2)) + log(beta(b, b)))
    return (eta - 1) * log_det - constant


def lkj_cholesky(l, eta):
    """With the Jacobian of the product, which is that of the rows' lengths. The first entry is 1 and not looked at."""
    n = len(l)
    log_det = 2 * sum(log(l[i][i]) for i in range(1, n))
    return lkj(log_det, n, eta) + sum((n - 1 - i) * log(l[i][i]) for i in range(1, n))


CORRELATIONS = [[1.0, 0.5, -0.25], [0.5, 1.0, 0.125], [-0.25, 0.125, 1.0]]
CORRELATION_FACTOR = [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [-0.48, 0.6, 0.64]]
suite.add(
    "lkj_corr_lpdf", ["y: sym[3]", "eta: real"], lambda y, eta: lkj(log(det(matrix(y))), 3, eta),
    [(CORRELATIONS, 2.5), (CORRELATIONS, 1.0), (CORRELATIONS, 0.25)],
    [((INDEFINITE, 2.0), -INF), ((CORRELATIONS, -1.0), NAN), ((CORRELATIONS, NAN), NAN)], arrays=None,
)
suite.add(
    "lkj_corr_cholesky_lpdf", ["factor: tril[3]", "eta: real"], lkj_cholesky,
    [(CORRELATION_FACTOR, 2.5), (CORRELATION_FACTOR, 1.0), (CORRELATION_FACTOR, 0.25)],
    [((CORRELATION_FACTOR, -1.0), NAN), ((CORRELATION_FACTOR, NAN), NAN)], arrays=None,
)


def lkj_cov(y, mu, sigma, eta):
    deviations = [sqrt(y[i][i]) for i in range(3)]
    scales = diag([1 / d for d in deviations])
    logs = sum(-(((log(d) - m) / s) ** 2) / 2 - log(d * s) - log(2 * pi) / 2 for d, m, s in zip(deviations, mu, sigma))
    return logs + lkj(log(det(scales * matrix(y) * scales)), 3, eta)


suite.add(
    "lkj_cov_lpdf", ["y: sym[3]", "mu: real[3]", "sigma: real[3]", "eta: real"], lkj_cov, [(SPD, MU, [0.5, 1.0, 2.0], 2.5)],
    [((INDEFINITE, MU, [0.5, 1.0, 2.0], 2.5), -INF), ((SPD, MU, [0.5, 1.0, 2.0], -2.5), NAN)], arrays=None,
)


def log_multigamma(n, x):
    return mpf(n * (n - 1)) / 4 * log(pi) + sum(log(gamma(x - mpf(i) / 2)) for i in range(n))


def trace(a):
    return sum(a[i, i] for i in range(a.rows))


def wishart(y, nu, s):
    n = y.rows
    return (nu - n - 1) / 2 * log(det(y)) - trace(inverse(s) * y) / 2 - nu * n / 2 * log(mpf(2)) - nu / 2 * log(det(s)) - log_multigamma(n, nu / 2)


def inv_wishart(y, nu, s):
    n = y.rows
    return nu / 2 * log(det(s)) - (nu + n + 1) / 2 * log(det(y)) - trace(s * inverse(y)) / 2 - nu * n / 2 * log(mpf(2)) - log_multigamma(n, nu / 2)


def of_factor(density):
    """Of the Cholesky factor, with the Jacobian of the product."""
    def value(l, nu, s):
        n = len(l)
        return density(product(l), nu, product(s)) + n * log(mpf(2)) + sum((n - i) * log(l[i][i]) for i in range(n))
    return value


for name, density in (("wishart", wishart), ("inv_wishart", inv_wishart)):
    suite.add(
        f"{name}_lpdf", ["y: sym[3]", "nu: real", "scale: sym[3]"],
        lambda y, nu, s, density=density: density(matrix(y), nu, matrix(s)),
        [(OTHER, 3.5, SPD), (SPD, 20.0, OTHER)],
        [
            ((INDEFINITE, 3.5, SPD), -INF), ((SPD, 3.5, INDEFINITE), NAN), ((SPD, 1.5, OTHER), NAN), ((SPD, NAN, OTHER), NAN),
        ],
        arrays=None,
    )
    suite.add(
        f"{name}_cholesky_lpdf", ["factor: tril[3]", "nu: real", "scale: tril[3]"], of_factor(density),
        [(OTHER_FACTOR, 3.5, FACTOR), (FACTOR, 20.0, OTHER_FACTOR)],
        [((FACTOR, 1.5, OTHER_FACTOR), NAN), ((FACTOR, NAN, OTHER_FACTOR), NAN)], arrays=None,
    )


def dlm(y, design, transition, noise, drift, m0, c0):
    """The joint normal distribution of all observations."""
    f, g, w, c = matrix(design), matrix(transition), matrix(drift), matrix(c0)
    r, times, mean, covariance = len(y), len(y[0]), [], []
    m = matrix(m0)
    for _ in range(times):
        m, c = g * m, g * c * g.T + w
        mean.append(f.T * m)
        covariance.append(c)
    joint = matrix(r * times, r * times)
    for s in range(times):
        for t in range(times):
            power = g ** abs(s - t) if s != t else eye(len(m0))
            of_states = power * covariance[t] if s >= t else covariance[s] * power.T
            block = f.T * of_states * f + (matrix(noise) if s == t else zeros(r, r))
            for i in range(r):
                for j in range(r):
                    joint[s * r + i, t * r + j] = block[i, j]
    values = [y[i][t] for t in range(times) for i in range(r)]
    return normal_with(values, [mean[t][i] for t in range(times) for i in range(r)], joint)


suite.add(
    "gaussian_dlm_obs_lpdf",
    ["y: real[2, 3]", "design: real[2, 2]", "transition: real[2, 2]", "noise: sym[2]", "drift: sym[2]", "m0: real[2]", "c0: sym[2]"],
    dlm,
    [([[0.7, 0.1, -2.0], [0.25, -1.5, 0.5]], [[1.0, 0.5], [0.25, -0.5]], [[0.75, 0.25], [-0.5, 1.0]], [[1.5, 0.5], [0.5, 2.0]],
      [[0.5, 0.125], [0.125, 0.25]], [0.5, -1.0], [[2.0, -0.5], [-0.5, 1.0]])],
    arrays=None,
)

# Regressions, of three observations and two predictors.
X, ALPHAS, BETA = [[0.5, -1.0], [2.0, 0.25], [-0.75, 1.5]], [0.25, -0.5, 0.75], [0.5, -0.25]


def predictors(x, alpha, b):
    return [a + sum(v * w for v, w in zip(row, b)) for row, a in zip(x, alpha)]


def inv_logit(x):
    return 1 / (1 + exp(-x))


suite.add(
    "normal_id_glm_lpdf", ["y: real[3]", "x: real[3, 2]", "alpha: real[3]", "beta: real[2]", "sigma: real[3]"],
    lambda y, x, a, b, s: sum(-(((v - m) / t) ** 2) / 2 - log(t) - log(2 * pi) / 2 for v, m, t in zip(y, predictors(x, a, b), s)),
    [(Y, X, ALPHAS, BETA, [0.5, 1.0, 2.0])], [((Y, X, ALPHAS, BETA, [0.5, -1.0, 2.0]), NAN)], arrays=None,
)
suite.add(
    "bernoulli_logit_glm_lpmf", ["y: int[3]", "x: real[3, 2]", "alpha: real[3]", "beta: real[2]"],
    lambda y, x, a, b: sum(log(inv_logit(m if v else -m)) for v, m in zip(y, predictors(x, a, b))),
    [([1, 0, 1], X, ALPHAS, BETA)], [(([1, 2, 1], X, ALPHAS, BETA), -INF)], arrays=None,
)
suite.add(
    "binomial_logit_glm_lpmf", ["y: int[3]", "trials: int[3]", "x: real[3, 2]", "alpha: real[3]", "beta: real[2]"],
    lambda y, n, x, a, b: sum(log(gamma(k + 1) / gamma(v + 1) / gamma(k - v + 1) * inv_logit(m) ** v * inv_logit(-m) ** (k - v)) for v, k, m in zip(y, n, predictors(x, a, b))),
    [([1, 0, 4], [2, 3, 6], X, ALPHAS, BETA)], [(([3, 0, 4], [2, 3, 6], X, ALPHAS, BETA), -INF)], arrays=None,
)
suite.add(
    "poisson_log_glm_lpmf", ["y: int[3]", "x: real[3, 2]", "alpha: real[3]", "beta: real[2]"],
    lambda y, x, a, b: sum(v * m - exp(m) - log(gamma(v + 1)) for v, m in zip(y, predictors(x, a, b))),
    [([1, 0, 5], X, ALPHAS, BETA)], [(([1, -2, 1], X, ALPHAS, BETA), -INF)], arrays=None,
)
suite.add(
    "neg_binomial_2_log_glm_lpmf", ["y: int[3]", "x: real[3, 2]", "alpha: real[3]", "beta: real[2]", "phi: real[3]"],
    lambda y, x, a, b, p: sum(
        log(gamma(v + f) / gamma(f) / gamma(v + 1)) + v * (m - log(exp(m) + f)) + f * log(f / (exp(m) + f))
        for v, m, f in zip(y, predictors(x, a, b), p)
    ),
    [([1, 0, 5], X, ALPHAS, BETA, [0.5, 1.0, 4.0])], [(([1, -2, 1], X, ALPHAS, BETA, [0.5, 1.0, 4.0]), -INF)], arrays=None,
)
CATEGORY = [[0.5, -0.25, 0.75], [0.25, 1.0, -0.5]]
suite.add(
    "categorical_logit_glm_lpmf", ["y: int[3]", "x: real[3, 2]", "alpha: real[3]", "beta: real[2, 3]"],
    lambda y, x, a, b: sum(
        e[v] - log(sum(exp(w) for w in e))
        for v, e in zip(y, ([a[k] + sum(row[j] * b[j][k] for j in range(2)) for k in range(3)] for row in x))
    ),
    [([1, 0, 2], X, ALPHAS, CATEGORY)], [(([1, 3, 1], X, ALPHAS, CATEGORY), -INF)], arrays=None,
)
suite.add(
    "ordered_logistic_glm_lpmf", ["y: int[3]", "x: real[3, 2]", "beta: real[2]", "c: real[2]"],
    lambda y, x, b, c: sum(
        log((inv_logit(m - c[v - 1]) if v > 0 else 1) - (inv_logit(m - c[v]) if v < 2 else 0))
        for v, m in zip(y, predictors(x, [0, 0, 0], b))
    ),
    [([1, 0, 2], X, BETA, [-0.5, 0.75])],
    [(([1, 3, 1], X, BETA, [-0.5, 0.75]), -INF), (([1, 2, 1], X, BETA, [0.5, -0.75]), NAN)], arrays=None,
)
suite.write()
