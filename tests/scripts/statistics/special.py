"""tests/filetests/run/special.ab"""

from harness import INF, NAN, Suite
from mpmath import (
    acosh, asinh, atanh, besseli, besselj, besselk, bessely, beta, betainc, cosh, digamma, e, erf, erfc, exp, fabs, findroot,
    ff, gamma, gammainc, hyp1f1, hyp2f1, hyp3f2, hyper, lambertw, log, loggamma, mp, mpf, ncdf, pi, quad, rf, sqrt,
)

suite = Suite("special", "Elementary and special functions, and their gradients.")


def one(function, reference, points, borders=(), **kwargs):
    suite.add(function, ["x: real"], reference, [(x,) for x in points], [((x,), v) for x, v in borders], arrays="each", **kwargs)


def two(function, reference, points, borders=(), arrays="each", **kwargs):
    suite.add(function, ["x: real", "y: real"], reference, points, borders, arrays=arrays, **kwargs)


one("inv", lambda x: 1 / x, [0.3, -7.0])
one("inv_sqrt", lambda x: 1 / sqrt(x), [0.3, 7.0], [(0.0, INF), (-1.0, NAN)])
one("inv_square", lambda x: 1 / x**2, [0.3, -7.0])
suite.add(
    "fma", ["x: real", "y: real", "z: real"], lambda x, y, z: x * y + z, [(0.3, -2.0, 1.5)], arrays="each",
)
two("fdim", lambda x, y: max(x - y, mpf(0)), [(3.0, 1.5), (1.5, 3.0)], [((NAN, 1.0), NAN)])
two("fmax", lambda x, y: max(x, y), [(3.0, 1.5), (1.5, 3.0)], [((NAN, 1.0), 1.0), ((1.0, NAN), 1.0), ((NAN, NAN), NAN)])
two("fmin", lambda x, y: min(x, y), [(3.0, 1.5), (1.5, 3.0)], [((NAN, 1.0), 1.0), ((1.0, NAN), 1.0), ((NAN, NAN), NAN)])
two("hypot", lambda x, y: sqrt(x * x + y * y), [(3.0, -4.0), (1e200, 1e200), (1e-200, 3e-200)], [((0.0, 0.0), 0.0), ((INF, 1.0), INF), ((NAN, 1.0), NAN)])
one("asinh", asinh, [0.3, -7.0, 1e-9, 3e8, -1e300], [(0.0, 0.0), (INF, INF), (-INF, -INF), (NAN, NAN)])
one("acosh", acosh, [1.3, 7.0, 1.0 + 2.0**-40, 3e8, 1e300], [(1.0, 0.0), (INF, INF), (0.5, NAN), (NAN, NAN)])
one("atanh", atanh, [0.3, -0.9, 1e-12], [(1.0, INF), (-1.0, -INF), (1.5, NAN), (NAN, NAN)])
two("multiply_log", lambda x, y: x * log(y), [(3.0, 4.0), (-1.0, 0.25)], [((0.0, 0.0), 0.0)])
two("log_diff_exp", lambda x, y: log(exp(x) - exp(y)), [(3.0, 1.0), (800.0, 799.75), (0.25, -700.0)], [((1.0, 1.0), -INF), ((-INF, -INF), -INF), ((1.0, 2.0), NAN), ((2.0, -INF), 2.0)])
one("log1m_inv_logit", lambda x: log(1 / (1 + exp(x))), [0.3, -40.0, 300.0], [(-INF, 0.0), (INF, -INF), (NAN, NAN)])
two("log_inv_logit_diff", lambda x, y: log(1 / (1 + exp(-x)) - 1 / (1 + exp(-y))), [(3.0, 1.0), (-60.0, -60.5), (40.0, 39.0)], [((1.0, 1.0), -INF), ((1.0, 2.0), NAN), ((INF, 0.0), -0.6931471805599453)])
suite.add(
    "log_mix", ["theta: real", "a: real", "b: real"], lambda t, a, b: log(t * exp(a) + (1 - t) * exp(b)),
    [(0.3, 1.0, 2.0), (0.5, 700.0, 700.0), (0.001, -700.0, -800.0)],
    [((0.0, 1.0, 2.0), 2.0), ((1.0, 1.0, 2.0), 1.0), ((0.5, -INF, -INF), -INF), ((1.5, 1.0, 2.0), NAN), ((0.5, NAN, 2.0), NAN)],
    arrays="each",
)
suite.add(
    "log_mix_of", ["theta: real[3]", "densities: real[3]"], lambda t, l: log(sum(p * exp(v) for p, v in zip(t, l))),
    [([0.25, 0.5, 0.25], [1.0, -2.0, 3.0]), ([0.125, 0.5, 0.375], [-900.0, -901.0, -920.0])], arrays=None,
)
one("Phi_approx", lambda x: 1 / (1 + exp(-(mpf(0.07056) * x**3 + mpf(1.5976) * x))), [0.3, -3.0, 5.0])
one("inv_erfc", lambda x: findroot(lambda y: erfc(y) - x, 0.7 if x < 1 else -0.3), [0.3, 1.5])
one("std_normal_qf", lambda x: findroot(lambda z: erfc(-z / sqrt(2)) / 2 - x, -0.5 if x < 0.5 else 1.3), [0.3, 0.9], [(0.0, -INF), (1.5, NAN)])
suite.add(
    "binary_log_loss", ["y: int", "p: real"], lambda y, p: -log(p if y else 1 - p), [(1, 0.3), (0, 0.3)],
    [((1, 0.0), INF), ((0, 0.0), 0.0)], arrays="each",
)
one("tgamma", gamma, [0.3, 5.0, -0.5, -1.5, -2.75, 20.5, 1e-3], [(0.0, INF), (NAN, NAN)])
two("beta", beta, [(3.0, 4.5), (0.01, 200.0)])
two("lchoose", lambda n, k: log(gamma(n + 1) / gamma(k + 1) / gamma(n - k + 1)), [(10.0, 3.0), (1e6, 2.5), (0.5, 0.25)], [((5.0, 0.0), 0.0)])
two("log_falling_factorial", lambda x, n: log(gamma(x + 1) / gamma(x - n + 1)), [(10.0, 3.0), (5.5, 2.25)])
two("log_rising_factorial", lambda x, n: log(gamma(x + n) / gamma(x)), [(10.0, 3.0), (1e9, 2.25), (3.5, -1.25)], [((2.0, 0.0), 0.0)])
suite.add("falling_factorial", ["x: real", "n: int"], ff, [(10.5, 3), (0.5, 0), (2.0, 5), (1.5, -2)], arrays=None)
suite.add("rising_factorial", ["x: real", "n: int"], rf, [(10.5, 3), (0.5, 0), (-2.5, 5)], arrays=None)


