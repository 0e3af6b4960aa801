"""Running statistics of observations and returns, and the rule by which they change. Imports no torch.

The statistics belong to the learner. What it observes is *pending*; it becomes *active* at the end of the
update that makes the next version of the weights, and travels with them. So whoever acts with a version and
whoever learns from it see the same numbers, and PPO's probability ratio begins at exactly 1.

Letters: N rows, T steps, B environments; ``*obs`` the observation's shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from omnirl.api import Array, Rollout

CLIP = 10.0
"""Normalised observations and rewards are clipped to +-10 (Huang et al. 2022, continuous details 6 and 8)."""
_EPSILON = 1e-8


class RunningMeanStd:
    """Mean and population variance [*shape] of all rows seen, float64; exact merges.

    ``count`` is what the start (mean 0, variance 1) weighs: 0 gives the exact statistics of the data, 1e-4
    the customary ones of OpenAI Baselines. Chan et al. 1979, eq. 2.1.
    """

    def __init__(self, shape: tuple[int, ...], count: float = 0.0) -> None:
        self.mean = np.zeros(shape, np.float64)
        self.var = np.ones(shape, np.float64)
        self.count = count

    def update(self, rows: Array) -> None:
        """Add the rows [N, *shape]. Rows of non-finite moments are left out altogether: one would spoil
        all."""
        self.merge(*moments(rows))

    def merge(self, mean: Array, var: Array, count: float) -> None:
        """Add ``count`` rows of this mean and population variance."""
        if count == 0:
            return
        total = self.count + count
        delta = mean - self.mean
        squares = self.var * self.count + var * count + delta**2 * (self.count * count / total)
        self.mean = self.mean + delta * (count / total)
        self.var = squares / total
        self.count = total

    def scale(self) -> Array:
        """1 / sqrt(var + 1e-8), float64."""
        result: Array = 1.0 / np.sqrt(self.var + _EPSILON)
        return result

    def state_dict(self) -> dict[str, Any]:
        """Copies of mean and variance, and the count."""
        return {"mean": self.mean.copy(), "var": self.var.copy(), "count": self.count}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what ``state_dict`` gave. ValueError where the shape does not fit."""
        if np.shape(state["mean"]) != self.mean.shape:
            raise ValueError(f"statistics of shape {np.shape(state['mean'])} do not fit {self.mean.shape}")
        self.mean, self.var = np.array(state["mean"], np.float64), np.array(state["var"], np.float64)
        self.count = float(state["count"])


def moments(rows: Array) -> tuple[Array, Array, float]:
    """Mean and population variance [*shape] of rows [N, *shape], float64, and N; a count of 0 says that they are to be
    left out, since there are none or some are not finite."""
    nothing = np.zeros(rows.shape[1:]), np.zeros(rows.shape[1:]), 0.0
    if len(rows) == 0:
        return nothing
    rows = rows.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        mean, var = rows.mean(axis=0), rows.var(axis=0)
    finite = np.isfinite(mean).all() and np.isfinite(var).all()
    return (mean, var, float(len(rows))) if finite else nothing


def normalize(rows: Array, mean: Array, scale: Array) -> Array:
    """clip((rows - mean) * scale, -10, 10), float32 [N, *obs]."""
    result = np.subtract(rows, mean, dtype=np.float32)
    result *= scale
    return np.clip(result, -CLIP, CLIP, out=result)


