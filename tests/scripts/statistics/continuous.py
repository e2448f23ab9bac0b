"""tests/filetests/run/continuous.ab"""

from harness import INF, NAN, Suite
from mpmath import besseli, beta, cos, erfc, exp, fabs, gamma, log, mpf, npdf, nsum, pi, sin, sqrt

suite = Suite("continuous", "Densities of numbers and their gradients.")


def positive(parameters, y_at_zero=-INF, rest=()):
    """Borders of a density of positive numbers with two parameters that are positive, too."""
    ok = [1.5] * parameters
    borders = [((-1.0, *ok), -INF), ((-INF, *ok), -INF), ((NAN, *ok), NAN), ((INF, *ok), -INF)]
    if y_at_zero is not None:
        borders.append(((0.0, *ok), y_at_zero))
    for i in range(parameters):
        for value in (-0.5, NAN):
            borders.append(((0.7, *ok[:i], value, *ok[i + 1:]), NAN))
    return [*borders, *rest]


suite.add(
    "weibull_lpdf",
    ["y: real", "alpha: real", "sigma: real"],
    lambda y, a, s: log(a / s) + (a - 1) * log(y / s) - (y / s) ** a,
    [(0.7, 2.5, 1.9), (3.0, 0.6, 0.2), (1e-300, 0.3, 2.0), (900.0, 400.0, 901.0)],
    positive(2, rest=[((0.0, 1.0, 2.0), -0.6931471805599453), ((0.0, 0.5, 2.0), INF)]),
)
suite.add(
    "frechet_lpdf",
    ["y: real", "alpha: real", "sigma: real"],
    lambda y, a, s: log(a / s) - (a + 1) * log(y / s) - (y / s) ** -a,
    [(0.7, 2.5, 1.9), (3.0, 0.6, 0.2), (1e-3, 0.3, 2.0), (900.0, 400.0, 901.0)],
    positive(2),
)
suite.add(
    "chi_square_lpdf",
    ["y: real", "nu: real"],
    lambda y, n: (n / 2 - 1) * log(y) - y / 2 - n / 2 * log(mpf(2)) - log(gamma(n / 2)),
    [(0.7, 2.5), (3.0, 0.6), (1e-300, 0.3), (60.0, 55.0)],
    positive(1, INF, [((0.0, 2.0), -0.6931471805599453), ((0.0, 3.0), -INF)]),
)
suite.add(
    "inv_chi_square_lpdf",
    ["y: real", "nu: real"],
    lambda y, n: -(n / 2 + 1) * log(y) - 1 / (2 * y) - n / 2 * log(mpf(2)) - log(gamma(n / 2)),
    [(0.7, 2.5), (3.0, 0.6), (1e-3, 0.3), (0.02, 55.0)],
    positive(1),
)
suite.add(
    "scaled_inv_chi_square_lpdf",
    ["y: real", "nu: real", "s: real"],
    lambda y, n, s: n / 2 * log(n / 2) - log(gamma(n / 2)) + n * log(s) - (n / 2 + 1) * log(y) - n * s * s / (2 * y),
    [(0.7, 2.5, 1.9), (3.0, 0.6, 0.2), (1e-3, 0.3, 2.0), (4.0, 55.0, 2.1)],
    positive(2),
)
suite.add(
    "rayleigh_lpdf",
    ["y: real", "sigma: real"],
    lambda y, s: log(y / s**2) - y**2 / (2 * s**2),
    [(0.7, 1.9), (3.0, 0.6), (1e-300, 0.3)],
    positive(1),
)
suite.add(
    "gumbel_lpdf",
    ["y: real", "mu: real", "beta: real"],
    lambda y, m, b: -log(b) - (y - m) / b - exp(-(y - m) / b),
    [(0.7, -0.3, 1.9), (-4.0, 2.0, 1.5), (40.0, 0.0, 1.0)],
    [
        ((INF, 0.0, 1.0), -INF), ((-INF, 0.0, 1.0), -INF), ((-800.0, 0.0, 1.0), -INF), ((0.0, 0.0, -1.0), NAN),
        ((NAN, 0.0, 1.0), NAN), ((0.0, NAN, 1.0), NAN), ((0.0, 0.0, NAN), NAN),
    ],
)
suite.add(
    "pareto_lpdf",
    ["y: real", "y_min: real", "alpha: real"],
    lambda y, m, a: log(a) + a * log(m) - (a + 1) * log(y),
    [(1.7, 0.5, 1.9), (3.0, 2.9, 0.2), (1e10, 1.0, 3.0)],
    [
        ((0.5, 0.5, 1.5), 1.0986122886681098), ((0.4, 0.5, 1.5), -INF), ((-1.0, 0.5, 1.5), -INF), ((INF, 0.5, 1.5), -INF),
        ((1.0, -0.5, 1.5), NAN), ((1.0, 0.5, -1.5), NAN), ((NAN, 0.5, 1.5), NAN), ((1.0, NAN, 1.5), NAN), ((1.0, 0.5, NAN), NAN),
    ],
)
suite.add(
    "pareto_type_2_lpdf",
    ["y: real", "mu: real", "lambda: real", "alpha: real"],
    lambda y, m, l, a: log(a / l) - (a + 1) * log(1 + (y - m) / l),
    [(1.7, 0.5, 1.9, 2.5), (3.0, 2.9, 0.2, 0.3), (1e10, -1.0, 3.0, 1.0), (1.0, 1.0 - 2.0**-40, 2.0, 5.0)],
    [
        ((0.5, 0.5, 2.0, 1.0), -0.6931471805599453), ((0.4, 0.5, 1.5, 1.0), -INF), ((INF, 0.5, 1.5, 1.0), -INF),
        ((1.0, 0.5, -1.5, 1.0), NAN), ((1.0, 0.5, 1.5, -1.0), NAN), ((NAN, 0.5, 1.5, 1.0), NAN), ((1.0, NAN, 1.5, 1.0), NAN),
        ((1.0, 0.5, NAN, 1.0), NAN), ((1.0, 0.5, 1.5, NAN), NAN),
    ],
)
suite.add(
    "loglogistic_lpdf",
    ["y: real", "alpha: real", "beta: real"],
    lambda y, a, b: log(b / a) + (b - 1) * log(y / a) - 2 * log(1 + (y / a) ** b),
    [(0.7, 2.5, 1.9), (3.0, 0.6, 0.2), (1e-300, 0.3, 2.0), (2.0, 2.5, 80.0)],
    [
        ((-1.0, 1.5, 1.5), -INF), ((0.0, 2.0, 1.0), -0.6931471805599453), ((0.0, 2.0, 2.0), -INF), ((0.0, 2.0, 0.5), INF),
        ((NAN, 1.5, 1.5), NAN), ((1.0, -1.5, 1.5), NAN), ((1.0, 1.5, -1.5), NAN), ((1.0, NAN, 1.5), NAN), ((1.0, 1.5, NAN), NAN),
    ],
)
suite.add(
    "beta_proportion_lpdf",
    ["y: real", "mu: real", "kappa: real"],
    lambda y, m, k: (m * k - 1) * log(y) + ((1 - m) * k - 1) * log(1 - y) - log(beta(m * k, (1 - m) * k)),
    [(0.7, 0.4, 1.9), (0.01, 0.9, 0.2), (1e-300, 0.3, 2.0), (0.5, 0.45, 80.0)],
    [
        ((-0.1, 0.5, 4.0), -INF), ((1.1, 0.5, 4.0), -INF), ((0.0, 0.5, 4.0), -INF), ((1.0, 0.5, 4.0), -INF), ((0.5, -0.5, 2.0), NAN),
        ((0.5, 1.5, 2.0), NAN), ((0.5, 0.5, -2.0), NAN), ((NAN, 0.5, 2.0), NAN), ((0.5, NAN, 2.0), NAN), ((0.5, 0.5, NAN), NAN),
    ],
)
suite.add(
    "exp_mod_normal_lpdf",
    ["y: real", "mu: real", "sigma: real", "lambda: real"],
    lambda y, m, s, l: log(l / 2 * exp(l / 2 * (2 * m + l * s * s - 2 * y)) * erfc((m + l * s * s - y) / (sqrt(2) * s))),
    [(0.7, -0.3, 1.9, 0.8), (-12.0, 2.0, 0.5, 3.0), (40.0, 0.0, 1.0, 2.0), (-40.0, 0.0, 1.0, 0.5)],
    [
        ((0.0, 0.0, -1.0, 1.0), NAN), ((0.0, 0.0, 1.0, -1.0), NAN), ((NAN, 0.0, 1.0, 1.0), NAN), ((0.0, NAN, 1.0, 1.0), NAN),
        ((0.0, 0.0, NAN, 1.0), NAN), ((0.0, 0.0, 1.0, NAN), NAN),
    ],
)
suite.add(
    "skew_normal_lpdf",
    ["y: real", "xi: real", "omega: real", "alpha: real"],
    lambda y, x, o, a: log(2 / o * npdf((y - x) / o) * erfc(-a * (y - x) / o / sqrt(2)) / 2),
    [(0.7, -0.3, 1.9, 0.8), (-3.0, 2.0, 0.5, 3.0), (4.0, 0.0, 1.0, -2.0), (-1.0, 0.0, 0.5, 20.0)],
    [
        ((0.0, 0.0, -1.0, 1.0), NAN), ((NAN, 0.0, 1.0, 1.0), NAN), ((0.0, NAN, 1.0, 1.0), NAN), ((0.0, 0.0, NAN, 1.0), NAN),
        ((0.0, 0.0, 1.0, NAN), NAN),
    ],
)
suite.add(
    "skew_double_exponential_lpdf",
    ["y: real", "mu: real", "sigma: real", "tau: real"],
    lambda y, m, s, t: log(2 * t * (1 - t) / s) - 2 / s * ((1 - t) * (m - y) if y < m else t * (y - m)),
    [(0.7, -0.3, 1.9, 0.8), (-3.0, 2.0, 0.5, 0.3), (4.0, 0.0, 1.0, 0.01)],
    [
        ((0.0, 0.0, -1.0, 0.5), NAN), ((0.0, 0.0, 1.0, 1.5), NAN), ((0.0, 0.0, 1.0, -0.5), NAN), ((INF, 0.0, 1.0, 0.5), -INF),
        ((-INF, 0.0, 1.0, 0.5), -INF), ((NAN, 0.0, 1.0, 0.5), NAN), ((0.0, NAN, 1.0, 0.5), NAN), ((0.0, 0.0, 1.0, NAN), NAN),
    ],
)
suite.add(
    "von_mises_lpdf",
    ["y: real", "mu: real", "kappa: real"],
    lambda y, m, k: k * cos(y - m) - log(2 * pi * besseli(0, k)),
    [(0.7, -0.3, 1.9), (-3.0, 2.0, 0.1), (1.2, 1.25, 15.9), (1.2, 1.25, 16.1), (1.2, 1.25, 5000.0)],
    [
        ((1.0, 0.0, 0.0), -1.8378770664093453), ((1.0, 0.0, -1.0), NAN), ((NAN, 0.0, 1.0), NAN), ((1.0, NAN, 1.0), NAN),
        ((1.0, 0.0, NAN), NAN),
    ],
)


