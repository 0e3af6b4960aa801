"""SAC's keys, and the numbers that pace a run. Imports no torch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from omnirl import api
from omnirl.algorithms.shared.off_policy.config import (
    OffPolicyMemoryConfig,
    RandomStartConfig,
    SoftLearnerConfig,
)
from omnirl.algorithms.shared.off_policy.replay_config import replay_flow
from omnirl.api import DataFlow, FlowContext, Fraction, Number
from omnirl.networks.config import CriticsNetworkConfig


class LearnerConfig(SoftLearnerConfig):
    """The update."""

    target_entropy: Number | None = Field(
        default=None,
        description="entropy that a learned temperature keeps, in nats (unset: -1 per dimension of a continuous "
        "action, target_entropy_ratio ln n for one of n discrete ones)",
    )
    target_entropy_ratio: Fraction = Field(
        default=0.6,
        description="share of the greatest entropy, ln n, that is kept with discrete actions (0.5 to 0.7 converge, "
        "the paper's 0.98 does not with few actions)",
    )
    critic_reduction: Literal["min", "mean"] = Field(
        default="min",
        description="how critics become one value: their min (against overestimation) or their mean (where discrete "
        "actions are underestimated)",
    )


class Config(api.Config):
    """SAC's four sections."""

    learner: LearnerConfig = Field(default=LearnerConfig(), description="the update")
    memory: OffPolicyMemoryConfig = Field(default=OffPolicyMemoryConfig(), description="the replay")
    policy: RandomStartConfig = Field(default=RandomStartConfig(), description="acting")
    network: CriticsNetworkConfig = Field(default=CriticsNetworkConfig(), description="actor and critics")


def data_flow(config: Config, context: FlowContext) -> DataFlow:
    """An update per ``steps_per_update`` steps; see :func:`replay_flow`."""
    return replay_flow(config.memory, config.learner.steps_per_update, context)
