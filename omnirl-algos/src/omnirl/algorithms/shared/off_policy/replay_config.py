"""The ``memory`` section of the replay algorithms, and how it paces a run. Imports no torch."""

from __future__ import annotations

import math

from pydantic import Field

from omnirl import api
from omnirl.api import ConfigError, DataFlow, FlowContext, PositiveInt


class ReplayConfig(api.Config):
    """The replay and the rollouts that fill it."""

    capacity: PositiveInt = Field(default=100_000, description="transitions held, by all learners together")
    batch_size: PositiveInt = Field(default=64, description="transitions per update")
    n_step: PositiveInt = Field(default=1, description="steps of a transition before it bootstraps")
    warmup_steps: PositiveInt = Field(
        default=1000, description="environment steps collected before the first update"
    )
    unroll_length: PositiveInt = Field(default=16, description="steps per environment in one rollout")


def replay_flow(memory: ReplayConfig, steps_per_update: int, context: FlowContext) -> DataFlow:
    """An update per ``steps_per_update`` steps, the samplers at most two rollouts each ahead of it.

    ConfigError with a line per mistake where the replay could not give the first batch or would never fill.
    """
    samplers, envs = context.num_samplers, context.num_envs
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
    rollout = memory.unroll_length * envs
    return DataFlow(
        memory.unroll_length,
        steps_per_update,
        memory.warmup_steps,
        max_lead=math.ceil(2 * samplers * rollout / steps_per_update),
        bounded_lag=False,
    )