def wiener(y, a, tau, b, d):
    t, w = (y - tau) / a**2, 1 - b
    total = sum(k * sin(k * pi * w) * exp(-(k**2) * pi**2 * t / 2) for k in range(1, 120))
    return log(pi / a**2 * total) + a * d * w - d**2 * (y - tau) / 2


suite.add(
    "wiener_lpdf",
    ["y: real", "alpha: real", "tau: real", "beta: real", "delta: real"],
    wiener,
    [
        (0.8, 1.2, 0.25, 0.5, 0.7), (2.5, 1.0, 0.1, 0.3, -1.5), (0.4, 2.0, 0.2, 0.8, 2.0), (0.65, 1.0, 0.25, 0.5, 0.0),
        (0.649, 1.0, 0.25, 0.9, 1.0), (0.651, 1.0, 0.25, 0.1, 1.0),
    ],
    [
        ((0.2, 1.0, 0.3, 0.5, 1.0), -INF), ((0.3, 1.0, 0.3, 0.5, 1.0), -INF), ((0.5, 1.0, 0.3, 1.5, 1.0), NAN),
        ((0.5, 1.0, 0.3, -0.5, 1.0), NAN), ((0.5, -1.0, 0.3, 0.5, 1.0), NAN), ((0.5, 1.0, -0.3, 0.5, 1.0), NAN),
        ((NAN, 1.0, 0.3, 0.5, 1.0), NAN), ((0.5, 1.0, 0.3, 0.5, NAN), NAN),
    ],
)
suite.write()
