"""Evaluations beside training: one runs, one may wait; each plays with the weights of its own version."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from omnirl.api.data import Episode
from omnirl.runtime.failures import Failure
from omnirl.runtime.supervision import Crew, Slot
from omnirl.runtime.transport import Ref, WorkerDiedError, WorkerRaisedError

Handlers = dict[Ref, Callable[[Ref], None]]


@dataclass
class _Evaluation:
    counters: Mapping[str, int]
    weights: Ref
    episodes: dict[int, Sequence[Episode]] = field(default_factory=dict)


class Evaluations:
    """Asks the evaluators, gathers their episodes, starts again what a dead one lost.

    handlers: the loop's table of refs and what to do when they are ready. done: called with the counters
    and the weights of a version, as they were asked for, and its figures. tell: called with a line when an
    evaluator was restarted.
    """

    def __init__(
        self,
        crew: Crew,
        handlers: Handlers,
        aggregate: Callable[[Sequence[Episode]], Mapping[str, float]],
        done: Callable[[Mapping[str, int], Ref, Mapping[str, float]], None],
        tell: Callable[[str], None],
    ) -> None:
        self._crew, self._handlers = crew, handlers
        self._aggregate, self._done, self._tell = aggregate, done, tell
        self._queue: list[_Evaluation] = []

    @property
    def outstanding(self) -> int:
        """Evaluations running or waiting."""
        return len(self._queue)

    def ask(self, counters: Mapping[str, int], weights: Ref) -> None:
        """Evaluate the version that was reached with these counters as soon as the evaluators are free."""
        self._queue.append(_Evaluation(counters, weights))
        self.look()

    def look(self) -> None:
        """Give a rested evaluator its part again."""
        if not self._queue:
            return
        for slot in self._crew.evaluators:
            if slot.busy_since is None and slot.index not in self._queue[0].episodes and not slot.resting:
                self._send(slot)

    def forget(self) -> list[int]:
        """Drop what runs and what waits, since it no longer counts; returns the versions."""
        dropped, self._queue = self._queue, []
        return [evaluation.counters["updates"] for evaluation in dropped]

    def failed(self, slot: Slot, failure: Failure) -> None:
        """Replace an evaluator; ``look`` gives the new one its part."""
        self._tell(self._crew.replace(slot, failure))
        self.look()

    def _send(self, slot: Slot) -> None:
        slot.busy_since = time.monotonic()
        incarnation = slot.incarnation
        (ref,) = self._crew.transport.call(slot.worker, "evaluate", self._queue[0].weights)
        evaluation = self._queue[0]
        self._handlers[ref] = lambda ready: self._played(slot, incarnation, evaluation, ready)

    def _played(self, slot: Slot, incarnation: int, evaluation: _Evaluation, ref: Ref) -> None:
        if slot.incarnation != incarnation:  # asked of a worker that has been replaced since
            return
        slot.busy_since = None
        if not self._queue or self._queue[0] is not evaluation:
            self.look()
            return
        try:
            evaluation.episodes[slot.index] = self._crew.transport.get(ref)
        except (WorkerDiedError, WorkerRaisedError) as failure:
            self.failed(slot, failure)
            return
        slot.failures = 0
        if len(evaluation.episodes) < len(self._crew.evaluators):
            return
        self._queue.pop(0)
        episodes = [
            episode for index in sorted(evaluation.episodes) for episode in evaluation.episodes[index]
        ]
        self._done(evaluation.counters, evaluation.weights, self._aggregate(episodes))
        self.look()
