"""Programs and their functions."""

import inspect
import pathlib
import signal
import threading
import warnings

import numpy as np
import pytest

import autobatch as ab

FIB = """/// The n-th Fibonacci number.
pub fn fib(n: int) -> int { if n < 3 { 1 } else { fib(n - 1) + fib(n - 2) } }
pub fn loss[n](w: real[n], shared x: real[n], y: real) -> real { let e = dot(w, x) - y; e * e }
pub struct Both { sum: real, parts: real[2] }
pub fn both(a: real, b: real) -> Both { Both { sum: a + b, parts: [a, b] } }
pub fn root(x: real) -> real { assert(x >= 0.0, "{x} is negative"); sqrt(x) }
"""


@pytest.fixture(scope="module")
def program() -> ab.Program:
    return ab.compile(FIB)


def test_a_call_is_a_batch_over_the_leading_axis(program: ab.Program) -> None:
    fib = program["fib"]
    assert list(program) == ["fib", "loss", "both", "root"] and len(program) == 4
    assert np.array_equal(fib([5, 6, 8]), [5, 8, 21]) and fib(n=7) == 13 and fib.one(7) == 13
    assert fib([5, 6]).dtype == np.int64
    assert fib.__doc__ == "The n-th Fibonacci number." and list(inspect.signature(fib).parameters) == ["n"]
    sums = program["both"]([1.0, 2.0], 10)
    assert np.array_equal(sums["sum"], [11, 12]) and np.array_equal(sums["parts"], [[1, 10], [2, 10]])


def test_every_number_type_is_taken(program: ab.Program) -> None:
    for dtype in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"):
        assert np.array_equal(program["fib"](np.array([5, 6], dtype)), [5, 8])
    for dtype in ("f2", "f4", "f8", "i4", ">f8"):
        assert np.array_equal(program["root"](np.array([4, 9], dtype)), [2, 3])
    # Neither contiguous nor in row-major order.
    w = np.asfortranarray(np.arange(12.0).reshape(4, 3))[::2]
    x = np.arange(6.0)[::2]
    assert np.array_equal(program["loss"](w, x, 0.0), (w @ x) ** 2)
    # In column-major order, of the very types that the machine has.
    for dtype in ("f8", "i8"):
        whole = np.arange(6).reshape(2, 3).astype(dtype)
        for same in (np.asfortranarray(whole), np.ascontiguousarray(whole.T).T):
            assert np.array_equal(program["loss"](same, x, 0.0), (whole @ x) ** 2)


def test_values_and_gradients(program: ab.Program) -> None:
    w, x, y = np.arange(6.0).reshape(2, 3), np.array([1.0, -2.0, 0.5]), np.array([3.0, 4.0])
    error = w @ x - y
    value, gradient = ab.value_and_grad(program["loss"], wrt="w")(w, x=x, y=y)
    assert np.allclose(value, error**2, rtol=1e-15) and np.allclose(gradient, 2 * error[:, None] * x, rtol=1e-15)
    _, gradients = program.value_and_grad("loss")(w, x, y)
    assert list(gradients) == ["w", "y"] and np.allclose(gradients["y"], -2 * error, rtol=1e-15)
    assert program.value_and_grad("loss", "w")(w[0], x, 3.0)[1].shape == (3,)


