"""How an on-policy policy's network outputs become actions, in numpy. Imports no torch.

Letters: T steps, B environments; n actions, P positions of a multi-discrete action; A size of a continuous
one; O outputs; N rows (any leading axes in one).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from omnirl.algorithms.shared.acting.distributions import (
    NoiseBlock,
    categorical_log_prob,
    gaussian_log_prob,
    gumbel,
    normal,
)
from omnirl.api import ActionSample, ActionSpec, Array, ContinuousAction, DiscreteAction, MultiDiscreteAction

_WIDEST = 1e6  # a wider box is a stand-in for no bounds; scaling to it would make every action huge


def action_scale(spec: ContinuousAction) -> tuple[Array, Array]:
    """``(center, half_range)`` [A] float32: environment action = center + half_range * network action.

    A dimension without (sensible) bounds is not scaled.
    """
    low, high = (np.asarray(bound, np.float64) for bound in (spec.low, spec.high))
    with np.errstate(invalid="ignore"):
        bounded = (high > low) & (high - low <= _WIDEST)
        center = np.where(bounded, (high + low) / 2, 0.0)
        half_range = np.where(bounded, (high - low) / 2, 1.0)
    return center.astype(np.float32), half_range.astype(np.float32)


def num_outputs(spec: ActionSpec) -> int:
    """O: logits of a discrete action, means of a continuous one."""
    if isinstance(spec, DiscreteAction):
        return spec.n
    return sum(spec.nvec) if isinstance(spec, MultiDiscreteAction) else len(spec.low)


class CategoricalHead:
    """Logits [B, O] -> actions of one or several independent choices; noise is drawn ``rows`` steps at a
    time."""

    def __init__(self, spec: DiscreteAction | MultiDiscreteAction, num_envs: int, rows: int) -> None:
        nvec = (spec.n,) if isinstance(spec, DiscreteAction) else spec.nvec
        self._single = isinstance(spec, DiscreteAction)
        self._edges = np.cumsum((0, *nvec)).tolist()
        self._noise = NoiseBlock(gumbel, rows, (num_envs, sum(nvec)))

    def mode(self, outputs: Array) -> Array:
        """The most probable action: [B] or [B, P] int64; the first of equals."""
        if self._single:
            action: Array = outputs.argmax(axis=1)
            return action
        return np.stack(
            [outputs[:, begin:end].argmax(axis=1) for begin, end in pairwise(self._edges)], axis=1
        )

    def sample(self, outputs: Array, rng: np.random.Generator) -> ActionSample:
        """A sample and its logits, from which ``log_prob`` is computed once per rollout."""
        return ActionSample(self.mode(outputs + self._noise.next(rng)), {"outputs": outputs})

    def log_prob(self, outputs: Array, action: Array) -> Array:
        """log pi(action) [T, B]; outputs [T, B, O], action [T, B] or [T, B, P]."""
        if self._single:
            return categorical_log_prob(outputs, action)
        log_probs = [
            categorical_log_prob(outputs[..., begin:end], action[..., i])
            for i, (begin, end) in enumerate(pairwise(self._edges))
        ]
        total: Array = np.sum(log_probs, axis=0)
        return total

    def network_action(self, action: Array) -> Array:
        """The action as the learner's network takes it: [N, P] int64."""
        return action.reshape(-1, len(self._edges) - 1)


class GaussianHead:
    """Means [B, A] -> continuous actions in environment units, unclipped; one log_std [A] for all states."""

    def __init__(self, spec: ContinuousAction, num_envs: int, rows: int) -> None:
        self.center, self.half_range = action_scale(spec)
        self._noise = NoiseBlock(normal, rows, (num_envs, len(spec.low)))
        self._log_std: Array = np.zeros(len(spec.low), np.float32)
        self._std: Array = np.ones(len(spec.low), np.float32)

    def set_log_std(self, log_std: Array) -> None:
        """Take a copy of [A]. ValueError on a wrong shape."""
        if log_std.shape != self._log_std.shape:
            raise ValueError(f"log_std: shape {log_std.shape} does not fit {self._log_std.shape}")
        self._log_std = np.array(log_std, np.float32)
        self._std = np.exp(self._log_std)

    def mode(self, outputs: Array) -> Array:
        """The mean action [B, A]."""
        result: Array = self.center + self.half_range * outputs
        return result

    def sample(self, outputs: Array, rng: np.random.Generator) -> ActionSample:
        """A sample and its mean, from which ``log_prob`` is computed once per rollout."""
        return ActionSample(self.mode(outputs + self._std * self._noise.next(rng)), {"outputs": outputs})

    def log_prob(self, outputs: Array, action: Array) -> Array:
        """log density of the network's own action [T, B]; outputs and action [T, B, A].

        It differs from the density in environment units by a constant, which no ratio sees.
        """
        return gaussian_log_prob(outputs, self._log_std, self._own(action))

    def network_action(self, action: Array) -> Array:
        """The action as the learner's network takes it: [N, A] float32."""
        return self._own(action).reshape(-1, len(self.center))

    def _own(self, action: Array) -> Array:
        result: Array = (action - self.center) / self.half_range
        return result


def make_head(spec: ActionSpec, num_envs: int, rows: int) -> CategoricalHead | GaussianHead:
    """The head for this action; noise is drawn ``rows`` steps at a time."""
    if isinstance(spec, ContinuousAction):
        return GaussianHead(spec, num_envs, rows)
    return CategoricalHead(spec, num_envs, rows)
