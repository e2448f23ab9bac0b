"""tests/filetests/run/incomplete_extremes.ab: the incomplete gamma and beta functions where arguments are large, against
mpmath, and a grid of extreme arguments at which they end within a number of steps.

    python extremes.py >../../filetests/run/incomplete_extremes.ab
"""

import itertools
import json
import sys

from mpmath import mp, mpf
from tails import beta_sides, gamma_sides, skew_normal_sides, student_t_sides

mp.dps = 50
# The inverse takes up to a hundred steps of Newton's method.
STEPS = {"quantile_ends": 400000}
FEW_STEPS = 10000

GAMMA = [
    (33.0, 30.0), (33.0, 45.0), (1e3, 1100.0), (1e6, 997000.0), (1e6, 1e6), (1e10, 10000200000.0), (1e10, 4e9), (1e15, 1e15 + 6e7),
    (0.6, 1e4), (1e5, 10.0),
]
BETA = [
    (33.0, 40.0, 0.5), (1e3, 1e3, 0.45), (1e6, 1e6, 0.501), (1e10, 3e10, 0.25), (50.0, 1e12, 4e-11), (2.5, 1e12, 4e-12),
    (1e15, 0.7, 0.999999999999999), (1e5, 1e8, 1e-6), (1e7, 40.0, 0.5),
]
STUDENT_T = [(0.5, 1e13), (-3.0, 1e8), (30.0, 1e3), (1e6, 1e5), (2.0, 1e20), (-0.01, 150.0), (1.5, 99.0)]
SKEW_NORMAL = [
    (-0.3, 2.0), (-1.4, 0.9), (-3.0, 4.0), (-9.0, 0.2), (-40.0, 3.0), (-25.0, 5.0), (-5.0, -2.0), (-45.0, -1.5), (2.0, 6.0), (0.2, 50.0),
    (12.0, 0.5), (41.0, 8.0), (7.0, -3.0), (0.05, -30.0), (-0.01, 300.0), (-0.002, -400.0),
]
SIZES = [1e-300, 1e-40, 1e-8, 0.3, 1.0, 8.0, 31.0, 33.0, 1e3, 1e6, 1e16, 1e40, 1e300]
SHARES = [1e-300, 1e-8, 0.3, 0.5, 0.9, 1.0 - 1e-15]


def slopes(f, point, step):
    """The derivatives by all arguments, of both sides, from steps relative to these."""
    result = []
    for i, at in enumerate(point):
        h = abs(at) * mpf(10) ** step
        up, down = (f(*[p + s * h if i == j else p for j, p in enumerate(point)]) for s in (1, -1))
        result.append([(u - d) / (2 * h) for u, d in zip(up, down)])
    return result


def text(values):
    return json.dumps([v if isinstance(v, int) else float(v) for v in values]).replace("Infinity", "Inf")


def case_lines(entry, names, points, sides, step):
    columns = {name: [p[i] for p in points] for i, name in enumerate(names)}
    known = [(sides(*map(mpf, p)), slopes(sides, list(map(mpf, p)), step)) for p in points]
    for k, side in enumerate(("p", "q")):
        columns[side] = [values[k] for values, _ in known]
        for i, name in enumerate(names):
            columns[f"{side}_by_{name}"] = [by[i][k] for _, by in known]
    return lines(entry, columns, "true")


def lines(entry, columns, result):
    inputs = " ".join(f"--input {name}={text(values).replace(' ', '')}" for name, values in columns.items())
    count = len(next(iter(columns.values())))
    return f"// run: --entry {entry} --max-supersteps {STEPS.get(entry, FEW_STEPS)} {inputs}\n// expect: result = [{', '.join([result] * count)}]\n"


def grid(entry, names, *axes):
    points = list(itertools.product(*axes))
    return lines(entry, {name: [p[i] for p in points] for i, name in enumerate(names)}, "true")


