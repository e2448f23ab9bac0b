"""tests/filetests/run/counts.ab"""

from harness import INF, NAN, Suite
from mpmath import beta, binomial, e, erfc, exp, factorial, gamma, log, mpf, rf, sqrt

suite = Suite("counts", "Probabilities of counts and categories, and their gradients.")


def normal_cdf(x):
    return erfc(-x / sqrt(2)) / 2


def negative_binomial(y, size, p):
    """y failures, each of probability 1 - p."""
    return log(rf(size, y) / factorial(y)) + size * log(p) + y * log(1 - p)


suite.add(
    "neg_binomial_2_lpmf",
    ["y: int", "mu: real", "phi: real"],
    lambda y, mu, phi: negative_binomial(y, phi, phi / (mu + phi)),
    [(3, 2.5, 1.5), (0, 2.5, 1.5), (40, 2.5, 0.3), (7, 1e-3, 20.0), (12, 8.0, 300.0), (1000, 700.0, 9.0)],
    [
        ((0, 0.0, 1.5), 0.0), ((1, 0.0, 1.5), -INF), ((-1, 2.5, 1.5), -INF), ((-3, 2.5, 1.5), -INF), ((3, -1.0, 1.5), NAN),
        ((0, -1.0, 0.5), NAN), ((3, 2.5, -1.0), NAN), ((0, 2.5, -1.0), NAN), ((-1, 2.5, -1.0), NAN), ((3, NAN, 1.0), NAN),
        ((0, 2.0, NAN), NAN), ((0, INF, 1.0), -INF),
    ],
)
suite.add(
    "neg_binomial_2_log_lpmf",
    ["y: int", "eta: real", "phi: real"],
    lambda y, eta, phi: negative_binomial(y, phi, phi / (exp(eta) + phi)),
    [(3, 0.9, 1.5), (0, 0.9, 1.5), (40, 1.0, 0.3), (7, -6.0, 20.0), (12, 2.0, 300.0), (3, 800.0, 0.5)],
    [
        ((0, -INF, 1.5), 0.0), ((1, -INF, 1.5), -INF), ((-1, 2.5, 1.5), -INF), ((-3, 2.5, 1.5), -INF),
        ((3, 2.5, -1.0), NAN), ((0, 2.5, -1.0), NAN), ((3, NAN, 1.0), NAN), ((0, NAN, 1.0), NAN), ((0, 2.0, NAN), NAN),
    ],
)
suite.add(
    "neg_binomial_lpmf",
    ["y: int", "alpha: real", "beta: real"],
    lambda y, a, b: negative_binomial(y, a, b / (b + 1)),
    [(3, 2.5, 1.5), (0, 2.5, 1.5), (40, 2.5, 0.3), (7, 0.02, 20.0), (12, 8.0, 0.01)],
    [
        ((-1, 2.5, 1.5), -INF), ((-3, 2.5, 1.5), -INF), ((3, -1.0, 1.5), NAN), ((3, 2.5, -1.5), NAN), ((0, 2.5, -0.5), NAN),
        ((0, 2.5, -1.5), NAN), ((3, 2.5, 0.0), -INF), ((3, NAN, 1.0), NAN), ((0, 2.0, NAN), NAN),
    ],
)
suite.add(
    "beta_binomial_lpmf",
    ["y: int", "n: int", "alpha: real", "beta: real"],
    lambda y, n, a, b: log(binomial(n, y)) + log(beta(y + a, n - y + b)) - log(beta(a, b)),
    [(3, 10, 2.5, 1.5), (0, 10, 2.5, 1.5), (10, 10, 0.3, 1.5), (7, 20, 200.0, 350.0), (0, 0, 1.0, 2.0)],
    [
        ((-1, 10, 2.5, 1.5), -INF), ((11, 10, 2.5, 1.5), -INF), ((3, 10, -2.5, 1.5), NAN), ((3, 10, 2.5, -0.5), NAN),
        ((0, -1, 1.0, 1.0), NAN), ((3, 10, NAN, 1.5), NAN), ((3, 10, 1.5, NAN), NAN),
    ],
)
suite.add(
    "beta_neg_binomial_lpmf",
    ["y: int", "r: real", "alpha: real", "beta: real"],
    lambda y, r, a, b: log(gamma(y + r) / gamma(r) / factorial(y)) + log(beta(a + r, b + y)) - log(beta(a, b)),
    [(3, 2.0, 2.5, 1.5), (0, 2.5, 2.5, 1.5), (40, 0.3, 0.3, 1.5), (7, 20.0, 200.0, 350.0)],
    [
        ((-1, 2.0, 2.5, 1.5), -INF), ((3, -1.0, 2.5, 1.5), NAN), ((3, 1.0, -2.5, 1.5), NAN), ((3, 1.0, 2.5, -0.5), NAN),
        ((3, NAN, 2.5, 1.5), NAN),
    ],
)
suite.add(
    "hypergeometric_lpmf",
    ["y: int", "n: int", "a: int", "b: int"],
    lambda y, n, a, b: log(binomial(a, y)) + log(binomial(b, n - y)) - log(binomial(a + b, n)),
    [(2, 5, 6, 9), (0, 5, 6, 9), (5, 5, 6, 9), (0, 0, 6, 9), (6, 15, 6, 9), (30, 50, 60, 90)],
    [((-1, 5, 6, 9), -INF), ((6, 5, 6, 9), -INF), ((0, 10, 6, 9), -INF)],
    gradients=False,
)
suite.add(
    "discrete_range_lpmf",
    ["y: int", "lower: int", "upper: int"],
    lambda y, l, u: -log(mpf(u - l + 1)),
    [(2, -1, 5), (-1, -1, 5), (5, -1, 5), (5, 5, 5)],
    [((-2, -1, 5), -INF), ((6, -1, 5), -INF), ((2, 5, 1), NAN)],
    gradients=False,
)
suite.add(
    "yule_simon_lpmf",
    ["y: int", "alpha: real"],
    lambda y, a: log(a * beta(mpf(y), a + 1)),
    [(2, 1.5), (1, 0.3), (50, 7.0)],
    [((0, 1.5), -INF), ((-4, 1.5), -INF), ((2, -0.5), NAN), ((2, NAN), NAN)],
)
suite.add(
    "categorical_lpmf",
    ["y: int", "theta: data[3]"],
    lambda y, theta: log(theta[y]),
    [(0, [0.25, 0.5, 0.25]), (2, [0.125, 0.5, 0.375]), (1, [0.0, 1.0, 0.0])],
    [
        ((0, [0.0, 1.0, 0.0]), -INF), ((3, [0.25, 0.5, 0.25]), -INF), ((-1, [0.25, 0.5, 0.25]), -INF),
        ((1, [0.25, 0.25, 0.25]), NAN), ((1, [-0.25, 0.25, 1.0]), NAN), ((1, [NAN, 0.25, 0.75]), NAN),
    ],
    arrays=None, gradients=False,
)
suite.add(
    "categorical_logit_lpmf",
    ["y: int", "beta: real[3]"],
    lambda y, b: b[y] - log(sum(exp(v) for v in b)),
    [(0, [0.25, 0.5, -0.25]), (2, [100.0, 50.0, -500.0])],
    [((3, [0.25, 0.5, 0.25]), -INF), ((-1, [0.25, 0.5, 0.25]), -INF), ((1, [NAN, 0.25, 0.25]), NAN)],
    arrays=None,
)
suite.add(
    "multinomial_lpmf",
    ["y: int[3]", "theta: data[3]"],
    lambda y, t: log(factorial(sum(y))) + sum(k * log(p) - log(factorial(k)) for k, p in zip(y, t)),
    [([1, 3, 2], [0.25, 0.5, 0.25]), ([0, 30, 2], [0.125, 0.5, 0.375])],
    [
        (([0, 3, 0], [0.0, 1.0, 0.0]), 0.0), (([1, 3, 0], [0.0, 1.0, 0.0]), -INF), (([0, 0, 0], [0.25, 0.5, 0.25]), 0.0),
        (([-1, 3, 2], [0.25, 0.5, 0.25]), -INF), (([1, 3, 2], [0.25, 0.25, 0.25]), NAN),
    ],
    arrays=None, gradients=False,
)
suite.add(
    "multinomial_logit_lpmf",
    ["y: int[3]", "gamma: real[3]"],
    lambda y, g: log(factorial(sum(y))) + sum(k * (v - log(sum(exp(u) for u in g))) - log(factorial(k)) for k, v in zip(y, g)),
    [([1, 3, 2], [0.25, 0.5, -0.25]), ([0, 30, 2], [100.0, 50.0, 20.0])],
    [(([0, 0, 0], [0.25, 0.5, 0.25]), 0.0), (([-1, 3, 2], [0.25, 0.5, 0.25]), -INF), (([1, 3, 2], [0.25, NAN, 0.25]), NAN)],
    arrays=None,
)
suite.add(
    "dirichlet_multinomial_lpmf",
    ["y: int[3]", "alpha: real[3]"],
    lambda y, a: log(factorial(sum(y)) / rf(sum(a), sum(y))) + sum(log(rf(v, k) / factorial(k)) for k, v in zip(y, a)),
    [([1, 3, 2], [0.25, 0.5, 2.0]), ([0, 30, 2], [100.0, 50.0, 20.0]), ([0, 0, 0], [1.0, 2.0, 0.5])],
    [(([-1, 3, 2], [0.25, 0.5, 0.25]), -INF), (([1, 3, 2], [-0.5, 0.25, 0.25]), NAN), (([0, 3, 2], [-0.5, 0.25, 0.25]), NAN)],
    arrays=None,
)


