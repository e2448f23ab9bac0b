"""The command `autobatch`."""

from __future__ import annotations

import signal
import sys

from ._autobatch import run_command


def main() -> None:
    """Runs the command of the process."""
    # The command has its own handlers.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(run_command(["autobatch", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
