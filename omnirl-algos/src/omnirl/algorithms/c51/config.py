"""C51's keys, and the numbers that pace a run. Imports no torch."""

from __future__ import annotations

from pydantic import Field, model_validator

from omnirl.algorithms.shared.values.config import DistributionLearnerConfig, ValueConfig, data_flow
from omnirl.api import Number, PositiveInt

__all__ = ["Config", "LearnerConfig", "data_flow"]


class LearnerConfig(DistributionLearnerConfig):
    """The update."""

    # distribution
    num_atoms: PositiveInt = Field(default=51, ge=2, description="returns that can be told apart, at least 2")
    v_min: Number = Field(default=-10.0, description="the least of them; discounted returns must fit")
    v_max: Number = Field(default=10.0, description="the greatest of them")

    @model_validator(mode="after")
    def _ordered(self) -> LearnerConfig:
        if self.v_max <= self.v_min:
            raise ValueError(f"v_max ({self.v_max:g}) must be greater than v_min ({self.v_min:g})")
        return self


class Config(ValueConfig):
    """C51's four sections."""

    learner: LearnerConfig = Field(default=LearnerConfig(), description="the update")
