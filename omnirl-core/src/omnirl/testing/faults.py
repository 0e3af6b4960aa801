"""Environments that misbehave on purpose: what a run must survive, or end on with a good message."""

from __future__ import annotations

import time
from typing import Literal

import numpy as np

from omnirl.api.data import Array
from omnirl.testing.chains import Count

Mode = Literal["raise", "nan_reward", "nan_obs", "hang"]


class BadEnvironmentError(RuntimeError):
    """What :class:`Bad` raises."""


class Bad(Count):
    """Counts, and goes wrong at step ``at`` of its life (from 1, over all episodes): ``times`` times, or ever after.

    ``mode``: ``"raise"`` an error, a ``"nan_reward"``, a ``"nan_obs"``, or ``"hang"`` for ever.
    """

    def __init__(self, mode: Mode = "raise", at: int = 5, length: int = 10, times: int | None = None) -> None:
        super().__init__(length)
        self._last = float("inf") if times is None else at + times - 1
        self._mode = mode
        self._at = at
        self._life = 0

    def step(self, action: Array) -> tuple[Array, float, bool, bool]:
        """Count until it is time."""
        obs, reward, terminated, truncated = super().step(action)
        self._life += 1
        if self._at <= self._life <= self._last:
            if self._mode == "raise":
                raise BadEnvironmentError(f"step {self._life} of a bad environment")
            while self._mode == "hang":
                time.sleep(0.05)
            if self._mode == "nan_obs":
                obs = np.full_like(obs, np.nan)
            else:
                reward = float("nan")
        return obs, reward, terminated, truncated


class Sleepy(Count):
    """Counts, sleeping ``ms`` milliseconds in every step: a slow simulator that needs no processor."""

    def __init__(self, ms: float = 1.0, length: int = 10) -> None:
        super().__init__(length)
        self._seconds = ms / 1000.0

    def step(self, action: Array) -> tuple[Array, float, bool, bool]:
        """Sleep, then count."""
        time.sleep(self._seconds)
        return super().step(action)
