"""What calls from Python take, in microseconds: medians of nine rounds.

python benches/python_calls.py [FOLDER…] measures each folder with a package `autobatch`, in turns, or the one that is installed.
"""

import os
import statistics
import subprocess
import sys
import time

NORMAL = "parameters { vector[4] t; } model { t ~ std_normal(); }"
REGRESSION = """data { int N; matrix[N, 2] x; vector[N] y; } parameters { real a; vector[2] b; real<lower=0> s; }
model { a ~ normal(0, 5); b ~ normal(0, 5); s ~ exponential(1); y ~ normal(a + x * b, s); }"""
PROGRAM = """pub fn straight(x: real[4]) -> real { sum(x * x) }
pub fn turns(n: int) -> int { let mut i = 0; while i < n { i = i + 1; } i }"""


def microseconds(call, seconds=0.1):
    for _ in range(200):
        call()
    start = time.perf_counter()
    call()
    count = max(3, int(seconds / (time.perf_counter() - start)))
    rounds = []
    for _ in range(9):
        start = time.perf_counter()
        for _ in range(count):
            call()
        rounds.append((time.perf_counter() - start) / count * 1e6)
    return statistics.median(rounds)


def measured():
    import numpy as np

    import autobatch as ab

    def data(n):
        rng = np.random.default_rng(1)
        x = rng.normal(size=(n, 2))
        return {"N": n, "x": x, "y": x @ [1.0, -2.0] + rng.normal(size=n)}

    q = np.array([0.1, 0.2, -0.3, 0.4])
    for codegen in ("off", "cc"):
        yield f"grad, 4 normals, {codegen}", ab.Model(NORMAL, codegen=codegen), q
        for n in (20, 20_000):
            yield f"grad, regression of {n:,}, {codegen}", ab.Model(REGRESSION, data(n), codegen=codegen), q
    program = ab.compile(PROGRAM)
    yield "f(x), straight code", program["straight"], q
    yield "its value and gradient", program.value_and_grad("straight"), q
    yield "f(10), a loop", program["turns"], 10


def main():
    if sys.argv[1:2] == ["--one"]:
        for name, f, x in measured():
            f = getattr(f, "grad", f)
            print(name, microseconds(lambda: f(x)), sep="\t", flush=True)
        return
    folders = sys.argv[1:] or [""]
    rows = {}
    for _ in range(3):
        for at, folder in enumerate(folders):
            env = dict(os.environ, PYTHONPATH=folder) if folder else None
            out = subprocess.run([sys.executable, __file__, "--one"], env=env, check=True, capture_output=True, text=True).stdout
            for line in out.splitlines():
                name, value = line.split("\t")
                rows.setdefault(name, [[] for _ in folders])[at].append(float(value))
    for name, columns in rows.items():
        print(f"{name:32}", *(f"{statistics.median(column):10.1f}" for column in columns))


main()
