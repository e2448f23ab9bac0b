"""`python -m autobatch` is the command `autobatch`."""

from ._command import main

main()
