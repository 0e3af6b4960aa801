"""Asking samplers for rollouts, and taking them in: in request order in lock-step, else in each sampler's order."""

from __future__ import annotations

import time
from collections.abc import Callable

from omnirl.runtime.evaluations import Handlers
from omnirl.runtime.failures import Failure
from omnirl.runtime.learners import Arrived
from omnirl.runtime.pacing import Pacing
from omnirl.runtime.sampler import CollectReport
from omnirl.runtime.supervision import Crew, Slot
from omnirl.runtime.transport import Ref, WorkerDiedError, WorkerRaisedError

_CREDITS = 2


class Collecting:
    """Keeps the samplers busy as far as pacing allows.

    ``waiting`` holds what has arrived and no learner has been given.
    seen: called with each rollout's lag (None where it was dropped) and report. sick: called with the report of a
    rollout that was refused, since it holds a NaN or an infinity. tell: called with a line when a sampler was
    restarted.
    """

    def __init__(
        self,
        crew: Crew,
        pacing: Pacing,
        handlers: Handlers,
        seen: Callable[[int | None, CollectReport], None],
        sick: Callable[[CollectReport], None],
        tell: Callable[[str], None],
    ) -> None:
        self._crew, self._pacing, self._handlers = crew, pacing, handlers
        self._seen, self._sick, self._tell = seen, sick, tell
        self._lock_step = pacing.flow.max_lead == 0
        self._arrivals: dict[int, tuple[CollectReport, Ref] | None] = {}
        self._next = 0
        self.waiting: list[Arrived] = []

    def begin(self) -> None:
        """Begin, or begin anew, with nothing in flight; requests are counted on from the pacing's."""
        self._arrivals.clear()
        self.waiting = []
        self._next = self._pacing.requests

    @property
    def busy(self) -> bool:
        """Whether anything is in flight or waits for the learner."""
        return self._pacing.in_flight > 0 or bool(self.waiting)

    def order(self, weights: Ref, epoch: int) -> None:
        """Ask for as many rollouts as may be collected now, with these weights."""
        while self._pacing.may_collect():
            slot = self._free_sampler()
            if slot is None:
                return
            env_steps = self._pacing.requested
            request = self._pacing.request()
            slot.requests.append(request)
            slot.busy_since = slot.busy_since or time.monotonic()
            report, rollout = self._crew.transport.call(
                slot.worker, "collect", weights, env_steps, epoch, returns=2
            )
            self._handlers[report] = self._on_collected(slot, request, rollout)

    def take_waiting(self) -> list[Arrived]:
        """What the learners are to be given, each rollout once."""
        taken, self.waiting = self.waiting, []
        return taken

    def failed(self, slot: Slot, failure: Failure) -> None:
        """Replace a sampler; what it was asked for is lost."""
        for request in slot.requests:
            self._pacing.lost()
            self._arrivals[request] = None
        self._tell(self._crew.replace(slot, failure))
        self._take_arrivals()

    def _free_sampler(self) -> Slot | None:
        samplers = self._crew.samplers
        if self._lock_step:
            slot = samplers[self._pacing.requests % len(samplers)]
            return slot if not slot.requests and not slot.resting else None
        awake = [sampler for sampler in samplers if not sampler.resting]
        idlest = min(awake, key=lambda sampler: len(sampler.requests), default=None)
        return idlest if idlest is not None and len(idlest.requests) < _CREDITS else None

    def _on_collected(self, slot: Slot, request: int, rollout: Ref) -> Callable[[Ref], None]:
        def handle(ref: Ref) -> None:
            if request not in slot.requests:  # asked of a worker that has been replaced since
                return
            try:
                report: CollectReport = self._crew.transport.get(ref)
            except (WorkerDiedError, WorkerRaisedError) as failure:
                self.failed(slot, failure)
                return
            slot.failures = 0
            self._arrivals[request] = (report, rollout)
            slot.busy_since = (
                time.monotonic() if any(r not in self._arrivals for r in slot.requests) else None
            )
            self._take_arrivals()

        return handle

    def _take_arrivals(self) -> None:
        if self._lock_step:
            while self._next in self._arrivals:
                self._take(self._next)
                self._next += 1
            return
        for slot in self._crew.samplers:
            while slot.requests and slot.requests[0] in self._arrivals:
                self._take(slot.requests[0])
        for request in [request for request, arrival in self._arrivals.items() if arrival is None]:
            del self._arrivals[request]

    def _take(self, request: int) -> None:
        arrival = self._arrivals.pop(request)
        if arrival is None:  # lost with its worker
            return
        report, rollout = arrival
        self._crew.samplers[report.sampler].requests.remove(request)
        if report.nonfinite:
            self._pacing.refused()
            self._sick(report)
            return
        due = self._pacing.arrived(report.version)
        self._seen(None if due is None else max(0, due - report.version), report)
        if due is not None:
            self.waiting.append(Arrived(due, report.sampler, rollout))
