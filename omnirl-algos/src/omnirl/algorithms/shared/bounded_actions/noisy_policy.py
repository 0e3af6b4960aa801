"""The policy of DDPG and TD3: tanh of the actor's output, with noise when exploring. Imports no torch."""

from __future__ import annotations

from typing import Protocol

from omnirl.algorithms.shared.bounded_actions.action_noise import TanhHead
from omnirl.algorithms.shared.bounded_actions.head_policy import HeadPolicy
from omnirl.algorithms.shared.bounded_actions.noisy_policy_config import NoisyPolicyConfig
from omnirl.algorithms.shared.off_policy.replay_config import ReplayConfig
from omnirl.api import ContinuousAction, EnvSpec, PolicyContext
from omnirl.networks.config import NetworkConfig


class Noisy(Protocol):
    """A configuration of such an algorithm."""

    @property
    def memory(self) -> ReplayConfig:
        """The replay."""

    @property
    def policy(self) -> NoisyPolicyConfig:
        """Acting."""

    @property
    def network(self) -> NetworkConfig:
        """The actor's network."""


class NoisyPolicy(HeadPolicy):
    """Evaluation takes no noise."""

    def __init__(self, config: Noisy, spec: EnvSpec, context: PolicyContext) -> None:
        assert isinstance(spec.action, ContinuousAction)
        super().__init__(
            config.network,
            spec,
            context,
            head=TanhHead(spec.action, config.policy.noise, context.num_envs, config.memory.unroll_length),
            memory=config.memory,
            random_steps=config.policy.random_steps,
        )
