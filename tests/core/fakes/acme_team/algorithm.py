"""The toy algorithm for several learners that are threads of one process: they reduce through a table that they share.

``agent: {module: acme_team.algorithm}``. ``EVENTS`` notes what each rank was asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from omnirl.api import Array, Clock, LearnerContext, LearnerLostError, Rollout
from omnirl.testing.algorithm import ALGORITHM as TOY
from omnirl.testing.toy import ToyLearner

ALGORITHM = replace(
    TOY, name="team", supports=replace(TOY.supports, learners=True), learner="acme_team.algorithm:TeamLearner"
)
EVENTS: list[tuple[Any, ...]] = []
TABLES: dict[str, Table] = {}
LOCK = threading.Lock()


class Table:
    """Where the ranks of a rendezvous lay down their arrays."""

    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size)
        self.arrays: dict[int, Array] = {}

    @classmethod
    def at(cls, rendezvous: str, size: int) -> Table:
        """The one of a rendezvous; whoever comes first brings it."""
        with LOCK:
            return TABLES.setdefault(rendezvous, cls(size))

    def reduce(self, rank: int, array: Array, op: Literal["sum", "max"]) -> Array:
        """In rank order."""
        self.arrays[rank] = array
        self.meet()
        stacked = np.stack([self.arrays[other] for other in sorted(self.arrays)])
        self.meet()
        return np.asarray(stacked.sum(axis=0) if op == "sum" else stacked.max(axis=0))

    def meet(self) -> None:
        """Wait for the others."""
        try:
            self.barrier.wait()
        except threading.BrokenBarrierError as error:
            raise LearnerLostError("another learner was lost") from error


class TeamLearner(ToyLearner):
    """Of one rank."""

    def __init__(self, config: Any, spec: Any, context: LearnerContext) -> None:
        super().__init__(config, spec, context)
        self.rank = context.rank
        EVENTS.append(("built", context.rank, context.world_size, context.rendezvous))
        self.table = None
        if context.rendezvous is not None:
            self.table = Table.at(context.rendezvous, context.world_size)
            self.table.meet()

    def observe(self, rollout: Rollout) -> None:
        EVENTS.append(("observe", self.rank, rollout.sampler))
        super().observe(rollout)

    def learn(self, batch: Any, clock: Clock) -> Any:
        EVENTS.append(("learn", self.rank, clock.update))
        return super().learn(batch, clock)

    def metrics(self) -> Mapping[str, float]:
        EVENTS.append(("metrics", self.rank, self._version))
        return {**super().metrics(), "weight_mean": float(self.rank)}

    def reduce(self, array: Array, op: Literal["sum", "max"]) -> Array:
        return array if self.table is None else self.table.reduce(self.rank, array, op)
