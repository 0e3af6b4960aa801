"""Step several single environments one after the other in this process.

Letters: B sub-environments; ``*obs``, ``*act`` the spec's shapes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from omnirl.api.data import Array, Obs, Step
from omnirl.api.specs import DictSpec, ObservationSpec
from omnirl.loops import observations
from omnirl.testing.single import SingleEnvironment


class InlineEnvironment:
    """An :class:`omnirl.api.Environment` of ``singles``, B of one observation and action.

    ``reuse`` is the meanest allowed reading of the interface: every step and every reset write into the same
    arrays, and ``final_obs`` is ``obs``. Raises RuntimeError where a sub-environment is stepped before it
    was reset, or on past its end.
    """

    seedable = True

    def __init__(self, singles: Sequence[SingleEnvironment], reuse: bool = False) -> None:
        self.singles = list(singles)
        self.num_envs = len(self.singles)
        self.closed = False
        self._reuse = reuse
        self._arrays = self._allocate()
        self._ready = [False] * self.num_envs

    def reset(self, index: int, seed: int) -> Obs:
        """Begin an episode of sub-environment ``index``; its first observation [*obs]."""
        row = self.singles[index].reset(seed)
        self._ready[index] = True
        if self._reuse:
            observations.write(self._arrays.obs, index, row)
        return row

    def step(self, action: Array) -> Step:
        """Step every sub-environment with its row of ``action`` [B, *act]."""
        if not all(self._ready):
            raise RuntimeError(
                f"sub-environments {np.flatnonzero(~np.array(self._ready)).tolist()} need a reset first"
            )
        result = self._arrays if self._reuse else self._allocate()
        for i, single in enumerate(self.singles):
            row, reward, terminated, truncated = single.step(action[i])
            observations.write(result.obs, i, row)
            result.reward[i] = reward
            result.terminated[i] = terminated
            result.truncated[i] = truncated
            self._ready[i] = not (terminated or truncated)
        return result

    def close(self) -> None:
        """Note that it was closed."""
        self.closed = True

    def _allocate(self) -> Step:
        obs = _zeros(self.singles[0].observation, self.num_envs)
        flags = np.zeros((2, self.num_envs), np.bool_)
        return Step(obs, np.zeros(self.num_envs, np.float32), flags[0], flags[1], obs)


def _zeros(spec: ObservationSpec, count: int) -> Obs:
    if isinstance(spec, DictSpec):
        return {name: np.zeros((count, *entry.shape), entry.dtype) for name, entry in spec.entries}
    return np.zeros((count, *spec.shape), spec.dtype)
