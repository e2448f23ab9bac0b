"""tests/filetests/run/cumulative.ab and cumulative_counts.ab"""

from functools import wraps

from harness import INF, NAN, Suite
from mpmath import (
    atan, besseli, beta, betainc, binomial, cos, erfc, exp, fac, gamma, gammainc, log, mp, mpf, pi, quad, rf, sqrt, workdps,
)


def triple(suite, name, parameters, below, points, borders, arrays, logs_only=False):
    """`below` is the distribution function, computed at 100 digits, that its complement has 50 of them. Borders have the
    values of the distribution function."""

    def precise(f):
        @wraps(f)
        def value(*args):
            with workdps(100):
                return f(below(*args))

        return value

    of_log = {0.0: -INF, 1.0: 0.0}
    of_complement = {0.0: 0.0, 1.0: -INF}
    if not logs_only:
        suite.add(f"{name}_cdf", parameters, precise(lambda p: p), points, borders, arrays and "each", gradients=False)
    lower = [(p, of_log.get(v, v)) for p, v in borders]
    upper = [(p, of_complement.get(v, v)) for p, v in borders]
    suite.add(f"{name}_lcdf", parameters, precise(log), points, lower, arrays and "sum", slopes_of_arrays=False)
    suite.add(f"{name}_lccdf", parameters, precise(lambda p: log(1 - p)), points, upper, arrays and "sum", slopes_of_arrays=False)


def reals(*names):
    return [f"{n}: real" for n in names]


def phi(z):
    return erfc(-z / sqrt(mpf(2))) / 2


def scale_borders(*rest):
    return [((INF, 0.0, 1.0, *rest), 1.0), ((-INF, 0.0, 1.0, *rest), 0.0), ((0.0, 0.0, -1.0, *rest), NAN), ((NAN, 0.0, 1.0, *rest), NAN), ((0.0, NAN, 1.0, *rest), NAN), ((0.0, 0.0, NAN, *rest), NAN)]


def positive_borders(n, zero=0.0):
    ok = [1.5] * n
    out = [((-1.0, *ok), 0.0), ((0.0, *ok), zero), ((INF, *ok), 1.0), ((NAN, *ok), NAN)]
    for i in range(n):
        out += [((1.0, *ok[:i], v, *ok[i + 1:]), NAN) for v in (-0.5, NAN)]
    return out


smooth = Suite("cumulative", "Distribution functions of numbers and their gradients.")


def add(name, names, below, points, borders, arrays=True, logs_only=False):
    triple(smooth, name, reals(*names), below, points, borders, arrays, logs_only)


