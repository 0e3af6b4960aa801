"""PPO's keys, and the numbers that pace a run. Imports no torch."""

from __future__ import annotations

from pydantic import Field

from omnirl.algorithms.shared.on_policy.config import (
    OnPolicyConfig,
    OnPolicyLearnerConfig,
    lock_step_flow,
)
from omnirl.algorithms.shared.schedule_fields import NonNegativeSchedule
from omnirl.api import (
    ConfigError,
    Constant,
    DataFlow,
    Flag,
    FlowContext,
    Fraction,
    NonNegative,
    Positive,
    PositiveInt,
)


class LearnerConfig(OnPolicyLearnerConfig):
    """The update."""

    # objective
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
    normalize_advantages: Flag = Field(
        default=True, description="bring each minibatch's advantages to mean 0 and standard deviation 1"
    )
    # optimizer
    lr: NonNegativeSchedule = Field(default=Constant(value=2.5e-4), description="learning rate of Adam")
    adam_epsilon: Positive = Field(default=1e-5, description="epsilon of Adam")
    epochs: PositiveInt = Field(default=4, description="passes over the samples of an update")
    minibatch_size: PositiveInt = Field(
        default=256, description="samples per gradient step, at most those of an update"
    )
    target_kl: Positive | None = Field(
        default=None,
        description="no further epoch once the policy has moved this far, in nats (unset: all epochs)",
    )


class Config(OnPolicyConfig):
    """PPO's four sections."""

    learner: LearnerConfig = Field(default=LearnerConfig(), description="the update")


def data_flow(config: Config, context: FlowContext) -> DataFlow:
    """Lock-step: an update learns from one rollout of every sampler, collected with the newest weights.

    ConfigError where a minibatch is larger than that.
    """
    flow, size = lock_step_flow(config, context), config.learner.minibatch_size
    if size > flow.steps_per_update:
        raise ConfigError(
            f"modules.learner.minibatch_size: {size} is more than the samples of an update, "
            f"{flow.steps_per_update} = unroll_length {flow.unroll_length} x {context.num_envs} environments "
            f"x {context.num_samplers} samplers"
        )
    return flow
