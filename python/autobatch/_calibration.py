"""Simulation-based calibration."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np

from . import _autobatch, _html
from ._errors import InputError
from ._values import Array, Source, given, options, values


@dataclass(frozen=True)
class Ranks:
    """The ranks of one number that the prior drew, among the draws of its posteriors."""

    #: The rank in each data set, from 0 to the number of draws.
    ranks: Array
    #: How often uniform ranks are as far from their distribution function, anywhere.
    p_value: float
    #: The mean rank over the largest, 1/2 where ranks are uniform.
    mean: float
    #: The variance of the ranks over that of uniform ones: more than 1 where the posterior is too narrow.
    spread: float
    #: The effective sample size of the draws over their number.
    independent: float
    #: Places, the part of the ranks below each, and the ends of the band that uniform ranks leave once in 20 times.
    place: Array
    ecdf: Array
    lower: Array
    upper: Array


@dataclass(frozen=True)
class Calibration(Mapping[str, Ranks]):
    """Whether what the prior drew has uniform ranks: by the names of quantities, `mu` or `theta[1]`."""

    quantities: dict[str, Ranks]
    #: Draws of each posterior that were ranked.
    draws: int
    #: Data sets, and those that are left out since a chain of theirs failed.
    simulations: int
    failed: int
    #: Of all quantities together (Bonferroni).
    p_value: float
    text: str
    _page: str = field(repr=False)

    def __getitem__(self, name: str) -> Ranks:
        return self.quantities[name]

    def __iter__(self) -> Any:
        return iter(self.quantities)

    def __len__(self) -> int:
        return len(self.quantities)

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return _html.preformatted(self.text)

    def report(self, path: str | os.PathLike[str] | None = None) -> str:
        """The distribution functions of the ranks and their bands on one page. Gives the HTML, and writes it to `path`."""
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(self._page)
        return self._page


def sbc(
    model: Source,
    data: Mapping[str, Any] | Source | None = None,
    *,
    simulations: int = 1000,
    simulator: Union[Source, Callable[[int], Mapping[str, Any]], Mapping[str, Any], None] = None,
    chains: int = 1,
    warmup: int = 500,
    draws: int = 1000,
    thin: int = 10,
    seed: int | None = None,
    target_accept: float | None = None,
    max_treedepth: int | None = None,
    settings: Mapping[str, float | int | bool] | None = None,
    sampler: str | os.PathLike[str] | None = None,
    include_path: Sequence[str | os.PathLike[str]] = (),
    **how: Any,
) -> Calibration:
    """Checks a model and a sampler by simulation (Talts and others 2018): parameters are drawn from the prior, data by them, and
    the posterior of each of these `simulations` data sets is sampled, all in one batch. The ranks of the parameters among the
    draws are uniform, if model, simulator and sampler go together.

    `simulator` draws both: the function `simulate` of the model where nothing is said, or of another program; a Stan program,
    whose generated quantities are taken; a function of Python that is called with the number of data sets; or what was drawn, by
    name. Names that the model has as data are data, those that draws have are ranked; all have an axis over the data sets before
    their own. `data` are those that all data sets have. One of `thin` draws is ranked: ranks want draws that are near to
    independent.
    """
    sizes = (("simulations", simulations, 1), ("chains", chains, 1), ("warmup", warmup, 0), ("draws", draws, 1), ("thin", thin, 1))
    for name, value, least in sizes:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise InputError(f"{name} is {value!r}, but must be an int from {least} on")
    asked: dict[str, Any] = dict(settings or {}, thin=int(thin))
    for name, told in (("target_accept", target_accept), ("max_treedepth", max_treedepth)):
        if told is not None:
            asked[name] = told
    job: dict[str, Any] = dict(
        sampler=None if sampler is None else os.fspath(sampler),
        chains=int(chains),
        warmup=int(warmup),
        draws=int(draws),
        stepsize=None,
        metric="diag",
        keep=None,
        store=None,
        lanes=None,
        dims=[],
        coords=[],
    )
    seed = secrets.randbelow(2**31) if seed is None else seed
    run = _autobatch.Run(given(model, data, include_path), job, [], None, None, None, asked, options(seed=seed, **how))
    program, drawn = None, None
    if isinstance(simulator, Mapping):
        drawn = values(simulator)
    elif callable(simulator):
        made = simulator(int(simulations))
        if not isinstance(made, Mapping):
            raise InputError(f"the simulator gave a {type(made).__name__}, but must give arrays by their names")
        drawn = values(made)
    elif simulator is not None:
        program = given(simulator, data, include_path)
    out = run.calibrate(int(simulations), program, drawn)
    quantities = {}
    for name, (p_value, mean, spread, independent), ranks, function in out["quantities"]:
        place, ecdf, lower, upper = np.asarray(function, dtype=np.float64).reshape(-1, 4).T
        quantities[name] = Ranks(np.asarray(ranks), p_value, mean, spread, independent, place, ecdf, lower, upper)
    return Calibration(quantities, out["draws"], out["simulations"], out["failed"], out["p_value"], out["text"], out["page"])
