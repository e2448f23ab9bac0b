"""Sampling from a posterior."""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _autobatch, _html
from ._errors import AutobatchError, AutobatchWarning, InputError
from ._progress import Group, Progress, shown
from ._values import Array, Source, given, options, read, source, values

if TYPE_CHECKING:
    import xarray

_COLUMNS = ("mean", "sd", "mcse", "5%", "50%", "95%", "ess_bulk", "ess_tail", "r_hat")
#: Chains that are stored together.
_BLOCK = 64
#: How often a run is looked at.
_LOOKS = 0.1


@dataclass(frozen=True)
class Summary:
    """The table of a run: a row for each number, with mean, standard deviation, Monte Carlo error, quantiles, effective
    sample sizes and R-hat."""

    rows: dict[str, dict[str, float]]
    text: str

    def __getitem__(self, name: str) -> dict[str, float]:
        return self.rows[name]

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def cells(name: str, row: dict[str, float]) -> list[str]:
            return [name, *(f"{row[c]:.0f}" if c.startswith("ess") else f"{row[c]:.4g}" for c in _COLUMNS)]

        return _html.table(["", *_COLUMNS], [cells(name, row) for name, row in self.rows.items()])

    def to_pandas(self) -> Any:
        """The table as a data frame."""
        import pandas  # type: ignore[import-untyped,unused-ignore]

        return pandas.DataFrame.from_dict(self.rows, orient="index", columns=list(_COLUMNS))


