"""Models: log densities and gradients."""

import json
import pathlib

import numpy as np
import pytest

import autobatch as ab
from conftest import DATA, EIGHT_SCHOOLS

POSITIVE = "parameters { real<lower=0> s; } model { s ~ exponential(2); }"


def test_densities_are_those_of_the_formula() -> None:
    model = ab.Model(POSITIVE)
    assert model.dim == 1 and model.variables == ["s"]
    u = np.array([[-0.5], [0.0], [1.25]])
    lp, gradient = model.grad(u)
    # -2 exp(u) + u: Stan's `~` keeps the rate, which multiplies a parameter, and drops ln 2.
    assert np.allclose(lp, -2 * np.exp(u[:, 0]) + u[:, 0], rtol=1e-15)
    assert np.allclose(gradient, 1 - 2 * np.exp(u), rtol=1e-15)
    one, slope = model.grad(u[2])
    assert one == lp[2] and np.array_equal(slope, gradient[2]) and model.log_density(u[2]) == one
    assert np.allclose(ab.Model(POSITIVE, full=True).log_density(u), lp + np.log(2), rtol=1e-15)
    assert np.allclose(ab.Model(POSITIVE, jacobian=False).log_density(u), lp - u[:, 0], rtol=1e-14)


def test_many_points_are_one_batch() -> None:
    model = ab.Model(EIGHT_SCHOOLS, DATA)
    q = np.random.default_rng(1).normal(size=(1000, model.dim))
    lp, gradient = model.grad(q)
    for i in (0, 499, 999):
        one, slope = model.grad(q[i])
        assert one == lp[i] and np.array_equal(slope, gradient[i])
    step = 1e-5
    for d in range(model.dim):
        e = np.zeros(model.dim)
        e[d] = step
        difference = (model.log_density(q[:50] + e) - model.log_density(q[:50] - e)) / (2 * step)
        assert np.allclose(difference, gradient[:50, d], rtol=1e-5, atol=1e-5)


def test_data_come_in_every_form(tmp_path: pathlib.Path) -> None:
    q = np.linspace(-1, 1, 10)
    wanted = ab.Model(EIGHT_SCHOOLS, DATA).log_density(q)
    (tmp_path / "m.stan").write_text(EIGHT_SCHOOLS)
    (tmp_path / "d.json").write_text(json.dumps(DATA))
    np.savez(tmp_path / "d.npz", **{name: np.asarray(value) for name, value in DATA.items()})
    for data in (tmp_path / "d.json", str(tmp_path / "d.json"), tmp_path / "d.npz", {k: np.asarray(v) for k, v in DATA.items()}):
        assert ab.Model(tmp_path / "m.stan", data).log_density(q) == wanted
    # Complex numbers, tuples, and lists of nothing.
    other = "data { complex z; tuple(int, vector[2]) t; array[0] int none; } parameters { real x; } model { x ~ normal(get_real(z) + t.2[1] * t.1, get_imag(z)); }"
    model = ab.Model(other, {"z": 1 + 2j, "t": (3, [0.5, 1.0]), "none": []})
    assert np.isclose(model.log_density([0.0]), -0.5 * (2.5 / 2) ** 2)


def test_a_model_of_the_language() -> None:
    text = "model m[n](mu: real, tau: real<lower = 0>, shared y: real[n]) { normal_lpdf(y, mu, tau) - tau }"
    model = ab.Model(text, {"y": [1.0, 2.0]})
    assert model.dim == 2
    expected = -0.5 * (1 + 4) - np.log(2 * np.pi) - 1
    assert np.isclose(model.log_density([0.0, 0.0]), expected, rtol=1e-14)


def test_what_is_refused_and_rejected() -> None:
    with pytest.raises(ab.CompileError, match="lack `N`"):
        ab.Model("data { int N; } parameters { real x; } model { x ~ normal(0, N); }")
    model = ab.Model("parameters { real x; } model { if (x > 1) reject(\"too far: \", x); x ~ normal(0, 1); }")
    with pytest.raises(ab.LaneError, match="too far: 2"):
        model.grad([2.0])
    lp, gradient = model.grad([[0.5], [2.0]], on_reject="mask")
    assert np.isclose(lp[0], -0.125, rtol=1e-14) and np.isnan(lp[1]) and np.isnan(gradient[1]).all()
    # What is no number in the data is told by the model, not by a reader of JSON.
    far = "data { array[2] real y; } parameters { real x; } model { if (y[1] > 0 && y[2] < 0) x ~ normal(0, 1); }"
    assert np.isclose(ab.Model(far, {"y": [float("inf"), "-Inf"]}).log_density([1.0]), -0.5)
    for points in ([0.0, 1.0], [[[0.0]]], 3.0):
        with pytest.raises(ValueError):
            model.grad(points)
    assert model.grad(np.zeros((0, 1)))[1].shape == (0, 1)
