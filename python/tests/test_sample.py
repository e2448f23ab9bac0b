"""Sampling."""

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

import autobatch as ab
from conftest import DATA, EIGHT_SCHOOLS, same

FAR = "parameters { vector[3] x; } model { x ~ normal(0, 1); }"


def quiet(*args: object, **kwargs: object) -> ab.Fit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ab.AutobatchWarning)
        return ab.sample(*args, progress=False, **kwargs)


def test_draws_are_by_name(fit: ab.Fit) -> None:
    assert list(fit) == ["z", "mu", "tau", "theta", "y_rep"] and fit["theta"].shape == (4, 200, 8)
    assert np.allclose(fit["theta"], fit["mu"][..., None] + fit["tau"][..., None] * fit["z"], rtol=1e-14)
    assert fit.complete and fit.chains == [0, 1, 2, 3] and len(fit.stepsize) == 4 and not fit.failed
    assert fit.sample_stats["divergent"].dtype == bool and fit.warmup_posterior["mu"].shape == (4, 300)
    row = fit.summary()["mu"]
    assert abs(row["mean"] - 4.4) < 1.5 and row["mean"] == pytest.approx(fit["mu"].mean()) and "theta[8]" in fit.summary().rows
    assert "mean" in str(fit.summary()) and "<table" in fit._repr_html_() and "4 chains of 200 draws" in repr(fit)
    with pytest.raises(KeyError, match="there is no variable `nope`"):
        fit["nope"]


def test_the_same_seed_gives_the_same_bits_and_so_do_parts(fit: ab.Fit) -> None:
    how = dict(warmup=300, draws=200, seed=1, target_accept=0.95, save_warmup=True)
    same(fit, quiet(EIGHT_SCHOOLS, DATA, chains=4, threads=2, **how))
    parts = [quiet(EIGHT_SCHOOLS, DATA, chains=2, first_chain=first, **how) for first in (0, 2)]
    assert parts[1].chains == [2, 3]
    for name in fit:
        assert np.array_equal(fit[name], np.concatenate([part[name] for part in parts]))


def test_a_run_is_what_the_command_gives(fit: ab.Fit, tmp_path: pathlib.Path) -> None:
    import json

    (tmp_path / "m.stan").write_text(EIGHT_SCHOOLS)
    (tmp_path / "d.json").write_text(json.dumps(DATA))
    words = "sample m.stan --data d.json --warmup 300 --draws 200 --seed 1 --target-accept 0.95 --output o.npz"
    done = subprocess.run([sys.executable, "-m", "autobatch", *words.split()], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "o.npz") as file:
        assert np.array_equal(file["theta"], fit["theta"])
    assert subprocess.run([sys.executable, "-m", "autobatch", "run", "nowhere.ab"], capture_output=True).returncode == 1


def test_a_datatree_opens_in_arviz(fit: ab.Fit, tmp_path: pathlib.Path) -> None:
    xarray = pytest.importorskip("xarray")
    tree = fit.to_datatree(dims={"theta": ["school"], "z": ["school"], "y": ["school"]}, coords={"school": list("ABCDEFGH")}, observed=["y"])
    assert tree.posterior["theta"].dims == ("chain", "draw", "school") and tree.attrs["status"] == "complete"
    assert list(tree.posterior["school"].values) == list("ABCDEFGH")
    assert tree.observed_data["y"].dims == ("school",) and tree.warmup_posterior["mu"].shape == (4, 300)
    stats = tree.sample_stats
    assert {"diverging", "energy", "reached_max_treedepth", "n_steps", "lp", "step_size"} <= set(stats)
    arviz = pytest.importorskip("arviz")
    table = arviz.summary(tree, var_names=["mu", "theta"], round_to="none")
    assert table.loc["mu", "r_hat"] == pytest.approx(fit.summary()["mu"]["r_hat"], rel=1e-6)
    assert table.loc["theta[C]", "ess_bulk"] == pytest.approx(fit.summary()["theta[3]"]["ess_bulk"], rel=1e-6)
    pytest.importorskip("zarr")
    tree.to_zarr(tmp_path / "fit.zarr")
    opened = xarray.open_datatree(tmp_path / "fit.zarr", engine="zarr")
    assert np.array_equal(opened.posterior["theta"].values, fit["theta"])
    with pytest.raises(ab.InputError, match="there are no data `nope`"):
        fit.to_datatree(observed=["nope"])


