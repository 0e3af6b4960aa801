"""A tiny algorithm for tests of backends and of the runtime: numpy only, exact, and strict about what it is given.

In a configuration: ``agent: {module: omnirl.testing.algorithm}``. Its policy is linear and samples with Gumbel noise;
its update is a fixed function of the batch, the clock and a momentum, so two runs agree in every bit exactly when
the runtime gave them the same data in the same order. With ``modules.memory.kind: queue`` it is paced as on-policy
algorithms are, with ``replay`` as value learners are. Its metrics report the versions of what it learned from.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from omnirl.api.algorithm import DataFlow, FlowContext
from omnirl.api.config import Config, NonNegative, NonNegativeInt, Number, PositiveInt
from omnirl.api.errors import ConfigError
from omnirl.api.plugin import AlgorithmSpec, Supports

ALGORITHM = AlgorithmSpec(
    name="toy",
    summary="a linear policy with a made-up update, for tests",
    family="testing",
    supports=Supports(actions=("discrete", "continuous"), observations=("vector",)),
    config="omnirl.testing.algorithm:ToyConfig",
    data_flow="omnirl.testing.algorithm:data_flow",
    policy="omnirl.testing.toy:ToyPolicy",
    memory="omnirl.testing.toy:toy_memory",
    learner="omnirl.testing.toy:ToyLearner",
    agent_file="omnirl.testing.toy:NpzAgentFile",
    metric_names=("weight_mean", "batch_mean", "oldest_version"),
)


class ToyLearnerConfig(Config):
    """The learner."""

    lr: Number = Field(default=0.01, description="size of an update")
    sleep: NonNegative = Field(default=0.0, description="seconds an update takes at least")


class ToyMemoryConfig(Config):
    """The memory."""

    kind: Literal["queue", "replay"] = Field(default="queue", description="queue or replay")
    unroll_length: PositiveInt = Field(default=8, description="steps of each environment per rollout")
    capacity: PositiveInt = Field(default=1000, description="transitions that replay holds")
    batch_size: PositiveInt = Field(default=16, description="transitions of a batch")
    warmup_steps: NonNegativeInt = Field(default=64, description="environment steps before the first update")
    steps_per_update: PositiveInt = Field(default=4, description="environment steps per update, with replay")
    max_lead: NonNegativeInt = Field(default=0, description="updates' worth of steps requested ahead")


class ToyConfig(Config):
    """The ``modules`` section."""

    learner: ToyLearnerConfig = Field(default=ToyLearnerConfig(), description="the learner")
    memory: ToyMemoryConfig = Field(default=ToyMemoryConfig(), description="the memory")


def data_flow(config: ToyConfig, context: FlowContext) -> DataFlow:
    """A queue takes the rollouts of all samplers per update; replay a few steps."""
    memory = config.memory
    rollout = memory.unroll_length * context.num_envs
    if memory.kind == "queue":
        return DataFlow(memory.unroll_length, rollout * context.num_samplers, 0, memory.max_lead)
    if not memory.batch_size <= memory.warmup_steps <= memory.capacity:
        raise ConfigError(
            f"modules.memory.warmup_steps: {memory.warmup_steps}, must be between batch_size "
            f"({memory.batch_size}) and capacity ({memory.capacity})"
        )
    return DataFlow(
        memory.unroll_length, memory.steps_per_update, memory.warmup_steps, memory.max_lead, False
    )