LOCATION = [(0.7, -0.3, 1.9), (-12.0, 2.0, 0.75), (9.0, -0.5, 1.25)]
SCALE = ("y", "mu", "sigma")
add("std_normal", ["y"], phi, [(0.7,), (-30.0,), (9.0,)], [((INF,), 1.0), ((-INF,), 0.0), ((NAN,), NAN)])
add("normal", SCALE, lambda y, m, s: phi((y - m) / s), LOCATION, scale_borders())
add("lognormal", SCALE, lambda y, m, s: phi((log(y) - m) / s), [(0.7, -0.3, 1.9), (1e-6, 2.0, 0.75), (900.0, -0.5, 1.25)], [((0.0, 0.0, 1.0), 0.0), ((-1.0, 0.0, 1.0), 0.0), ((INF, 0.0, 1.0), 1.0), ((1.0, 0.0, -1.0), NAN), ((NAN, 0.0, 1.0), NAN), ((-1.0, NAN, 1.0), NAN)])
add("cauchy", SCALE, lambda y, m, s: mpf(1) / 2 + atan((y - m) / s) / pi, [*LOCATION, (1e9, 0.0, 1.0), (-1e9, 0.0, 1.0)], scale_borders())
add("double_exponential", SCALE, lambda y, m, s: exp((y - m) / s) / 2 if y < m else 1 - exp((m - y) / s) / 2, LOCATION, scale_borders())
add("logistic", SCALE, lambda y, m, s: 1 / (1 + exp(-(y - m) / s)), LOCATION, scale_borders())
add("gumbel", ("y", "mu", "beta"), lambda y, m, b: exp(-exp(-(y - m) / b)), [(0.7, -0.3, 1.9), (-2.0, 2.0, 1.75), (19.0, -0.5, 1.25)], scale_borders())
POSITIVE = [(0.7, 1.3, 1.9), (1e-6, 2.0, 0.75), (7.0, 1.5, 1.25)]
add("exponential", ("y", "beta"), lambda y, b: 1 - exp(-b * y), [(0.7, 1.3), (1e-9, 2.0), (30.0, 1.5)], positive_borders(1))
add("weibull", ("y", "alpha", "sigma"), lambda y, a, s: 1 - exp(-((y / s) ** a)), POSITIVE, positive_borders(2))
add("rayleigh", ("y", "sigma"), lambda y, s: 1 - exp(-((y / s) ** 2) / 2), [(0.7, 1.3), (1e-6, 2.0), (9.0, 1.5)], positive_borders(1))
add("frechet", ("y", "alpha", "sigma"), lambda y, a, s: exp(-((y / s) ** -a)), [(0.7, 1.3, 1.9), (0.1, 1.5, 0.75), (700.0, 1.5, 1.25)], positive_borders(2))
add("loglogistic", ("y", "alpha", "beta"), lambda y, a, b: 1 / (1 + (y / a) ** -b), [*POSITIVE, (1e9, 1.0, 2.0)], positive_borders(2))
add(
    "pareto", ("y", "y_min", "alpha"), lambda y, m, a: 1 - (m / y) ** a, [(1.7, 1.3, 1.9), (1.0 + 2.0**-30, 1.0, 0.75), (7e5, 1.5, 1.25)],
    [((0.5, 1.0, 1.0), 0.0), ((1.0, 1.0, 1.0), 0.0), ((INF, 1.0, 1.0), 1.0), ((1.0, -1.0, 1.0), NAN), ((1.0, 0.5, -1.0), NAN), ((NAN, 1.0, 1.0), NAN)],
)
add(
    "pareto_type_2", ("y", "mu", "lambda", "alpha"), lambda y, m, l, a: 1 - (1 + (y - m) / l) ** -a,
    [(1.7, 1.3, 1.9, 0.5), (1.0 + 2.0**-30, 1.0, 0.75, 2.0), (7e5, -1.5, 1.25, 3.0)],
    [((0.5, 1.0, 1.0, 1.0), 0.0), ((INF, 1.0, 1.0, 1.0), 1.0), ((2.0, 1.0, -1.0, 1.0), NAN), ((2.0, 0.5, 1.0, -1.0), NAN), ((NAN, 1.0, 1.0, 1.0), NAN)],
)
add(
    "uniform", ("y", "alpha", "beta"), lambda y, a, b: (y - a) / (b - a), [(0.7, -1.3, 1.9), (-1.25, -1.5, 2.0)],
    [((-2.0, -1.0, 1.0), 0.0), ((-1.0, -1.0, 1.0), 0.0), ((1.0, -1.0, 1.0), 1.0), ((3.0, -1.0, 1.0), 1.0), ((0.5, 1.0, -1.0), NAN), ((NAN, 0.0, 1.0), NAN), ((2.0, NAN, 1.0), NAN)],
)
add(
    "exp_mod_normal", ("y", "mu", "sigma", "lambda"),
    lambda y, m, s, l: phi((y - m) / s) - exp(l * (2 * m + l * s * s - 2 * y) / 2) * phi((y - m - l * s * s) / s),
    [(0.7, -0.3, 1.9, 0.8), (-6.0, 2.0, 1.5, 1.25), (30.0, -0.5, 1.25, 2.0)],
    [((0.0, 0.0, -1.0, 1.0), NAN), ((0.0, 0.0, 1.0, -1.0), NAN), ((NAN, 0.0, 1.0, 1.0), NAN), ((0.0, NAN, 1.0, 1.0), NAN)],
)
add(
    "skew_double_exponential", ("y", "mu", "sigma", "tau"),
    lambda y, m, s, t: t * exp(-2 * (1 - t) * (m - y) / s) if y < m else 1 - (1 - t) * exp(-2 * t * (y - m) / s),
    [(0.7, -0.3, 1.9, 0.8), (-12.0, 2.0, 0.75, 0.3), (9.0, -0.5, 1.25, 0.4)],
    [((0.0, 0.0, -1.0, 0.5), NAN), ((0.0, 0.0, 1.0, 1.5), NAN), ((0.0, 0.0, 1.0, -0.5), NAN), ((INF, 0.0, 1.0, 0.5), 1.0), ((-INF, 0.0, 1.0, 0.5), 0.0), ((NAN, 0.0, 1.0, 0.5), NAN)],
)