def lower(a, x):
    return x**a * exp(-x) / gamma(a + 1) * hyp1f1(1, a + 1, x)


def upper(a, x):
    return gammainc(a, x, mp.inf, regularized=True)


GAMMA_POINTS = [(2.5, 1.5), (0.3, 0.001), (0.02, 3.0), (30.0, 32.5), (30.0, 12.0), (7.9, 8.8), (8.1, 9.2), (900.0, 880.0), (900.0, 1010.0)]
GAMMA_BORDERS = [((-1.0, 1.0), NAN), ((1.0, -1.0), NAN), ((NAN, 1.0), NAN), ((1.0, NAN), NAN)]
suite.add("gamma_p", ["a: real", "x: real"], lower, GAMMA_POINTS, [*GAMMA_BORDERS, ((2.0, 0.0), 0.0), ((2.0, INF), 1.0)], arrays=None)
suite.add("gamma_q", ["a: real", "x: real"], upper, GAMMA_POINTS, [*GAMMA_BORDERS, ((2.0, 0.0), 1.0), ((2.0, INF), 0.0)], arrays=None)


def inc_beta(a, b, x):
    return x**a * (1 - x) ** b / (a * beta(a, b)) * hyp2f1(a + b, 1, a + 1, x)


suite.add(
    "inc_beta", ["a: real", "b: real", "x: real"], inc_beta,
    [(2.5, 1.5, 0.25), (2.5, 1.5, 0.875), (0.25, 0.5, 1e-6), (0.02, 3.0, 0.5), (30.0, 40.0, 0.5), (500.0, 0.5, 0.999), (600.0, 800.0, 0.4)],
    [((2.0, 3.0, 0.0), 0.0), ((2.0, 3.0, 1.0), 1.0), ((-1.0, 2.0, 0.5), NAN), ((1.0, -2.0, 0.5), NAN), ((1.0, 2.0, 1.5), NAN), ((1.0, 2.0, -0.5), NAN), ((1.0, 2.0, NAN), NAN)],
    arrays=None,
)
suite.add(
    "inv_inc_beta", ["a: real", "b: real", "p: real"],
    lambda a, b, p: findroot(lambda x: inc_beta(a, b, x) - p, {2.5: 0.4, 0.5: 0.02, 30.0: 0.5}[float(round(a, 3))]),
    [(2.5, 1.5, 0.25), (0.5, 3.0, 0.3), (30.0, 40.0, 0.875)],
    [((2.0, 3.0, 0.0), 0.0), ((2.0, 3.0, 1.0), 1.0), ((2.0, 3.0, 1.5), NAN), ((2.0, NAN, 0.5), NAN)], arrays=None,
)
suite.add(
    "owens_t", ["h: real", "a: real"],
    lambda h, a: quad(lambda x: exp(-h * h * (1 + x * x) / 2) / (1 + x * x), [0, a / 4, a / 2, a]) / (2 * pi),
    [(0.5, 0.3), (1.5, 4.0), (-2.0, -0.9), (0.0, 1.5), (6.0, 0.9), (8.0, 0.01), (0.25, 40.0)], arrays=None,
)
suite.add(
    "lambert_w0", ["x: real"], lambda x: lambertw(x).real, [(0.3,), (-0.3,), (20.0,), (1e200,), (-1e-9,)],
    [((0.0,), 0.0), ((INF,), INF), ((-1.0,), NAN)], arrays=None,
)
suite.add(
    "lambert_wm1", ["x: real"], lambda x: lambertw(x, -1).real, [(-0.3,), (-0.2,), (-0.01,), (-1e-200,)], [((0.0,), -INF), ((1.0,), NAN)],
    arrays=None,
)
suite.add(
    "std_normal_log_qf", ["x: real"], lambda x: findroot(lambda z: log(erfc(-z / sqrt(2)) / 2) - x, {-0.1: 1.3, -2.0: -1.1, -50.0: -9.5, -1000.0: -44.0}[float(round(x, 3))]),
    [(-0.1,), (-2.0,), (-50.0,), (-1000.0,)], arrays=None,
)
suite.add(
    "lmgamma", ["n: int", "x: real"], lambda n, x: mpf(n * (n - 1)) / 4 * log(pi) + sum(log(gamma(x - mpf(i) / 2)) for i in range(n)),
    [(1, 0.5), (4, 6.25), (10, 40.0)], arrays=None,
)
suite.add(
    "bessel_first_kind", ["v: int", "x: real"], lambda v, x: besselj(v, x),
    [(0, 0.3), (3, 0.3), (2, 40.0), (-3, 2.5), (1, -2.5), (30, 4.0), (2, 1500.0)], [((0, 0.0), 1.0), ((2, 0.0), 0.0), ((1, NAN), NAN)], arrays=None,
)
suite.add(
    "bessel_second_kind", ["v: int", "x: real"], lambda v, x: bessely(v, x),
    [(0, 0.3), (3, 0.3), (2, 40.0), (-3, 2.5), (30, 14.0), (2, 1500.0)], [((0, 0.0), -INF), ((0, -1.0), NAN), ((1, NAN), NAN)], arrays=None,
)
suite.add(
    "modified_bessel_first_kind", ["v: int", "x: real"], lambda v, x: besseli(v, x),
    [(0, 0.3), (3, 0.3), (2, 40.0), (-3, 2.5), (1, -2.5), (30, 4.0)], [((0, 0.0), 1.0), ((1, NAN), NAN)], arrays=None,
)
suite.add(
    "modified_bessel_second_kind", ["v: int", "x: real"], lambda v, x: besselk(v, x),
    [(0, 0.3), (3, 0.3), (2, 40.0), (-3, 2.5), (30, 4.0), (0, 1e-8)], [((1, 0.0), INF), ((1, -1.0), NAN), ((1, NAN), NAN)], arrays=None,
)
suite.add(
    "log_modified_bessel_first_kind", ["v: real", "x: real"], lambda v, x: log(besseli(v, x)),
    [(0.5, 0.3), (3.25, 40.0), (0.125, 1500.0), (200.0, 3.0), (300.0, 400.0)],
    [((0.0, 0.0), 0.0), ((1.0, 0.0), -INF), ((-1.0, 1.0), NAN), ((1.0, NAN), NAN)], arrays=None,
)
two("hypergeometric_1F0", lambda a, z: (1 - z) ** -a, [(2.5, 0.5), (-1.5, -3.0)])
suite.add(
    "hypergeometric_2F1", ["a: real", "b: real", "c: real", "z: real"], hyp2f1,
    [(0.5, 1.5, 2.25, 0.5), (0.5, 1.5, 2.25, -0.25), (1.5, 0.75, 3.5, -4.0), (1.5, 0.75, 3.5, 0.95)],
    [((1.0, 1.0, 2.0, 1.5), NAN), ((1.0, 1.0, 1.5, 1.0), NAN), ((0.5, 0.5, 2.0, 1.0), 1.2732395447351628)], arrays=None,
)
suite.add(
    "hypergeometric_3F2", ["a: real[3]", "b: real[2]", "z: real"], lambda a, b, z: hyp3f2(*a, *b, z),
    [([0.5, 1.5, 2.0], [2.25, 0.75], 0.5), ([0.5, 1.5, 2.0], [2.25, 0.75], -0.75)], arrays=None,
)
suite.add(
    "hypergeometric_pFq", ["a: real[1]", "b: real[2]", "z: real"], lambda a, b, z: hyper(a, b, z), [([0.5], [2.25, 0.75], 3.0)], arrays=None,
)
suite.add("norm2", ["x: real[3]"], lambda x: sqrt(sum(v * v for v in x)), [([0.5, -2.0, 1.0],)], arrays=None)
suite.add("norm1", ["x: real[3]"], lambda x: sum(fabs(v) for v in x), [([0.5, -2.0, 1.0],)], arrays=None)
suite.add("dot_self", ["x: real[3]"], lambda x: sum(v * v for v in x), [([0.5, -2.0, 1.0],)], arrays=None)
suite.add(
    "sd", ["x: real[3]"], lambda x: sqrt(sum((v - sum(x) / 3) ** 2 for v in x) / 2), [([0.5, -2.0, 1.0],)], arrays=None,
)
for name, f in (
    ("dot_product", lambda x, y: sum(a * b for a, b in zip(x, y))),
    ("distance", lambda x, y: sqrt(sum((a - b) ** 2 for a, b in zip(x, y)))),
    ("squared_distance", lambda x, y: sum((a - b) ** 2 for a, b in zip(x, y))),
):
    suite.add(name, ["x: real[3]", "y: real[3]"], f, [([0.5, -2.0, 1.0], [0.25, 3.0, -1.5])], arrays=None)


