"""Many data sets in one batch, and calibration."""

import concurrent.futures
from pathlib import Path

import numpy as np
import pytest

import autobatch as ab

MODEL = """
pub fn log_density(q: real[1], shared y: real) -> real { normal_lpdf(q[0], 0.0, 1.0) + normal_lpdf(y, q[0], 1.0) }
pub struct Parameters { mu: real }
pub fn parameters(q: real[1]) -> Parameters { Parameters { mu: q[0] } }
pub struct Simulated { mu: real, y: real }
pub fn simulate() -> Simulated { let mu = normal_rng(0.0, 1.0); Simulated { mu: mu, y: normal_rng(mu, 1.0) } }
"""
STAN = "data { real y; } parameters { real mu; } model { mu ~ normal(0, 1); y ~ normal(mu, 1); }"
QUICK = dict(warmup=100, draws=100, codegen="off", seed=1)


@pytest.mark.filterwarnings("ignore::autobatch.AutobatchWarning")
def test_each_data_set_has_the_draws_that_it_has_alone() -> None:
    ys = [0.5, -1.0, 2.0]
    for model in (MODEL, STAN):
        fit = ab.sample(model, lane_data={"y": ys}, chains=2, progress=False, **QUICK)
        assert fit.data_sets == (3, 2) and fit["mu"].shape == (6, 100)
        assert "3 data sets, 2 chains of each" in str(fit.summary())
        for k, y in enumerate(ys):
            alone = ab.sample(model, {"y": y}, chains=2, first_chain=2 * k, progress=False, **QUICK)
            np.testing.assert_array_equal(fit.of_data_set(k)["mu"], alone["mu"])
    with pytest.raises(ab.InputError, match="there is no data set 3"):
        fit.of_data_set(3)
    with pytest.raises(ab.InputError, match="there is one data set"):
        alone.of_data_set(0)


def test_a_data_tree_says_which_data_set_a_chain_has() -> None:
    pytest.importorskip("xarray")
    tree = ab.sample(MODEL, lane_data={"y": np.zeros(3)}, chains=2, progress=False, **QUICK).to_datatree()
    assert tree["posterior"]["data_set"].values.tolist() == [0, 0, 1, 1, 2, 2]


def test_a_pool_fills_a_store_of_many_data_sets(tmp_path: Path) -> None:
    how = dict(QUICK, chains=50, lane_data={"y": [0.5, -1.0, 2.0]}, progress=False)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        fit = ab.sample(STAN, store=tmp_path / "run.zarr", executor=pool, lanes_per_task=64, threads=1, **how)
    whole = ab.sample(STAN, **how)
    assert fit.data_sets == whole.data_sets == (3, 50) and fit.complete
    np.testing.assert_array_equal(fit["mu"], whole["mu"], strict=True)
    np.testing.assert_array_equal(ab.open(tmp_path / "run.zarr").of_data_set(1)["mu"], whole.of_data_set(1)["mu"])
    assert "3 data sets, 50 chains of each" in str(fit.summary())
    xarray = pytest.importorskip("xarray")
    with xarray.open_datatree(tmp_path / "run.zarr", engine="zarr") as tree:
        assert "data_set" in tree["posterior"].coords and tree["posterior"]["data_set"].values[[49, 50, 149]].tolist() == [0, 1, 2]
        assert tree["observed_data"]["y"].dims == ("data_set",)


def test_what_data_sets_lack_is_told() -> None:
    with pytest.raises(ab.InputError, match="no data that the model takes"):
        ab.sample(MODEL, lane_data={"x": [1.0]}, progress=False, **QUICK)


def test_calibration() -> None:
    found = ab.sbc(MODEL, simulations=200, **QUICK)
    ranks = found["mu"]
    assert list(found) == ["mu"] and ranks.ranks.shape == (200,) and ranks.ranks.max() <= found.draws == 10
    assert found.p_value > 0.01 and found.simulations == 200 and found.failed == 0
    assert np.all(ranks.lower <= ranks.upper) and ranks.place.shape == ranks.ecdf.shape
    assert "p_value" in str(found) and "<svg" in found.report()


def test_a_simulator_may_be_a_function_or_values_or_another_program() -> None:
    def simulator(n: int) -> dict[str, np.ndarray]:
        mu = np.random.default_rng(1).normal(size=n)
        return {"mu": mu, "y": np.random.default_rng(2).normal(mu + 1.0, 1.0)}

    wrong = ab.sbc(STAN, simulations=200, simulator=simulator, **QUICK)
    assert wrong.p_value < 0.001 and wrong["mu"].mean < 0.4
    again = ab.sbc(STAN, simulator=simulator(200), **QUICK)
    assert again["mu"].ranks.tolist() == wrong["mu"].ranks.tolist()
    program = "generated quantities { real mu = normal_rng(0, 1); real y = normal_rng(mu, 1); }"
    assert ab.sbc(STAN, simulations=200, simulator=program, **QUICK).p_value > 0.01
    with pytest.raises(ab.InputError, match="must give arrays by their names"):
        ab.sbc(STAN, simulations=2, simulator=lambda n: n, **QUICK)  # type: ignore[arg-type,return-value]
    with pytest.raises(ab.AutobatchError, match="there is no `pub fn simulate`"):
        ab.sbc("pub fn log_density(q: real[1], shared y: real) -> real { normal_lpdf(y, q[0], 1.0) }", {"y": 1.0}, **QUICK)
    with pytest.raises(ab.InputError, match="simulations is 0"):
        ab.sbc(MODEL, simulations=0)