def test_starts_metrics_and_settings() -> None:
    how = dict(chains=2, warmup=0, draws=1, stepsize=1e-9, seed=1)
    assert np.allclose(quiet(FAR, init={"x": [1, 2, 3]}, **how)["x"], [1, 2, 3], atol=1e-6)
    each = quiet(FAR, init=[{"x": [1, 2, 3]}, {"x": [4, 5, 6]}], **how)["x"]
    assert np.allclose(each[:, 0], [[1, 2, 3], [4, 5, 6]], atol=1e-6)
    assert np.allclose(quiet(FAR, starts=[[7, 8, 9]], **how)["x"], [7, 8, 9], atol=1e-6)
    learnt = quiet(FAR, chains=2, warmup=300, draws=20, seed=1, metric="dense")
    assert learnt.inv_metric[0].shape == (3, 3)
    thinned = quiet(FAR, chains=2, warmup=50, draws=20, thin=4, seed=1, keep=["x"], settings={"init_radius": 1.0})
    assert thinned["x"].shape == (2, 5, 3)
    assert quiet(FAR, chains=1, warmup=20, draws=10, seed=2, real="f32")["x"].shape == (1, 10, 3)


def test_names_that_are_not_there_lose_nothing() -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fit = ab.sample(EIGHT_SCHOOLS, DATA, chains=2, warmup=10, draws=10, seed=1, keep=["mu", "nope"], progress=False)
    assert any("there is no variable `nope`" in str(w.message) for w in found)
    assert list(fit) == ["mu"] and list(fit.summary().rows) == ["mu"] and "theta" not in str(fit.summary())


def test_what_is_refused() -> None:
    for wrong, words in [
        (dict(chains=0), "chains is 0"),
        (dict(draws=1.5), "draws is 1.5"),
        (dict(seed=-1), "seed is -1"),
        (dict(metric="round"), "'diag', 'dense' and 'unit'"),
        (dict(settings={"nope": 1}), "`nope` means nothing"),
        (dict(init=0.5), "init is 0.5"),
        (dict(init={"x": [1, 2, 3]}, starts=[[0, 0, 0]]), "both say"),
        (dict(memory_limit=-5), "memory_limit is -5"),
        (dict(device_memory=0), "device_memory is 0"),
        (dict(init={"y": 1}), "`y`"),
        (dict(init=[{"x": [1, 2, 3]}] * 3), "3 chains"),
        (dict(real="f16"), "'f64' and 'f32'"),
        (dict(target_accept=2.0), "target_accept"),
    ]:
        with pytest.raises(ValueError, match=words):
            quiet(FAR, **{"chains": 2, "warmup": 10, "draws": 10, **wrong})
    with pytest.raises(ab.OutOfMemory):
        quiet(FAR, chains=100_000, draws=10_000_000)


def begun(handle: ab.Handle) -> None:
    """Waits until draws are made."""
    while handle.progress.draws == 0 and not handle.done:
        pass


def test_a_run_is_watched_and_ended_beside_other_work() -> None:
    handle = ab.sample(FAR, chains=2, warmup=100, draws=1_000_000, seed=1, blocking=False, codegen="off")
    begun(handle)
    # Python went on, for the run is not over.
    assert not handle.done and 0 < handle.progress.part < 1 and "draws" in str(handle.progress)
    with pytest.raises(TimeoutError):
        handle.wait(timeout=0)
    handle.abort()
    fit = handle.wait()
    assert not fit.complete and 0 < fit["x"].shape[1] < 1_000_000 and fit.to_datatree().attrs["status"] == "interrupted"


