"""Exceptions and warnings."""

from __future__ import annotations


class AutobatchError(Exception):
    """What autobatch refuses, or what failed."""


class CompileError(AutobatchError):
    """A program or a model has errors, or its data do not fit: the text shows each with its source line."""

    def _repr_html_(self) -> str:
        from ._html import preformatted

        return preformatted(str(self))


class InputError(AutobatchError, ValueError):
    """A value is missing, unknown, or has a wrong type or shape; an option makes no sense."""


class LaneError(AutobatchError):
    """Lanes trapped, or points were rejected. `traps` has a tuple for each: its place in the batch, and why."""

    def __init__(self, message: str, traps: list[tuple[int, str]]) -> None:
        super().__init__(message)
        self.traps = traps


class Interrupted(AutobatchError):
    """It was ended before there was anything to give."""


class OutOfMemory(AutobatchError, MemoryError):
    """A batch does not fit in memory."""


class FileError(AutobatchError, OSError):
    """A file cannot be read or written."""


class AutobatchWarning(UserWarning):
    """What is probably not meant, and what to worry about in a run."""


_KINDS: dict[str, type[AutobatchError]] = {
    "program": CompileError,
    "entry": InputError,
    "input": InputError,
    "option": InputError,
    "io": FileError,
    "memory": OutOfMemory,
    "interrupted": Interrupted,
}


def made(kind: str, message: str) -> AutobatchError:
    """The exception for an error of the library."""
    return _KINDS.get(kind, AutobatchError)(message)
