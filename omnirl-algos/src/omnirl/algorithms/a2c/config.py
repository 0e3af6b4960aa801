"""A2C's keys, and the numbers that pace a run. Imports no torch."""

from __future__ import annotations

from pydantic import Field

from omnirl.algorithms.shared.on_policy.config import UnrollConfig, lock_step_flow
from omnirl.algorithms.shared.on_policy.policy_gradient_config import (
    PolicyGradientConfig,
    PolicyGradientLearnerConfig,
)
from omnirl.algorithms.shared.schedule_fields import NonNegativeSchedule
from omnirl.api import Constant, DataFlow, Flag, FlowContext, Fraction, NonNegative, PositiveInt

__all__ = ["Config", "data_flow"]


class LearnerConfig(PolicyGradientLearnerConfig):
    """The update."""

    gae_lambda: Fraction = Field(
        default=1.0,
        description="lambda of GAE: 0 is the one-step error, 1 the rewards up to the rollout's end",
    )
    vf_coef: NonNegative = Field(
        default=0.5,
        description="weight of the value loss, which is the MSE, without 1/2 (as in Stable-Baselines3)",
    )
    normalize_advantages: Flag = Field(
        default=False, description="bring an update's advantages to mean 0 and standard deviation 1"
    )
    lr: NonNegativeSchedule = Field(default=Constant(value=7e-4), description="learning rate")


class MemoryConfig(UnrollConfig):
    """The rollouts."""

    unroll_length: PositiveInt = Field(default=5, description="steps per environment in one rollout")


class Config(PolicyGradientConfig):
    """A2C's four sections."""

    learner: LearnerConfig = Field(default=LearnerConfig(), description="the update")
    memory: MemoryConfig = Field(default=MemoryConfig(), description="the rollouts")


def data_flow(config: Config, context: FlowContext) -> DataFlow:
    """Lock-step: an update learns from one rollout of every sampler, collected with the newest weights."""
    return lock_step_flow(config, context)