def main():
    out = HEAD
    out += case_lines("gamma_holds", ["a", "x"], GAMMA, gamma_sides, -24)
    out += case_lines("beta_holds", ["a", "b", "x"], BETA, beta_sides, -24)
    out += case_lines("student_t_holds", ["t", "nu"], STUDENT_T, student_t_sides, -10)
    out += case_lines("skew_normal_holds", ["z", "alpha"], SKEW_NORMAL, skew_normal_sides, -20)
    out += grid("gamma_ends", ["a", "x"], SIZES, SIZES)
    out += grid("beta_ends", ["a", "b", "x"], SIZES[::3], SIZES[::3], SHARES)
    out += grid("quantile_ends", ["a", "b", "p"], SIZES[::3], SIZES[::3], SHARES[::2])
    out += grid("student_t_ends", ["t", "nu"], [-1e300, -1e20, -2.0, 0.0, 1e-300, 3.0, 1e5], SIZES[::2])
    out += grid("von_mises_ends", ["y", "mu", "kappa"], [-3.0, 0.0, 1e-300, 2.5], [-2.0, 0.0, 1e5], SIZES[::2])
    out += grid("bessel_ends", ["v", "x"], [0, 1, 7, 1000000], SIZES)
    sys.stdout.write(out + PROGRAM)


