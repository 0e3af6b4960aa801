"""Ctrl-C and SIGTERM: the first one only raises a flag, so that the loop can finish its update and save.

Handlers are set after ``ray.init``, which sets its own. A second signal ends the process at once, saving nothing;
Ray's own guard, which waits for this process's end, then kills the rest of a local cluster.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType


@dataclass
class StopRequest:
    """``signal`` is the number of the signal that asked the run to stop, 0 while none did."""

    signal: int = 0


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Catch SIGINT and SIGTERM for the length of the block (where this is the main thread)."""
    request = StopRequest()

    def handle(number: int, frame: FrameType | None) -> None:
        if request.signal:
            end_at_once("\nended at once; the last checkpoint stands", 128 + number)
        request.signal = number

    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_at_once(line: str, code: int) -> None:
    """Say ``line`` on standard error and end the process, whatever its threads are busy with."""
    try:
        descriptor = sys.stderr.fileno()  # while Ray is there, 2 leads to ray.log
    except (AttributeError, OSError, ValueError):
        descriptor = 2
    shown = "\x1b[?25h" if os.isatty(descriptor) else ""  # a live display hides the cursor
    with suppress(OSError):
        os.write(descriptor, f"{shown}{line}\n".encode())
    os._exit(code)
