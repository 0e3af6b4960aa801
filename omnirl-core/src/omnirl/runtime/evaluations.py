"""Evaluations beside training: one runs, one may wait; each plays with the weights of its own version."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from omnirl.api.data import Episode
from omnirl.runtime.supervision import Crew, Slot
from omnirl.runtime.transport import Ref, WorkerDiedError, WorkerRaisedError

Handlers = dict[Ref, Callable[[Ref], None]]


@dataclass
class _Evaluation:
    version: int
    weights: Ref
    episodes: dict[int, Sequence[Episode]] = field(default_factory=dict)


class Evaluations:
    """Asks the evaluators, gathers their episodes, starts again what a dead one lost.

    handlers: the loop's table of refs and what to do when they are ready. done: called with a version's figures.
    tell: called with a line when an evaluator was restarted.
    """

    def __init__(
        self,
        crew: Crew,
        handlers: Handlers,
        aggregate: Callable[[Sequence[Episode]], Mapping[str, float]],
        done: Callable[[int, Mapping[str, float]], None],
        tell: Callable[[str], None],
    ) -> None:
        self._crew, self._handlers = crew, handlers
        self._aggregate, self._done, self._tell = aggregate, done, tell
        self._queue: list[_Evaluation] = []

    @property
    def outstanding(self) -> int:
        """Evaluations running or waiting."""
        return len(self._queue)

    def ask(self, version: int, weights: Ref) -> None:
        """Evaluate a version as soon as the evaluators are free."""
        self._queue.append(_Evaluation(version, weights))
        if len(self._queue) == 1:
            self._begin()

    def _begin(self) -> None:
        for slot in self._crew.evaluators:
            self._send(slot)

    def _send(self, slot: Slot) -> None:
        (ref,) = self._crew.transport.call(slot.worker, "evaluate", self._queue[0].weights)
        self._handlers[ref] = lambda ready: self._played(slot, ready)

    def _played(self, slot: Slot, ref: Ref) -> None:
        evaluation = self._queue[0]
        try:
            evaluation.episodes[slot.index] = self._crew.transport.get(ref)
        except (WorkerDiedError, WorkerRaisedError) as failure:
            self._tell(self._crew.replace(slot, failure))
            self._send(slot)
            return
        slot.failures = 0
        if len(evaluation.episodes) < len(self._crew.evaluators):
            return
        self._queue.pop(0)
        episodes = [
            episode for index in sorted(evaluation.episodes) for episode in evaluation.episodes[index]
        ]
        self._done(evaluation.version, self._aggregate(episodes))
        if self._queue:
            self._begin()
