"""Keys that the actor-critic algorithms with replay have in common. Imports no torch."""

from __future__ import annotations

from pydantic import Field

from omnirl import api
from omnirl.algorithms.shared.off_policy.replay_config import ReplayConfig
from omnirl.algorithms.shared.schedule_fields import NonNegativeSchedule
from omnirl.api import Constant, Fraction, NonNegativeInt, Number, Positive, PositiveInt


class OffPolicyLearnerConfig(api.Config):
    """The update."""

    # objective
    gamma: Fraction = Field(default=0.99, description="discount per environment step")
    tau: Fraction = Field(
        default=0.005, description="share of the online networks that the target networks take over"
    )
    # optimizers
    lr: NonNegativeSchedule = Field(
        default=Constant(value=3e-4), description="learning rate of the actor's Adam"
    )
    critic_lr: NonNegativeSchedule | None = Field(
        default=None, description="learning rate of the critics' Adam (unset: lr)"
    )
    adam_epsilon: Positive = Field(default=1e-8, description="epsilon of Adam")
    max_grad_norm: Positive | None = Field(
        default=None,
        description="clip of the gradient's norm, of actor and critics each by itself (unset: none)",
    )
    # pacing
    steps_per_update: PositiveInt = Field(default=1, description="environment steps collected per update")


class SoftLearnerConfig(OffPolicyLearnerConfig):
    """The update of an algorithm that maximises entropy too."""

    # entropy
    temperature: Positive | None = Field(
        default=None,
        description="weight of the entropy, fixed (unset: learned, so that target_entropy is kept)",
    )
    initial_temperature: Positive = Field(default=1.0, description="where a learned temperature begins")
    temperature_lr: NonNegativeSchedule = Field(
        default=Constant(value=3e-4), description="learning rate of the temperature's Adam"
    )
    target_entropy: Number | None = Field(
        default=None,
        description="entropy that a learned temperature keeps, in nats (unset: -1 per action dimension)",
    )


class OffPolicyMemoryConfig(ReplayConfig):
    """The replay and the rollouts that fill it."""

    capacity: PositiveInt = Field(default=1_000_000, description="transitions held, by all learners together")
    batch_size: PositiveInt = Field(default=256, description="transitions per update")


class RandomStartConfig(api.Config):
    """Acting."""

    random_steps: NonNegativeInt | None = Field(
        default=None,
        description="environment steps of the whole run with uniformly random actions (unset: those of the warm-up)",
    )
