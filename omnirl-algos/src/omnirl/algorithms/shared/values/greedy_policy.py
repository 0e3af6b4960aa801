"""The policy of the value learners: the action of the greatest value, or with probability epsilon a random one.

Imports no torch, unless the observations are images. Letters: B environments, n actions, Z outputs of the network for
one action; ``*obs`` the spec's shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from omnirl.algorithms.shared.acting.acting_network import ActingNetwork, acting_network
from omnirl.algorithms.shared.acting.action_masks import LegalActions, legal_outputs
from omnirl.algorithms.shared.acting.observations import network_input, network_observation
from omnirl.algorithms.shared.names import check_names
from omnirl.algorithms.shared.values.config import ValueConfig
from omnirl.algorithms.shared.values.exploration import EpsilonGreedy
from omnirl.api import ActContext, ActionSample, Array, ArraySpec, DiscreteAction, EnvSpec, Obs, PolicyContext
from omnirl.networks.config import NetworkConfig


class NetworkBuilder(Protocol):
    """How a policy comes by its network."""

    def __call__(self, config: NetworkConfig, observation: ArraySpec, outputs: int) -> ActingNetwork:
        """As :func:`omnirl.algorithms.shared.acting.acting_network.acting_network`."""


class GreedyPolicy:
    """Greedy for evaluation, epsilon-greedy for collecting.

    ``build`` makes the network of ``row`` outputs per action, and ``values`` turns them into what they are worth:
    [B, n, row] -> [B, n]; without it the one output of an action is its value.
    """

    def __init__(
        self,
        config: ValueConfig,
        spec: EnvSpec,
        context: PolicyContext,
        *,
        build: NetworkBuilder = acting_network,
        row: int = 1,
        values: Callable[[Array], Array] | None = None,
    ) -> None:
        assert isinstance(spec.action, DiscreteAction)
        self._observation = network_observation(config.network, spec)
        self._network = build(config.network, self._observation, spec.action.n * row)
        self._shape = (-1, spec.action.n, row)
        self._values = values
        self._legal = LegalActions(spec, context)
        self._names = self._network.names()
        self._explore = EpsilonGreedy(
            config.policy.epsilon,
            config.policy.ladder_alpha,
            spec.action.n,
            config.memory.unroll_length,
            context,
        )

    def choose_action(self, obs: Obs, act: ActContext) -> Array:
        """The legal action of the greatest value, [B, *obs] -> [B] int64; the first of equals."""
        return self._greedy(obs, self._legal.mask(obs))

    def sample_action(self, obs: Obs, act: ActContext) -> ActionSample:
        """Epsilon-greedy actions [B] int64, legal ones."""
        mask = self._legal.mask(obs)
        return ActionSample(self._explore(lambda: self._greedy(obs, mask), act, mask))

    def _greedy(self, obs: Obs, mask: Array | None) -> Array:
        values = self._network(network_input(obs, self._observation))
        if self._values is not None:
            values = self._values(values.reshape(self._shape))
        action: Array = legal_outputs(values, mask).argmax(axis=1)
        return action

    def set_weights(self, weights: Mapping[str, Array]) -> None:
        """Act with these from now on. KeyError on a missing or extra name, ValueError on a wrong shape."""
        check_names(weights, self._names)
        self._network.set_weights(weights)

    def state_dict(self) -> dict[str, Any]:
        """Nothing is held between rollouts."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Nothing to restore."""
