"""The table of accuracy in src/std/README.md: largest errors at random points against mpmath at 50 digits, of values relative
to these, of derivatives by each argument relative to the sum of their size and that of the value.

    python accuracy.py PATH-OF-AUTOBATCH [SEED]
"""

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import Kind, exact, gradient
from mpmath import (
    besseli, besselj, besselk, bessely, beta, betainc, erfc, exp, findroot, gamma, gammainc, hyp1f1, hyp2f1, lambertw, log, mp, mpf,
    pi, quad, sqrt, workdps,
)

POINTS = 100


def spread(low, high):
    return 10 ** random.uniform(low, high)


def lower(a, x):
    return x**a * exp(-x) / gamma(a + 1) * hyp1f1(1, a + 1, x)


def upper(a, x):
    return gammainc(a, x, mp.inf, regularized=True)


def inc_beta(a, b, x):
    return x**a * (1 - x) ** b / (a * beta(a, b)) * hyp2f1(a + b, 1, a + 1, x)


def at_gamma(low, high):
    """a, and x some standard deviations from it, so that neither tail is below 1e-40."""
    a = spread(-1.5, 3)
    return a, a * max(1 + random.uniform(low, high) / a**0.5, spread(-3, -0.1))


def at_beta():
    a, b = spread(-1.5, 3), spread(-1.5, 3)
    mean, deviation = a / (a + b), (a * b / (a + b + 1)) ** 0.5 / (a + b)
    x = mean + random.uniform(-6, 6) * deviation
    return a, b, min(max(x, mean * spread(-2, 0)), 1 - (1 - mean) * spread(-2, 0))


def owens_t(h, a):
    return quad(lambda x: exp(-h * h * (1 + x * x) / 2) / (1 + x * x), [a * k / 16 for k in range(17)]) / (2 * pi)


def student_t(y, nu):
    with workdps(80):
        return log(betainc(nu / 2, mpf(1) / 2, 0, nu / (nu + y * y), regularized=True) / 2)


def reals(*names):
    return [f"{n}: real" for n in names]


FUNCTIONS = [
    ("gamma_p", reals("a", "x"), lower, lambda: at_gamma(-8, 2)),
    ("gamma_q", reals("a", "x"), upper, lambda: at_gamma(0.5, 8)),
    ("inc_beta", reals("a", "b", "x"), inc_beta, at_beta),
    ("owens_t", reals("h", "a"), owens_t, lambda: (random.uniform(0, 6), spread(-2, 1))),
    ("lambert_w0", reals("x"), lambda x: lambertw(x).real, lambda: (random.choice([-0.3 * random.random(), spread(-3, 6)]),)),
    ("lambert_wm1", reals("x"), lambda x: lambertw(x, -1).real, lambda: (-0.36 * spread(-8, 0),)),
    ("bessel_first_kind", ["v: int", "x: real"], besselj, lambda: (random.randrange(6), random.uniform(0.1, 60))),
    ("bessel_second_kind", ["v: int", "x: real"], bessely, lambda: (random.randrange(6), random.uniform(0.1, 60))),
    ("modified_bessel_first_kind", ["v: int", "x: real"], besseli, lambda: (random.randrange(6), random.uniform(0.1, 60))),
    ("modified_bessel_second_kind", ["v: int", "x: real"], besselk, lambda: (random.randrange(6), random.uniform(0.1, 60))),
    (
        "log_modified_bessel_first_kind", reals("v", "x"), lambda v, x: log(besseli(v, x)),
        lambda: (random.uniform(0, 100), random.uniform(0.1, 300)),
    ),
    ("std_normal_lcdf", reals("x"), lambda x: log(erfc(-x / sqrt(2)) / 2), lambda: (random.uniform(-60, 6),)),
    ("log_student_t_tail", reals("y", "nu"), student_t, lambda: (spread(-1, 2), spread(-0.5, 2.5))),
]
PROGRAM = "fn log_student_t_tail(y: real, nu: real) -> real { student_t_lccdf(y, nu, 0.0, 1.0) }\n"


def program(name, parameters):
    names = [p.split(":")[0] for p in parameters]
    moving = [p for p in parameters if p.endswith("real")]
    got = ", ".join(f"by_{i}" for i in range(len(moving)))
    which = f", wrt = ({', '.join(map(str, range(len(moving))))})" if len(moving) > 1 else ""
    arguments = ", ".join(p.split(":")[0] for p in moving)
    slopes = f"grad(|{', '.join(moving)}| {name}({', '.join(names)}){which})({arguments})"
    return (
        f"pub fn of_{name}({', '.join(parameters)}) -> (real{', real' * len(moving)}) {{\n"
        f"    let {got if len(moving) == 1 else f'({got})'} = {slopes};\n    ({name}({', '.join(names)}), {got})\n}}\n"
    )


def drawn(point, reference):
    """Points at which the value is not tiny: a number below 1e-40 is the exponential of one that is large."""
    points = []
    while len(points) < POINTS:
        p = point()
        if abs(reference(*exact(p))) > 1e-40:
            points.append(p)
    return points


def main():
    binary = sys.argv[1]
    random.seed(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "accuracy.ab"
        file.write_text(PREFIX + PROGRAM + "".join(program(n, p) for n, p, _, _ in FUNCTIONS))
        print("| function | value | derivatives |\n|---|---|---|")
        for name, parameters, reference, point in FUNCTIONS:
            points = drawn(point, reference)
            command = [binary, "run", str(file), "--entry", f"of_{name}", "--format", "json"]
            for i, p in enumerate(parameters):
                command += ["--input", f"{p.split(':')[0]}={json.dumps([q[i] for q in points])}"]
            outputs = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)["outputs"]
            kinds = [Kind(p.split(": ")[1]) for p in parameters]
            worst = [0.0] * len(outputs)
            for i, q in enumerate(points):
                args = [exact(a) for a in q]
                wanted = [reference(*args), *[g[0] for g in gradient(reference, kinds, args)]]
                for k, w in enumerate(wanted):
                    size = abs(w) if k == 0 else abs(w) + abs(wanted[0])
                    worst[k] = max(worst[k], float(abs(outputs[f"result.{k}"][i] - w) / size))
            cells = ", ".join(f"{w:.0e}" for w in worst[1:])
            print(f"| {name} | {worst[0]:.0e} | {cells} |")


PREFIX = ""

if __name__ == "__main__":
    main()
