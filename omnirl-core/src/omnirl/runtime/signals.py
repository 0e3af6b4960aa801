"""Ctrl-C and SIGTERM: the first one only raises a flag, so that the loop can finish its update and save.

Handlers are set by ``catch`` after ``ray.init``, which sets its own. A second signal ends the process at once, saving
nothing; Ray's own guard, which waits for this process's end, then kills the rest of a local cluster.
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

_CAUGHT = (signal.SIGINT, signal.SIGTERM)


@dataclass
class StopRequest:
    """``signal`` is the number of the signal that asked the run to stop, 0 while none did."""

    signal: int = 0

    def catch(self) -> None:
        """From here on signals are requests."""
        if threading.current_thread() is threading.main_thread():
            for number in _CAUGHT:
                signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.signal:
            end_at_once("\nended at once; the last checkpoint stands", 128 + number)
        self.signal = number


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Requests of SIGINT and SIGTERM from ``catch()`` to the end of the block, where this is the main thread; then the
    handlers are those from before the block. It goes around Ray, whose end takes seconds and has no handlers of use."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.getsignal(number) for number in _CAUGHT}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


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
