"""The sections that the on-policy learners have in common, and lock-step pacing. Imports no torch."""

from __future__ import annotations

from pydantic import Field

from omnirl import api
from omnirl.algorithms.shared.schedule_fields import NonNegativeSchedule
from omnirl.api import (
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
from omnirl.networks.config import ActorCriticNetworkConfig


class OnPolicyLearnerConfig(api.Config):
    """The update."""

    # objective
    gamma: Fraction = Field(default=0.99, description="discount per environment step")
    vf_coef: NonNegative = Field(default=0.5, description="weight of the value loss")
    ent_coef: NonNegativeSchedule = Field(
        default=Constant(value=0.0), description="weight of the entropy bonus"
    )
    # optimizer
    lr: NonNegativeSchedule = Field(default=Constant(value=2.5e-4), description="learning rate")
    max_grad_norm: Positive | None = Field(
        default=0.5, description="clip of the gradient's norm over policy and value together (unset: none)"
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


class UnrollConfig(api.Config):
    """The rollouts."""

    unroll_length: PositiveInt = Field(default=128, description="steps per environment in one rollout")


class StochasticPolicyConfig(api.Config):
    """Acting."""

    log_std_init: Number = Field(
        default=0.0,
        description="initial log deviation of continuous actions, in half ranges of a bounded action",
    )


class OnPolicyConfig(api.Config):
    """The four sections."""

    learner: OnPolicyLearnerConfig = Field(default=OnPolicyLearnerConfig(), description="the update")
    memory: UnrollConfig = Field(default=UnrollConfig(), description="the rollouts")
    policy: StochasticPolicyConfig = Field(default=StochasticPolicyConfig(), description="acting")
    network: ActorCriticNetworkConfig = Field(
        default=ActorCriticNetworkConfig(), description="policy and value network"
    )


def lock_step_flow(config: OnPolicyConfig, context: FlowContext) -> DataFlow:
    """An update learns from one rollout of every sampler, collected with the newest weights."""
    length = config.memory.unroll_length
    return DataFlow(length, steps_per_update=length * context.num_envs * context.num_samplers)
