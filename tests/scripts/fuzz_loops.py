#!/usr/bin/env python3
"""Random Stan programs of nested loops, against a plain run of the same program in Python.

    fuzz_loops.py target/release/autobatch [--first 1] [--count 200] [--keep FOLDER]

Loops are written in rolled-up form where turns are alike (src/stan/emit): what is read of which turn is where that can go
wrong, and it would be a wrong number without a word. A program that differs is kept, with its data, and named by its seed.
Values that a program makes larger than 1e6 are not looked at: there rounding alone tells runs apart.
"""
import argparse
import json
import math
import os
import random
import subprocess
import tempfile

N = 8  # extents of all vectors and matrices
POINTS = 2


class Writer:
    """Makes a program as lines of Stan and of Python, one beside the other."""

    def __init__(self, rng):
        self.rng = rng
        self.stan, self.python = [], []

    def line(self, depth, stan, python):
        self.stan.append("  " * (depth + 1) + stan)
        self.python.append(" " * depth + python)

    def place(self, name, *indices):
        """An element: `A[i, j - 1]` in Stan, `A[i][j - 1]` in Python, both counted from 1."""
        return f"{name}[{', '.join(indices)}]", name + "".join(f"[{i}]" for i in indices)

    def earlier(self, index):
        back = self.rng.choice([0, 0, 1, 1, 2])
        return f"{index} - {back}" if back else index

    def operand(self, i, j):
        rng = self.rng
        kinds = ["number", "parameter", "scalar", "vector", "dot"] + (["matrix", "data"] if j else [])
        kind = rng.choice(kinds)
        if kind == "number":
            x = round(rng.uniform(-0.5, 0.5), 3)
            return f"({x})", f"({x})"
        if kind == "parameter":
            return self.place("a", j or i)
        if kind == "scalar":
            return "s", "s"
        if kind == "vector":
            return self.place(rng.choice("vu"), self.earlier(j or i))
        if kind == "matrix":
            return self.place(rng.choice("AB"), self.earlier(i), self.earlier(j))
        if kind == "data":
            return self.place("x", i, j)
        a, b = rng.choice("vu"), rng.choice("uww")
        stan = f"dot_product({a}[1 : ({i} - 1)], {b}[1 : ({i} - 1)])"
        return stan, f"sum({a}[k] * {b}[k] for k in range(1, {i}))"

    def expression(self, i, j):
        terms = [[self.operand(i, j) for _ in range(self.rng.randint(1, 2))] for _ in range(self.rng.randint(1, 3))]
        return tuple(" + ".join("0.3 * " + " * ".join(f[which] for f in term) for term in terms) for which in (0, 1))

    def assignment(self, depth, i, j):
        stan, python = self.expression(i, j)
        kinds = ["vector", "scalar", "target"] + (["matrix", "matrix"] if j else ["vector"])
        kind = self.rng.choice(kinds)
        if kind == "target":
            self.line(depth, f"target += sin({stan});", f"target += math.sin({python})")
        elif kind == "scalar":
            self.line(depth, f"s += {stan};", f"s += {python}")
        else:
            places = self.place(self.rng.choice("AB"), i, j) if kind == "matrix" else self.place(self.rng.choice("vu"), i)
            self.line(depth, f"{places[0]} = {stan};", f"{places[1]} = {python}")

    def body(self, depth, i, j=None):
        for _ in range(self.rng.randint(1, 3)):
            what = self.rng.random()
            if what < 0.3 and not j:
                self.loop(depth, "j", i)
            elif what < 0.45:
                condition = self.rng.choice(["i % 2 == 0", "i > 4", "i % 3 == 1", "c[i] == 1"])
                self.line(depth, f"if ({condition}) {{", f"if {condition}:")
                self.assignment(depth + 1, i, j)
                self.close(depth)
            elif what < 0.5:
                self.line(depth, "s = 0;", "s = 0.0")
            else:
                self.assignment(depth, i, j)

    def loop(self, depth, name, outer=None):
        first, last = self.rng.choice([3, 3, 4]), self.rng.choice(["N", "5", outer]) if outer else "N"
        self.line(depth, f"for ({name} in {first} : {last}) {{", f"for {name} in range({first}, {last} + 1):")
        self.body(depth + 1, outer or name, name if outer else None)
        self.close(depth)

    def close(self, depth):
        self.stan.append("  " * (depth + 1) + "}")


