"""The networks of the actor-critic algorithms with replay: an actor, and critics in one ensemble with their targets.

Letters: M critics, N batch rows, D input size, O outputs of a critic.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Generator

from omnirl.api import ArraySpec
from omnirl.networks.config import OffPolicyNetworkConfig
from omnirl.networks.ensemble import EnsembleMLP
from omnirl.networks.mlp import MLP


class ActorCritics(NamedTuple):
    """``actor``: observations -> its head's outputs. ``critics``: observations, with continuous actions behind them,
    [N, D] -> [M, N, O]. ``target_critics`` has their shapes and is not initialised."""

    actor: MLP
    critics: EnsembleMLP
    target_critics: EnsembleMLP


def build_actor(config: OffPolicyNetworkConfig, observation: ArraySpec, outputs: int) -> MLP:
    """An actor, not yet initialised."""
    return MLP((observation.size, *config.hidden_sizes, outputs), config.activation)


def build_actor_critics(
    config: OffPolicyNetworkConfig,
    observation: ArraySpec,
    rng: Generator,
    *,
    actor_outputs: int,
    action_size: int,
    num_critics: int,
    critic_outputs: int,
) -> ActorCritics:
    """Initialised as torch's own linear layers are, like the references. ``action_size`` is A of a continuous action,
    which critics are given, 0 of a discrete one."""
    actor = build_actor(config, observation, actor_outputs)
    actor.init_uniform(rng)
    hidden = config.critic_hidden_sizes or config.hidden_sizes
    sizes = (observation.size + action_size, *hidden, critic_outputs)
    critics, target_critics = (
        EnsembleMLP(num_critics, sizes, config.activation, config.critic_layer_norm) for _ in range(2)
    )
    critics.init_uniform(rng)
    return ActorCritics(actor, critics, target_critics)
