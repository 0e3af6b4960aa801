"""The policy of the actor-critic algorithms with replay: a network, a head and a random start.

Imports no torch, unless the observations are images. Letters: B environments; ``*obs``, ``*act`` the spec's
shapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnirl.algorithms.shared.acting.acting_network import acting_network
from omnirl.algorithms.shared.acting.bounded_heads import ExploringHead
from omnirl.algorithms.shared.acting.observations import network_input, network_observation
from omnirl.algorithms.shared.bounded_actions.random_start import RandomStart
from omnirl.algorithms.shared.names import check_names
from omnirl.algorithms.shared.off_policy.replay_config import ReplayConfig
from omnirl.api import ActContext, ActionSample, Array, EnvSpec, Obs, PolicyContext
from omnirl.networks.config import NetworkConfig


class HeadPolicy:
    """Acts with the actor's network alone; critics are the learner's business.

    ``random_steps`` is how many steps of the whole run are uniformly random (None: those of the warm-up).
    """

    def __init__(
        self,
        network: NetworkConfig,
        spec: EnvSpec,
        context: PolicyContext,
        *,
        head: ExploringHead,
        memory: ReplayConfig,
        random_steps: int | None,
    ) -> None:
        self._observation = network_observation(network, spec)
        self._network = acting_network(network, self._observation, head.outputs, "")
        self._names = self._network.names()
        self._head = head
        self._random_start = RandomStart(
            spec.action,
            memory.warmup_steps if random_steps is None else random_steps,
            context.num_envs,
            memory.unroll_length,
        )

    def choose_action(self, obs: Obs, act: ActContext) -> Array:
        """The best action, [B, *obs] -> [B, *act], in environment units."""
        return self._head.mode(self._outputs(obs))

    def sample_action(self, obs: Obs, act: ActContext) -> ActionSample:
        """An exploring action [B, *act] in environment units."""
        return ActionSample(self._random_start(lambda: self._head.explore(self._outputs(obs), act), act))

    def set_weights(self, weights: Mapping[str, Array]) -> None:
        """Act with these from now on. KeyError on a missing or extra name, ValueError on a wrong shape."""
        check_names(weights, self._names)
        self._network.set_weights(weights)

    def state_dict(self) -> dict[str, Any]:
        """What the exploration holds between rollouts."""
        return self._head.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what ``state_dict`` gave."""
        self._head.load_state_dict(state)

    def _outputs(self, obs: Obs) -> Array:
        return self._network(network_input(obs, self._observation))
