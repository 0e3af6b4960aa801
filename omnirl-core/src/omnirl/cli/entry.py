"""The console script: what :func:`omnirl.cli.app.main` does, with a Ctrl-C that is quiet from here on to the very end.

A KeyboardInterrupt while modules are imported, or while the interpreter ends, would be a traceback, and inside some
libraries it would be swallowed. So there the signal ends the process itself. While a command runs, it is the command's.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

_INTERRUPTED = 130  # that of omnirl.cli.outcome, which is among what is imported later


def main() -> None:
    """Run ``omnirl`` with the arguments of the process and end it."""
    usual = signal.getsignal(signal.SIGINT)
    # Else it is ignored: nohup, or in the background of a script.
    quiet = _end if usual is signal.default_int_handler else usual
    signal.signal(signal.SIGINT, quiet)
    from omnirl.cli import app

    try:
        signal.signal(signal.SIGINT, usual)
        app.main()
    except KeyboardInterrupt:  # between these lines and those that expect it
        sys.exit(_INTERRUPTED)
    finally:
        signal.signal(signal.SIGINT, quiet)


def _end(number: int, frame: object) -> None:
    with suppress(OSError):
        os.write(2, b"interrupted\n")
    os._exit(_INTERRUPTED)
