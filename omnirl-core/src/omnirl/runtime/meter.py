"""Clocks and rates of a run: what the live display and the summary show, and when the next row or save is due."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from omnirl.api.observer import Progress
from omnirl.runtime.pacing import Pacing
from omnirl.runtime.supervision import Crew

_GLANCE_SECONDS = 0.25
_RATE_SECONDS = 5.0
_RECENT_EPISODES = 50


class Meter:
    """Wall time goes on across resumes; rates do not."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._wall_before = 0.0
        self._row = self._save = self._began
        self._saved_once = False
        self._glance = 0.0
        self._points: deque[tuple[float, int, int]] = deque()
        self._returns: deque[float] = deque(maxlen=_RECENT_EPISODES)
        self._lags: deque[int] = deque(maxlen=_RECENT_EPISODES)
        self._first_updates = self._first_steps = 0
        self._warm: tuple[float, int, int] | None = None
        self._latest = (self._began, 0, 0)

    def restore(self, wall: float) -> None:
        """Go on counting wall time from a checkpoint's."""
        self._wall_before, self._began = wall, time.perf_counter()

    def begin(self, pacing: Pacing) -> None:
        """Training begins, or goes on from a checkpoint, now: start-up does not count, nor do rates of before."""
        self._began = self._row = self._save = time.perf_counter()
        self._first_updates, self._first_steps = pacing.updates, pacing.collected
        self._warm, self._latest = None, (self._began, pacing.collected, pacing.updates)
        self._points.clear()

    def wall(self) -> float:
        """Seconds of training in the whole run."""
        return self._wall_before + time.perf_counter() - self._began

    def rollout(self, lag: int | None, episodes: Sequence[tuple[float, int]]) -> None:
        """A rollout arrived."""
        if lag is not None:
            self._lags.append(lag)
        self._returns.extend(total for total, _ in episodes)

    def advanced(self, pacing: Pacing) -> None:
        """Updates were made."""
        self._latest = (time.perf_counter(), pacing.collected, pacing.updates)
        if self._warm is None and pacing.updates >= self._first_updates + 2:
            self._warm = self._latest

    def row_age(self) -> float:
        """Seconds since the last row."""
        return time.perf_counter() - self._row

    def row_written(self) -> None:
        """A row was written."""
        self._row = time.perf_counter()

    def checkpoint_age(self) -> float:
        """Seconds since the last save, or since training began."""
        return time.perf_counter() - self._save

    def saved(self) -> None:
        """A save was begun."""
        self._save = time.perf_counter()
        self._saved_once = True

    def rates(self, pacing: Pacing) -> tuple[float, float]:
        """Steps and updates per second between the second and the last update."""
        if self._warm is None or self._latest[0] <= self._warm[0]:
            seconds = max(time.perf_counter() - self._began, 1e-9)
            steps = pacing.collected - self._first_steps  # those of a run resumed were not made now
            return steps / seconds, (pacing.updates - self._first_updates) / seconds
        seconds = self._latest[0] - self._warm[0]
        return (self._latest[1] - self._warm[1]) / seconds, (self._latest[2] - self._warm[2]) / seconds

    def glance_due(self) -> bool:
        """Whether the display wants news."""
        now = time.perf_counter()
        if now - self._glance < _GLANCE_SECONDS:
            return False
        self._glance = now
        return True

    def glance(self, pacing: Pacing, evaluation: Mapping[str, float], crew: Crew) -> Progress:
        """What the display shows."""
        now = time.perf_counter()
        self._points.append((now, pacing.collected, pacing.updates))
        while len(self._points) > 2 and now - self._points[0][0] > _RATE_SECONDS:
            self._points.popleft()
        began, steps, updates = self._points[0]
        seconds = max(now - began, 1e-9)
        moving = len(self._points) > 1
        updates_per_s = (pacing.updates - updates) / seconds if moving else 0.0
        left = pacing.target.updates - pacing.updates
        return Progress(
            updates=pacing.updates,
            env_steps=pacing.collected,
            seconds=self.wall(),
            steps_per_s=(pacing.collected - steps) / seconds if moving else 0.0,
            updates_per_s=updates_per_s,
            train_return=float(np.mean(self._returns)) if self._returns else None,
            train_return_std=float(np.std(self._returns)) if self._returns else None,
            eval_return=evaluation.get("return_mean"),
            lag_p50=float(np.median(self._lags)) if self._lags else 0.0,
            lag_max=max(self._lags, default=0),
            samplers_alive=len(crew.samplers),
            checkpoint_age=self.checkpoint_age() if self._saved_once else None,
            eta_s=left / updates_per_s if updates_per_s > 0 else None,
        )
