"""The policy: a softmax of linear scores. It runs in samplers and evaluators.

Letters: B environments, F features (the observation and a 1), A actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from acme_reinforce.config import ReinforceConfig
from omnirl.api import (
    ActContext,
    ActionSample,
    Array,
    ArraySpec,
    DiscreteAction,
    EnvSpec,
    Obs,
    PolicyContext,
)


def weight_shape(spec: EnvSpec) -> tuple[int, int]:
    """(F, A). OmniRL has refused all else, by what the descriptor ``supports``."""
    assert isinstance(spec.observation, ArraySpec)
    assert isinstance(spec.action, DiscreteAction)
    return spec.observation.size + 1, spec.action.n


def features(obs: Obs, leading: int = 1) -> Array:
    """Observations with ``leading`` axes before their own -> [..., F] float32: flat, with a 1 for the intercept."""
    rows = np.asarray(obs, np.float32)
    axes = rows.shape[:leading]
    return np.concatenate([rows.reshape(*axes, -1), np.ones((*axes, 1), np.float32)], axis=-1)


class LinearPolicy:
    """See :class:`omnirl.api.Policy`."""

    def __init__(self, config: ReinforceConfig, spec: EnvSpec, context: PolicyContext) -> None:
        self._weight: Array = np.zeros(weight_shape(spec), np.float32)

    def choose_action(self, obs: Obs, act: ActContext) -> Array:
        """The most probable action, [B] int64."""
        best: Array = (features(obs) @ self._weight).argmax(axis=1)
        return best

    def sample_action(self, obs: Obs, act: ActContext) -> ActionSample:
        """Scores plus Gumbel noise are greatest at a sample of their softmax. The noise is the run's own."""
        scores = features(obs) @ self._weight
        return ActionSample((scores + act.rng.gumbel(size=scores.shape)).argmax(axis=1))

    def set_weights(self, weights: Mapping[str, Array]) -> None:
        """Strict about the names, as OmniRL asks."""
        if set(weights) != {"policy"}:
            raise KeyError(f"expected the weight 'policy', got {sorted(weights)}")
        self._weight = np.array(weights["policy"])

    def state_dict(self) -> dict[str, Any]:
        """Nothing is held between rollouts."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Nothing to restore."""
