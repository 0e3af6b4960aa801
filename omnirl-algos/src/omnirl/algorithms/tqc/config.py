"""TQC's keys, and the numbers that pace a run. Imports no torch."""

from __future__ import annotations

from pydantic import Field, model_validator

from omnirl import api
from omnirl.algorithms.shared.off_policy.config import (
    OffPolicyMemoryConfig,
    RandomStartConfig,
    SoftLearnerConfig,
)
from omnirl.algorithms.shared.off_policy.replay_config import replay_flow
from omnirl.api import DataFlow, FlowContext, NonNegativeInt, Positive, PositiveInt
from omnirl.networks.config import CriticsNetworkConfig


class LearnerConfig(SoftLearnerConfig):
    """The update."""

    dropped_quantiles: NonNegativeInt = Field(
        default=2,
        description="greatest atoms left out of the target, per critic and from the pool of all (paper: HalfCheetah 0, "
        "Hopper 5, others 2)",
    )
    kappa: Positive = Field(
        default=1.0, description="where the quantile Huber loss turns linear, in units of the return"
    )


class NetworkConfig(CriticsNetworkConfig):
    """Actor and critics."""

    num_quantiles: PositiveInt = Field(default=25, description="quantiles that each critic gives")


class Config(api.Config):
    """TQC's four sections. The paper has 5 critics of [512, 512, 512], which costs ten of SAC's updates."""

    learner: LearnerConfig = Field(default=LearnerConfig(), description="the update")
    memory: OffPolicyMemoryConfig = Field(default=OffPolicyMemoryConfig(), description="the replay")
    policy: RandomStartConfig = Field(default=RandomStartConfig(), description="acting")
    network: NetworkConfig = Field(default=NetworkConfig(), description="actor and critics")

    @model_validator(mode="after")
    def _some_are_kept(self) -> Config:
        if self.learner.dropped_quantiles >= self.network.num_quantiles:
            raise ValueError(
                f"learner.dropped_quantiles: {self.learner.dropped_quantiles} leaves nothing of the "
                f"{self.network.num_quantiles} quantiles of a critic"
            )
        return self


def data_flow(config: Config, context: FlowContext) -> DataFlow:
    """An update per ``steps_per_update`` steps; see :func:`replay_flow`."""
    return replay_flow(config.memory, config.learner.steps_per_update, context)
