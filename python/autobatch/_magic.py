"""`%%autobatch`: a cell that is a program."""

from __future__ import annotations

from typing import Any

from ._program import compile


def register(shell: Any) -> None:
    """Makes the magic of a shell."""

    def autobatch(line: str, cell: str) -> None:
        """Compiles the cell; its public functions get their names in the notebook, or the program the one of the line."""
        program = compile(cell)
        name = line.strip()
        shell.push({name: program} if name else dict(program))

    shell.register_magic_function(autobatch, magic_kind="cell", magic_name="autobatch")
