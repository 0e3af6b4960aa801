"""What may stand under ``modules`` in a configuration file, and the numbers that pace a run."""

from __future__ import annotations

from pydantic import Field

from omnirl.api import Config, DataFlow, FlowContext, Fraction, NonNegative, Positive, PositiveInt


class LearnerConfig(Config):
    """The update."""

    gamma: Fraction = Field(default=0.99, description="discount per environment step")
    lr: Positive = Field(default=0.1, description="learning rate of the policy (Adam)")
    baseline_lr: Positive = Field(default=0.1, description="learning rate of the baseline (Adam)")
    entropy_coef: NonNegative = Field(default=0.01, description="weight of the entropy bonus")


class MemoryConfig(Config):
    """The rollouts."""

    unroll_length: PositiveInt = Field(default=32, description="steps per environment in one rollout")


class ReinforceConfig(Config):
    """The ``modules`` section."""

    learner: LearnerConfig = Field(default=LearnerConfig(), description="the update")
    memory: MemoryConfig = Field(default=MemoryConfig(), description="the rollouts")


def data_flow(config: ReinforceConfig, context: FlowContext) -> DataFlow:
    """On-policy and in lock-step: one update per rollout of every sampler."""
    length = config.memory.unroll_length
    return DataFlow(length, steps_per_update=length * context.num_envs * context.num_samplers)
