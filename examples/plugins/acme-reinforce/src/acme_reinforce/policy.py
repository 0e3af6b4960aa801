"""The policy: a softmax of linear scores. It runs in samplers and evaluators.

Letters: B environments, F features (the observation and a 1), A actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from acme_reinforce.config import ReinforceConfig
from omnirl.api import ActContext, ActionSample, Array, EnvSpec, PolicyContext


def features(obs: Array) -> Array:
    """Observations [..., *obs] of ``n`` numbers -> [..., n + 1] float32: flat, with a 1 for the intercept."""
    rows = np.asarray(obs, np.float32)
    return np.concatenate([rows, np.ones((*rows.shape[:-1], 1), np.float32)], axis=-1)


class LinearPolicy:
    """See :class:`omnirl.api.Policy`."""

    def __init__(self, config: ReinforceConfig, spec: EnvSpec, context: PolicyContext) -> None:
        self._weight = np.zeros((spec.observation.shape[0] + 1, spec.action.n), np.float32)

    def choose_action(self, obs: Array, act: ActContext) -> Array:
        """The most probable action, [B] int64."""
        return (features(obs) @ self._weight).argmax(axis=1)

    def sample_action(self, obs: Array, act: ActContext) -> ActionSample:
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