def test_pauses_change_nothing() -> None:
    how = dict(chains=2, warmup=100, draws=20_000, seed=1, codegen="off")
    handle = ab.sample(FAR, blocking=False, **how)
    begun(handle)
    for _ in range(10):
        handle.pause()
        handle.resume()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ab.AutobatchWarning)
        same(handle.wait(), quiet(FAR, **how))
    # What waits can be ended.
    handle = ab.sample(FAR, chains=2, warmup=100, draws=1_000_000, seed=1, blocking=False, codegen="off")
    begun(handle)
    handle.pause()
    handle.abort()
    assert not handle.wait().complete


def test_callbacks_may_end_a_run() -> None:
    seen = []

    def callback(handle: ab.Handle) -> None:
        seen.append(handle.progress)
        if handle.progress.draws > 0:
            handle.abort()

    fit = quiet(FAR, chains=2, warmup=100, draws=1_000_000, seed=1, callback=callback, codegen="off")
    assert seen and not fit.complete

    def fails(handle: ab.Handle) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        quiet(FAR, chains=2, warmup=100, draws=1_000_000, seed=1, callback=fails, codegen="off")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_raises_and_ends_the_run() -> None:
    main = threading.main_thread().ident
    assert main is not None
    runs = threading.Event()

    def interrupt() -> None:
        runs.wait()
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()

    def callback(handle: ab.Handle) -> None:
        if handle.progress.draws > 0:
            runs.set()

    with pytest.raises(KeyboardInterrupt):
        quiet(FAR, chains=2, warmup=100, draws=5_000_000, seed=1, codegen="off", callback=callback)
        thread.join()
    thread.join()
    assert not [t for t in threading.enumerate() if t.name == "autobatch" and t.is_alive()]


def test_a_model_tells_its_warnings_once() -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        old = "parameters { real x; } model { int n; n <- 1; x ~ normal(0, n); }"
        ab.sample(old, chains=2, warmup=100, draws=200, seed=1, progress=False)
    assert len([w for w in found if "an assignment is written `=`" in str(w.message)]) == 1


def test_data_that_a_model_does_not_take_are_left_alone() -> None:
    text = "model m[n](mu: real, shared y: real[n]) { normal_lpdf(y, mu, 1.0) }"
    data = {"y": [1.0, 2.0], "other": [[1, 2], [3, 4]], "words": [[1], [2, 3]]}
    assert quiet(text, data, chains=2, warmup=10, draws=10, seed=1)["mu"].shape == (2, 10)
    assert ab.Model(text, data).dim == 1
    with pytest.raises(ab.InputError, match="the model needs `y: real.n.` in its data"):
        quiet(text, {"z": 1}, chains=2, warmup=10, draws=10, seed=1)


def test_warnings_advise_arguments() -> None:
    with pytest.warns(ab.AutobatchWarning) as found:
        ab.sample(FAR, chains=2, warmup=20, draws=20, seed=1, progress=False)
    told = " ".join(str(w.message) for w in found)
    assert "warmup=40, draws=40" in told and "--" not in told


def test_a_fit_is_a_page(fit: ab.Fit, tmp_path: pathlib.Path) -> None:
    where = tmp_path / "r.html"
    page = fit.report(where)
    assert where.read_text(encoding="utf-8") == page and len(page) < 1_500_000
    assert "<h1>model</h1>" in page and "<script" not in page and "http" not in page
    row = fit.summary()["tau"]
    assert f"<td>{row['ess_bulk']:.0f}</td>" in page and f"<td>{row['r_hat']:.3f}</td>" in page
    assert "<h1>a &lt; b</h1>" in fit.report(title="a < b")


def test_progress_has_groups_of_chains() -> None:
    handle = ab.sample(EIGHT_SCHOOLS, DATA, chains=20, warmup=1000, draws=20_000, seed=1, progress=False, blocking=False)
    while not handle.progress.groups and not handle.done:
        pass
    progress = handle.progress
    handle.abort()
    assert len(progress.groups) == 8 and progress.groups[0].name == "chains 0-1"
    assert 0 <= progress.groups[0].part <= 1 and "/21000" in progress.groups[0].text