def quantile(x, p):
    """The seventh definition of Hyndman and Fan 1996."""
    ordered, place = sorted(x), (len(x) - 1) * p
    below = min(int(mp.floor(place)), len(x) - 2)
    return ordered[below] + (place - below) * (ordered[below + 1] - ordered[below])


suite.add(
    "quantile", ["x: real[5]", "p: real"], quantile, [([3.0, 1.0, 2.5, 2.0, 5.0], 0.3), ([3.0, 1.0, 2.5, 2.0, 5.0], 0.875)],
    [(([3.0, 1.0, 2.5, 2.0, 5.0], 0.0), 1.0), (([3.0, 1.0, 2.5, 2.0, 5.0], 1.0), 5.0)], arrays=None,
)
# What gives ints or vectors, by hand.
suite.runs += [
    "// run: --entry of_vectors --lanes 1",
    "// expect: result.0 = [[1.0, 2.0, 2.0, 3.0, 5.0]]",
    "// expect: result.1 = [[5.0, 3.0, 2.0, 2.0, 1.0]]",
    "// expect: result.2 = [[1, 2, 3, 0, 4]]",
    "// expect: result.3 = [[4, 0, 2, 3, 1]]",
    "// expect: result.4 = [[5.0, 2.0, 2.0, 1.0, 3.0]]",
    "// expect: result.5 = [[1, 3]]",
    "// expect: result.6 = [[true, true]]",
    "// expect: result.7 = [true]",
    "// run: --entry of_ints --lanes 1",
    "// expect: result.0 = [[0, 1, 10, 1, 0]]",
    "// expect: result.1 = [[0, 0, 1]]",
    "// expect: result.2 = [[0.0, 1.0, 1.0]]",
    "// expect: result.3 = [12.0]",
    "// expect: result.4 = [[true, false]]",
]
suite.code.append(
    """pub fn of_vectors() -> (real[5], real[5], int[5], int[5], real[5], int[2], bool[2], bool) {
    let x = [3.0, 1.0, 2.0, 2.0, 5.0];
    let l = log_softmax([0.0, log(3.0)]);
    (
        sort_asc(x),
        sort_desc(x),
        sort_indices_asc(x),
        sort_indices_desc(x),
        reverse(x),
        [rank(x, 2), rank(x, 0)],
        [close(l[0], log(0.25), 1e-15), close(l[1], log(0.75), 1e-15)],
        close(log_mix([0.25, 0.75], [1.0, 2.0]), log_mix(0.25, 1.0, 2.0), 1e-15),
    )
}

pub fn of_ints() -> (int[5], int[3], real[3], real, bool[2]) {
    (
        [choose(5, -1), choose(5, 0), choose(5, 2), choose(0, 0), choose(3, 4)],
        int_step([-1.0, 0.0, 2.0]),
        step([-1.0, 0.0, 2.0]),
        ldexp(3.0, 2),
        [is_inf(-1.0 / 0.0), is_inf(1.0)],
    )
}"""
)
suite.write()