def program(rng):
    writer = Writer(rng)
    for _ in range(rng.randint(1, 2)):
        writer.loop(0, "i")
    stan = """data {
  int N;
  matrix[N, N] x;
  vector[N] w;
  array[N] int c;
}
parameters {
  vector[N] a;
}
model {
  matrix[N, N] A = x;
  matrix[N, N] B = rep_matrix(0.5, N, N);
  vector[N] v = a;
  vector[N] u = w;
  real s = 0;
"""
    end = "  target += sin(s) + sum(sin(v)) + sum(sin(u)) + sum(sin(to_vector(A))) + sum(sin(to_vector(B)));\n}\n"
    return stan + "\n".join(writer.stan) + "\n" + end, "\n".join(writer.python)


def by_hand(code, data, point):
    """The log density, or None where a value is too large to compare."""

    def counted(values):
        return [None] + [counted(v) if isinstance(v, list) else v for v in values]

    names = {name: counted(value) if isinstance(value, list) else value for name, value in data.items()}
    names |= {"math": math, "a": counted(point), "v": counted(point), "u": counted(data["w"]), "A": counted(data["x"])}
    names |= {"B": counted([[0.5] * N for _ in range(N)]), "s": 0.0, "target": 0.0}
    try:
        exec(code, names)
        ends = [names["s"], *names["v"][1:], *names["u"][1:]]
        ends += [x for matrix in (names["A"], names["B"]) for row in matrix[1:] for x in row[1:]]
        if max(map(abs, ends)) > 1e6:
            return None
        return names["target"] + sum(map(math.sin, ends))
    except (OverflowError, ValueError):
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("autobatch")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--count", type=int, default=200, help="so many programs")
    parser.add_argument("--keep", default=".", help="where programs go that differ")
    args = parser.parse_args()
    scratch = tempfile.mkdtemp()
    files = [os.path.join(scratch, name) for name in ("loops.stan", "loops.json")]
    wrong = 0
    for seed in range(args.first, args.first + args.count):
        rng = random.Random(seed)
        stan, python = program(rng)
        numbers = lambda n: [round(rng.gauss(0, 1), 3) for _ in range(n)]
        data = {"N": N, "x": [numbers(N) for _ in range(N)], "w": numbers(N), "c": [rng.randrange(2) for _ in range(N)]}
        points = [numbers(N) for _ in range(POINTS)]
        expected = [by_hand(python, data, point) for point in points]
        texts = [stan, json.dumps(data)]
        for path, text in zip(files, texts):
            with open(path, "w") as file:
                file.write(text)
        command = [args.autobatch, "log-prob", files[0], "--data", files[1], "--points", json.dumps(points), "--format", "json"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            found = [value.get("lp") for value in json.loads(done.stdout)] if done.returncode == 0 else done.stderr[-500:]
        except subprocess.TimeoutExpired:
            found = "no answer in two minutes"
        agrees = isinstance(found, list) and all(
            e is None or f is not None and abs(f - e) <= 1e-7 * max(1, abs(e)) for f, e in zip(found, expected)
        )
        if not agrees:
            wrong += 1
            print(f"seed {seed}: {found}, by hand {expected}")
            for path, text in zip(files, texts):
                with open(os.path.join(args.keep, f"loops-{seed}{os.path.splitext(path)[1]}"), "w") as file:
                    file.write(text)
    print(f"{args.count} programs, {wrong} differ")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
