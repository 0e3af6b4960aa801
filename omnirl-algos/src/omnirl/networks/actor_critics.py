"""The networks of the actor-critic algorithms with replay: an actor, and critics in one ensemble with their targets.

Letters: M critics, N batch rows, D input size, O outputs of a critic.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from torch import Generator

from omnirl.api import ArraySpec
from omnirl.networks.build import build_network
from omnirl.networks.config import OffPolicyNetworkConfig
from omnirl.networks.ensemble import EnsembleMLP
from omnirl.networks.mlp import MLP
from omnirl.networks.own_network import OwnCritics, OwnNetwork

Actor: TypeAlias = MLP | OwnNetwork
Critics: TypeAlias = EnsembleMLP | OwnCritics


class ActorCritics(NamedTuple):
    """``actor``: observations -> its head's outputs. ``critics``: observations, with continuous actions behind them,
    [N, D] -> [M, N, O]. ``target_critics`` has their shapes and is not initialised."""

    actor: Actor
    critics: Critics
    target_critics: Critics


def build_actor(config: OffPolicyNetworkConfig, observation: ArraySpec, outputs: int) -> Actor:
    """An actor, not yet initialised."""
    actor = build_network(config, observation, outputs)
    assert isinstance(actor, MLP | OwnNetwork)
    return actor


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
    hidden, normalized = config.of_critics()

    def critics() -> Critics:
        if config.class_ is not None:
            sizes = (*hidden, critic_outputs)
            return OwnCritics(config, observation, num_critics, action_size, sizes, normalized)
        sizes = (observation.size + action_size, *hidden, critic_outputs)
        return EnsembleMLP(num_critics, sizes, config.activation, normalized)

    networks = ActorCritics(actor, critics(), critics())
    networks.critics.init_uniform(rng)
    return networks