class ObservationNormalizer:
    """Observations to mean 0 and variance 1; before the first update they pass unchanged but for the clip."""

    NAMES = ("normalizer.mean", "normalizer.scale")

    def __init__(self, size: int) -> None:
        self.pending = RunningMeanStd((size,))
        self.mean: Array = np.zeros(size, np.float32)
        self.scale: Array = np.ones(size, np.float32)

    def observe(self, rows: Array) -> None:
        """Add observations [N, size] to the pending statistics."""
        self.take(self.measure(rows))

    @property
    def measured_size(self) -> int:
        """How many numbers ``measure`` gives: 2 size + 1."""
        return 2 * len(self.mean) + 1

    def measure(self, rows: Array) -> Array:
        """What is to be added for observations [N, size], as numbers that another process may take."""
        mean, var, count = moments(rows)
        return np.concatenate((mean, var, (count,)))

    def take(self, measured: Array) -> None:
        """Add what was measured, here or on another learner."""
        size = len(self.mean)
        self.pending.merge(measured[:size], measured[size:-1], float(measured[-1]))

    def activate(self) -> None:
        """Make the pending statistics the active ones."""
        if self.pending.count > 0:
            self.mean, self.scale = (
                self.pending.mean.astype(np.float32),
                self.pending.scale().astype(np.float32),
            )

    def __call__(self, rows: Array) -> Array:
        """Normalise [N, size] with the active statistics."""
        return normalize(rows, self.mean, self.scale)

    def weights(self) -> dict[str, Array]:
        """The active statistics, by the names under which they travel with the weights."""
        return {"normalizer.mean": self.mean.copy(), "normalizer.scale": self.scale.copy()}

    def state_dict(self) -> dict[str, Any]:
        """Pending and active statistics."""
        return {"pending": self.pending.state_dict(), "mean": self.mean.copy(), "scale": self.scale.copy()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what ``state_dict`` gave."""
        self.pending.load_state_dict(state["pending"])
        self.mean, self.scale = np.array(state["mean"], np.float32), np.array(state["scale"], np.float32)


class ReturnNormalizer:
    """Rewards divided by the standard deviation of the discounted return; no mean is subtracted, no sign
    changes.

    The return R = gamma R + r runs on through an episode and starts anew after its end. It runs on from one
    rollout of a sampler to the next when that is the next of the same incarnation; otherwise it starts anew.
    """

    def __init__(self, gamma: float, count: float = 0.0) -> None:
        self.pending = RunningMeanStd((), count)
        self.scale = 1.0
        self._active = False
        self._gamma = gamma
        self._streams: dict[int, tuple[int, int, Array]] = {}  # sampler: incarnation, number, R [B]

    def observe(self, rollout: Rollout) -> None:
        """Add the discounted returns of T x B steps to the pending statistics."""
        self.take(self.measure(rollout))

    def measure(self, rollout: Rollout) -> Array:
        """What is to be added for T x B steps, and where the sampler's returns stand after them, as numbers [6 + B]
        that another process may take; the next rollout of the sampler goes on from there."""
        steps, envs = rollout.reward.shape
        incarnation, number, current = self._streams.get(rollout.sampler, (-1, -1, np.zeros(0)))
        goes_on = (incarnation, number + 1, len(current)) == (rollout.incarnation, rollout.number, envs)
        # An episode may begin here without an end before: after a restart that could not repeat the last one.
        running = np.where(rollout.first[0], 0.0, current) if goes_on else np.zeros(envs)
        returns = np.empty((steps, envs))
        goes_on_after = ~(rollout.terminated | rollout.truncated)
        for t in range(steps):
            running *= self._gamma
            running += rollout.reward[t]
            returns[t] = running
            running *= goes_on_after[t]
        mean, var, count = moments(returns.reshape(-1))
        stream = (rollout.sampler, rollout.incarnation, rollout.number)
        measured = np.concatenate(((float(mean), float(var), count, *stream), running))
        self._place(measured)
        return measured

    def take(self, measured: Array) -> None:
        """Add what was measured, here or on another learner."""
        mean, var, count = measured[:3]
        self.pending.merge(mean, var, float(count))
        self._place(measured)

    def _place(self, measured: Array) -> None:
        sampler, incarnation, number = map(int, measured[3:6])
        running = measured[6:].copy()
        if np.isfinite(running).all():
            self._streams[sampler] = (incarnation, number, running)
        else:
            self._streams.pop(sampler, None)

    def activate(self) -> None:
        """Make the pending statistics the active ones."""
        if self.pending.count > 0:
            self.scale, self._active = float(self.pending.scale()), True

    def activate_first(self) -> None:
        """Before the first update: activate at once. Rewards are scaled in the learner alone, so no ratio
        depends on it, and a first update on unscaled returns would drive the value network far off."""
        if not self._active:
            self.activate()

    def __call__(self, rewards: Array) -> Array:
        """clip(rewards / std, -10, 10), float32, of the same shape."""
        return np.clip(rewards * self.scale, -CLIP, CLIP).astype(np.float32)

    def state_dict(self) -> dict[str, Any]:
        """Pending and active statistics, and the streams."""
        streams = {
            str(sampler): {"incarnation": incarnation, "number": number, "running": running.copy()}
            for sampler, (incarnation, number, running) in self._streams.items()
        }
        return {
            "pending": self.pending.state_dict(),
            "scale": self.scale,
            "active": self._active,
            "streams": streams,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what ``state_dict`` gave."""
        self.pending.load_state_dict(state["pending"])
        self.scale, self._active = float(state["scale"]), bool(state["active"])
        self._streams = {
            int(sampler): (int(stream["incarnation"]), int(stream["number"]), np.array(stream["running"]))
            for sampler, stream in state["streams"].items()
        }
