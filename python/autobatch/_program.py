"""Programs, and their functions: a call is a batch."""

from __future__ import annotations

import inspect
import keyword
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _autobatch
from ._errors import AutobatchWarning, InputError, LaneError
from ._values import Array, Source, array, options, source


@dataclass(frozen=True)
class Port:
    """What a function takes."""

    name: str
    #: "real", "int" or "bool".
    dtype: str
    #: Its axes, without that of the lanes.
    rank: int
    #: Its type in the words of the language: `real[n, 3]`.
    type: str
    #: Whether the program says that all lanes have the same value.
    shared: bool


@dataclass(frozen=True)
class Result:
    """What a run gave."""

    #: By name, lanes along the first axis: `result`, or the fields of a struct.
    outputs: dict[str, Array]
    #: Of each lane that trapped its place in the batch and why; its outputs are zero and mean nothing.
    traps: list[tuple[int, str]]

    def __getitem__(self, name: str) -> Array:
        return self.outputs[name]

    @property
    def value(self) -> Any:
        """The output, where there is one, else all by name."""
        return self.outputs["result"] if list(self.outputs) == ["result"] else self.outputs


class Function:
    """A function of a program. A call is a batch: arrays with one axis more than the program says have lanes along their
    first axis, and others are the same for all lanes.

    >>> fib = compile("pub fn fib(n: int) -> int { if n < 3 { 1 } else { fib(n - 1) + fib(n - 2) } }")["fib"]
    >>> fib(n=[5, 6, 8])
    array([ 5,  8, 21])
    >>> int(fib(7))
    13
    """

    def __init__(self, native: _autobatch.Function, name: str, program: Program | None = None) -> None:
        self._native = native
        self.program = program
        self.__name__ = self.__qualname__ = name
        self.ports = [Port(*port) for port in native.ports()]
        self._ports = {port.name: port for port in self.ports}
        self.__doc__ = native.doc() or None
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        names = [port.name for port in self.ports]
        if all(name.isidentifier() and not keyword.iskeyword(name) for name in names):
            self.__signature__ = inspect.Signature([inspect.Parameter(n, kind, annotation=p.type) for n, p in zip(names, self.ports)])

    def __repr__(self) -> str:
        given = ", ".join(f"{'shared ' if p.shared else ''}{p.name}: {p.type}" for p in self.ports)
        return f"<autobatch function {self.__name__}({given})>"

    def _named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        names = [port.name for port in self.ports]
        if len(args) > len(names):
            raise InputError(f"`{self.__name__}` takes {len(names)} inputs, not {len(args)}")
        given = dict(zip(names, args))
        for name, value in kwargs.items():
            if name in given:
                raise InputError(f"`{name}` of `{self.__name__}` is given twice")
            given[name] = value
        return given

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs it for all lanes; of inputs without lanes for one, whose outputs then have no axis of lanes either.

        `seed`, `threads` and `on_trap` are those of `run`, unless the function has inputs of these names.
        """
        options = [name for name in ("seed", "threads", "on_trap") if name in kwargs and name not in self._ports]
        how: dict[str, Any] = {name: kwargs.pop(name) for name in options}
        return self._call(self._named(args, kwargs), how)

    def _call(self, given: Mapping[str, Any], how: Mapping[str, Any]) -> Any:
        lanes: dict[str, Array] = {}
        shared: dict[str, Array] = {}
        ports = self._ports
        for name, value in given.items():
            made = array(name, value)
            port = ports.get(name)
            varies = port is not None and not port.shared and made.ndim == port.rank + 1
            (lanes if varies else shared)[name] = made
        if lanes:
            return self.run(lanes, shared, **how).value
        single = {n: v[np.newaxis] for n, v in shared.items() if n in ports and not ports[n].shared}
        rest = {n: v for n, v in shared.items() if n not in single}
        done = self.run(single, rest, count=None if single else 1, **how)
        return Result({name: value[0] for name, value in done.outputs.items()}, done.traps).value

    def one(self, *args: Any, **kwargs: Any) -> Any:
        """Runs it for one lane: no input has an axis of lanes, nor have the outputs."""
        given = self._named(args, kwargs)
        ports = self._ports
        for name, value in given.items():
            if name in ports and np.ndim(value) != ports[name].rank:
                raise InputError(f"`{name}` has {np.ndim(value)} axes, where one lane has {ports[name].type}")
        return self._call(given, {})

    def run(
        self,
        lanes: Mapping[str, Any] | None = None,
        shared: Mapping[str, Any] | None = None,
        *,
        count: int | None = None,
        on_trap: str = "raise",
        seed: int = 0,
        **how: Any,
    ) -> Result:
        """Runs it for `lanes`, arrays with the lanes along the first axis, and what all of them share.

        `count` is how many lanes there are where no array tells. Of lanes that trap `on_trap="mask"` gives zeros, where
        `"raise"` raises a `LaneError`. More keywords are options: `threads`, `first_lane` (lane i has the random stream of
        `first_lane + i`), `engine`, `codegen`, `real`, `device`, `memory_limit`, `device_memory`.
        """
        if on_trap not in ("raise", "mask"):
            raise InputError(f"on_trap={on_trap!r}: there is 'raise' and 'mask'")
        of_lanes = {name: array(name, value) for name, value in (lanes or {}).items()}
        of_all = {name: array(name, value) for name, value in (shared or {}).items()}
        outputs, trapped = self._native.run(of_lanes, of_all, count, options(seed=seed, **how))
        traps = [(position, why) for position, _, why in trapped]
        if traps and on_trap == "raise":
            position, lane, why = trapped[0]
            more = f", and {len(traps) - 1} more" if len(traps) > 1 else ""
            raise LaneError(f"lane {lane} of `{self.__name__}` trapped: {why}{more}", traps)
        return Result(outputs, traps)


class Program(Mapping[str, Function]):
    """A program: its public functions by their names."""

    def __init__(self, native: _autobatch.Program) -> None:
        self._native = native
        self._names = native.functions()
        self._functions: dict[str, Function] = {}

    def __getitem__(self, name: str) -> Function:
        known = self._functions.get(name)
        if known is not None:
            return known
        if name not in self._names:
            there = ", ".join(f"`{n}`" for n in self._names) or "none"
            raise KeyError(f"no public function `{name}`: there is {there}")
        return self._functions.setdefault(name, Function(self._native.function(name), name, self))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<autobatch program with {', '.join(self._names)}>"

    def value_and_grad(self, name: str, wrt: str | Sequence[str] = ()) -> Gradient:
        """The function that gives the value of another, which is a real, and its gradient by inputs that lanes vary:
        without names by all that are made of reals."""
        names = [wrt] if isinstance(wrt, str) else list(wrt)
        native, inputs = self._native.gradient(name, names)
        return Gradient(Function(native, name), inputs, single=isinstance(wrt, str))


class Gradient:
    """Gives a value and its gradient: `(value, gradient)`, the gradient by the names of inputs, or an array where one name
    was given as a text."""

    def __init__(self, function: Function, inputs: list[str], *, single: bool) -> None:
        self._function = function
        self.inputs = inputs
        self._single = single
        self.__name__ = self.__qualname__ = function.__name__
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        outputs = list(self._function(*args, **kwargs).values())
        gradients = dict(zip(self.inputs, outputs[1:]))
        single = self._single and len(gradients) == 1
        return outputs[0], next(iter(gradients.values())) if single else gradients

    def __repr__(self) -> str:
        return f"<value and gradient of {self._function!r} by {', '.join(self.inputs)}>"


def compile(program: Source) -> Program:
    """Compiles a program of the language: a text, or the path of a file that ends in `.ab`.

    Raises `CompileError` with each finding in its source; what is probably not meant is a warning.
    """
    kind, text = source(program)
    if kind == "stan" or text.endswith(".stan"):
        raise InputError("a Stan program is a model: autobatch.Model or autobatch.sample takes it")
    native = _autobatch.Program.of_file(text) if kind == "file" else _autobatch.Program.of_text("<source>", text)
    for warning in native.warnings():
        warnings.warn(warning, AutobatchWarning, stacklevel=2)
    return Program(native)


def value_and_grad(function: Function, wrt: str | Sequence[str] = ()) -> Gradient:
    """The function that gives the value of another, which is a real, and its gradient by `wrt`: see
    `Program.value_and_grad`."""
    if not isinstance(function, Function) or function.program is None:
        raise InputError(f"`{function.__name__}` is a gradient itself")
    return function.program.value_and_grad(function.__name__, wrt)
