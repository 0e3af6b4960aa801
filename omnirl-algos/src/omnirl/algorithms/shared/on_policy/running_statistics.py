"""The running statistics of an on-policy learner, of observations and of returns, the same on every learner.

What one of several learners observes waits until the next update, and is then added on all of them, rollout after
rollout in the order of their requests: as one learner adds it at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from omnirl.algorithms.shared.acting.normalization import ObservationNormalizer, ReturnNormalizer
from omnirl.algorithms.shared.training.process_group import ProcessGroup
from omnirl.api import Array, Rollout

_KEY = 3  # numbers that say when a rollout was requested


class RunningStatistics:
    """Either may be missing: what is not normalised has no statistics."""

    def __init__(
        self,
        observations: ObservationNormalizer | None,
        returns: ReturnNormalizer | None,
        group: ProcessGroup,
    ) -> None:
        self.observations, self.returns = observations, returns
        self._group = group
        self._waiting: list[Array] = []  # of several learners: what was observed here since the last update

    def observe(self, rows: Array | None, rollout: Rollout) -> None:
        """Add a rollout whose vectors of observations are ``rows`` [N, V], which only their statistics need."""
        measured = []
        if self.observations is not None and rows is not None:
            measured.append(self.observations.measure(rows))
        if self.returns is not None:
            measured.append(self.returns.measure(rollout))
        if not measured:
            return
        whole = np.concatenate(((rollout.env_steps, rollout.sampler, rollout.number), *measured))
        if self._group.size == 1:
            self._take(whole)
        else:
            self._waiting.append(whole)

    def merge(self) -> None:
        """Add what all learners observed since the last time. Three collectives of several, which every rank makes."""
        if self._group.size == 1 or (self.observations is None and self.returns is None):
            return
        own = np.array(max(map(len, self._waiting), default=0))
        width = int(self._group.reduce(own, "max"))
        waiting = np.array(self._waiting, np.float64).reshape(len(self._waiting), width)
        table = np.concatenate(self._group.all_gather_rows(waiting))
        self._waiting.clear()
        for whole in sorted(table, key=lambda whole: tuple(whole[:_KEY])):
            self._take(whole)

    def _take(self, whole: Array) -> None:
        measured = whole[_KEY:]
        if self.observations is not None:
            size = self.observations.measured_size
            self.observations.take(measured[:size])
            measured = measured[size:]
        if self.returns is not None:
            self.returns.take(measured)

    def activate_first(self) -> None:
        """Before the first update: see :class:`ReturnNormalizer`."""
        if self.returns is not None:
            self.returns.activate_first()

    def activate(self) -> None:
        """After an update: what was added counts from now on."""
        for normalizer in (self.observations, self.returns):
            if normalizer is not None:
                normalizer.activate()

    def state_dict(self) -> dict[str, Any]:
        """Of both, and what waits."""
        return {
            "observations": {} if self.observations is None else self.observations.state_dict(),
            "returns": {} if self.returns is None else self.returns.state_dict(),
            "waiting": {
                "learner": [self._group.rank, self._group.size],
                "observed": {str(i): whole.copy() for i, whole in enumerate(self._waiting)},
            },
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what ``state_dict`` gave. KeyError or ValueError where it is of others."""
        if self.observations is not None:
            self.observations.load_state_dict(state["observations"])
        if self.returns is not None:
            self.returns.load_state_dict(state["returns"])
        waiting = state.get("waiting", {})
        # Where there were more or fewer learners, all are given the state of one: what waited there would count often.
        same = list(waiting.get("learner", ())) == [self._group.rank, self._group.size]
        observed = waiting["observed"] if same else {}
        self._waiting = [np.array(observed[str(i)], np.float64) for i in range(len(observed))]
