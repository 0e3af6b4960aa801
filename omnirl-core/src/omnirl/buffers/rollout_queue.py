"""The memory of on-policy learners: every rollout is learned from once, in the update that it is due for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from omnirl.api.algorithm import Clock
from omnirl.api.data import Feedback, Rollout


class RolloutQueue:
    """Rollouts by the update they are due for; a batch is the tuple of them, in order of arrival.

    A batch may be empty: with several learners, all rollouts of an update may be another's.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, list[Rollout]] = {}

    def __len__(self) -> int:
        """Rollouts waiting."""
        return sum(map(len, self._waiting.values()))

    def add(self, rollout: Rollout, due: int) -> None:
        """Keep ``rollout`` for the update that follows ``due`` others."""
        self._waiting.setdefault(due, []).append(rollout)

    def next_batch(self, clock: Clock) -> tuple[Rollout, ...]:
        """The rollouts due at ``clock.update``, which are then forgotten.

        Raises RuntimeError where one was due before: nothing would ever learn from it.
        """
        late = sorted(due for due in self._waiting if due < clock.update)
        if late:
            raise RuntimeError(f"rollouts due at updates {late} were still waiting at update {clock.update}")
        return tuple(self._waiting.pop(clock.update, ()))

    def feedback(self, feedback: Feedback) -> None:
        """Nothing: rollouts have no priorities and are gone after their update."""

    def state_dict(self) -> Mapping[str, Any]:
        """The waiting rollouts with their due updates, under ``"0"``, ``"1"``, ... in order of arrival."""
        pairs = [(due, rollout) for due, rollouts in self._waiting.items() for rollout in rollouts]
        return {
            str(i): {"due": due, "rollout": rollout_to_tree(rollout)}
            for i, (due, rollout) in enumerate(pairs)
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Hold what ``state_dict`` gave, and nothing else."""
        self._waiting = {}
        for i in range(len(state)):
            entry = state[str(i)]
            self.add(rollout_from_tree(entry["rollout"]), int(entry["due"]))


def rollout_to_tree(rollout: Rollout) -> dict[str, Any]:
    """The rollout's fields as nested dicts of copied arrays and JSON scalars."""
    return {f.name: _copied(getattr(rollout, f.name)) for f in dataclasses.fields(rollout)}


def rollout_from_tree(tree: Mapping[str, Any]) -> Rollout:
    """The rollout that :func:`rollout_to_tree` gave."""
    return Rollout(**{name: _copied(value) for name, value in tree.items()})


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _copied(entry) for name, entry in value.items()}
    return np.array(value) if isinstance(value, np.ndarray) else value
