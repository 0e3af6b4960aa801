"""Standard output and error as a process may find them: closed, or in an encoding that lacks our characters."""

from __future__ import annotations

import io
import os
import sys
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from typing import Any

_NAMES = {1: "stdout", 2: "stderr"}


def for_json(as_json: bool) -> AbstractContextManager[Any]:
    """A block during which standard output is the JSON's alone: what anybody else prints goes to standard error."""
    return redirect_stdout(sys.stderr) if as_json else nullcontext()


def open_streams() -> None:
    """Make both streams usable: a closed one discards what is written, a character it lacks becomes ``?``."""
    for descriptor, name in _NAMES.items():
        stream = getattr(sys, name)
        if stream is None:
            # The descriptor itself is taken too, or the next file that is opened would get it and whatever a
            # library writes to it.
            null = os.open(os.devnull, os.O_WRONLY)
            if null != descriptor:
                os.dup2(null, descriptor)
                os.close(null)
            setattr(sys, name, open(descriptor, "w", encoding="utf-8", closefd=False))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