def test_errors_are_told_with_their_source(program: ab.Program) -> None:
    with pytest.raises(ab.CompileError) as told:
        ab.compile("pub fn f(x: real) -> real { x + true }")
    assert "E0202" in str(told.value) and "x + true" in str(told.value) and "\x1b" not in str(told.value)
    assert "<pre" in told.value._repr_html_()
    with pytest.raises(KeyError, match="no public function `nope`"):
        program["nope"]
    for wrong in (lambda: program["fib"]("three"), lambda: program["fib"](1, 2), lambda: program["fib"](1, n=2)):
        with pytest.raises(ab.InputError):
            wrong()
    with pytest.raises(ab.InputError, match="`n`"):
        program["fib"](np.array([1.5, 2.0]))
    with pytest.raises(ab.InputError, match="needs a value for `b`, of type real, one for each lane"):
        program["both"]([1.0, 2.0])
    with pytest.raises(ab.InputError, match="lanes"):
        program["both"]([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(ab.InputError, match="past 64 bits"):
        program["fib"](np.array([2**63], "u8"))
    with pytest.raises(ab.InputError, match="'pc', 'local' and 'scalar'"):
        program["fib"].run({"n": [1]}, engine="turbo")
    with pytest.raises(ab.InputError):
        ab.compile("model.txt")
    with pytest.raises(ab.FileError, match="cannot read nowhere.ab"):
        ab.compile("nowhere.ab")


def test_lanes_that_trap_raise_or_are_masked(program: ab.Program) -> None:
    root = program["root"]
    with pytest.raises(ab.LaneError, match="lane 1 of `root` trapped: -4 is negative") as told:
        root([4.0, -4.0, 9.0, -1.0])
    assert [place for place, _ in told.value.traps] == [1, 3]
    masked = root.run({"x": [4.0, -4.0, 9.0]}, on_trap="mask")
    assert np.array_equal(masked.value[[0, 2]], [2, 3]) and masked.traps[0][0] == 1


def test_results_belong_to_nobody_else(program: ab.Program) -> None:
    made = program["fib"](np.arange(1, 20))
    made += 1
    assert made.flags.writeable and np.array_equal(program["fib"](np.arange(1, 20)) + 1, made)


def test_inputs_may_have_any_name() -> None:
    program = ab.compile("pub fn f(seed: int, lambda: real) -> real { lambda * seed }")
    f = program["f"]
    assert f(3, 1.5) == 4.5 and f.one(3, 1.5) == 4.5 and f(**{"seed": [1, 2], "lambda": 2.0}).tolist() == [2, 4]
    assert list(dict(program)) == ["f"]


def test_lanes_have_their_own_random_streams() -> None:
    draw = ab.compile("pub fn draw(i: int) -> real { uniform_rng(0.0, 1.0) + i }")["draw"]
    lanes = np.arange(8)
    whole = draw.run({"i": lanes}, seed=3).value
    parts = [draw.run({"i": lanes[a : a + 4]}, seed=3, first_lane=a).value for a in (0, 4)]
    assert np.array_equal(whole, np.concatenate(parts)) and len(set(whole % 1)) == 8
    assert not np.array_equal(whole, draw.run({"i": lanes}, seed=4).value)


def test_what_is_probably_not_meant_is_a_warning() -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ab.compile("pub fn f(x: real) -> real { let unused = 1.0; x }")
    assert len(found) == 1 and issubclass(found[0].category, ab.AutobatchWarning) and "unused" in str(found[0].message)


def test_files(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "f.ab"
    path.write_text("pub fn f(x: real) -> real { 2.0 * x }")
    assert ab.compile(path)["f"](1.5) == 3 and ab.compile(str(path))["f"](1.5) == 3
    with pytest.raises(ab.InputError, match="a Stan program is a model"):
        ab.compile("parameters { real x; } model { x ~ normal(0, 1); }")


def test_calls_that_are_repeated_give_the_same_and_every_call_has_its_own_values():
    program = ab.compile("""
        pub fn straight(x: real[3], y: real) -> real { sum(x * x) + y }
        pub fn turns(n: int) -> int { let mut i = 0; let mut s = 0; while i < n { i = i + 1; s = s + i; } s }
        pub fn sized[n](k: int, shared x: real[n]) -> real { x[0] + real(k) * real(n) }""")
    assert program["turns"] is program["turns"]
    straight, turns, sized = program["straight"], program["turns"], program["sized"]
    for engine in ("pc", "local", "scalar"):
        for i in range(6):
            x = np.array([0.5, i, -1.5])
            assert straight.run({"x": x[np.newaxis]}, {"y": float(i)}, engine=engine)["result"] == x @ x + i
            assert turns.run({"n": [i, 10 * i]}, engine=engine)["result"].tolist() == [i * (i + 1) // 2, 5 * i * (10 * i + 1)]
            assert sized(2, np.full(i + 1, 0.5)) == 0.5 + 2 * (i + 1)
    # A short call, and then long ones.
    assert [turns(n) for n in (3, 3, 2_000_000, 2_000_000, 3, 3)] == [6, 6, 2000001000000, 2000001000000, 6, 6]


def test_a_call_after_short_ones_can_be_interrupted():
    turns = ab.compile("pub fn turns(n: int) -> int { let mut i = 0; while i != n { i = (i + 1) % 1000; } i }")["turns"]
    assert [turns(n) for n in (3, 4, 5)] == [3, 4, 5]
    threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        turns(-1)
    assert turns(7) == 7
