"""autobatch: single-example programs and Stan models, run for many lanes or chains at once.

    import autobatch as ab

    program = ab.compile("pub fn fib(n: int) -> int { if n < 3 { 1 } else { fib(n - 1) + fib(n - 2) } }")
    program["fib"]([5, 6, 8])                       # array([ 5,  8, 21]): a call is a batch

    fit = ab.sample("model.stan", "data.json", chains=64)
    fit.summary(), fit["theta"], fit.to_datatree()
"""

from ._autobatch import __version__
from ._calibration import Calibration, Ranks, sbc
from ._errors import AutobatchError, AutobatchWarning, CompileError, FileError, InputError, Interrupted, LaneError, OutOfMemory
from ._model import Model
from ._program import Function, Gradient, Port, Program, Result, compile, value_and_grad
from ._progress import Progress
from ._sample import Fit, Handle, Summary, resume, sample
from ._sample import open_store as open

__all__ = [
    "AutobatchError",
    "AutobatchWarning",
    "Calibration",
    "CompileError",
    "FileError",
    "Fit",
    "Function",
    "Gradient",
    "Handle",
    "InputError",
    "Interrupted",
    "LaneError",
    "Model",
    "OutOfMemory",
    "Port",
    "Program",
    "Progress",
    "Ranks",
    "Result",
    "Summary",
    "__version__",
    "compile",
    "open",
    "resume",
    "sample",
    "sbc",
    "value_and_grad",
]


def load_ipython_extension(shell: object) -> None:
    """`%load_ext autobatch`: cells that begin with `%%autobatch` are programs."""
    from ._magic import register

    register(shell)