# Incomplete gamma and beta functions.
def gamma_below(a, x):
    return gammainc(a, 0, x, regularized=True)


def beta_below(a, b, x):
    return betainc(a, b, 0, x, regularized=True)


GAMMAS = [(0.7, 1.3, 1.9), (0.001, 2.0, 0.75), (30.0, 1.5, 1.25), (20.0, 40.0, 2.0)]
add("gamma", ("y", "alpha", "beta"), lambda y, a, b: gamma_below(a, b * y), GAMMAS, positive_borders(2), arrays=False)
add("inv_gamma", ("y", "alpha", "beta"), lambda y, a, b: 1 - gamma_below(a, b / y), [(0.7, 1.3, 1.9), (0.05, 2.0, 0.75), (300.0, 1.5, 1.25)], positive_borders(2), arrays=False)
NU = [(0.7, 1.3), (0.001, 5.0), (30.0, 1.5)]
add("chi_square", ("y", "nu"), lambda y, n: gamma_below(n / 2, y / 2), NU, positive_borders(1), arrays=False)
add("inv_chi_square", ("y", "nu"), lambda y, n: 1 - gamma_below(n / 2, 1 / (2 * y)), [(0.7, 1.3), (0.05, 2.0), (300.0, 1.5)], positive_borders(1), arrays=False)
add("scaled_inv_chi_square", ("y", "nu", "s"), lambda y, n, s: 1 - gamma_below(n / 2, n * s * s / (2 * y)), [(0.7, 1.3, 1.9), (0.05, 2.0, 0.75), (300.0, 1.5, 1.25)], positive_borders(2), arrays=False)
UNIT = [((-0.5, 1.5, 1.5), 0.0), ((0.0, 1.5, 1.5), 0.0), ((1.0, 1.5, 1.5), 1.0), ((1.5, 1.5, 1.5), 1.0), ((0.5, -1.5, 1.5), NAN), ((0.5, 1.5, -1.5), NAN), ((NAN, 1.5, 1.5), NAN)]
add("beta", ("y", "alpha", "beta"), lambda y, a, b: beta_below(a, b, y), [(0.7, 1.3, 1.9), (0.001, 2.0, 0.75), (0.96875, 1.5, 8.25)], UNIT, arrays=False)
add(
    "beta_proportion", ("y", "mu", "kappa"), lambda y, m, k: beta_below(m * k, (1 - m) * k, y), [(0.7, 0.25, 1.9), (0.001, 0.5, 3.75)],
    [((-0.5, 0.5, 1.5), 0.0), ((1.0, 0.5, 1.5), 1.0), ((0.5, 1.5, 1.5), NAN), ((0.5, 0.5, -1.5), NAN), ((NAN, 0.5, 1.5), NAN)], arrays=False, logs_only=True,
)


def student_t(y, n, m, s):
    t = (y - m) / s
    tail = beta_below(n / 2, mpf(1) / 2, n / (n + t * t)) / 2
    return tail if t < 0 else 1 - tail


