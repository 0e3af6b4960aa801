"""The learners of a run as the driver sees them: one worker, or several ranks that learn in step.

With K ranks a sampler's rollouts always go to rank ``sampler mod K``, and every rank is called for every advance with
the same number of updates, since within an update they wait for one another. So no rank may end a call by its own
clock: here the driver fixes how many updates a call makes, by how long they took before. Rank 0 gives the weights and
the figures and writes the checkpoints. The ranks are one worker in all else: the death of one ends all.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from omnirl.api.errors import LearnerLostError
from omnirl.runtime.failures import Failure, LearnerDiedError, raised_error, start_error
from omnirl.runtime.learner import AdvanceOrder, AdvanceReport
from omnirl.runtime.plan import Started, WorkerPlan
from omnirl.runtime.saving import SaveOutcome, Snapshot
from omnirl.runtime.transport import (
    Ref,
    Transport,
    Worker,
    WorkerDiedError,
    WorkerOutOfMemoryError,
    WorkerRaisedError,
)

_CALL_SECONDS = 0.15
_WAIT_SECONDS = 0.2
_PULSE_SECONDS = 30.0
_REASON_SECONDS = 2.0
_TAKEN = ("eaddrinuse", "address already in use")


@dataclass(frozen=True)
class Arrived:
    """A rollout for the learners: the update it is due in, the sampler it is from."""

    due: int
    sampler: int
    rollout: Ref


@dataclass
class Advance:
    """One call to every rank. refs: of the ranks' reports; weights: of rank 0's newest version."""

    learners: Learners
    refs: list[Ref]
    weights: Ref
    reports: dict[int, AdvanceReport] = field(default_factory=dict)

    def arrived(self, ref: Ref) -> AdvanceReport | None:
        """Take a report that is ready; returns what all ranks did, None while one of them is still at it."""
        rank = self.refs.index(ref)
        self.reports[rank] = self.learners.answer(ref, rank)
        if len(self.reports) < len(self.refs):
            return None
        return self.learners.together([self.reports[rank] for rank in range(len(self.refs))])


class Learners:
    """One worker or several. Spawned at once; :meth:`begin` and :meth:`started` have them built, :meth:`replace` puts
    new ones in their place."""

    def __init__(self, transport: Transport, plan: WorkerPlan) -> None:
        self._transport, self._plan = transport, plan
        self._count = plan.num_learners
        self._most = 1
        self._starting: list[Ref] = []
        self.workers = self._spawned()

    # ---------------------------------------------------------------- start and death

    def begin(self) -> None:
        """Have every rank built, all at once: each waits for the others at the rendezvous."""
        try:
            self._begin()
        except _RankFailedError as failed:
            raise self._start_error(failed) from failed.failure

    def started(self) -> dict[str, Started]:
        """Wait until every rank is built; what each says, by its name. Raises what ``start_error`` gives."""
        try:
            answers = self._built()
        except _RankFailedError as failed:
            raise self._start_error(failed) from failed.failure
        return {worker.name: answer for worker, answer in zip(self.workers, answers, strict=True)}

    def replace(self) -> int:
        """Put new learners in the place of those of which one died, and build them; returns how many there are. A
        rank that waits for the dead one in the middle of an update is ended with it. Raises LearnerDiedError where
        a new one dies as it starts."""
        try:
            self._anew()
            self._built()
        except _RankFailedError as failed:
            raise self._error(failed) from failed.failure
        return self._count

    def _spawned(self) -> list[Worker]:
        gpus = 1 if self._plan.device == "cuda" else 0
        names = ["learner"] if self._count == 1 else [f"learner {rank}" for rank in range(self._count)]
        return [
            self._transport.spawn(name, "omnirl.runtime.learner:LearnerWorker", self._plan, rank, gpus=gpus)
            for rank, name in enumerate(names)
        ]

    def _anew(self) -> None:
        for worker in self.workers:
            self._transport.kill(worker)
        self.workers = self._spawned()
        self._transport.ready(self.workers)
        self._begin()

    def _begin(self) -> None:
        rendezvous = None if self._count == 1 else self._rendezvous()
        self._starting = self._call_all("start", rendezvous)

    def _rendezvous(self) -> str:
        """A port that is free on the machine of rank 0, at the address where the others reach it."""
        first = self.workers[0]
        self._transport.ready([first])
        try:
            host = self._transport.address(first)
            port = self._transport.get(self._transport.call(first, "free_port", host)[0])
        except (WorkerDiedError, WorkerRaisedError) as failure:
            raise _RankFailedError(0, failure) from failure
        return f"{host}:{port}"

    def _built(self) -> list[Started]:
        """Where somebody took the port since it was found, all begin anew with another, once."""
        try:
            return self._gather(self._starting)
        except _RankFailedError as failed:
            if self._count == 1 or not failed.port_taken:
                raise
        self._anew()
        return self._gather(self._starting)

    # ---------------------------------------------------------------- calls

    def advance(
        self, given: Sequence[Arrived], *, updates: int, env_steps: int, row_due: bool, row_at: int
    ) -> Advance:
        """Have every rank take the rollouts of its samplers and make at most ``updates`` updates; the rest is the
        order's (see AdvanceOrder)."""
        alone = self._count == 1
        refs, weights = [], []
        for rank, worker in enumerate(self.workers):
            share = [item for item in given if item.sampler % self._count == rank]
            order = AdvanceOrder(
                dues=tuple(item.due for item in share),
                updates=updates if alone else min(updates, self._most),
                seconds=_CALL_SECONDS if alone else math.inf,
                env_steps=env_steps,
                row_due=row_due,
                row_at=row_at,
            )
            rollouts = [item.rollout for item in share]
            report, newest = self._transport.call(worker, "advance", order, *rollouts, returns=2)
            refs.append(report)
            weights.append(newest)
        return Advance(self, refs, weights[0])

    def together(self, reports: Sequence[AdvanceReport]) -> AdvanceReport:
        """What the ranks did in a call, as one report; how long it took decides the length of the next one."""
        first = reports[0]
        if len(reports) == 1:
            return first
        if first.made:
            each = max(report.seconds for report in reports) / first.made
            self._most = max(1, min(2 * self._most, int(_CALL_SECONDS / each)))
        return replace(first, nonfinite_in_row=max(report.nonfinite_in_row for report in reports))

    def weights(self) -> Ref:
        """The newest version."""
        return self._transport.call(self.workers[0], "weights")[0]

    def metrics(self) -> dict[str, float]:
        """The figures since the last row, cleared on every rank."""
        figures: dict[str, float] = self.ask_all("metrics")[0]
        return figures

    def save(self, snapshot: Snapshot) -> tuple[SaveOutcome, ...]:
        """Have rank 0 write the snapshot, with what the other ranks hand it; the outcomes of earlier saves."""
        parts = [self._transport.call(worker, "part", snapshot.save_memory)[0] for worker in self.workers[1:]]
        outcomes: tuple[SaveOutcome, ...] = self.ask("save", snapshot, *parts)
        return outcomes

    def ask(self, method: str, *args: Any) -> Any:
        """Call a method of rank 0 and wait for the answer."""
        return self.answer(self._transport.call(self.workers[0], method, *args)[0])

    def ask_all(self, method: str, *args: Any) -> list[Any]:
        """Call a method of every rank at once and wait for the answers, in rank order."""
        try:
            return self._gather(self._call_all(method, *args))
        except _RankFailedError as failed:
            raise self._error(failed) from failed.failure

    def answer(self, ref: Ref, rank: int = 0) -> Any:
        """An answer of a rank's. Raises LearnerDiedError; raised_error tells what it raised."""
        try:
            return self._transport.get(ref)
        except (WorkerDiedError, WorkerRaisedError) as failure:
            raise self._error(_RankFailedError(rank, failure)) from failure

    def _call_all(self, method: str, *args: Any) -> list[Ref]:
        return [self._transport.call(worker, method, *args)[0] for worker in self.workers]

    def _gather(self, refs: Sequence[Ref]) -> list[Any]:
        """The ranks' answers. The first failure is raised at once: the other ranks may be waiting for that one. Where
        a rank says no more than that it has lost another, that one gets a moment to say why."""
        ranks = {ref: rank for rank, ref in enumerate(refs)}
        answers: dict[int, Any] = {}
        lost: list[_RankFailedError] = []
        end = math.inf
        while ranks and time.monotonic() < end:
            for ref in self._transport.wait(list(ranks), _WAIT_SECONDS):
                rank = ranks.pop(ref)
                try:
                    answers[rank] = self._transport.get(ref)
                except (WorkerDiedError, WorkerRaisedError) as failure:
                    if not _has_lost_another(failure):
                        raise _RankFailedError(rank, failure) from failure
                    lost.append(_RankFailedError(rank, failure))
                    end = min(end, time.monotonic() + _REASON_SECONDS)
        if lost:
            raise lost[0]
        return [answers[rank] for rank in range(len(refs))]

    # ---------------------------------------------------------------- what failed

    def _start_error(self, failed: _RankFailedError) -> Exception:
        cause = self._cause(failed)
        return start_error(self.workers[cause.rank].name, cause.failure)

    def _error(self, failed: _RankFailedError) -> Exception:
        cause = self._cause(failed)
        name, failure = self.workers[cause.rank].name, cause.failure
        if isinstance(failure, WorkerDiedError):
            text = str(failure) if self._count == 1 else f"{name}: {failure}"
            return LearnerDiedError(text, isinstance(failure, WorkerOutOfMemoryError))
        if _has_lost_another(failure):
            return LearnerDiedError(str(failure.expected))
        return failure.expected or raised_error(f"the {name} failed", failure)

    def _cause(self, failed: _RankFailedError) -> _RankFailedError:
        """A rank raises too where another died that it was waiting for: then that death is the cause.

        Those alive answer whatever they wait for; a machine that is cut off never does.
        """
        if self._count == 1 or isinstance(failed.failure, WorkerDiedError):
            return failed
        asked = [(rank, self._transport.pulse(worker)) for rank, worker in enumerate(self.workers)]
        pulses = {ref: rank for rank, ref in asked if ref is not None}
        end = time.monotonic() + _PULSE_SECONDS
        while pulses:
            for ref in self._transport.wait(list(pulses), _WAIT_SECONDS):
                rank = pulses.pop(ref)
                try:
                    self._transport.get(ref)
                except WorkerDiedError as failure:
                    return _RankFailedError(rank, failure)
            if pulses and time.monotonic() > end:
                return _RankFailedError(min(pulses.values()), WorkerDiedError("no sign of life"))
        return failed


def _has_lost_another(failure: Failure) -> bool:
    return isinstance(failure, WorkerRaisedError) and isinstance(failure.expected, LearnerLostError)


class _RankFailedError(Exception):
    """A call of a rank failed."""

    def __init__(self, rank: int, failure: Failure) -> None:
        super().__init__(rank, failure)
        self.rank, self.failure = rank, failure

    @property
    def port_taken(self) -> bool:
        """Whether the reason is that somebody else has the port of the rendezvous."""
        text = self.failure.traceback.lower() if isinstance(self.failure, WorkerRaisedError) else ""
        return any(phrase in text for phrase in _TAKEN)
