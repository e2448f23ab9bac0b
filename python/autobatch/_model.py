"""Models: their log densities and gradients."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _autobatch
from ._errors import AutobatchWarning, InputError, LaneError
from ._values import Source, given, options

Reals = npt.NDArray[np.float64]


class Model:
    """A model with its data: a Stan program or one of the language, a text or the path of a file.

    Its log density is over unconstrained parameters, with the Jacobian of the transforms of constrained ones and without the
    constants that Stan's `~` leaves out; `full=True` and `jacobian=False` say otherwise.

    >>> model = Model("parameters { real<lower=0> s; } model { s ~ exponential(2); }")
    >>> model.dim
    1
    >>> lp, gradient = model.grad([0.0])
    >>> float(lp), gradient
    (-2.0, array([-1.]))
    """

    def __init__(
        self,
        model: Source,
        data: Mapping[str, Any] | Source | None = None,
        *,
        include_path: Sequence[str | os.PathLike[str]] = (),
        full: bool = False,
        jacobian: bool = True,
        seed: int = 0,
        **how: Any,
    ) -> None:
        # Of a few points the scheduler of threads takes longer than the work.
        asked = options(seed=seed, **{"threads": 1, **how})
        self._native = _autobatch.Density(given(model, data, include_path), full, jacobian, asked)
        for warning in self._native.warnings():
            warnings.warn(warning, AutobatchWarning, stacklevel=2)

    @property
    def dim(self) -> int:
        """The number of unconstrained parameters."""
        return self._native.dimension

    @property
    def variables(self) -> list[str]:
        """The names of what draws have of a Stan program: parameters, transformed parameters, generated quantities."""
        return self._native.variables

    def grad(self, q: npt.ArrayLike, *, on_reject: str = "raise") -> tuple[Any, Reals]:
        """The log density and its gradient at a point, or at points, one a row.

        Where a density rejects a point, `on_reject="raise"` raises a `LaneError`, and `"mask"` gives NaN.
        """
        if on_reject not in ("raise", "mask"):
            raise InputError(f"on_reject={on_reject!r}: there is 'raise' and 'mask'")
        points = np.asarray(q, dtype=np.float64)
        if points.ndim not in (1, 2):
            raise InputError(f"points have one axis or two, not {points.ndim}")
        points = np.ascontiguousarray(points)
        lp, gradient, rejected = self._native.at(points if points.ndim == 2 else points[np.newaxis])
        if rejected and on_reject == "raise":
            place, why = rejected[0]
            where = f"point {place}" if points.ndim == 2 else "the point"
            more = f", and {len(rejected) - 1} more" if len(rejected) > 1 else ""
            raise LaneError(f"{where} is rejected: {why}{more}", rejected)
        return (lp, gradient) if points.ndim == 2 else (lp[0], gradient[0])

    def log_density(self, q: npt.ArrayLike, *, on_reject: str = "raise") -> Any:
        """The log density at a point, or at points, one a row."""
        return self.grad(q, on_reject=on_reject)[0]

    def __repr__(self) -> str:
        return f"<autobatch model of {self.dim} unconstrained parameters>"
