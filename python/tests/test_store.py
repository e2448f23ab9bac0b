"""Runs whose draws go to a store, and what other readers see of it."""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import autobatch as ab

MODEL = """
data { int<lower=0> n; vector[n] y; }
parameters { real mu; real<lower=0> sigma; }
model { mu ~ normal(0, 5); sigma ~ normal(0, 5); y ~ normal(mu, sigma); }
generated quantities { array[2] int k = {bernoulli_rng(0.5), 3}; vector[3] z = rep_vector(normal_rng(mu, sigma), 3); }
"""
DATA = {"n": 4, "y": [1.0, 2.0, 3.0, 2.5]}
HOW = dict(chains=3, warmup=60, draws=50, seed=4, progress=False)


@pytest.mark.filterwarnings("ignore::autobatch.AutobatchWarning")
def test_a_store_has_the_draws_of_a_run(tmp_path: Path) -> None:
    plain = ab.sample(MODEL, DATA, **HOW)
    stored = ab.sample(MODEL, DATA, store=tmp_path / "run.zarr", **HOW)
    opened = ab.open(tmp_path / "run.zarr")
    sent = ab.open(shutil.make_archive(str(tmp_path / "run.zarr"), "zip", tmp_path / "run.zarr"))
    for fit in (stored, opened, sent):
        assert list(fit) == list(plain) and fit.complete and fit.chains == plain.chains
        for name in plain:
            np.testing.assert_array_equal(fit[name], plain[name], strict=True)
        for name, values in plain.sample_stats.items():
            np.testing.assert_array_equal(fit.sample_stats[name], values, strict=True)
        assert fit.stepsize == plain.stepsize
        assert str(fit.summary()).splitlines()[:6] == str(plain.summary()).splitlines()[:6]
    assert sent.chains == opened.chains and sent.report() == opened.report()