NOISY = """parameters { vector[2] x; } model { x ~ std_normal(); }
generated quantities { real noise = normal_rng(x[1], 1); int k = poisson_rng(exp(x[2])); }"""


@pytest.mark.parametrize("stored", [False, True])
def test_draws_of_a_run_under_way_are_the_first_of_its_draws(tmp_path, stored):
    store = {"store": tmp_path / "run.zarr"} if stored else {}
    handle = ab.sample(NOISY, chains=3, warmup=200, draws=40000, seed=4, blocking=False, **store)
    seen = [handle.draws()]
    while not handle.done and len(seen) < 400:
        seen.append(handle.draws())
        time.sleep(0.02)
    fit = handle.wait()
    sizes = [early["x"].shape[1] if early else 0 for early in seen]
    assert sizes == sorted(sizes) and any(0 < n < 40000 for n in sizes)
    for early, n in list(zip(seen, sizes))[:: max(1, len(seen) // 8)]:
        # All draws may be there before the run has ended.
        assert (n == 40000 or not early.complete) and early.failed == []
        for mine, whole in ((early.posterior, fit.posterior), (early.sample_stats, fit.sample_stats)):
            assert not mine or list(mine) == list(whole)
            for name, value in mine.items():
                assert value.shape == (3, n, *whole[name].shape[2:])
                np.testing.assert_array_equal(value, whole[name][:, :n], strict=True)
    last = next(early for early, n in reversed(list(zip(seen, sizes))) if 0 < n < 40000)
    assert last.summary()["x[1]"]["ess_bulk"] > 0 and "not complete" in repr(last)
    assert len(seen[0]) == 0 or sizes[0] > 0
    assert handle.draws() is fit


def test_a_callback_may_look_at_the_draws():
    seen = []
    fit = ab.sample(NOISY, chains=2, warmup=200, draws=60000, seed=4, keep=["x"], callback=lambda h: seen.append(h.draws()), progress=False)
    there = [early for early in seen if early and early["x"].shape[1]]
    assert there and all(list(early) == ["x"] for early in there)
    n = there[0]["x"].shape[1]
    np.testing.assert_array_equal(there[0]["x"], fit["x"][:, :n])


def test_nothing_is_there_before_chains_start():
    handle = ab.sample(NOISY, chains=2, warmup=10, draws=10, seed=1, blocking=False)
    early = handle.draws()
    assert not early.complete and early.warnings == [] and early.summary().rows == {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(handle.wait()) == 3


def _named(text, given, tmp_path, kwargs):
    own = """model m[n](x: real[n], y: real[n], shared z: real[n]) { -0.5 * dot(x - z, x - z) - 0.5 * dot(y, y) }"""
    return (
        ab.sample(text, given, coords={"J": ["a", "b", "c"]}, **kwargs),
        ab.sample(text, given, store=tmp_path / "run.zarr", **kwargs),
        ab.sample(text, given, dims={"theta": ["school"]}, **kwargs).to_datatree(coords={"school": [7, 8, 9]}),
        ab.sample(own, {"z": [0.0, 1.0]}, **kwargs),
    )


def test_axes_are_called_by_the_text_of_the_model(tmp_path):
    xarray = pytest.importorskip("xarray")
    text = """data { int J; int K; vector[J] y; } parameters { vector[J] theta; matrix[J, K] b; cov_matrix[K] S; vector[2] u; }
    model { theta ~ normal(y, 1); to_vector(b) ~ std_normal(); u ~ std_normal(); S ~ inv_wishart(K + 2, identity_matrix(K)); }
    generated quantities { array[K] real J_of_each; for (k in 1:K) J_of_each[k] = u[1]; }"""
    given = {"J": 3, "K": 2, "y": [1.0, 2.0, 3.0]}
    kwargs = dict(chains=2, warmup=30, draws=5, seed=1, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit, stored, renamed, own = _named(text, given, tmp_path, kwargs)
    posterior = fit.to_datatree(observed=["y"])["posterior"]
    dims = {name: value.dims[2:] for name, value in posterior.data_vars.items()}
    assert dims == {"theta": ("J",), "b": ("J", "K"), "S": ("S_dim_0", "S_dim_1"), "u": ("u_dim_0",), "J_of_each": ("K",)}
    assert posterior["theta"].coords["J"].values.tolist() == ["a", "b", "c"]
    assert fit.to_datatree(observed=["y"])["observed_data"]["y"].dims == ("J",)
    assert stored.dims["b"] == ["J", "K"]
    opened = xarray.open_datatree(tmp_path / "run.zarr", engine="zarr")
    assert {name: value.dims[2:] for name, value in opened["posterior"].data_vars.items()} == dims
    assert opened["observed_data"]["y"].dims == ("y_dim_0",) and "J" in opened["observed_data"].data_vars
    assert fit.to_datatree(observed=["y", "J"])["observed_data"]["y"].dims == ("y_dim_0",)
    assert renamed["posterior"]["theta"].dims == ("chain", "draw", "school")
    assert own.dims["x"] == ["n"] and own.dims["y"] == ["n"]


def test_what_stands_along_axes_is_in_tables_and_stores(tmp_path):
    xarray = pytest.importorskip("xarray")
    text = "data { int J; vector[J] y; } parameters { vector[J] theta; real mu; } model { theta ~ normal(y, 1); mu ~ std_normal(); }"
    data = {"J": 3, "y": [1.0, 2.0, 3.0]}
    kwargs = dict(chains=2, warmup=30, draws=20, seed=1, progress=False, dims={"theta": ["school"], "y": "school"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = ab.sample(text, data, coords={"school": np.array(["Choate", "Zürich", "x"])}, store=tmp_path / "run.zarr", **kwargs)
    assert list(fit.summary().rows) == ["theta[Choate]", "theta[Zürich]", "theta[x]", "mu"]
    assert "theta[Zürich]" in fit.report() and fit.coords["school"].tolist() == ["Choate", "Zürich", "x"]
    # zarr-python says that texts have no specification yet, where it writes them.
    opened = xarray.open_datatree(tmp_path / "run.zarr", engine="zarr")
    again = ab.open(tmp_path / "run.zarr")
    for tree in (opened, fit.to_datatree(observed=["y"]), again.to_datatree()):
        theta = tree["posterior"]["theta"]
        assert theta.dims == ("chain", "draw", "school") and theta["school"].values.tolist() == ["Choate", "Zürich", "x"]
        assert (theta.sel(school="x").values == fit["theta"][..., 2]).all()
    assert opened["observed_data"]["y"].sel(school="Zürich").item() == 2.0
    assert again.dims == {"theta": ["school"]} and list(again.summary().rows) == list(fit.summary().rows)
    # Whatever xarray writes is read.
    made = opened.load()
    for name, labels in (("texts", ["Choate", "Zürich", "x"]), ("numbers", [7, 8, 9])):
        made["posterior"] = made["posterior"].to_dataset().assign_coords(school=labels)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made.drop_nodes("observed_data").to_zarr(tmp_path / f"{name}.zarr", zarr_format=3)
        shown = subprocess.run([sys.executable, "-m", "autobatch", "summary", str(tmp_path / f"{name}.zarr")], capture_output=True, text=True)
        assert f"theta[{labels[1]}]" in shown.stdout, shown.stderr
    for wrong, why in (
        ({"coords": {"school": ["a"]}}, "`theta` has 3 places along `school`, and coords have 1"),
        ({"coords": {"J": [1, 2, 3]}}, "coords are for the axis `J`, which there is not"),
        ({"coords": {"school": 3}}, "must be a list with one label for each place"),
        ({"dims": {"theta": ["a", "b"]}}, "dims give `theta` 2 names for 1 axis"),
        ({"dims": {"theta": 3}}, "must be a list"),
        ({"dims": {"theta": [None]}}, "must be a list of names"),
        ({"dims": {"theta": ["s"], "y": ["s"]}, "coords": {"s": np.array([2**63 + 1, 7, 7], dtype="u8")}}, "coords have `7` twice"),
    ):
        with pytest.raises(ab.InputError, match=why):
            ab.sample(text, data, **{**kwargs, **wrong})
