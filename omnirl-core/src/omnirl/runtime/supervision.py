"""The crew of a run: its learner, samplers and evaluators, and what happens when one of them fails.

A sampler that died or raised is replaced by a new incarnation, with new random streams; what it was asked for is
lost and asked for again. An evaluator is replaced and its evaluation runs again. More than ``MOST_FAILURES`` in a
row end the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from omnirl.api.errors import WorkersFailedError
from omnirl.runtime.plan import WorkerPlan
from omnirl.runtime.transport import Ref, Transport, Worker, WorkerDiedError, WorkerRaisedError

MOST_FAILURES = 10
Failure = WorkerDiedError | WorkerRaisedError


@dataclass(eq=False)
class Slot:
    """The place of one sampler or evaluator. requests: numbers of the rollouts asked of a sampler."""

    role: str
    index: int
    worker: Worker
    incarnation: int = 0
    failures: int = 0
    requests: list[int] = field(default_factory=list)

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self.role} {self.index}"


class Crew:
    """The workers of a run."""

    def __init__(self, transport: Transport, plan: WorkerPlan, incarnations: Mapping[str, int]) -> None:
        self.transport, self.plan = transport, plan
        self.restarts = 0
        gpus = 1 if plan.device == "cuda" else 0
        self.learner = transport.spawn("learner", "omnirl.runtime.learner:LearnerWorker", plan, gpus=gpus)
        self.samplers = [
            self._slot("sampler", index, int(incarnations.get(str(index), 0)))
            for index in range(plan.num_samplers)
        ]
        self.evaluators = [self._slot("evaluator", index, 0) for index in range(plan.num_evaluators)]

    def _slot(self, role: str, index: int, incarnation: int) -> Slot:
        return Slot(role, index, self._spawn(role, index, incarnation), incarnation)

    def _spawn(self, role: str, index: int, incarnation: int) -> Worker:
        name = f"{role} {index}"
        if role == "sampler":
            return self.transport.spawn(name, "omnirl.runtime.sampler:Sampler", self.plan, index, incarnation)
        return self.transport.spawn(name, "omnirl.runtime.evaluator:Evaluator", self.plan, index)

    def start(self) -> bool:
        """Wait until every worker is built. Returns whether all environments can be seeded.

        A failure here is the user's to mend, so nothing is restarted: it is raised as it is.
        """
        workers = [slot.worker for slot in (*self.samplers, *self.evaluators)]
        names = [slot.name for slot in (*self.samplers, *self.evaluators)]
        refs = [self.transport.call(worker, "start")[0] for worker in (*workers, self.learner)]
        answers = []
        for name, ref in zip((*names, "learner"), refs, strict=True):
            try:
                answers.append(self.transport.get(ref))
            except (WorkerDiedError, WorkerRaisedError) as failure:
                raise start_error(name, failure) from failure
        return all(answers[: len(self.samplers)])

    def ask_learner(self, method: str, *args: Any) -> Any:
        """Call a method of the learner's and wait for the answer."""
        return self.from_learner(self.transport.call(self.learner, method, *args)[0])

    def from_learner(self, ref: Ref) -> Any:
        """An answer of the learner's. Its death ends the run; what it raised is a user's mistake or a bug."""
        try:
            return self.transport.get(ref)
        except WorkerDiedError as failure:
            raise WorkersFailedError(f"the learner's process died: {failure}") from failure
        except WorkerRaisedError as failure:
            if failure.expected is not None:
                raise failure.expected from failure
            raise RuntimeError(f"the learner failed:\n{failure.traceback}") from failure

    def replace(self, slot: Slot, failure: Failure) -> str:
        """Put a new worker in the slot; returns a line that says so. Raises when it fails again and again."""
        if isinstance(failure, WorkerRaisedError) and failure.expected is not None:
            raise failure.expected
        slot.failures += 1
        if slot.failures > MOST_FAILURES:
            lines = [
                f"{slot.name} ({self.plan.env_spec.id or self.plan.backend.name}) failed {slot.failures} times in a "
                f"row, the limit is {MOST_FAILURES}: {failure}"
            ]
            if isinstance(failure, WorkerRaisedError):
                lines.extend(failure.traceback.rstrip().splitlines())
            raise WorkersFailedError(lines) from failure
        self.transport.kill(slot.worker)
        slot.incarnation += 1
        slot.requests = []
        slot.worker = self._spawn(slot.role, slot.index, slot.incarnation)
        self.restarts += 1
        return f"{slot.name} was restarted: {failure}"


def start_error(name: str, failure: Failure) -> Exception:
    """The error of a worker that could not be built: the user's mistake as it is, anything else with its traceback."""
    if isinstance(failure, WorkerRaisedError):
        if failure.expected is not None:
            return failure.expected
        return WorkersFailedError(
            [f"{name} could not start: {failure.summary}", *failure.traceback.rstrip().splitlines()]
        )
    return WorkersFailedError(f"{name} could not start: its process died: {failure}")