@pytest.mark.filterwarnings("ignore::autobatch.AutobatchWarning")
def test_xarray_and_arviz_read_a_store(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("zarr", minversion="3")
    store = tmp_path / "run.zarr"
    fit = ab.sample(MODEL, DATA, store=store, save_warmup=True, **HOW)
    tree = xarray.open_datatree(store, engine="zarr")
    assert tree.attrs["status"] == "complete" and tree.attrs["inference_library"] == "autobatch"
    assert set(tree.children) == {"posterior", "sample_stats", "warmup_posterior", "warmup_sample_stats", "adaptation", "observed_data"}
    assert tree["posterior"]["z"].dims == ("chain", "draw", "z_dim_0")
    assert list(tree["posterior"]["chain"].values) == [0, 1, 2]
    assert tree["posterior"].sizes["draw"] == 50 and tree["warmup_posterior"].sizes["draw"] == 60
    for name in fit:
        np.testing.assert_array_equal(tree["posterior"][name].values, fit[name], strict=True)
    assert tree["posterior"]["k"].dtype == np.int64 and tree["sample_stats"]["diverging"].dtype == np.bool_
    np.testing.assert_array_equal(tree["sample_stats"]["n_steps"].values, fit.sample_stats["n_leapfrog"])
    np.testing.assert_array_equal(tree["observed_data"]["y"].values, DATA["y"])
    np.testing.assert_array_equal(tree["adaptation"]["step_size"].values, fit.stepsize)
    arviz = pytest.importorskip("arviz")
    summary = arviz.summary(tree, var_names=["mu", "sigma"], round_to="none")
    assert abs(float(summary.loc["mu", "mean"]) - fit["mu"].mean()) < 1e-9


@pytest.mark.filterwarnings("ignore::autobatch.AutobatchWarning")
def test_f32_is_f32(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("zarr", minversion="3")
    ab.sample(MODEL, DATA, store=tmp_path / "run.zarr", real="f32", **HOW)
    tree = xarray.open_datatree(tmp_path / "run.zarr", engine="zarr")
    assert tree["posterior"]["mu"].dtype == np.float32 and np.isfinite(tree["posterior"]["mu"]).all()


@pytest.mark.filterwarnings("ignore::autobatch.AutobatchWarning")
def test_a_process_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    how = dict(HOW, draws=40_000, settings={"checkpoint_every": 50})
    script = f"import autobatch as ab\nab.sample({MODEL!r}, {DATA!r}, store={str(tmp_path / 'run.zarr')!r}, **{how!r})\n"
    store = tmp_path / "run.zarr"
    child = subprocess.Popen([sys.executable, "-c", script])
    try:
        deadline = time.monotonic() + 100
        while not list(store.glob("_autobatch/state/*")):
            assert time.monotonic() < deadline and child.poll() is None, "it never stores a draw"
            time.sleep(0.02)
        # Whole draws only, also now: of all chains, or there are none yet.
        with contextlib.suppress(ab.Interrupted):
            assert np.isfinite(ab.open(store)["mu"]).all()
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    fit = ab.resume(tmp_path / "run.zarr", progress=False)
    whole = ab.sample(MODEL, DATA, **dict(how, settings={}))
    for name in whole:
        np.testing.assert_array_equal(fit[name], whole[name], strict=True)


@pytest.mark.filterwarnings("ignore::autobatch.AutobatchWarning")
def test_more_draws_and_parts_of_the_chains(tmp_path: Path) -> None:
    whole = ab.sample(MODEL, DATA, **dict(HOW, draws=90))
    ab.sample(MODEL, DATA, store=tmp_path / "more.zarr", **HOW)
    more = ab.resume(tmp_path / "more.zarr", more_draws=40, progress=False)
    np.testing.assert_array_equal(more["mu"], whole["mu"], strict=True)

    how = dict(HOW, chains=70, warmup=20, draws=10)
    store = tmp_path / "lanes.zarr"
    assert ab.sample(MODEL, DATA, store=store, lanes=range(64, 70), **how) is None
    with pytest.raises(ab.Interrupted, match="no draws of all chains yet"):
        ab.open(store)
    assert ab.sample(MODEL, DATA, store=store, lanes=range(0, 64), **how) is None
    parts = ab.resume(store, progress=False)
    assert parts.complete
    np.testing.assert_array_equal(parts["mu"], ab.sample(MODEL, DATA, **how)["mu"], strict=True)


@pytest.mark.filterwarnings("ignore::autobatch.AutobatchWarning")
def test_a_pool_of_processes_fills_a_store(tmp_path: Path) -> None:
    how = dict(HOW, chains=130, warmup=20, draws=10)
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        fit = ab.sample(MODEL, DATA, store=tmp_path / "run.zarr", executor=pool, lanes_per_task=64, threads=1, **how)
    whole = ab.sample(MODEL, DATA, **how)
    assert fit.complete and fit.chains == whole.chains
    for name in whole:
        np.testing.assert_array_equal(fit[name], whole[name], strict=True)


@pytest.mark.filterwarnings("ignore::autobatch.AutobatchWarning")
def test_a_pool_runs_a_warmup_that_is_pooled(tmp_path: Path) -> None:
    how = dict(HOW, chains=130, warmup=150, draws=10, pooled_warmup=True)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        fit = ab.sample(MODEL, DATA, store=tmp_path / "run.zarr", executor=pool, lanes_per_task=64, threads=1, **how)
    whole = ab.sample(MODEL, DATA, **how)
    assert fit.complete and len(set(fit.stepsize)) == 1
    for name in whole:
        np.testing.assert_array_equal(fit[name], whole[name], strict=True)


@contextlib.contextmanager
def _killed(pid: int, store: Path) -> Iterator[None]:
    """A process that is killed as soon as a chain is on disk."""

    def kill() -> None:
        while not list(store.glob("_autobatch/state/*")):
            time.sleep(0.02)
        os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    yield
    killer.join()


@pytest.mark.filterwarnings("ignore::autobatch.AutobatchWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("which", ["worker", "node"])
def test_dask_fills_a_store_though_one_is_killed(tmp_path: Path, which: str) -> None:
    distributed = pytest.importorskip("distributed")
    how = dict(HOW, chains=256, warmup=200, draws=2000)
    store = tmp_path / "run.zarr"
    with contextlib.ExitStack() as ends:
        # A worker that is killed begins anew, a node does not come back.
        begins = 2 if which == "worker" else 0
        cluster = ends.enter_context(
            distributed.LocalCluster(n_workers=begins, threads_per_worker=1, dashboard_address=None, host="127.0.0.1")
        )
        client = ends.enter_context(distributed.Client(cluster))
        if which == "node":
            node = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address, "--no-nanny", "--nthreads", "1"]
            for _ in range(2):
                process = subprocess.Popen([*node, "--no-dashboard", "--local-directory", str(tmp_path)], stderr=subprocess.DEVNULL)
                ends.callback(process.wait)
                ends.callback(process.kill)
            client.wait_for_workers(2, timeout=120)
        pids = list(client.run(os.getpid).values())
        with _killed(pids[0], store):
            executor = client.get_executor(retries=3)
            fit = ab.sample(MODEL, DATA, store=store, executor=executor, lanes_per_task=64, threads=1, **how)
        there = list(client.run(os.getpid).values())
        assert pids[0] not in there and pids[1] in there
    whole = ab.sample(MODEL, DATA, **how)
    for name in whole:
        np.testing.assert_array_equal(fit[name], whole[name], strict=True)


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ab.InputError, match="there is none"):
        ab.sample(MODEL, DATA, lanes=range(0, 64), **HOW)
    with pytest.raises(ab.InputError, match="must be a range of chains"):
        ab.sample(MODEL, DATA, store=tmp_path / "a.zarr", lanes=range(5, 5), **HOW)
    with pytest.raises(ab.InputError, match="name a store"):
        ab.sample(MODEL, DATA, executor=concurrent.futures.ThreadPoolExecutor(1), **HOW)
    with pytest.raises(ab.InputError, match="must be a multiple of 64"):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            ab.sample(MODEL, DATA, store=tmp_path / "b.zarr", executor=pool, lanes_per_task=10, **HOW)
    with pytest.raises(ab.InputError, match="goes on as it began"):
        ab.resume(tmp_path / "a.zarr", seed=3)
    with pytest.raises(ab.FileError, match="cannot read"):
        ab.resume(tmp_path / "a.zarr")
    with pytest.raises(ab.InputError, match="is no store of a run"):
        ab.open(tmp_path)
