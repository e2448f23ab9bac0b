"""tests/filetests/run/wiener.ab"""

from harness import INF, NAN, Suite
from mpmath import exp, log, mpf, pi, quad, sin, sqrt

suite = Suite("wiener", "First passage times of diffusions, and their gradients.", 1e-12, 1e-11)
NAMES = ["y", "alpha", "tau", "beta", "delta", "sv", "sw", "st"]


def density(t, a, w, v, sv):
    """Of the time t at the lower boundary: by images of the start or by waves, with drifts that are normal."""
    s = t / a**2
    if s < 0.4:
        total = sum((w + 2 * k) * exp(-((w + 2 * k) ** 2) / (2 * s)) for k in range(-9, 10)) / sqrt(2 * pi * s**3)
    else:
        total = pi * sum(k * sin(k * pi * w) * exp(-(k**2) * pi**2 * s / 2) for k in range(1, 12))
    wider = 1 + sv**2 * t
    return total / a**2 * exp(((sv * a * w) ** 2 - 2 * v * a * w - v**2 * t) / (2 * wider)) / sqrt(wider)


def over_starts(t, a, w, v, sv, sw):
    if sw == 0:
        return density(t, a, w, v, sv)
    return quad(lambda u: density(t, a, u, v, sv), [w - sw / 2, w, w + sw / 2]) / sw


def over_times(share, ends, a, w, v, sv, sw):
    return quad(lambda t: share(t) * over_starts(t, a, w, v, sv, sw), ends)


def lpdf(y, a, tau, b, d, sv=mpf(0), sw=mpf(0), st=mpf(0)):
    args = (a, 1 - b, -d, sv, sw)
    t = y - tau
    if st == 0:
        return log(over_starts(t, *args))
    first = max(t - st, mpf(0))
    ends = [first, (first + t) / 2, t] if first > 0 else [a * a * mpf("1e-4"), a * a / 20, min(a * a / 5, t / 2), t]
    return log(over_times(lambda t: 1, ends, *args) / st)


def pieces(t, a, st):
    """Where a lost time is over for all, for some and for none, with the share for which it is."""
    first = a * a * mpf("1e-4")
    until = max(t - st, first)
    ends = [first] + [x for x in (a * a / 50, a * a / 10, a * a * mpf("0.4")) if x < until] + [until]
    return ends, [until, t], lambda x: (t - x) / st


def lcdf(y, a, tau, b, d, sv=mpf(0), sw=mpf(0), st=mpf(0)):
    args = (a, 1 - b, -d, sv, sw)
    all_, some, share = pieces(y - tau, a, st)
    total = over_times(lambda t: 1, all_, *args)
    return log(total + (over_times(share, some, *args) if st > 0 else 0))


def lccdf(y, a, tau, b, d, sv=mpf(0), sw=mpf(0), st=mpf(0)):
    args = (a, 1 - b, -d, sv, sw)
    _, some, share = pieces(y - tau, a, st)
    t = y - tau
    far = a * a * 24
    later = [t] + [x for x in (a * a * mpf("0.4"), a * a * 2, a * a * 8) if x > t] + [far]
    total = over_times(lambda t: 1, later, *args)
    return log(total + (over_times(lambda x: 1 - share(x), some, *args) if st > 0 else 0))


def reals(*which):
    return [f"{NAMES[i]}: real" for i in (0, 1, 2, 3, 4, *which)]


def placed(f, *which):
    return lambda *args: f(*args[:5], **{NAMES[i]: x for i, x in zip(which, args[5:])})


POINTS = {
    (5,): [(0.8, 1.2, 0.25, 0.5, 0.7, 0.0), (2.5, 1.0, 0.1, 0.3, -1.5, 2.5), (0.4, 2.0, 0.2, 0.8, 2.0, 0.3)],
    (5, 6): [(0.8, 1.2, 0.25, 0.5, 0.7, 0.4, 0.9), (0.4, 2.0, 0.2, 0.8, 2.0, 0.3, 0.1)],
    (5, 7): [(0.8, 1.2, 0.25, 0.5, 0.7, 0.4, 0.2), (2.5, 1.0, 0.1, 0.8, -1.5, 1.5, 9.0)],
}
# Integrals over both starts and times take hours here: tests/filetests/stan/run/first_passage*.stan has them.
KINDS = {(5,): "drifts_", (5, 6): "starts_", (5, 7): "times_"}
for which, kind in KINDS.items():
    ok = {5: 0.5, 6: 0.2, 7: 0.1}
    rest = [ok[i] for i in which]
    wrong = [
        ((0.5, -1.0, 0.3, 0.5, 1.0, *rest), NAN), ((0.5, 1.0, -0.3, 0.5, 1.0, *rest), NAN),
        ((0.5, 1.0, 0.3, 1.5, 1.0, *rest), NAN), ((0.5, 1.0, 0.3, 0.5, NAN, *rest), NAN),
        ((NAN, 1.0, 0.3, 0.5, 1.0, *rest), NAN),
    ]
    wrong += [((0.5, 1.0, 0.3, 0.5, 1.0, *rest[:i], -0.1, *rest[i + 1:]), NAN) for i in range(len(rest))]
    for name, reference, early in [("lpdf", lpdf, -INF), ("lcdf_unnorm", lcdf, -INF), ("lccdf_unnorm", lccdf, NAN)]:
        if 6 in which and name != "lpdf":
            continue
        borders = [*wrong, ((0.2, 1.0, 0.3, 0.5, 1.0, *rest), early), ((0.3, 1.0, 0.3, 0.5, 1.0, *rest), early)]
        arrays = "sum" if (which, name) == ((5,), "lpdf") else None
        suite.add(f"wiener_{kind}{name}", reals(*which), placed(reference, *which), POINTS[which], borders, arrays)
suite.write()