class Fit(Mapping[str, Array]):
    """The draws of a run, by the names of variables: chain × draw × shape."""

    #: What the draws are worth: the table of the summary and the like. Of draws of a run that goes on it is found when it is wanted.
    _worth: dict[str, Any] | None

    def __init__(
        self,
        made: dict[str, Any],
        data: Mapping[str, Any] | Source | None,
        settings: dict[str, Any],
        coords: Mapping[str, Any] = {},
    ) -> None:
        self.posterior: dict[str, Array] = made["posterior"]
        #: What the sampler tells of each draw: `lp`, `accept_stat`, `stepsize`, `treedepth`, `n_leapfrog`, `divergent`, `energy`.
        self.sample_stats: dict[str, Array] = made["sample_stats"]
        #: The states of warmup, where `save_warmup` asked for them.
        self.warmup_posterior: dict[str, Array] = made.get("warmup_posterior", {})
        self.warmup_sample_stats: dict[str, Array] = made.get("warmup_sample_stats", {})
        #: The numbers of the chains that the arrays hold: all but those that failed.
        self.chains: list[int] = [settings["first_chain"] + c for c in made["chains"]]
        #: The step sizes and inverse metrics at the end of warmup.
        self.stepsize: list[float] = made["stepsize"]
        self.inv_metric: list[Array] = made["inv_metric"]
        #: Chains that failed, and why.
        self.failed: list[tuple[int, str]] = made["failed"]
        #: Data sets, and chains of each, where there are many data sets.
        self.data_sets: tuple[int, int] | None = made.get("data_sets")
        #: Whether all draws of all chains are there.
        self.complete: bool = made["complete"]
        self.gradients: int = made["gradients"]
        self.seconds: float = made["seconds"]
        self.settings = settings
        self._find: _autobatch.Worth | None = made.get("worth")
        self._worth = None if self._find else {key: made[key] for key in ("rows", "table", "warnings", "diagnosis")}
        self._data = data
        #: What the axes of variables are called: by `dims` of `sample`, or by the text of the model, `J` of `vector[J] theta`.
        self.dims: dict[str, list[str]] = {
            name: [axis or f"{name}_dim_{i}" for i, axis in enumerate(axes)] for name, axes in made["axes"].items()
        }
        #: What stands along axes: `coords` of `sample`.
        self.coords: dict[str, Any] = {**made["coords"], **coords}

    def _told(self) -> dict[str, Any]:
        if self._worth is None:
            assert self._find is not None
            self._worth, self._find = self._find.told(), None
        return self._worth

    @property
    def warnings(self) -> list[str]:
        """What to worry about."""
        warnings: list[str] = self._told()["warnings"]
        return warnings

    def __getitem__(self, name: str) -> Array:
        try:
            return self.posterior[name]
        except KeyError:
            raise KeyError(f"there is no variable `{name}`: there is {', '.join(self.posterior)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.posterior)

    def __len__(self) -> int:
        return len(self.posterior)

    def of_data_set(self, number: int) -> dict[str, Array]:
        """The draws of a data set, chain × draw × shape: of the chains that did not fail."""
        if self.data_sets is None:
            raise InputError("there is one data set")
        count, each = self.data_sets
        if not 0 <= number < count:
            raise InputError(f"there is no data set {number!r}: there are {count}, counted from 0")
        first = self.settings["first_chain"]
        mine = [at for at, chain in enumerate(self.chains) if (chain - first) // each == number]
        return {name: value[mine] for name, value in self.posterior.items()}

    def summary(self) -> Summary:
        """The table of the run."""
        told = self._told()
        return Summary({name: dict(zip(_COLUMNS, row)) for name, *row in told["rows"]}, told["table"])

    def diagnose(self) -> str:
        """Which parameters go with divergent transitions, with the energy and with deep trees."""
        return str(self._told()["diagnosis"])

    def report(self, path: str | os.PathLike[str] | None = None, *, title: str | None = None) -> str:
        """The run on one page: what was found and what to do, tables and pictures. Gives the HTML, and writes it to `path`.

        The page is below 1.5 MB for any number of chains, loads nothing and has no script.
        """
        used = self.settings
        facts = [("Chains", str(len(self.chains))), ("Warmup, then draws", f"{used['warmup']}, then {used['draws']}"), ("Seed", str(used["seed"]))]
        facts += [(name, str(value)) for name, value in used.items() if name not in ("chains", "warmup", "draws", "seed", "first_chain", "title")]
        facts += [("Time", f"{self.seconds:.2f} s, {self.gradients} gradients"), ("Written by", f"autobatch {_autobatch.__version__}")]
        config = [("num_warmup", used["warmup"]), ("thin", used.get("thin", 1)), ("max_depth", used.get("max_treedepth", 10))]
        config += [("engaged", 0), ("stepsize", used["stepsize"])] if "stepsize" in used else [("delta", used.get("target_accept", 0.8))]
        config += [("written_by", "autobatch")]
        told = {
            "title": title or used["title"],
            "facts": facts,
            "config": [(name, str(value)) for name, value in config],
            "stepsizes": list(self.stepsize),
            "numbers": self.chains,
            "draws": next(iter(self.posterior.values())).shape[1] if self.posterior else 0,
            "complete": self.complete,
            "seconds": self.seconds,
            "dims": list(self.dims.items()),
            "coords": _along(self.coords),
        }
        html = _autobatch.page(told, self.posterior, self.sample_stats)
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(html)
        return html

    def __repr__(self) -> str:
        chains, draws = next(iter(self.posterior.values())).shape[:2] if self.posterior else (0, 0)
        state = "" if self.complete else ", not complete"
        return f"<autobatch fit: {chains} chains of {draws} draws of {', '.join(self.posterior)}{state}>"

    def _repr_html_(self) -> str:
        return _html.preformatted(repr(self)) + self.summary()._repr_html_() + _html.items(self.warnings)

    def to_datatree(
        self,
        *,
        dims: Mapping[str, Sequence[str]] | None = None,
        coords: Mapping[str, Any] | None = None,
        observed: Sequence[str] = (),
    ) -> xarray.DataTree:
        """The run as ArviZ has it, an `xarray.DataTree`: `posterior`, `sample_stats`, and `warmup_…` where there are such.

        `dims` names the axes of variables (`{"theta": ["school"]}`) where they are not to be called as `fit.dims` has it,
        `coords` says what stands along axes besides `fit.coords`, and `observed` are the data that go along as `observed_data`.
        """
        try:
            import xarray
        except ImportError:
            raise ImportError("a DataTree is one of xarray: pip install 'autobatch[arviz]'") from None
        names = {"n_leapfrog": "n_steps", "accept_stat": "acceptance_rate", "stepsize": "step_size", "treedepth": "tree_depth", "divergent": "diverging"}
        deepest = self.settings.get("max_treedepth", 10)
        called = {**self.dims, **(dims or {})}
        labels = {**self.coords, **(coords or {})}

        def group(arrays: Mapping[str, Array], leading: Sequence[str]) -> xarray.Dataset:
            variables = {}
            for name, value in arrays.items():
                # The size that gives an axis its name may be a variable of the group.
                own = [f"{name}_dim_{i}" if axis in arrays else axis for i, axis in enumerate(called.get(name, ()))]
                own += [f"{name}_dim_{i}" for i in range(len(own), value.ndim - len(leading))]
                variables[name] = (tuple([*leading, *own]), value)
            along = {k: v for k, v in labels.items() if any(k in axes for axes, _ in variables.values())}
            made = xarray.Dataset(variables, coords=along)
            if "chain" in leading:
                made = made.assign_coords(chain=self.chains, draw=np.arange(made.sizes.get("draw", 0)))
                if self.data_sets is not None:
                    first = self.settings["first_chain"]
                    made = made.assign_coords(data_set=("chain", [(c - first) // self.data_sets[1] for c in self.chains]))
            return made

        def stats(arrays: Mapping[str, Array]) -> xarray.Dataset:
            renamed = {names.get(name, name): value for name, value in arrays.items() if name != "q"}
            if "tree_depth" in renamed:
                renamed["reached_max_treedepth"] = renamed["tree_depth"] >= deepest
            return group(renamed, ("chain", "draw"))

        groups = {"posterior": group(self.posterior, ("chain", "draw")), "sample_stats": stats(self.sample_stats)}
        if self.warmup_posterior:
            groups["warmup_posterior"] = group(self.warmup_posterior, ("chain", "draw"))
            groups["warmup_sample_stats"] = stats(self.warmup_sample_stats)
        if observed:
            groups["observed_data"] = group(read(self._data if self._data is not None else {}, observed), ())
        tree = xarray.DataTree.from_dict({f"/{name}": made for name, made in groups.items()})
        tree.attrs |= {
            "inference_library": "autobatch",
            "inference_library_version": _autobatch.__version__,
            "seed": self.settings["seed"],
            "sampling_time": self.seconds,
            "status": "complete" if self.complete else "interrupted",
        }
        return tree


class Handle:
    """A run that goes on while the caller does something else."""

    def __init__(self, run: _autobatch.Run, fit: Callable[[dict[str, Any]], Fit], sizes: tuple[int, int, int, int]) -> None:
        self._run, self._of, self._sizes = run, fit, sizes
        self._made: dict[str, Any] | None = None
        self._raised: BaseException | None = None
        self._fit: Fit | None = None
        self._began = False
        self._started = time.monotonic()
        self._ended: float | None = None
        self._thread = threading.Thread(target=self._work, name="autobatch", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            self._made = self._run.run()
        except BaseException as why:
            self._raised = why
        finally:
            self._ended = time.monotonic()

    @property
    def progress(self) -> Progress:
        """How far the run is."""
        chains, warmup, draws, thin = self._sizes
        kept = -(-draws // thin)
        told = self._run.progress()
        made, all_draws, iterations, warm, finished, _ = told[0] if told else (0, chains * kept, 0, 0, 0, (0, 0))
        _, rate, left, rows = told[1] if told else (0, None, None, [])
        # Of so many iterations after warmup one is kept.
        iterations += made * (thin - 1)
        seconds = (self._ended or time.monotonic()) - self._started
        groups = tuple(Group(*row) for row in rows)
        all_iterations = chains * (warmup + draws)
        return Progress(made, all_draws, iterations, all_iterations, chains, warm, finished, thin, seconds, rate, left, groups)

    def pause(self) -> None:
        """Lets the chains wait, each as soon as its next draw is made."""
        self._run.pause(True)

    def resume(self) -> None:
        """Lets the chains go on."""
        self._run.pause(False)

    def abort(self) -> None:
        """Ends the run in order: `wait` then gives the draws that all chains have."""
        self._run.abort()

    def draws(self) -> Fit:
        """The draws that all chains have at this moment but those that failed, as a `Fit` that is not complete; one without
        variables before the chains start, and when the run is over, all as `wait` gives them.

        They are the first of those of the end, bit for bit. The run goes on meanwhile. Of a store they are those that are on
        disk, which are some iterations behind.
        """
        self._began = self._began or self._run.progress() is not None
        made = None if self.done else self._run.draws()
        while made is None and self._began and not self.done:
            # From one wave of chains to the next, and at the end, nobody answers for a moment.
            self._thread.join(_LOOKS)
            made = None if self.done else self._run.draws()
        if made is not None:
            self._began = True
            return self._of(made)
        return self.wait() if self.done else self._of(dict(_NOTHING))

    @property
    def done(self) -> bool:
        """Whether the run is over."""
        return not self._thread.is_alive()

    def wait(self, timeout: float | None = None) -> Fit:
        """The draws, as soon as they are there.

        Raises `TimeoutError` when that takes longer than `timeout` seconds; the run goes on.
        """
        self._thread.join(timeout)
        if not self.done:
            raise TimeoutError("the run goes on")
        if self._raised is not None:
            raise self._raised
        if self._fit is None:
            assert self._made is not None
            self._fit = fit = self._of(self._made)
            level = 2 if timeout is not None else 3
            for warning in [*self._made.get("model_warnings", []), *_unknown(self._made, fit), *fit.warnings]:
                warnings.warn(warning, AutobatchWarning, stacklevel=level)
        return self._fit


def _unknown(made: dict[str, Any], fit: Fit) -> list[str]:
    there = ", ".join(fit.posterior)
    return [f"keep: there is no variable `{name}`: there is {there}" for name in made.get("unknown", [])]


#: A run of which nothing is known yet.
_NOTHING: dict[str, Any] = dict(
    posterior={}, sample_stats={}, chains=[], stepsize=[], inv_metric=[], failed=[], complete=False, gradients=0, seconds=0.0,
    rows=[], table="", warnings=[], diagnosis="", axes={}, coords={},
)


def _list(name: str, value: Any) -> list[Any]:
    try:
        return list(value)
    except TypeError:
        raise InputError(f"{name} is {value!r}, but must be a list") from None


def _axes(variable: str, names: Any) -> list[str]:
    all_names = [names] if isinstance(names, str) else _list(f"dims[{variable!r}]", names)
    if not all(isinstance(name, str) for name in all_names):
        raise InputError(f"dims[{variable!r}] is {names!r}, but must be a list of names, one for each axis")
    return all_names


def _along(coords: Mapping[str, Any]) -> list[tuple[str, list[int] | list[str]]]:
    """What stands along axes as numbers or texts: of what is neither the text."""
    along: list[tuple[str, list[int] | list[str]]] = []
    for axis, labels in coords.items():
        named = np.asarray(labels)
        if named.ndim != 1:
            raise InputError(f"coords[{axis!r}] is {labels!r}, but must be a list with one label for each place")
        whole = named.dtype.kind in "iu" and all(-(2**63) <= int(label) < 2**63 for label in named)
        along.append((str(axis), [int(label) for label in named] if whole else [str(label) for label in named]))
    return along


def sample(
    model: Source,
    data: Mapping[str, Any] | Source | None = None,
    *,
    chains: int = 4,
    warmup: int = 1000,
    draws: int = 1000,
    seed: int | None = None,
    init: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    starts: Any = None,
    metric: str = "diag",
    inv_metric: Any = None,
    stepsize: float | None = None,
    target_accept: float | None = None,
    max_treedepth: int | None = None,
    thin: int = 1,
    save_warmup: bool = False,
    pooled_warmup: bool = False,
    keep: Sequence[str] | None = None,
    lane_data: Mapping[str, Any] | None = None,
    store: str | os.PathLike[str] | None = None,
    lanes: range | tuple[int, int] | None = None,
    executor: Executor | None = None,
    lanes_per_task: int = 256,
    settings: Mapping[str, float | int | bool] | None = None,
    sampler: str | os.PathLike[str] | None = None,
    first_chain: int = 0,
    include_path: Sequence[str | os.PathLike[str]] = (),
    dims: Mapping[str, Sequence[str]] | None = None,
    coords: Mapping[str, Any] | None = None,
    progress: bool | None = None,
    callback: Callable[[Handle], None] | None = None,
    blocking: bool = True,
    **how: Any,
) -> Any:
    """Samples from a posterior with NUTS, as `autobatch sample` does: the same seed gives the same bits.

    `model` is a Stan program or a model of the language, a text or the path of a file; `data` are by name, or a file in Stan's
    JSON data format. `init` has values of parameters for all chains, or a list with those of each; what is left out is drawn.
    `starts` has unconstrained points in its place. `stepsize` is one that stays: warmup adapts nothing then. `settings` are those
    of the sampler, `autobatch sample --list-settings` lists them. Chain i has the random stream of `first_chain + i`, so that
    runs of parts of the chains give together what one run gives, but with `pooled_warmup`. `keep` names the variables that are kept. With `pooled_warmup`
    warmup learns from the draws of all chains: each waits for the others at the end of a window.

    `lane_data` are data of which each data set has its own, with an axis over the data sets before their own; `chains` is then
    the number of each, and `fit.of_data_set(k)` has the draws of one: many posteriors in one batch, a sweep over priors among
    them, where these are data.

    `store` is a folder to which the draws go while they are made, as Zarr with the names of ArviZ: `xarray.open_datatree(store,
    engine="zarr")` reads it at any time, and `resume(store)` goes on with a run that was killed, to the same draws. With `lanes`
    these of its chains are run and nothing is given, where several processes fill a store: `resume` gives all. `executor` is what
    runs the chains of a store elsewhere, `lanes_per_task` in each task: a pool, or the executor of Dask
    (`client.get_executor(retries=…)`), MPI, Parsl; the store must be on a file system that all of them have. More keywords are
    `threads`, `engine`, `codegen`, `real` ("f32"), `device` ("cuda"), `memory_limit`, `device_memory`.

    `dims` names axes of variables and of data, `{"theta": ["school"]}`, and `coords` says what stands along them, `{"school":
    ["Choate", …]}`: so they are in `fit.to_datatree()` and in a store, and tables have a row `theta[Choate]`. Without `dims` axes
    are called by the text of the model, where that has a name for them: `J` of `vector[J] theta`.

    `callback(handle)` is called some times a second while the run goes on; `blocking=False` gives the handle at once.
    `handle.draws()` gives the draws that there are. Ctrl-C ends a run, whose draws are lost; `handle.abort()` keeps them.
    """
    for name, value, least in (("chains", chains, 1), ("warmup", warmup, 0), ("draws", draws, 0), ("thin", thin, 1)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise InputError(f"{name} is {value!r}, but must be an int from {least} on")
    of_model = given(model, data, include_path)
    asked: dict[str, Any] = dict(settings or {})
    for name, told in (("target_accept", target_accept), ("max_treedepth", max_treedepth)):
        if told is not None:
            asked[name] = told
    if thin != 1:
        asked["thin"] = int(thin)
    if save_warmup:
        asked["save_warmup"] = True
    if pooled_warmup:
        asked["pooled_warmup"] = True
    seed = secrets.randbelow(2**31) if seed is None else seed
    job = dict(
        sampler=None if sampler is None else os.fspath(sampler),
        chains=int(chains),
        warmup=int(warmup),
        draws=int(draws),
        stepsize=None if stepsize is None else float(stepsize),
        metric=metric,
        keep=None if keep is None else [str(name) for name in keep],
        store=None if store is None else os.fspath(store),
        lanes=_ends(lanes),
        dims=[(str(name), _axes(name, axes)) for name, axes in (dims or {}).items()],
        coords=_along(coords or {}),
    )
    if lanes is not None and store is None:
        raise InputError("lanes are those of a store, in which several processes write: there is none")
    if init is not None and starts is not None:
        raise InputError("init and starts both say where chains start")
    several = [init] if isinstance(init, Mapping) else init
    if several is not None and (isinstance(several, str) or not all(isinstance(one, Mapping) for one in _list("init", several))):
        raise InputError("init has values of parameters by their names, or is a list with those of each chain")
    at, scale = (None if x is None else np.asarray(x, dtype=np.float64) for x in (starts, inv_metric))
    asked_of_run = options(seed=seed, first_lane=first_chain, **how)
    own = None if lane_data is None else values(lane_data)
    run = _autobatch.Run(of_model, job, [values(one) for one in several or []], at, scale, own, asked, asked_of_run)
    kind, where = source(model)
    title = os.path.splitext(os.path.basename(where))[0] if kind == "file" else "model"
    used = dict(asked, seed=seed, first_chain=first_chain, chains=chains, warmup=warmup, draws=draws, title=title)
    if stepsize is not None:
        used["stepsize"] = float(stepsize)

    if executor is not None:
        if store is None or lanes is not None:
            raise InputError("executor: the chains of a store are run by others, all of them: name a store, and no lanes")
        return _elsewhere(run, os.fspath(store), executor, lanes_per_task, progress, how)
    if lanes is not None:
        run.fill()
        return None
    sets = 1 if lane_data is None else max((len(value) for value in lane_data.values() if np.ndim(value)), default=1)
    sizes = (int(chains) * sets, int(warmup), int(draws), int(thin))
    return _run(run, lambda made: Fit(made, data, used, coords or {}), sizes, progress, callback, blocking)


def _fill(store: str, lanes: tuple[int, int], how: Mapping[str, Any]) -> bool:
    """A task of `sample` with an executor: it needs the path of the store alone, and does no harm twice. Gives whether chains wait
    for what those of other tasks learn."""
    return _autobatch.Run.resume(store, 0, lanes, options(seed=0, **how)).fill()


def _elsewhere(
    run: _autobatch.Run,
    store: str,
    executor: Executor,
    each: int,
    progress: bool | None,
    how: Mapping[str, Any],
) -> Fit:
    if isinstance(each, bool) or not isinstance(each, (int, np.integer)) or each < 1 or each % _BLOCK:
        raise InputError(f"lanes_per_task is {each!r}, but must be a multiple of {_BLOCK}: so many chains are stored together")
    run.make_store()
    store = os.path.abspath(store)
    # Those of all data sets.
    chains: int = _plan(store)["chains"]
    allowed = {name: value for name, value in how.items() if name != "real"}
    parts = [(first, min(first + int(each), chains)) for first in range(0, chains, int(each))]
    waits = True
    while waits:
        # A pooled warmup takes a wave of tasks for each of its windows.
        tasks = [executor.submit(_fill, store, part, allowed) for part in parts]
        try:
            waits = any([task.result() for task in as_completed(tasks)])
        except BaseException:
            for task in tasks:
                task.cancel()
            raise
    # Nothing is left to do but to end the store, and to read it.
    fit: Fit = resume(store, progress=progress, **allowed)
    return fit


def _run(
    run: _autobatch.Run,
    fit: Callable[[dict[str, Any]], Fit],
    sizes: tuple[int, int, int, int],
    progress: bool | None,
    callback: Callable[[Handle], None] | None,
    blocking: bool,
) -> Any:
    # Before the run, so that nothing is left behind where this fails.
    bar = shown(progress if blocking else False)
    handle = Handle(run, fit, sizes)
    if not blocking:
        return handle
    try:
        while not handle.done:
            handle._thread.join(_LOOKS)
            if not handle.done:
                bar.update(handle.progress)
                if callback is not None:
                    callback(handle)
    except BaseException:
        # Ctrl-C, or what a callback raises: nothing goes on behind the caller's back.
        handle.abort()
        handle._run.pause(False)
        handle._thread.join()
        raise
    finally:
        bar.close(handle.progress)
    return handle.wait()


def _ends(lanes: range | tuple[int, int] | None) -> tuple[int, int] | None:
    if lanes is None:
        return None
    first, end = (lanes.start, lanes.stop) if isinstance(lanes, range) else lanes
    if isinstance(lanes, range) and lanes.step != 1 or not 0 <= first < end:
        raise InputError(f"lanes is {lanes!r}, but must be a range of chains, such as range(0, 64)")
    return int(first), int(end)


def _plan(store: str | os.PathLike[str]) -> dict[str, Any]:
    """What is run, where a plan can be read; what is wrong with it is told by whoever runs it."""
    try:
        if os.path.isfile(store):
            with zipfile.ZipFile(store) as archive:
                names = [name for name in archive.namelist() if name.endswith("_autobatch/plan.json")]
                plan: dict[str, Any] = json.loads(archive.read(names[0])) if names else {}
        else:
            with open(os.path.join(os.fspath(store), "_autobatch", "plan.json"), encoding="utf-8") as file:
                plan = json.load(file)
    except (OSError, ValueError, zipfile.BadZipFile):
        return {}
    return plan


def _of_store(store: str | os.PathLike[str]) -> dict[str, Any]:
    plan = _plan(store)
    used = dict(plan.get("settings", {}), seed=plan.get("seed", 0), first_chain=plan.get("first_lane", 0))
    used["title"] = os.path.splitext(os.path.basename(plan.get("model_name", "model")))[0]
    if plan.get("stepsize") is not None:
        used["stepsize"] = plan["stepsize"]
    return dict(used, **{name: plan.get(name, 0) for name in ("chains", "warmup", "draws")})


def resume(
    store: str | os.PathLike[str],
    *,
    more_draws: int = 0,
    lanes: range | tuple[int, int] | None = None,
    progress: bool | None = None,
    callback: Callable[[Handle], None] | None = None,
    blocking: bool = True,
    **how: Any,
) -> Any:
    """Goes on with a run whose draws are in a store, where it was stopped or killed: every draw is the one that an
    uninterrupted run gives. With `more_draws`, for so many iterations more of each chain. Gives all draws of the store.

    Of more keywords there are those that change no draw: `threads`, `engine`, `codegen`, `device`, `memory_limit`, `device_memory`.
    """
    if isinstance(more_draws, bool) or not isinstance(more_draws, (int, np.integer)) or more_draws < 0:
        raise InputError(f"more_draws is {more_draws!r}, but must be an int from 0 on")
    if more_draws and lanes is not None:
        raise InputError("more_draws: they are those of all chains: ask for them without lanes, and then run these")
    for name in ("seed", "real", "first_lane"):
        if name in how:
            raise InputError(f"{name}: a run goes on as it began, with what its store says")
    run = _autobatch.Run.resume(os.fspath(store), int(more_draws), _ends(lanes), options(seed=0, **how))
    used = _of_store(store)
    sizes = (used["chains"], used["warmup"], used["draws"] + int(more_draws), int(used.get("thin", 1)))
    return _run(run, lambda made: Fit(made, None, _of_store(store)), sizes, progress, callback, blocking)


def open_store(store: str | os.PathLike[str]) -> Fit:
    """The draws of a store, also of one in a ZIP archive, as far as all of its chains have them; the run may go on meanwhile."""
    return Fit(_autobatch.open_store(os.fspath(store)), None, _of_store(store))


__all__ = ["AutobatchError", "Fit", "Handle", "Progress", "Summary", "open_store", "resume", "sample"]
