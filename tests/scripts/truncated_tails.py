#!/usr/bin/env python3
"""Log density and gradient of tests/filetests/stan/run/truncated_tails.stan by mpmath, as its comments `beyond` have them.

With the Jacobian of `s = exp(q2)` and all constants, at the points that `stan_values.py` recorded: there Stan gives +Inf,
since both ends of each truncation have the probability 1 below them in double precision.
"""
import json
import os
import sys

import mpmath as mp

mp.mp.dps = 250  # the normal distribution is 27 deviations out


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


def lp(a, log_s):
    s = mp.exp(log_s)
    return (log_s + normal(12, a, s, 11, 13) + gamma(50, 2, 1 + s, 40, 60) + poisson(60, 1 + s, 50, 70)
            + student_t(3000, mp.mpf(5), a, s, 2000, 4000))


recorded = os.path.join(os.path.dirname(__file__), "../filetests/stan/run/truncated_tails.expected.json")
with open(sys.argv[1] if len(sys.argv) > 1 else recorded) as f:
    points = json.load(f)["points"]
for i, point in enumerate(points):
    q = [mp.mpf(repr(x)) for x in point["q"]]
    gradient = [mp.diff(lp, tuple(q), tuple(int(j == k) for j in range(len(q)))) for k in range(len(q))]
    print(f"// beyond: {i} {mp.nstr(lp(*q), 17)} [{', '.join(mp.nstr(g, 17) for g in gradient)}]")