def ordered(cdf):
    def value(k, eta, c):
        upper = cdf(eta - c[k - 1]) if k > 0 else mpf(1)
        return log(upper - (cdf(eta - c[k]) if k < len(c) else 0))

    return value


CUTS = [-0.75, 0.5, 2.0]
BORDERS = [
    ((4, 0.3, CUTS), -INF), ((-1, 0.3, CUTS), -INF), ((1, 0.3, [1.0, 0.0, 2.0]), NAN), ((1, 0.3, [0.0, 0.0, 1.0]), -INF),
    ((1, NAN, CUTS), NAN),
]
suite.add(
    "ordered_logistic_lpmf",
    ["k: int", "eta: real", "c: real[3]"],
    ordered(lambda x: 1 / (1 + exp(-x))),
    [(0, 0.3, CUTS), (1, 0.3, CUTS), (2, 0.3, CUTS), (3, 0.3, CUTS), (2, -40.0, CUTS), (1, 40.0, CUTS)],
    BORDERS, arrays=None,
)
suite.add(
    "ordered_probit_lpmf",
    ["k: int", "eta: real", "c: real[3]"],
    ordered(normal_cdf),
    [(0, 0.3, CUTS), (1, 0.3, CUTS), (2, 0.3, CUTS), (3, 0.3, CUTS), (2, -7.0, CUTS), (1, 7.0, CUTS)],
    BORDERS, arrays=None,
)


def poisson_binomial(y, theta):
    table = [mpf(1)]
    for p in theta:
        table = [a * (1 - p) + b * p for a, b in zip([*table, 0], [0, *table])]
    return log(table[y])


suite.add(
    "poisson_binomial_lpmf",
    ["y: int", "theta: real[3]"],
    poisson_binomial,
    [(0, [0.25, 0.5, 0.125]), (1, [0.25, 0.5, 0.125]), (3, [0.25, 1e-9, 0.125])],
    [((4, [0.25, 0.5, 0.125]), -INF), ((-1, [0.25, 0.5, 0.125]), -INF), ((1, [0.0, 1.0, 0.0]), 0.0), ((1, [0.5, 1.5, 0.5]), NAN)],
    arrays=None,
)
suite.write()
