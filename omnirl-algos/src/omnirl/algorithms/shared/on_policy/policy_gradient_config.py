"""The keys of the learners that take one gradient step per update: A2C and IMPALA. Imports no torch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from omnirl.algorithms.shared.on_policy.config import OnPolicyConfig, OnPolicyLearnerConfig
from omnirl.api import Fraction, Positive


class PolicyGradientLearnerConfig(OnPolicyLearnerConfig):
    """The update."""

    # optimizer
    optimizer: Literal["rmsprop", "adam"] = Field(
        default="rmsprop", description="rmsprop, in TensorFlow's form as the papers had it, or adam"
    )
    rmsprop_decay: Fraction = Field(default=0.99, description="decay of RMSprop's average of squares")
    rmsprop_epsilon: Positive = Field(default=1e-5, description="epsilon of RMSprop, inside the square root")
    adam_epsilon: Positive = Field(default=1e-5, description="epsilon of Adam")


class PolicyGradientConfig(OnPolicyConfig):
    """The four sections."""

    learner: PolicyGradientLearnerConfig = Field(
        default=PolicyGradientLearnerConfig(), description="the update"
    )