HEAD = """// The incomplete gamma and beta functions and what is made of them, with large and with extreme arguments: every one ends
// within a number of steps, in its range, and with the derivatives that it has.
//
// p and q are the logarithms of the two sides, with their derivatives; made by tests/scripts/statistics/extremes.py with
// mpmath. The rest of the lanes are grids.
//
"""
PROGRAM = """
const INF = 1.0 / 0.0;

fn close(got: real, is: real) -> bool {
    abs(got - is) <= 1e-12 * abs(is) || abs(is) < 1e-290 && abs(got) < 1e-290
}

/// A derivative is known as well as the two sides of a difference are.
fn slope(got: real, is: real) -> bool {
    abs(got - is) <= 1e-11 * abs(is) || abs(is) < 1e-290 && abs(got) < 1e-290
}

pub fn gamma_holds(
    a: real,
    x: real,
    p: real,
    p_by_a: real,
    p_by_x: real,
    q: real,
    q_by_a: real,
    q_by_x: real,
) -> bool {
    let (by_a, by_x) = grad(|a: real, x: real| gamma_lcdf(x, a, 1.0), wrt = (0, 1))(a, x);
    let below = close(gamma_lcdf(x, a, 1.0), p) && slope(by_a, p_by_a) && slope(by_x, p_by_x);
    let (by_a, by_x) = grad(|a: real, x: real| gamma_lccdf(x, a, 1.0), wrt = (0, 1))(a, x);
    below && close(gamma_lccdf(x, a, 1.0), q) && slope(by_a, q_by_a) && slope(by_x, q_by_x)
}

pub fn beta_holds(
    a: real,
    b: real,
    x: real,
    p: real,
    p_by_a: real,
    p_by_b: real,
    p_by_x: real,
    q: real,
    q_by_a: real,
    q_by_b: real,
    q_by_x: real,
) -> bool {
    let (by_a, by_b, by_x) = grad(
        |a: real, b: real, x: real| beta_lcdf(x, a, b),
        wrt = (0, 1, 2),
    )(a, b, x);
    let below = close(beta_lcdf(x, a, b), p)
        && slope(by_a, p_by_a)
        && slope(by_b, p_by_b)
        && slope(by_x, p_by_x);
    let (by_a, by_b, by_x) = grad(
        |a: real, b: real, x: real| beta_lccdf(x, a, b),
        wrt = (0, 1, 2),
    )(a, b, x);
    below
        && close(beta_lccdf(x, a, b), q)
        && slope(by_a, q_by_a)
        && slope(by_b, q_by_b)
        && slope(by_x, q_by_x)
}

pub fn student_t_holds(
    t: real,
    nu: real,
    p: real,
    p_by_t: real,
    p_by_nu: real,
    q: real,
    q_by_t: real,
    q_by_nu: real,
) -> bool {
    let (by_t, by_nu) = grad(
        |t: real, nu: real| student_t_lcdf(t, nu, 0.0, 1.0),
        wrt = (0, 1),
    )(t, nu);
    let below = close(student_t_lcdf(t, nu, 0.0, 1.0), p)
        && slope(by_t, p_by_t)
        && slope(by_nu, p_by_nu);
    let (by_t, by_nu) = grad(
        |t: real, nu: real| student_t_lccdf(t, nu, 0.0, 1.0),
        wrt = (0, 1),
    )(t, nu);
    below
        && close(student_t_lccdf(t, nu, 0.0, 1.0), q)
        && slope(by_t, q_by_t)
        && slope(by_nu, q_by_nu)
}

pub fn skew_normal_holds(
    z: real,
    alpha: real,
    p: real,
    p_by_z: real,
    p_by_alpha: real,
    q: real,
    q_by_z: real,
    q_by_alpha: real,
) -> bool {
    let (by_z, by_alpha) = grad(
        |z: real, alpha: real| skew_normal_lcdf(z, 0.0, 1.0, alpha),
        wrt = (0, 1),
    )(z, alpha);
    let below = close(skew_normal_lcdf(z, 0.0, 1.0, alpha), p)
        && slope(by_z, p_by_z)
        && slope(by_alpha, p_by_alpha);
    let (by_z, by_alpha) = grad(
        |z: real, alpha: real| skew_normal_lccdf(z, 0.0, 1.0, alpha),
        wrt = (0, 1),
    )(z, alpha);
    below
        && close(skew_normal_lccdf(z, 0.0, 1.0, alpha), q)
        && slope(by_z, q_by_z)
        && slope(by_alpha, q_by_alpha)
}

/// The two sides are logarithms of probabilities that add up to 1.
fn are_sides(p: real, q: real) -> bool {
    p > -INF && q > -INF && p <= 0.0 && q <= 0.0 && abs(exp(p) + exp(q) - 1.0) <= 1e-11
}

fn falls(slope: real) -> bool {
    slope <= 0.0 && slope > -INF
}

fn rises(slope: real) -> bool {
    falls(-slope)
}

pub fn gamma_ends(a: real, x: real) -> bool {
    let (by_a, by_x) = grad(|a: real, x: real| gamma_lcdf(x, a, 1.0), wrt = (0, 1))(a, x);
    let (on_a, on_x) = grad(|a: real, x: real| gamma_lccdf(x, a, 1.0), wrt = (0, 1))(a, x);
    are_sides(gamma_lcdf(x, a, 1.0), gamma_lccdf(x, a, 1.0))
        && falls(by_a)
        && rises(on_a)
        && by_x >= 0.0
        && on_x <= 0.0
}

pub fn beta_ends(a: real, b: real, x: real) -> bool {
    let (by_a, by_b, by_x) = grad(
        |a: real, b: real, x: real| beta_lcdf(x, a, b),
        wrt = (0, 1, 2),
    )(a, b, x);
    let (on_a, on_b, on_x) = grad(
        |a: real, b: real, x: real| beta_lccdf(x, a, b),
        wrt = (0, 1, 2),
    )(a, b, x);
    are_sides(beta_lcdf(x, a, b), beta_lccdf(x, a, b))
        && falls(by_a)
        && rises(by_b)
        && rises(on_a)
        && falls(on_b)
        && by_x >= 0.0
        && on_x <= 0.0
}

pub fn quantile_ends(a: real, b: real, p: real) -> bool {
    let (by_a, by_b, by_p) = grad(
        |a: real, b: real, p: real| inv_inc_beta(a, b, p),
        wrt = (0, 1, 2),
    )(a, b, p);
    let x = inv_inc_beta(a, b, p);
    x >= 0.0 && x <= 1.0 && rises(by_a) && falls(by_b) && rises(by_p)
}

pub fn student_t_ends(t: real, nu: real) -> bool {
    let (by_t, by_nu) = grad(
        |t: real, nu: real| student_t_lccdf(t, nu, 0.0, 1.0),
        wrt = (0, 1),
    )(t, nu);
    are_sides(student_t_lcdf(t, nu, 0.0, 1.0), student_t_lccdf(t, nu, 0.0, 1.0))
        && falls(by_t)
        && abs(by_nu) < INF
        && (abs(t) < 1e-100 || if t < 0.0 { rises(by_nu) } else { falls(by_nu) })
}

pub fn von_mises_ends(y: real, mu: real, kappa: real) -> bool {
    let (by_y, by_kappa) = grad(
        |y: real, kappa: real| von_mises_lcdf(y, mu, kappa),
        wrt = (0, 1),
    )(y, kappa);
    are_sides(von_mises_lcdf(y, mu, kappa), von_mises_lccdf(y, mu, kappa))
        && rises(by_y)
        && abs(by_kappa) < INF
}

pub fn bessel_ends(v: int, x: real) -> bool {
    let (value, by_x) = value_and_grad(|x: real| modified_bessel_second_kind(v, x))(x);
    value >= 0.0 && by_x <= 0.0
}
"""

if __name__ == "__main__":
    main()
