"""The sections that the value learners have in common, and how they pace a run. Imports no torch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from omnirl import api
from omnirl.algorithms.shared.off_policy.replay_config import ReplayConfig, replay_flow
from omnirl.algorithms.shared.schedule_fields import FractionSchedule, NonNegativeSchedule
from omnirl.api import (
    Constant,
    DataFlow,
    FlowContext,
    Fraction,
    Linear,
    NonNegative,
    Positive,
    PositiveInt,
)
from omnirl.networks.config import ValueNetworkConfig


class ValueLearnerConfig(api.Config):
    """The update."""

    # objective
    gamma: Fraction = Field(default=0.99, description="discount per environment step")
    target_update_interval: PositiveInt = Field(
        default=500, description="updates between two updates of the target network"
    )
    tau: Fraction = Field(
        default=1.0,
        description="share of the online network that the target network takes over (1: a copy)",
    )
    # optimizer
    lr: NonNegativeSchedule = Field(default=Constant(value=2.5e-4), description="learning rate of Adam")
    adam_epsilon: Positive = Field(default=1e-8, description="epsilon of Adam")
    max_grad_norm: Positive | None = Field(
        default=10.0, description="clip of the gradient's norm (unset: none)"
    )
    # pacing
    steps_per_update: PositiveInt = Field(default=4, description="environment steps collected per update")


class ErrorLearnerConfig(ValueLearnerConfig):
    """The update of an algorithm that learns one number per action."""

    loss: Literal["huber", "mse"] = Field(
        default="huber", description="loss of the temporal-difference error: huber (threshold 1) or mse"
    )


class DistributionLearnerConfig(ValueLearnerConfig):
    """The update of an algorithm that learns the distribution of the return."""

    next_action: Literal["target", "online"] = Field(
        default="target",
        description="the network whose best action the target is about: target, or online as in double DQN",
    )
    # as the papers have it: 0.01 divided by their batch of 32
    adam_epsilon: Positive = Field(default=3.125e-4, description="epsilon of Adam")


class ExplorationConfig(api.Config):
    """Acting."""

    epsilon: FractionSchedule = Field(
        default=Linear(kind="linear", start=1.0, end=0.05, until=0.2),
        description="probability of a random action, over the environment steps of the whole run",
    )
    ladder_alpha: NonNegative = Field(
        default=0.0,
        description="Ape-X ladder: sampler i of N has epsilon^(1 + alpha i / (N - 1)) (0: all alike)",
    )


class ValueConfig(api.Config):
    """The four sections."""

    learner: ValueLearnerConfig = Field(default=ValueLearnerConfig(), description="the update")
    memory: ReplayConfig = Field(default=ReplayConfig(), description="the replay")
    policy: ExplorationConfig = Field(default=ExplorationConfig(), description="acting")
    network: ValueNetworkConfig = Field(default=ValueNetworkConfig(), description="the action-value network")


class ErrorConfig(ValueConfig):
    """The same, of one number per action."""

    learner: ErrorLearnerConfig = Field(default=ErrorLearnerConfig(), description="the update")


def data_flow(config: ValueConfig, context: FlowContext) -> DataFlow:
    """An update per ``steps_per_update`` steps; see :func:`replay_flow`."""
    return replay_flow(config.memory, config.learner.steps_per_update, context)
