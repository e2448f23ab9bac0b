"""File tests of the statistical functions: values and gradients by mpmath at 50 digits, written as `.ab`.

A case is a function of the library, its parameters, a reference of mpmath numbers, points, and borders with what is right
there. Gradients of the reference are central differences at 50 digits. Of a symmetric matrix both entries move, of a
triangular one those of the triangle.
"""

from pathlib import Path

from mpmath import isfinite, mp, mpf

mp.dps = 50
STEP = mpf(10) ** -18
FOLDER = Path(__file__).resolve().parents[2] / "filetests" / "run"
NAN, INF = float("nan"), float("inf")


class Kind:
    """The type of a parameter: int, real, int[3], real[3], real[2, 3], sym[2], tril[2]."""

    def __init__(self, text):
        base, _, extents = text.rstrip("]").partition("[")
        self.base = base
        self.extents = [int(e) for e in extents.split(",")] if extents else []
        if base in ("sym", "tril"):
            self.extents *= 2
        self.scalar = not self.extents
        self.differentiable = base != "int" and base != "data"

    def type(self):
        base = "int" if self.base == "int" else "real"
        return base + (f"[{', '.join(map(str, self.extents))}]" if self.extents else "")

    def places(self):
        """Index tuples that move together, one group for each derivative."""
        if not self.extents:
            return [[()]]
        if len(self.extents) == 1:
            return [[(i,)] for i in range(self.extents[0])]
        n, m = self.extents
        if self.base == "sym":
            return [[(i, j), (j, i)] if i != j else [(i, i)] for i in range(n) for j in range(i + 1)]
        if self.base == "tril":
            return [[(i, j)] for i in range(n) for j in range(i + 1)]
        return [[(i, j)] for i in range(n) for j in range(m)]


def exact(value):
    if isinstance(value, (list, tuple)):
        return [exact(v) for v in value]
    return value if isinstance(value, int) else mpf(value)


def entry(value, place):
    for i in place:
        value = value[i]
    return value


def moved(value, places, step):
    """The value with these entries moved."""
    if places == [()]:
        return value + step
    out = [list(v) if isinstance(v, list) else v for v in value]
    for place in places:
        if len(place) == 1:
            out[place[0]] += step
        else:
            out[place[0]][place[1]] += step
    return out


def gradient(reference, kinds, args):
    """A list for each differentiable parameter."""
    grads = []
    for k, kind in enumerate(kinds):
        if not kind.differentiable:
            continue
        parts = []
        for places in kind.places():
            step = STEP * (abs(entry(args[k], places[0])) or 1)
            ends = [reference(*[moved(a, places, s) if i == k else a for i, a in enumerate(args)]) for s in (step, -step)]
            parts.append((ends[0] - ends[1]) / (2 * step))
        grads.append(parts)
    return grads


def text(value):
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(text(v) for v in value) + "]"
    if isinstance(value, int):
        return str(value)
    value = float(value)
    return {"inf": "Inf", "-inf": "-Inf", "nan": "NaN"}.get(repr(value), repr(value))


def literal(value):
    """The value as an expression."""
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(literal(v) for v in value) + "]"
    return str(value) if isinstance(value, int) else repr(float(value))


