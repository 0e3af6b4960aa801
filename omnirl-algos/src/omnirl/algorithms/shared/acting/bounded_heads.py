"""How the outputs of a replay policy's network become actions, in numpy. Imports no torch.

Continuous actions are squashed by tanh into [-1, 1] and scaled to environment units, in which they are stored.

Letters: B environments, A size of a continuous action, O outputs, n discrete actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from omnirl.algorithms.shared.acting.action_head import CategoricalHead
from omnirl.algorithms.shared.acting.distributions import NoiseBlock, normal
from omnirl.api import ActContext, ActionSpec, Array, ContinuousAction, DiscreteAction

LOG_STD_MIN, LOG_STD_MAX = -20.0, 2.0
"""Limits of the squashed Gaussian's log deviation (Haarnoja et al. 2018, their code)."""


class ExploringHead(Protocol):
    """From a network's outputs [B, O] to actions [B, *act] in environment units."""

    outputs: int

    def mode(self, outputs: Array) -> Array:
        """The best action."""

    def explore(self, outputs: Array, act: ActContext) -> Array:
        """An exploring action."""

    def state_dict(self) -> dict[str, Any]:
        """What is held between rollouts."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what ``state_dict`` gave."""


class Stateless:
    """A head that holds nothing between rollouts."""

    def state_dict(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Nothing to restore."""


def bounded_scale(spec: ContinuousAction) -> tuple[Array, Array]:
    """``(center, half_range)`` [A] float32: environment action = center + half_range * action in [-1, 1].

    However far apart the bounds are; where they are one number the half range is 1, so that it becomes 0.
    """
    low, high = (np.asarray(bound, np.float64) for bound in (spec.low, spec.high))
    half_range = np.where(high > low, (high - low) / 2, 1.0)
    return ((high + low) / 2).astype(np.float32), half_range.astype(np.float32)


class ActionScale:
    """Between actions in [-1, 1] and environment units."""

    def __init__(self, spec: ContinuousAction) -> None:
        self._center, self._half_range = bounded_scale(spec)
        self._low, self._high = spec.bounds()

    def to_environment(self, action: Array) -> Array:
        """[B, A] in [-1, 1] -> a new array [B, A] float32 within the bounds, the last bit included."""
        result: Array = action * self._half_range
        result += self._center
        np.maximum(result, self._low, out=result)
        return np.minimum(result, self._high, out=result)


class SquashedGaussianHead(Stateless):
    """Outputs [B, 2 A], mean and log deviation: tanh of a normal sample (Haarnoja et al. 2018, app. C)."""

    def __init__(self, spec: ContinuousAction, num_envs: int, rows: int) -> None:
        self._size = len(spec.low)
        self.outputs = 2 * self._size
        self._scale = ActionScale(spec)
        self._noise = NoiseBlock(normal, rows, (num_envs, self._size))

    def mode(self, outputs: Array) -> Array:
        """tanh of the mean."""
        return self._scale.to_environment(np.tanh(outputs[:, : self._size]))

    def explore(self, outputs: Array, act: ActContext) -> Array:
        """tanh of a sample."""
        log_std = outputs[:, self._size :]
        std = np.exp(np.minimum(np.maximum(log_std, LOG_STD_MIN), LOG_STD_MAX))
        std *= self._noise.next(act.rng)
        std += outputs[:, : self._size]
        return self._scale.to_environment(np.tanh(std, out=std))


class CategoricalExploringHead(Stateless):
    """Logits [B, n]: the most probable action, or a sample."""

    def __init__(self, spec: DiscreteAction, num_envs: int, rows: int) -> None:
        self.outputs = spec.n
        self._head = CategoricalHead(spec, num_envs, rows)

    def mode(self, outputs: Array) -> Array:
        """[B] int64; the first of equals."""
        return self._head.mode(outputs)

    def explore(self, outputs: Array, act: ActContext) -> Array:
        """A sample [B] int64."""
        return self._head.sample(outputs, act.rng).action


def entropy_head(
    spec: ActionSpec, num_envs: int, rows: int
) -> SquashedGaussianHead | CategoricalExploringHead:
    """The head of a policy that is random by itself; noise is drawn ``rows`` steps at a time."""
    if isinstance(spec, ContinuousAction):
        return SquashedGaussianHead(spec, num_envs, rows)
    assert isinstance(spec, DiscreteAction)
    return CategoricalExploringHead(spec, num_envs, rows)
