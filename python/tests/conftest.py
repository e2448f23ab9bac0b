"""What tests share."""

import warnings

import numpy as np
import pytest

import autobatch as ab

EIGHT_SCHOOLS = """
data { int<lower=0> J; array[J] real y; array[J] real<lower=0> sigma; }
parameters { vector[J] z; real mu; real<lower=0> tau; }
transformed parameters { vector[J] theta = mu + tau * z; }
model { z ~ normal(0, 1); y ~ normal(theta, sigma); mu ~ normal(0, 5); tau ~ cauchy(0, 5); }
generated quantities { array[J] real y_rep = normal_rng(theta, sigma); }
"""
DATA = {"J": 8, "y": [28, 8, -3, 7, -1, 1, 18, 12], "sigma": [15, 10, 16, 11, 9, 11, 10, 18]}


@pytest.fixture(scope="session")
def fit() -> ab.Fit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ab.AutobatchWarning)
        return ab.sample(EIGHT_SCHOOLS, DATA, chains=4, warmup=300, draws=200, seed=1, target_accept=0.95, progress=False, save_warmup=True)


def same(a: ab.Fit, b: ab.Fit) -> None:
    """Every bit of every array."""
    assert a.posterior.keys() == b.posterior.keys()
    for name in a.posterior:
        assert np.array_equal(a.posterior[name].view(np.int64), b.posterior[name].view(np.int64)), name
