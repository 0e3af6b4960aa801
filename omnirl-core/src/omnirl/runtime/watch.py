"""The watch over samplers and evaluators: one whose environment has not stepped for too long is given up.

A call may rightly take minutes (a long rollout, many episodes), so it is not the call that has a deadline but each
environment step: a busy worker is asked now and then how often its environment was stepped, and a thread of its own
answers. Where nobody could answer (``--local``) there is no watch.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from omnirl.runtime.evaluations import Handlers
from omnirl.runtime.failures import Failure
from omnirl.runtime.supervision import Crew, Slot
from omnirl.runtime.transport import Ref, WorkerDiedError, WorkerRaisedError


@dataclass
class _Sign:
    """The latest count that a worker gave, when it was new, and when it was last asked for."""

    incarnation: int
    count: int
    since: float
    asked: float


class Watch:
    """``hung`` is called with the slot and the reason of a worker that gave no sign of life for ``timeout`` s."""

    def __init__(
        self, crew: Crew, handlers: Handlers, timeout: float, hung: Callable[[Slot, Failure], None]
    ) -> None:
        self._crew, self._handlers = crew, handlers
        self._timeout, self._hung = timeout, hung
        self._pause = timeout / 4
        self._signs: dict[Slot, _Sign] = {}
        self._looked = self._back = time.monotonic()

    def look(self) -> None:
        """Ask those who have been busy for a while, give up those that do not move."""
        now = time.monotonic()
        if now - self._looked > self._pause:  # this process was stopped, or busy: meanwhile nobody was asked
            self._back = now
        self._looked = now
        for slot in self._crew.slots:
            if slot.busy_since is None or now - slot.busy_since < self._pause:
                self._signs.pop(slot, None)
                continue
            sign = self._signs.get(slot)
            if sign is None or sign.incarnation != slot.incarnation:
                sign = self._signs[slot] = _Sign(slot.incarnation, -1, slot.busy_since, 0.0)
            if now - max(sign.since, self._back) > self._timeout:
                del self._signs[slot]
                text = f"no environment step for {self._timeout:g} s (runner.step_timeout_s)"
                self._hung(slot, WorkerDiedError(text))
            elif now - sign.asked >= self._pause:
                sign.asked = now
                ref = self._crew.transport.pulse(slot.worker)
                if ref is not None:
                    self._handlers[ref] = lambda ready, slot=slot, sign=sign: self._answered(
                        slot, sign, ready
                    )  # type: ignore[misc]
                else:
                    sign.since = now

    def _answered(self, slot: Slot, sign: _Sign, ref: Ref) -> None:
        if self._signs.get(slot) is not sign:
            return
        try:
            count = self._crew.transport.get(ref)
        except (WorkerDiedError, WorkerRaisedError):
            return  # the call it was busy with tells the same
        if count != sign.count:
            sign.count, sign.since = count, time.monotonic()
