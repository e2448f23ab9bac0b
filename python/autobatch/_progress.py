"""How far a run is, in a terminal or a notebook."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any, Protocol

from . import _html


@dataclass(frozen=True)
class Group:
    """How far chains are that follow one another."""

    #: `chains 1-32`.
    name: str
    #: From 0 to 1, of the median chain.
    part: float
    #: Iterations, divergent transitions, step sizes, gradients of a draw.
    text: str


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    #: Draws that are kept, of all chains together, and those that there will be.
    draws: int
    all_draws: int
    #: Iterations of all chains, warmup included, and those that there will be.
    iterations: int
    all_iterations: int
    chains: int
    #: Chains whose warmup is over, and those that have made all their draws.
    warm: int
    finished: int
    #: Of so many iterations after warmup one is kept.
    thin: int
    seconds: float
    #: Gradients of all chains in a second, over the last ten.
    gradients_per_second: float | None = None
    #: Seconds that are left by the gradients that the rest takes.
    left: float | None = None
    #: The chains in up to eight groups.
    groups: tuple[Group, ...] = ()

    @property
    def part(self) -> float:
        """From 0 to 1."""
        return 1.0 if self.draws >= self.all_draws > 0 else min(1.0, max(self.draws * self.thin, self.iterations) / max(1, self.all_iterations))

    @property
    def seconds_left(self) -> float | None:
        """Seconds that are left by the gradients that the rest takes; before these are known, if it takes as long as what was done."""
        if self.left is not None and self.part < 1:
            return self.left
        return self.seconds * (1 - self.part) / self.part if self.part > 0 else None

    def __str__(self) -> str:
        what = f"{self.draws:,} of {self.all_draws:,} draws"
        if self.warm < self.chains:
            what += f", {self.chains - self.warm} of {self.chains} chains in warmup"
        if self.gradients_per_second is not None:
            what += f", {self.gradients_per_second:,.0f} gradients/s"
        left = self.seconds_left
        return f"{100 * self.part:3.0f} %  {what}, {self.seconds:.1f} s" + (f", {left:.1f} s left" if left is not None else "")


class Shown(Protocol):
    """What shows progress."""

    def update(self, progress: Progress) -> None: ...
    def close(self, progress: Progress) -> None: ...


class _Nothing:
    def update(self, progress: Progress) -> None:
        pass

    def close(self, progress: Progress) -> None:
        pass


class _Terminal:
    """A line that is written over."""

    def __init__(self) -> None:
        self._width = 0

    def update(self, progress: Progress) -> None:
        text = str(progress)
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)

    def close(self, progress: Progress) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()


class _Lines:
    """A line now and then, where nothing can be written over: in files of batch systems."""

    EVERY = 10.0

    def __init__(self) -> None:
        self._last = time.monotonic()

    def update(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._last >= self.EVERY:
            self._last = now
            print(progress, file=sys.stderr, flush=True)

    def close(self, progress: Progress) -> None:
        pass


class _Notebook:
    """A bar in the output of a cell."""

    def __init__(self, display: Any) -> None:
        self._html = _html.bar(0, "")
        self._handle = display(self, display_id=True)

    def update(self, progress: Progress) -> None:
        rows = [(group.name, group.part, group.text) for group in progress.groups]
        self._html = _html.bars(rows, str(progress)) if rows else _html.bar(progress.part, str(progress))
        self._handle.update(self)

    def close(self, progress: Progress) -> None:
        self.update(progress)

    def _repr_html_(self) -> str:
        return self._html


def shown(progress: bool | None) -> Shown:
    """What shows progress here; nothing where it is not wanted."""
    if progress is False:
        return _Nothing()
    try:
        from IPython import get_ipython  # type: ignore[import-not-found,unused-ignore]

        shell = get_ipython()  # type: ignore[no-untyped-call,unused-ignore]
    except ImportError:
        shell = None
    if shell is not None and shell.__class__.__name__ == "ZMQInteractiveShell":
        from IPython.display import display  # type: ignore[import-not-found,unused-ignore]

        return _Notebook(display)
    return _Terminal() if sys.stderr.isatty() else _Lines()
