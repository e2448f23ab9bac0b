"""Tails of distributions whose parameters may be large, as mpmath has them: the integral of the density relative to its value at
the border of the smaller tail, over the logarithm of the variable or of its odds. Each function gives the logarithms of the
probabilities below and above."""

from mpmath import atan, cosh, cot, exp, expm1, log, log1p, log10, loggamma, mp, mpf, ncdf, pi, quad, sqrt, workdps


def integral(decay, scale):
    """Of exp(-decay(s)) over s > 0, where the decay grows from 0 within some times the scale."""
    end = scale
    while decay(end) < 130:
        end *= 1.5
    return quad(lambda s: exp(-decay(s)), [mpf(0)] + [end * mpf(2) ** -k for k in range(9, -1, -1)])


def with_digits(size):
    return workdps(mp.dps + int(2 * max(0, log10(size + 1))) + 10)


def sides(log_smaller, below):
    other = log1p(-exp(log_smaller))
    return (log_smaller, other) if below else (other, log_smaller)


def gamma_sides(a, x):
    with with_digits(a):
        weight = a * log(x) - x - loggamma(a)
        if x <= a:
            total = integral(lambda s: a * s + x * expm1(-s), 1 / (a - x + sqrt(a)))
        else:
            total = integral(lambda s: x * expm1(s) - a * s, 1 / (x - a + sqrt(x)))
        return sides(weight + log(total), x <= a)


def beta_sides(a, b, x):
    y = 1 - x
    with with_digits(a + b):
        weight = a * log(x) + b * log(y) - loggamma(a) - loggamma(b) + loggamma(a + b)
        below = a * y >= b * x
        p, q, u, v = (a, b, x, y) if below else (b, a, y, x)
        scale = 1 / (p * v - q * u + sqrt((a + b) * x * y) + p / 1000)
        total = integral(lambda s: p * s + (p + q) * log1p(u * expm1(-s)), scale)
        return sides(weight + log(total), below)


def student_t_sides(t, nu):
    with with_digits(nu):
        sine = abs(t) / sqrt(nu + t * t)
        total = integral(lambda s: nu * (log(cosh(s)) + log1p(sine * (exp(s) - exp(-s)) / (exp(s) + exp(-s)))), 1 / (nu * sine + sqrt(nu)))
        weight = loggamma((nu + 1) / 2) - loggamma(nu / 2) - log(pi) / 2 - nu / 2 * log1p(t * t / nu)
        return sides(weight + log(total), t <= 0)


def skew_normal_sides(z, alpha):
    """By the integral that is left of the tail on the side against which the skew leans."""
    if alpha < 0:
        return skew_normal_sides(-z, -alpha)[::-1]
    # The derivative by alpha may be far below what steps of it change.
    with workdps(2 * mp.dps):
        end, h = atan(1 / alpha), abs(z)
        points = [mpf(0)] + [end * (1 - mpf(2) ** -k) for k in range(1, 60)] + [end]
        total = quad(lambda p: exp(-h * h / 2 * (cot(p) ** 2 - alpha * alpha)), points)
        rest = log(total / pi) - h * h / 2 * (1 + alpha * alpha)
        other = log(2 * ncdf(-h) - exp(rest))
        return (rest, log1p(-exp(rest))) if z < 0 else (log1p(-exp(other)), other)