def owen(h, a):
    return quad(lambda x: exp(-h * h * (1 + x * x) / 2) / (1 + x * x), [0, a / 2, a]) / (2 * pi)


add(
    "skew_normal", ("y", "xi", "omega", "alpha"), lambda y, x, o, a: phi((y - x) / o) - 2 * owen((y - x) / o, a),
    [(0.7, -0.3, 1.9, 0.8), (-1.0, 2.0, 2.5, -0.75)],
    [((0.0, 0.0, -1.0, 1.0), NAN), ((NAN, 0.0, 1.0, 1.0), NAN), ((0.0, 0.0, 1.0, NAN), NAN)], arrays=False,
)
T_POINTS = [(0.7, 3.0, -0.3, 1.9), (-12.0, 1.5, 2.0, 0.75), (90.0, 6.0, -0.5, 1.25), (2.0, 300.0, 0.0, 1.0), (1e-5, 2.0, 0.0, 1.0)]
T_BORDERS = [((INF, 3.0, 0.0, 1.0), 1.0), ((-INF, 3.0, 0.0, 1.0), 0.0), ((0.0, 3.0, 0.0, -1.0), NAN), ((1.0, -3.0, 0.0, 1.0), NAN), ((NAN, 3.0, 0.0, 1.0), NAN)]
add("student_t", ("y", "nu", "mu", "sigma"), student_t, T_POINTS, T_BORDERS, arrays=False)


def von_mises(y, m, k):
    ends = [-pi + (y + pi) * i / 8 for i in range(9)]
    return quad(lambda x: exp(k * cos(x - m)), ends) / (2 * pi * besseli(0, k))


add(
    "von_mises", ("y", "mu", "kappa"), von_mises, [(0.7, 0.3, 1.9), (-2.0, 0.5, 0.1), (1.0, 0.75, 30.0), (2.5, 3.0, 4.0)],
    [((-4.0, 0.0, 1.0), 0.0), ((4.0, 0.0, 1.0), 1.0), ((1.0, 0.0, -1.0), NAN), ((1.0, NAN, 1.0), NAN), ((NAN, 0.0, 1.0), NAN)],
    arrays=False,
)
smooth.write()

counts = Suite("cumulative_counts", "Distribution functions of counts and their gradients.")


def summed(mass, start=0):
    return lambda y, *rest: sum(mass(k, *rest) for k in range(start, y + 1))


def add_count(name, parameters, mass, points, borders, start=0):
    triple(counts, name, parameters, summed(mass, start), points, borders, False)


add_count(
    "bernoulli", ["y: int", "theta: real"], lambda k, t: t if k else 1 - t, [(0, 0.3)],
    [((-1, 0.3), 0.0), ((1, 0.3), 1.0), ((7, 0.3), 1.0), ((0, 1.5), NAN), ((0, NAN), NAN)],
)
add_count(
    "binomial", ["y: int", "n: int", "theta: real"], lambda k, n, t: binomial(n, k) * t**k * (1 - t) ** (n - k),
    [(3, 10, 0.3), (0, 10, 0.75), (9, 10, 0.01), (200, 1000, 0.25)],
    [((-1, 10, 0.3), 0.0), ((10, 10, 0.3), 1.0), ((12, 10, 0.3), 1.0), ((3, 10, 1.5), NAN), ((3, 10, NAN), NAN), ((3, 10, 0.0), 1.0), ((3, 10, 1.0), 0.0)],
)
add_count(
    "poisson", ["y: int", "lambda: real"], lambda k, l: exp(-l) * l**k / fac(k), [(3, 2.5), (0, 20.0), (40, 2.5), (100, 90.0)],
    [((-1, 2.5), 0.0), ((3, 0.0), 1.0), ((3, -1.0), NAN), ((3, NAN), NAN)],
)


def failures(k, size, p):
    return rf(size, k) / fac(k) * p**size * (1 - p) ** k


