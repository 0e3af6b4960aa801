"""DDPG's keys, and the numbers that pace a run. Imports no torch."""

from __future__ import annotations

from pydantic import Field

from omnirl import api
from omnirl.algorithms.shared.bounded_actions.noisy_policy_config import NoisyPolicyConfig
from omnirl.algorithms.shared.off_policy.config import (
    OffPolicyLearnerConfig,
    OffPolicyMemoryConfig,
)
from omnirl.algorithms.shared.off_policy.replay_config import replay_flow
from omnirl.algorithms.shared.schedule_fields import NonNegativeSchedule
from omnirl.api import Constant, DataFlow, FlowContext
from omnirl.networks.config import OffPolicyNetworkConfig


class LearnerConfig(OffPolicyLearnerConfig):
    """The update."""

    lr: NonNegativeSchedule = Field(
        default=Constant(value=1e-3), description="learning rate of the actor's Adam"
    )


class Config(api.Config):
    """DDPG's four sections."""

    learner: LearnerConfig = Field(default=LearnerConfig(), description="the update")
    memory: OffPolicyMemoryConfig = Field(default=OffPolicyMemoryConfig(), description="the replay")
    policy: NoisyPolicyConfig = Field(default=NoisyPolicyConfig(), description="acting")
    network: OffPolicyNetworkConfig = Field(default=OffPolicyNetworkConfig(), description="actor and critic")


def data_flow(config: Config, context: FlowContext) -> DataFlow:
    """An update per ``steps_per_update`` steps; see :func:`replay_flow`."""
    return replay_flow(config.memory, config.learner.steps_per_update, context)
