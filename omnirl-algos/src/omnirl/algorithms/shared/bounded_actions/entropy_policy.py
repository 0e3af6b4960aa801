"""The policy of SAC and TQC, which is random by itself. Imports no torch."""

from __future__ import annotations

from typing import Protocol

from omnirl.algorithms.shared.acting.bounded_heads import entropy_head
from omnirl.algorithms.shared.bounded_actions.head_policy import HeadPolicy
from omnirl.algorithms.shared.off_policy.config import RandomStartConfig
from omnirl.algorithms.shared.off_policy.replay_config import ReplayConfig
from omnirl.api import EnvSpec, PolicyContext
from omnirl.networks.config import NetworkConfig


class Entropic(Protocol):
    """A configuration of such an algorithm."""

    @property
    def memory(self) -> ReplayConfig:
        """The replay."""

    @property
    def policy(self) -> RandomStartConfig:
        """Acting."""

    @property
    def network(self) -> NetworkConfig:
        """The actor's network."""


class EntropyPolicy(HeadPolicy):
    """Evaluation takes tanh of the mean, or the most probable of discrete actions; collecting a sample."""

    def __init__(self, config: Entropic, spec: EnvSpec, context: PolicyContext) -> None:
        super().__init__(
            config.network,
            spec,
            context,
            head=entropy_head(spec.action, context.num_envs, config.memory.unroll_length),
            memory=config.memory,
            random_steps=config.policy.random_steps,
        )
