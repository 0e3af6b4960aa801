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
from contextlib import contextmanager
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
            shown = b"\x1b[?25h" if sys.stderr.isatty() else b""  # a live display hides the cursor
            os.write(2, shown + b"\nended at once; the last checkpoint stands\n")
            os._exit(128 + number)
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
