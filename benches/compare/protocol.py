"""The peer's side of the protocol of src/bench/protocol.rs: JSON objects, one a line, on standard input and output.

A script imports this module first: `job` is read, and the threads are limited, before any library is.
"""

import json
import os
import sys
import time

# Libraries print what they like to standard output: only what is written here goes to the harness.
_out = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)


def _read():
    line = sys.stdin.readline()
    return json.loads(line) if line else None


class Job:
    """What is to be computed; the fields are those of `protocol::Job`."""

    def __init__(self, fields):
        self.__dict__.update({"program": None, **fields})


job = Job(_read())
# Every library takes as many threads as there are cores that it may run on.
_cores = sorted(os.sched_getaffinity(0))[: job.threads]
os.sched_setaffinity(0, _cores)
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
    os.environ[_name] = str(job.threads)


def data():
    """The data of the model, by name, and `starts` or `n`."""
    with open(job.data) as file:
        return json.load(file)


def _say(answer):
    _out.write(json.dumps(answer) + "\n")
    _out.flush()


def fail(message):
    """Says why it cannot go on, and ends."""
    _say({"error": message})
    sys.exit(1)


def serve(version, repeat):
    """Says that the peer is warm and answers requests until there are no more.

    `repeat(draws, seed, keep)` makes a repetition and gives a dictionary with `useful`, `seconds`, `draws` and perhaps
    `issued`, and, where `keep` is true, `states`: an array chain x draw x dimension.
    """
    _say({"ready": {"version": version}})
    while (request := _read()) is not None:
        done = repeat(request["draws"], request["seed"], request["keep"] is not None)
        states = done.pop("states", None)
        if request["keep"] is not None and states is not None:
            import numpy as np

            states = np.ascontiguousarray(states, dtype="<f8")
            states.tofile(request["keep"])
            done["kept"] = list(states.shape)
        _say({"done": done})


class Clock:
    """Seconds since it was made."""

    def __init__(self):
        self._start = time.perf_counter()

    def seconds(self):
        return time.perf_counter() - self._start