class Suite:
    def __init__(self, name, about, value_tolerance=1e-13, gradient_tolerance=1e-12):
        self.name, self.about = name, about
        self.tolerances = (value_tolerance, gradient_tolerance)
        self.runs, self.code = [], []

    def add(self, function, parameters, reference, points, borders=(), arrays="sum", gradients=True, slopes_of_arrays=True):
        """`arrays`: "sum" for an elementwise function whose values are summed, "each", or None for one of no arrays."""
        names = [p.split(": ")[0] for p in parameters]
        kinds = [Kind(p.split(": ")[1]) for p in parameters]
        moving = [n for n, k in zip(names, kinds) if k.differentiable] if gradients else []
        sizes = [len(k.places()) for k in kinds if k.differentiable]
        rows = []
        for point in points:
            args = [exact(a) for a in point]
            value = reference(*args)
            assert isfinite(value), (function, point)
            rows.append((point, value, gradient(reference, kinds, args) if gradients else []))
        for point, value in borders:
            rows.append((point, value, [[NAN] * n for n in sizes] if gradients else []))
        self._run(function, names, moving, rows, 3 if arrays else 2)
        self._entry(function, names, kinds, moving, arrays, rows[0], slopes_of_arrays)

    def _run(self, function, names, moving, rows, outputs):
        inputs = [f"--input {n}=[{','.join(text(r[0][i]) for r in rows)}]" for i, n in enumerate(names)]
        inputs.append(f"--input is=[{','.join(text(r[1]) for r in rows)}]")
        for i, n in enumerate(moving):
            slopes = [r[2][i] if len(r[2][i]) > 1 else r[2][i][0] for r in rows]
            inputs.append(f"--input by_{n}=[{','.join(text(s) for s in slopes)}]")
        self.runs.append(f"// run: --entry {function}_holds {' '.join(inputs)}")
        trues = ", ".join(["true"] * len(rows))
        self.runs += [f"// expect: result.{i} = [{trues}]" for i in range(outputs if moving or outputs == 3 else outputs)]

    def _entry(self, function, names, kinds, moving, arrays, first, slopes_of_arrays):
        parameters = [f"{n}: {k.type()}" for n, k in zip(names, kinds)]
        wanted = []
        for n, k in zip(names, kinds):
            if n in moving:
                count = len(k.places())
                wanted.append(f"by_{n}: real" + ("" if count == 1 and k.scalar or count == 1 else f"[{count}]"))
        lines = [f"pub fn {function}_holds({', '.join([*parameters, 'is: real', *wanted])}) -> ({', '.join(['bool'] * (3 if arrays else 2))}) {{"]
        call = f"{function}({', '.join(names)})"
        value_tolerance, slope_tolerance = self.tolerances
        results = [f"close({call}, is, {value_tolerance!r})"]
        if moving:
            lines += self._gradient("g", function, names, kinds, moving, names, names)
            checks = []
            for n, k in zip(names, kinds):
                if n not in moving:
                    continue
                for i, places in enumerate(k.places()):
                    got = " + ".join(f"g_{n}" + (f"[{', '.join(map(str, p))}]" if p else "") for p in places)
                    want = f"by_{n}" + ("" if len(k.places()) == 1 else f"[{i}]")
                    checks.append(f"slope({got}, {want}, {slope_tolerance!r})")
            results.append("\n        && ".join(checks))
        else:
            results.append("true")
        if arrays:
            point, value, slopes = first
            both = [f"[{literal(p)}, {n}]" for p, n in zip(point, names)]
            same = [f"[{names[0]}, {names[0]}]", *names[1:]]
            if arrays == "sum":
                checks = [
                    f"close({function}({', '.join(both)}), {literal(value)} + is, {2 * value_tolerance!r})",
                    f"close({function}({', '.join(same)}), is + is, {2 * value_tolerance!r})",
                ]
                if moving and slopes_of_arrays:
                    lines += self._gradient("h", function, names, kinds, moving, names, both, 2)
                    wants = iter(slopes)
                    for n, k in zip(names, kinds):
                        if n in moving:
                            checks.append(f"slope(h_{n}[0], {literal(next(wants)[0])}, {slope_tolerance!r})")
            else:
                lines.append(f"    let both = {function}({', '.join(both)});")
                checks = [
                    f"close(both[0], {literal(value)}, {value_tolerance!r})",
                    f"close(both[1], is, {value_tolerance!r})",
                ]
            results.append("\n        && ".join(checks))
        lines += ["    (", *[f"        {r}," for r in results], "    )", "}"]
        self.code.append("\n".join(lines))

    @staticmethod
    def _gradient(prefix, function, names, kinds, moving, inner, at, extent=None):
        types = {n: f"real[{extent}]" if extent else k.type() for n, k in zip(names, kinds)}
        place = dict(zip(names, at))
        inner = [n if n in moving else place[n] for n in inner]
        closure = f"|{', '.join(f'{n}: {types[n]}' for n in moving)}| {function}({', '.join(inner)})"
        arguments = ", ".join(place[n] for n in moving)
        if len(moving) == 1:
            return [f"    let {prefix}_{moving[0]} = grad({closure})({arguments});"]
        which = ", ".join(map(str, range(len(moving))))
        outs = ", ".join(f"{prefix}_{n}" for n in moving)
        return [f"    let ({outs}) = grad({closure}, wrt = ({which}))({arguments});"]

    def write(self, extra=""):
        parts = [
            f"// {self.about}",
            "//",
            f"// A lane is a case: `is` the value, by_… the derivatives that are right, NaN where they mean nothing. Made by",
            f"// tests/scripts/statistics/{self.name}.py with mpmath. The third of the results is about arrays of two cases, of",
            "// which the other is always the first one.",
            "//",
            *self.runs,
            "",
            "/// Equal, or as close as rounding allows.",
            "fn close(x: real, y: real, tolerance: real) -> bool {",
            "    x == y || is_nan(x) && is_nan(y) || abs(x - y) <= tolerance * (1.0 + abs(y))",
            "}",
            "",
            "/// The same of a derivative; a NaN stands for none.",
            "fn slope(x: real, y: real, tolerance: real) -> bool {",
            "    is_nan(y) || close(x, y, tolerance)",
            "}",
            "",
            "\n\n".join(self.code),
        ]
        (FOLDER / f"{self.name}.ab").write_text("\n".join(parts) + extra + "\n")