add_count(
    "neg_binomial", ["y: int", "alpha: real", "beta: real"], lambda k, a, b: failures(k, a, b / (1 + b)),
    [(3, 2.5, 1.5), (0, 20.0, 0.5), (40, 2.5, 2.0)], [((-1, 2.5, 1.0), 0.0), ((3, -1.0, 1.0), NAN), ((3, 1.0, -1.0), NAN), ((3, NAN, 1.0), NAN)],
)
add_count(
    "neg_binomial_2", ["y: int", "mu: real", "phi: real"], lambda k, m, p: failures(k, p, p / (m + p)),
    [(3, 2.5, 1.5), (0, 20.0, 5.0), (40, 2.5, 2.0)], [((-1, 2.5, 1.0), 0.0), ((3, 0.0, 1.0), 1.0), ((3, -1.0, 1.0), NAN), ((3, 1.0, -1.0), NAN), ((3, NAN, 1.0), NAN)],
)
add_count(
    "beta_binomial", ["y: int", "n: int", "alpha: real", "beta: real"],
    lambda k, n, a, b: binomial(n, k) * beta(k + a, n - k + b) / beta(a, b),
    [(3, 10, 2.5, 1.5), (0, 10, 0.3, 5.0), (9, 10, 4.0, 2.0)],
    [((-1, 10, 1.0, 1.0), 0.0), ((10, 10, 1.0, 1.0), 1.0), ((3, 10, -1.0, 1.0), NAN), ((3, 10, 1.0, NAN), NAN)],
)
add_count(
    "beta_neg_binomial", ["y: int", "r: real", "alpha: real", "beta: real"],
    lambda k, r, a, b: rf(r, k) / fac(k) * beta(a + r, b + k) / beta(a, b),
    [(3, 2.0, 2.5, 1.5), (0, 0.5, 0.3, 5.0), (20, 3.0, 4.0, 2.0)],
    [((-1, 1.0, 1.0, 1.0), 0.0), ((3, -1.0, 1.0, 1.0), NAN), ((3, 1.0, 1.0, NAN), NAN)],
)
add_count(
    "yule_simon", ["y: int", "alpha: real"], lambda k, a: a * beta(mpf(k), a + 1), [(3, 2.5), (1, 0.3), (60, 4.0)],
    [((0, 2.5), 0.0), ((3, -1.0), NAN), ((3, NAN), NAN)], start=1,
)


def trials(theta):
    table = [mpf(1)]
    for p in theta:
        table = [a * (1 - p) + b * p for a, b in zip([*table, 0], [0, *table])]
    return table


triple(
    counts, "poisson_binomial", ["y: int", "theta: real[3]"], lambda y, t: sum(trials(t)[: y + 1]),
    [(0, [0.25, 0.5, 0.125]), (1, [0.25, 0.5, 0.125]), (2, [0.25, 1e-9, 0.125])],
    [((-1, [0.25, 0.5, 0.125]), 0.0), ((3, [0.25, 0.5, 0.125]), 1.0), ((5, [0.25, 0.5, 0.125]), 1.0), ((1, [0.5, 1.5, 0.5]), NAN)], False,
)
for name, f in (("discrete_range_cdf", lambda p: p), ("discrete_range_lcdf", log), ("discrete_range_lccdf", lambda p: log(1 - p))):
    value = {"discrete_range_cdf": (0.0, 1.0), "discrete_range_lcdf": (-INF, 0.0), "discrete_range_lccdf": (0.0, -INF)}[name]
    counts.add(
        name, ["y: int", "lower: int", "upper: int"], lambda y, l, u, f=f: f(mpf(y - l + 1) / (u - l + 1)), [(2, -1, 5), (-1, -1, 5)],
        [((-2, -1, 5), value[0]), ((5, -1, 5), value[1]), ((9, -1, 5), value[1]), ((1, 5, 2), NAN)], arrays=None, gradients=False,
    )
counts.write()
