"""DQN's keys, and the numbers that pace a run. Imports no torch."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from omnirl import api
from omnirl.algorithms.shared.schedule_fields import FractionSchedule, NonNegativeSchedule
from omnirl.api import (
    ConfigError,
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


class LearnerConfig(api.Config):
    """The update."""

    # objective
    gamma: Fraction = Field(default=0.99, description="discount per environment step")
    loss: Literal["huber", "mse"] = Field(
        default="huber", description="loss of the temporal-difference error: huber (threshold 1) or mse"
    )
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


class MemoryConfig(api.Config):
    """The replay and the rollouts that fill it."""

    capacity: PositiveInt = Field(default=100_000, description="transitions held")
    batch_size: PositiveInt = Field(default=64, description="transitions per update")
    n_step: PositiveInt = Field(default=1, description="steps of a transition before it bootstraps")
    warmup_steps: PositiveInt = Field(
        default=1000, description="environment steps collected before the first update"
    )
    unroll_length: PositiveInt = Field(default=16, description="steps per environment in one rollout")


class PolicyConfig(api.Config):
    """Acting."""

    epsilon: FractionSchedule = Field(
        default=Linear(kind="linear", start=1.0, end=0.05, until=0.2),
        description="probability of a random action, over the environment steps of the whole run",
    )
    ladder_alpha: NonNegative = Field(
        default=0.0,
        description="Ape-X ladder: sampler i of N has epsilon^(1 + alpha i / (N - 1)) (0: all alike)",
    )


class Config(api.Config):
    """DQN's four sections."""

    learner: LearnerConfig = Field(default=LearnerConfig(), description="the update")
    memory: MemoryConfig = Field(default=MemoryConfig(), description="the replay")
    policy: PolicyConfig = Field(default=PolicyConfig(), description="acting")
    network: ValueNetworkConfig = Field(default=ValueNetworkConfig(), description="the action-value network")


def data_flow(config: Config, context: FlowContext) -> DataFlow:
    """An update per ``steps_per_update`` steps, the samplers at most two rollouts each ahead of it.

    ConfigError with a line per mistake where the replay could not give the first batch or would never fill.
    """
    memory, samplers, envs = config.memory, context.num_samplers, context.num_envs
    # The last n_step - 1 steps of every environment wait for their windows to end.
    needed = memory.batch_size + samplers * envs * memory.n_step
    lines = []
    if memory.batch_size > memory.capacity:
        lines.append(
            f"modules.memory.batch_size: {memory.batch_size} is more than the capacity {memory.capacity}"
        )
    elif memory.warmup_steps < needed:
        lines.append(
            f"modules.memory.warmup_steps: {memory.warmup_steps} is less than the first batch needs, "
            f"{needed} = batch_size {memory.batch_size} + "
            f"{samplers} samplers x {envs} environments x n_step {memory.n_step}"
        )
    if memory.warmup_steps > memory.capacity:
        lines.append(
            f"modules.memory.warmup_steps: {memory.warmup_steps} is more than the capacity {memory.capacity}"
        )
    if lines:
        raise ConfigError(lines)
    steps_per_update = config.learner.steps_per_update
    rollout = memory.unroll_length * envs
    return DataFlow(
        memory.unroll_length,
        steps_per_update,
        memory.warmup_steps,
        max_lead=math.ceil(2 * samplers * rollout / steps_per_update),
        bounded_lag=False,
    )
