"""The actions since the oldest unfinished episode began: what repeats the state of an environment.

Letters: T steps of a rollout, S steps of history, B sub-environments; ``*act`` the action's shape.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from omnirl.api.data import Array


class ActionHistory:
    """Blocks of actions ``[T, B, *act]``, trimmed to what the unfinished episodes need."""

    def __init__(self, num_envs: int) -> None:
        self._blocks: deque[Array] = deque()
        self._kept = 0  # steps in the blocks
        self._starts = np.zeros(
            num_envs, np.int64
        )  # of the unfinished episodes, counted from the first block

    def begin(self, index: int, ahead: int = 0) -> None:
        """An episode of sub-environment ``index`` begins ``ahead`` steps after the last one held."""
        self._starts[index] = self._kept + ahead

    def extend(self, actions: Array) -> None:
        """Append ``actions`` [T, B, *act], copied, and drop the blocks that no unfinished episode reaches."""
        self._blocks.append(actions.copy())
        self._kept += len(actions)
        oldest = int(self._starts.min())
        while self._blocks and len(self._blocks[0]) <= oldest:
            dropped = len(self._blocks.popleft())
            oldest -= dropped
            self._kept -= dropped
            self._starts -= dropped

    def since_oldest(self) -> tuple[Array, Array]:
        """``(actions [S, B, *act], starts [B])``: episode i began before step ``starts[i]``."""
        oldest = int(self._starts.min())
        if oldest == self._kept:
            return np.zeros((0, len(self._starts)), np.float32), self._starts - oldest
        return np.concatenate(list(self._blocks))[oldest:], self._starts - oldest

    def restore(self, actions: Array, starts: Array) -> None:
        """Hold what :meth:`since_oldest` gave."""
        self._blocks = deque([np.array(actions)] if len(actions) else [])
        self._kept = len(actions)
        self._starts = np.array(starts, np.int64)
