"""Observers run on one thread behind a bounded queue, so none of them can slow or break a run."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from omnirl.api.observer import Observer

_MOST_WAITING = 4096
_MOST_FAILURES = 3


class ObserverThread:
    """Calls observers in order. One that raises is reported to the others, and off after three times."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = list(observers)
        self._failures: dict[int, int] = {}
        self._queue: queue.Queue[tuple[str, tuple[Any, ...]] | None] = queue.Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._run, name="observers", daemon=True)
        self._thread.start()

    def send(self, method: str, *args: Any) -> None:
        """Queue an event for every observer. Only glances (``progress``) are dropped when the queue is full."""
        if method == "progress" and self._queue.qsize() > _MOST_WAITING // 2:
            return
        self._queue.put((method, args))

    def flush(self) -> None:
        """Wait until every event so far was seen and what was written is on disk."""
        self.send("flush")
        self._queue.join()

    def close(self) -> None:
        """See the last events and end the thread."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            item = self._queue.get()
            try:
                if item is None:
                    return
                self._deliver(*item)
            finally:
                self._queue.task_done()

    def _deliver(self, method: str, args: tuple[Any, ...]) -> None:
        for observer in list(self._observers):
            call = getattr(observer, method, None)
            if call is None:
                continue
            try:
                call(*args)
            except (Exception, SystemExit) as error:  # some libraries end the process where they cannot go on
                self._failed(observer, error)

    def _failed(self, observer: Observer, error: BaseException) -> None:
        count = self._failures[id(observer)] = self._failures.get(id(observer), 0) + 1
        name = type(observer).__name__
        fate = "; it is off from now on" if count >= _MOST_FAILURES else ""
        if count >= _MOST_FAILURES:
            self._observers.remove(observer)
        for other in list(self._observers):
            if other is not observer:
                with suppress(Exception):  # reported when it fails in its own right
                    other.event(f"observer {name} failed: {type(error).__name__}: {error}{fate}")
