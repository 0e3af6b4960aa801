"""The policy of the on-policy learners: a numpy forward pass, noise in blocks, log-probabilities once per rollout.

Illegal actions are never taken: the outputs that are kept are those of legal actions, the others far below.

Imports no torch, unless the observations are images. Letters: T steps, B environments; ``*obs``, ``*act``
the spec's shapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from omnirl.algorithms.shared.acting.acting_network import acting_network
from omnirl.algorithms.shared.acting.action_head import GaussianHead, make_head, num_outputs
from omnirl.algorithms.shared.acting.action_masks import LegalActions, legal_outputs
from omnirl.algorithms.shared.acting.normalization import ObservationNormalizer, normalize
from omnirl.algorithms.shared.acting.observations import network_input, network_observation, with_vectors
from omnirl.algorithms.shared.names import check_names
from omnirl.algorithms.shared.on_policy.config import OnPolicyConfig
from omnirl.api import ActContext, ActionSample, Array, EnvSpec, Obs, PolicyContext


class StochasticPolicy:
    """Acts with the policy tower alone; values are the learner's business."""

    def __init__(self, config: OnPolicyConfig, spec: EnvSpec, context: PolicyContext) -> None:
        self._observation = network_observation(config.network, spec)
        self.head = make_head(spec.action, context.num_envs, config.memory.unroll_length)
        self._network = acting_network(config.network, self._observation, num_outputs(spec.action), "policy.")
        self._legal = LegalActions(spec, context)
        self._names = self._network.names()
        if isinstance(self.head, GaussianHead):
            self._names.append("log_std")
        self._normalize = config.learner.normalize_observations
        if self._normalize:
            self._names.extend(ObservationNormalizer.NAMES)
        self._mean = self._scale = np.zeros(0, np.float32)

    def choose_action(self, obs: Obs, act: ActContext) -> Array:
        """The most probable legal action, [B, *obs] -> [B, *act], in environment units."""
        return self.head.mode(self._outputs(obs))

    def sample_action(self, obs: Obs, act: ActContext) -> ActionSample:
        """A sample [B, *act] in environment units, unclipped, and the network's outputs for it."""
        return self.head.sample(self._outputs(obs), act.rng)

    def finish(self, extras: Mapping[str, Array]) -> dict[str, Array]:
        """``outputs`` and ``action`` of a rollout -> ``log_prob`` [T, B] float32."""
        return {
            "log_prob": self.head.log_prob(extras["outputs"], extras["action"]).astype(np.float32, copy=False)
        }

    def set_weights(self, weights: Mapping[str, Array]) -> None:
        """Act with these from now on. KeyError on a missing or extra name, ValueError on a wrong shape."""
        check_names(weights, self._names)
        self._network.set_weights(weights)
        if isinstance(self.head, GaussianHead):
            self.head.set_log_std(weights["log_std"])
        if self._normalize:
            self._mean, self._scale = (
                np.array(weights[name], np.float32) for name in ObservationNormalizer.NAMES
            )

    def _outputs(self, obs: Obs) -> Array:
        rows = network_input(obs, self._observation)
        if self._normalize:
            rows = with_vectors(rows, self._observation, self._normalized)
        return legal_outputs(self._network(rows), self._legal.mask(obs))

    def _normalized(self, vectors: Array) -> Array:
        return normalize(vectors, self._mean, self._scale)

    def state_dict(self) -> dict[str, Any]:
        """Nothing is held between rollouts."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Nothing to restore."""
