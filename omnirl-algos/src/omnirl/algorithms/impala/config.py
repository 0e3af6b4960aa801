"""IMPALA's keys, and the numbers that pace a run. Imports no torch."""

from __future__ import annotations

from pydantic import Field

from omnirl.algorithms.shared.on_policy.config import UnrollConfig
from omnirl.algorithms.shared.on_policy.policy_gradient_config import (
    PolicyGradientConfig,
    PolicyGradientLearnerConfig,
)
from omnirl.algorithms.shared.schedule_fields import NonNegativeSchedule
from omnirl.api import Constant, DataFlow, FlowContext, Fraction, NonNegative, Positive, PositiveInt

MAX_LEAD = 2
"""Updates that samplers may be ahead of the learner, unless ``runner.max_lead`` says otherwise: no sample is older."""


class LearnerConfig(PolicyGradientLearnerConfig):
    """The update. Its losses are sums over the samples, as in the paper's code: ``max_grad_norm`` and
    ``rmsprop_epsilon`` are for those."""

    # objective
    rho_bar: Positive = Field(
        default=1.0,
        description="most that a probability ratio weighs in a value's error: decides what is learned (1: values "
        "between those of the acting and of the learning policy)",
    )
    c_bar: Positive = Field(
        default=1.0, description="most that a ratio weighs in passing errors back: only how fast, not what"
    )
    pg_rho_bar: Positive = Field(
        default=1.0, description="most that a probability ratio weighs in the policy's gradient"
    )
    vtrace_lambda: Fraction = Field(default=1.0, description="lambda of V-trace: 0 is the one-step error")
    vf_coef: NonNegative = Field(
        default=0.5, description="weight of the value loss, 1/2 of the squared error"
    )
    ent_coef: NonNegativeSchedule = Field(
        default=Constant(value=0.01), description="weight of the entropy bonus"
    )
    # optimizer
    lr: NonNegativeSchedule = Field(default=Constant(value=6e-4), description="learning rate")
    max_grad_norm: Positive | None = Field(
        default=40.0, description="clip of the gradient's norm over policy and value together (unset: none)"
    )
    rmsprop_epsilon: Positive = Field(default=0.01, description="epsilon of RMSprop, inside the square root")


class MemoryConfig(UnrollConfig):
    """The rollouts."""

    unroll_length: PositiveInt = Field(default=20, description="steps per environment in one rollout")
    rollouts_per_update: PositiveInt = Field(
        default=4, description="rollouts of an update, each of unroll_length x the environments of a sampler"
    )


class Config(PolicyGradientConfig):
    """IMPALA's four sections."""

    learner: LearnerConfig = Field(default=LearnerConfig(), description="the update")
    memory: MemoryConfig = Field(default=MemoryConfig(), description="the rollouts")


def data_flow(config: Config, context: FlowContext) -> DataFlow:
    """Bounded lag: samplers go on while the learner learns, and what is more than ``MAX_LEAD`` versions old is
    dropped."""
    memory = config.memory
    steps = memory.rollouts_per_update * memory.unroll_length * context.num_envs
    return DataFlow(memory.unroll_length, steps_per_update=steps, max_lead=MAX_LEAD)
