"""QR-DQN's keys, and the numbers that pace a run. Imports no torch."""

from __future__ import annotations

from pydantic import Field

from omnirl.algorithms.shared.values.config import DistributionLearnerConfig, ValueConfig, data_flow
from omnirl.api import NonNegative, PositiveInt

__all__ = ["Config", "LearnerConfig", "data_flow"]


class LearnerConfig(DistributionLearnerConfig):
    """The update."""

    # distribution
    num_quantiles: PositiveInt = Field(default=50, description="quantiles of the return, per action")
    kappa: NonNegative = Field(
        default=1.0,
        description="threshold of the quantile Huber loss; 0 is the plain quantile loss. Rewards should be greater",
    )


class Config(ValueConfig):
    """QR-DQN's four sections."""

    learner: LearnerConfig = Field(default=LearnerConfig(), description="the update")
