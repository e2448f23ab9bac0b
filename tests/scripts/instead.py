#!/usr/bin/env python3
"""Log densities and gradients of programs in tests/filetests/stan/run by mpmath, where Stan's are no reference: prints what
their comments `instead` have.

    instead.py tests/filetests/stan/run/NAME.stan

All constants are in the values, and the Jacobians of the transforms. The points are those of NAME.expected.json, which has
Stan's values.

- truncated_tails: far out both ends of a truncation have the probability 1 below them in double precision, and Stan gives
  +Inf.
- incomplete_gamma: derivatives of the incomplete gamma function by its shape are sums in Stan that end early
  (`grad_reg_inc_gamma`, `grad_reg_lower_inc_gamma`: a precision of 1e-6 or 1e-10 of a term, not of the sum), and are off by
  up to 4e-4 here.
- counts_of_one: `poisson_log_glm_lpmf` of one count and several rows subtracts lgamma(y + 1) once, not once a row.
"""
import json
import os
import sys

import mpmath as mp


def normal(y, mu, s, a, b):
    return mp.log(mp.npdf(y, mu, s) / (mp.ncdf(b, mu, s) - mp.ncdf(a, mu, s)))


def gamma(y, shape, rate, a, b):
    between = mp.gammainc(shape, rate * a, rate * b, regularized=True)
    return mp.log(rate**shape / mp.gamma(shape) * y ** (shape - 1) * mp.exp(-rate * y) / between)


def poisson(y, rate, a, b):
    mass = lambda n: mp.exp(-rate) * rate**n / mp.factorial(n)
    return mp.log(mass(y) / mp.fsum(mass(n) for n in range(a, b + 1)))


def student_t(y, nu, mu, s, a, b):
    density = lambda x: mp.gamma((nu + 1) / 2) / mp.gamma(nu / 2) / mp.sqrt(nu * mp.pi) / s * (
        1 + ((x - mu) / s) ** 2 / nu) ** (-(nu + 1) / 2)
    # The probability above x, which lies far out.
    above = lambda x: mp.betainc(nu / 2, mp.mpf(1) / 2, 0, nu / (nu + ((x - mu) / s) ** 2), regularized=True) / 2
    return mp.log(density(y) / (above(a) - above(b)))


def truncated_tails(data, a, log_s):
    s = mp.exp(log_s)
    return (log_s + normal(12, a, s, 11, 13) + gamma(50, 2, 1 + s, 40, 60) + poisson(60, 1 + s, 50, 70)
            + student_t(3000, mp.mpf(5), a, s, 2000, 4000))


def incomplete_gamma(data, *q):
    below = lambda shape, x: mp.gammainc(shape, 0, x, regularized=True)
    above = lambda shape, x: mp.gammainc(shape, x, mp.inf, regularized=True)
    # Parameters between 0.5 and 4.
    share = [1 / (1 + mp.exp(-x)) for x in q]
    jacobian = mp.fsum(mp.log(3.5 * u * (1 - u)) for u in share)
    *a, b = [0.5 + 3.5 * u for u in share]
    y = [mp.mpf(repr(x)) for x in data["y"]]
    each = list(zip(y, a))
    log_sum = lambda values: mp.fsum(map(mp.log, values))
    lp = mp.fprod(below(nu / 2, x / 2) for x, nu in each) + log_sum(below(b / 2, x / 2) for x in y)
    lp += log_sum(above(nu / 2, mp.mpf(2.5) / 2) for nu in a)
    lp += mp.fprod(below(shape, b * x) for x, shape in each) + log_sum(above(shape, b * mp.mpf(1.5)) for shape in a)
    lp += log_sum(above(shape, b / x) for x, shape in each)
    lp += mp.fprod(above(nu / 2, 1 / (2 * x)) for x, nu in each) + log_sum(above(b / 2, 1 / (2 * x)) for x in y)
    lp += mp.fprod(above(nu / 2, nu * b**2 / (2 * x)) for x, nu in each) + log_sum(above(b / 2, b * 4 / (2 * x)) for x in y)
    return jacobian + lp


def counts_of_one(data, a, *b):
    y = data["n"]
    log_rates = [a + mp.fsum(mp.mpf(repr(x)) * w for x, w in zip(row, b)) for row in data["x"]]
    return mp.fsum(y * m - mp.exp(m) - mp.loggamma(y + 1) for m in log_rates)


path = sys.argv[1][: -len(".stan")]
name = os.path.basename(path)
density = {f.__name__: f for f in (truncated_tails, incomplete_gamma, counts_of_one)}[name]
# A normal distribution is 27 deviations out.
mp.mp.dps = 250 if name == "truncated_tails" else 40
data = {}
if os.path.exists(path + ".json"):
    with open(path + ".json") as f:
        data = json.load(f)
with open(path + ".expected.json") as f:
    points = json.load(f)["points"]
for i, point in enumerate(points):
    q = [mp.mpf(repr(x)) for x in point["q"]]
    lp = lambda *q: density(data, *q)
    gradient = [mp.diff(lp, tuple(q), tuple(int(j == k) for j in range(len(q)))) for k in range(len(q))]
    print(f"// instead: {i} {mp.nstr(lp(*q), 17)} [{', '.join(mp.nstr(g, 17) for g in gradient)}]")
