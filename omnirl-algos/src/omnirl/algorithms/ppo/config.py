"""PPO's keys, and the numbers that pace a run. Imports no torch."""

from __future__ import annotations

from pydantic import Field

from omnirl import api
from omnirl.algorithms.shared.schedule_fields import NonNegativeSchedule
from omnirl.api import (
    ConfigError,
    Constant,
    DataFlow,
    Flag,
    FlowContext,
    Fraction,
    NonNegative,
    Number,
    Positive,
    PositiveInt,
)
from omnirl.networks.config import NetworkConfig


class LearnerConfig(api.Config):
    """The update."""

    # objective
    gamma: Fraction = Field(default=0.99, description="discount per environment step")
    gae_lambda: Fraction = Field(
        default=0.95, description="lambda of GAE: 0 is the one-step error, 1 Monte Carlo"
    )
    clip: NonNegativeSchedule = Field(
        default=Constant(value=0.2), description="how far the probability ratio may leave 1"
    )
    value_clip: Positive | None = Field(
        default=None,
        description="how far a value may leave the old one within an update (unset: as far as it likes)",
    )
    vf_coef: NonNegative = Field(
        default=0.5,
        description="weight of the value loss, which is 1/2 MSE (Stable-Baselines3 has no 1/2: double its)",
    )
    ent_coef: NonNegativeSchedule = Field(
        default=Constant(value=0.0), description="weight of the entropy bonus"
    )
    normalize_advantages: Flag = Field(
        default=True, description="bring each minibatch's advantages to mean 0 and standard deviation 1"
    )
    # optimizer
    lr: NonNegativeSchedule = Field(default=Constant(value=2.5e-4), description="learning rate of Adam")
    adam_epsilon: Positive = Field(default=1e-5, description="epsilon of Adam")
    max_grad_norm: Positive | None = Field(
        default=0.5, description="clip of the gradient's norm over policy and value together (unset: none)"
    )
    epochs: PositiveInt = Field(default=4, description="passes over the samples of an update")
    minibatch_size: PositiveInt = Field(
        default=256, description="samples per gradient step, at most those of an update"
    )
    target_kl: Positive | None = Field(
        default=None,
        description="no further epoch once the policy has moved this far, in nats (unset: all epochs)",
    )
    # normalisation
    normalize_observations: Flag = Field(
        default=False,
        description="bring observations to mean 0 and variance 1 by running statistics, clipped to +-10",
    )
    normalize_returns: Flag = Field(
        default=False,
        description="divide rewards by the running deviation of the discounted return, clipped to +-10",
    )


class MemoryConfig(api.Config):
    """The rollouts."""

    unroll_length: PositiveInt = Field(default=128, description="steps per environment in one rollout")


class PolicyConfig(api.Config):
    """Acting."""

    log_std_init: Number = Field(
        default=0.0,
        description="initial log deviation of continuous actions, in half ranges of a bounded action",
    )


class Config(api.Config):
    """PPO's four sections."""

    learner: LearnerConfig = Field(default=LearnerConfig(), description="the update")
    memory: MemoryConfig = Field(default=MemoryConfig(), description="the rollouts")
    policy: PolicyConfig = Field(default=PolicyConfig(), description="acting")
    network: NetworkConfig = Field(default=NetworkConfig(), description="policy and value network")


def data_flow(config: Config, context: FlowContext) -> DataFlow:
    """Lock-step: an update learns from one rollout of every sampler, collected with the newest weights.

    ConfigError where a minibatch is larger than that.
    """
    length, size = config.memory.unroll_length, config.learner.minibatch_size
    samples = length * context.num_envs * context.num_samplers
    if size > samples:
        raise ConfigError(
            f"modules.learner.minibatch_size: {size} is more than the samples of an update, {samples} = "
            f"unroll_length {length} x {context.num_envs} environments x {context.num_samplers} samplers"
        )
    return DataFlow(length, steps_per_update=samples)
