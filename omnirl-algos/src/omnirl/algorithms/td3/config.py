"""TD3's keys, and the numbers that pace a run. Imports no torch."""

from __future__ import annotations

from pydantic import Field

from omnirl import api
from omnirl.algorithms.shared.bounded_actions.noisy_policy_config import NoisyPolicyConfig
from omnirl.algorithms.shared.off_policy.config import (
    OffPolicyLearnerConfig,
    OffPolicyMemoryConfig,
)
from omnirl.algorithms.shared.off_policy.replay_config import replay_flow
from omnirl.api import DataFlow, FlowContext, NonNegative, PositiveInt
from omnirl.networks.config import CriticsNetworkConfig


class LearnerConfig(OffPolicyLearnerConfig):
    """The update."""

    policy_delay: PositiveInt = Field(
        default=2, description="updates of the critics per update of the actor and of all target networks"
    )
    target_noise: NonNegative = Field(
        default=0.2,
        description="standard deviation of the noise on the target action, in half ranges of the action",
    )
    target_noise_clip: NonNegative = Field(
        default=0.5, description="greatest noise on the target action, in half ranges of the action"
    )


class Config(api.Config):
    """TD3's four sections."""

    learner: LearnerConfig = Field(default=LearnerConfig(), description="the update")
    memory: OffPolicyMemoryConfig = Field(default=OffPolicyMemoryConfig(), description="the replay")
    policy: NoisyPolicyConfig = Field(default=NoisyPolicyConfig(), description="acting")
    network: CriticsNetworkConfig = Field(default=CriticsNetworkConfig(), description="actor and critics")


def data_flow(config: Config, context: FlowContext) -> DataFlow:
    """An update per ``steps_per_update`` steps; see :func:`replay_flow`."""
    return replay_flow(config.memory, config.learner.steps_per_update, context)
