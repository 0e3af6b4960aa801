"""The crew of a run: its learners, samplers and evaluators, and what happens when one of them fails.

A sampler that died, hung or raised is replaced by a new incarnation, with new random streams; what it was asked for
is lost and asked for again. An evaluator is replaced and its evaluation runs again. Failures in a row are answered
with longer and longer pauses; more than ``MOST_FAILURES`` end the run. A learner's death is the loop's to mend.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from omnirl.api.errors import WorkersFailedError
from omnirl.runtime.failures import Failure, memory_error, start_error
from omnirl.runtime.learners import Learners
from omnirl.runtime.plan import Started, WorkerPlan
from omnirl.runtime.transport import (
    Transport,
    Worker,
    WorkerDiedError,
    WorkerOutOfMemoryError,
    WorkerRaisedError,
)
from omnirl.runtime.versions import check_same

MOST_FAILURES = 10
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0


@dataclass(eq=False)
class Slot:
    """The place of one sampler or evaluator.

    short_of_memory: how often it was killed for memory; requests: numbers of the rollouts asked of a sampler;
    busy_since: when it was given work, None while idle; resting_until: no work before this moment, after a failure.
    """

    role: str
    index: int
    worker: Worker
    incarnation: int = 0
    failures: int = 0
    short_of_memory: int = 0
    requests: list[int] = field(default_factory=list)
    busy_since: float | None = None
    resting_until: float = 0.0

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self.role} {self.index}"

    @property
    def resting(self) -> bool:
        """Whether it has failed too recently to be given work."""
        return time.monotonic() < self.resting_until


class Crew:
    """The workers of a run."""

    def __init__(self, transport: Transport, plan: WorkerPlan, incarnations: Mapping[str, int]) -> None:
        self.transport, self.plan = transport, plan
        self.restarts = 0
        self.learners = Learners(transport, plan)
        self.samplers = [
            self._slot("sampler", index, int(incarnations.get(str(index), 0)))
            for index in range(plan.num_samplers)
        ]
        self.evaluators = [self._slot("evaluator", index, 0) for index in range(plan.num_evaluators)]

    @property
    def slots(self) -> list[Slot]:
        """Samplers and evaluators."""
        return [*self.samplers, *self.evaluators]

    @property
    def resting(self) -> bool:
        """Whether a worker pauses. To be asked before work is given out: one whose pause ends in between gets its work
        in the next round."""
        return any(slot.resting for slot in self.slots)

    def start(self) -> bool:
        """Wait until every worker is built. Returns whether all environments can be seeded.

        A failure here is the user's to mend, so nothing is restarted: it is raised as it is. Raises PluginError where
        a worker's node has other versions than this one, ClusterError where Ray brings no process up.
        """
        refs = {slot.name: self.transport.call(slot.worker, "start")[0] for slot in self.slots}
        self.learners.begin()
        self.transport.ready([*(slot.worker for slot in self.slots), *self.learners.workers])
        answers: dict[str, Started] = {}
        for name, ref in refs.items():
            try:
                answers[name] = self.transport.get(ref)
            except (WorkerDiedError, WorkerRaisedError) as failure:
                raise start_error(name, failure) from failure
        answers |= self.learners.started()
        check_same({name: answer.versions for name, answer in answers.items()})
        return all(answers[slot.name].seedable for slot in self.samplers)

    # ---------------------------------------------------------------- samplers and evaluators

    def replace(self, slot: Slot, failure: Failure) -> str:
        """Put a new worker in the slot; returns a line that says so. Raises when it fails again and again."""
        if isinstance(failure, WorkerRaisedError) and failure.expected is not None:
            raise failure.expected
        if isinstance(failure, WorkerOutOfMemoryError):
            slot.short_of_memory += 1
            if slot.short_of_memory > 1:
                raise memory_error(f"{slot.name} died twice", failure) from failure
        slot.failures += 1
        if slot.failures > MOST_FAILURES:
            raise self._gives_up(slot, failure) from failure
        self.transport.kill(slot.worker)
        slot.incarnation += 1
        slot.requests, slot.busy_since = [], None
        if slot.failures > 1:
            pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (slot.failures - 1))
            slot.resting_until = time.monotonic() + pause
        slot.worker = self._spawn(slot.role, slot.index, slot.incarnation)
        self.restarts += 1
        return f"{slot.name} was restarted: {failure}"

    def _gives_up(self, slot: Slot, failure: Failure) -> WorkersFailedError:
        plan = self.plan
        seed = plan.seeds.sampler if slot.role == "sampler" else plan.seeds.evaluator
        lines = [
            f"{slot.name} ({plan.env_spec.id or plan.backend.name}, seed {seed}) failed {slot.failures} times in a "
            f"row, the limit is {MOST_FAILURES}: {failure}"
        ]
        if isinstance(failure, WorkerRaisedError):
            lines.extend(failure.traceback.rstrip().splitlines())
        return WorkersFailedError(lines)

    def _slot(self, role: str, index: int, incarnation: int) -> Slot:
        return Slot(role, index, self._spawn(role, index, incarnation), incarnation)

    def _spawn(self, role: str, index: int, incarnation: int) -> Worker:
        name = f"{role} {index}"
        if role == "sampler":
            return self.transport.spawn(name, "omnirl.runtime.sampler:Sampler", self.plan, index, incarnation)
        return self.transport.spawn(name, "omnirl.runtime.evaluator:Evaluator", self.plan, index)

    # ---------------------------------------------------------------- the learners

    def replace_learners(self) -> None:
        """Put new learners in the place of those of which one died; samplers keep their environments but nothing to
        do."""
        self.restarts += self.learners.replace()
        for slot in self.slots:
            slot.requests, slot.busy_since = [], None
