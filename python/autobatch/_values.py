"""What users give, as the native half takes it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, Union

import numpy as np
import numpy.typing as npt

from ._errors import InputError

Array: TypeAlias = npt.NDArray[Any]
#: A text of a program or a model, or the path of its file.
Source: TypeAlias = Union[str, "os.PathLike[str]"]

_ENDINGS = (".ab", ".stan")


def source(given: Source) -> tuple[str, str]:
    """The kind of a source and its path or text: "file", "stan" or "text"."""
    if isinstance(given, os.PathLike):
        return "file", os.fspath(given)
    if "\n" not in given and "{" not in given:
        if given.endswith(_ENDINGS):
            return "file", given
        raise InputError(f"{given!r} is neither a file that ends in .ab or .stan nor the text of a program")
    return ("stan" if is_stan(given) else "text"), given


def is_stan(text: str) -> bool:
    """Whether a text is a Stan program: it has blocks, where the language has functions and models."""
    from re import DOTALL, MULTILINE, match, sub

    bare = sub(r"/\*.*?\*/|//[^\n]*|^\s*#include[^\n]*", " ", text, flags=DOTALL | MULTILINE)
    return match(r"\s*(functions|data|transformed\s+data|parameters|transformed\s+parameters|model|generated\s+quantities)\s*\{", bare) is not None


def array(name: str, value: Any) -> Array:
    """A value as an array of numbers."""
    try:
        made = np.asarray(value)
    except ValueError as why:
        raise InputError(f"`{name}` is no array: {why}") from None
    if made.dtype.kind not in "biuf":
        raise InputError(f"`{name}` has elements of the type {made.dtype}: wanted are reals, ints or bools")
    return made


def _jsonable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _jsonable(v) for k, v in value.items()}
    if isinstance(value, tuple):
        # A tuple of Stan's.
        return {str(i + 1): _jsonable(v) for i, v in enumerate(value)}
    if isinstance(value, list):
        return [_jsonable(v) for v in value]
    if isinstance(value, complex):
        return [_jsonable(value.real), _jsonable(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Inf" if value > 0 else "-Inf"
    if isinstance(value, (bool, int, float, str)):
        return value
    if not hasattr(value, "__array__"):
        raise InputError(f"data are numbers, arrays and lists of them, not {type(value).__name__}")
    return _jsonable(np.asarray(value).tolist())


def values(named: Mapping[str, Any]) -> dict[str, Any]:
    """Values by name: arrays, and texts of JSON for what is none."""
    return {name: _datum(value) for name, value in named.items()}


def given(model: Source, data: Mapping[str, Any] | Source | None, include_path: Sequence[str | os.PathLike[str]]) -> dict[str, Any]:
    """A model and its data, which are by name, or in a file in Stan's JSON data format, or `.npz`."""
    kind, text = source(model)
    made: dict[str, Any] = dict(kind=kind, model=text, include=[os.fspath(path) for path in include_path])
    if data is None or isinstance(data, Mapping):
        return made | dict(data=values(data or {}), data_file=None)
    return made | dict(data={}, data_file=os.fspath(data))


def read(data: Mapping[str, Any] | Source, names: Sequence[str]) -> dict[str, Array]:
    """The arrays of some of the data."""
    if isinstance(data, Mapping):
        by_name = data
    elif Path(data).suffix == ".npz":
        with np.load(data) as file:
            by_name = dict(file)
    else:
        by_name = json.loads(Path(data).read_text(encoding="utf-8"))
    lacking = [name for name in names if name not in by_name]
    if lacking:
        raise InputError(f"there are no data `{lacking[0]}`")
    return {name: np.asarray(by_name[name]) for name in names}


def _datum(value: Any) -> Any:
    if isinstance(value, str):
        raise InputError(f"data are numbers, arrays and lists of them, not the text {value!r}")
    if isinstance(value, (tuple, Mapping)):
        return json.dumps(_jsonable(value))
    try:
        made = np.asarray(value)
    except ValueError:
        # Lists of different lengths.
        return json.dumps(_jsonable(value))
    if made.dtype.kind == "c":
        return np.stack([made.real, made.imag], axis=-1)
    if made.dtype.kind in "biuf":
        return made
    # Lists of tuples, and of NaN as JSON has it.
    return json.dumps(_jsonable(value if isinstance(value, list) else made.tolist()))


def options(
    *,
    seed: int,
    threads: int = 0,
    first_lane: int = 0,
    engine: str = "pc",
    codegen: str = "auto",
    real: str = "f64",
    device: str = "cpu",
    memory_limit: int | None = None,
    device_memory: int | None = None,
) -> dict[str, Any]:
    """Options of a run."""
    for name, value in (("seed", seed), ("threads", threads), ("first_lane", first_lane)):
        if not isinstance(value, (int, np.integer)) or not 0 <= value < 2**63:
            raise InputError(f"{name} is {value!r}, but must be an int from 0 on")
    limits: dict[str, Any] = dict(memory_limit=memory_limit, device_memory=device_memory)
    for name, value in limits.items():
        if value is not None and (not isinstance(value, (int, np.integer)) or value <= 0):
            raise InputError(f"{name} is {value!r}, but must be a number of bytes")
    ints: dict[str, Any] = dict(seed=int(seed), threads=int(threads), first_lane=int(first_lane))
    return ints | dict(engine=engine, codegen=codegen, real=real, device=device) | limits
