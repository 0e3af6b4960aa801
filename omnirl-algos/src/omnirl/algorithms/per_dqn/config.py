"""PER-DQN's keys, and the numbers that pace a run. Imports no torch."""

from __future__ import annotations

from pydantic import Field

from omnirl.algorithms.shared.off_policy.replay_config import ReplayConfig
from omnirl.algorithms.shared.schedule_fields import FractionSchedule
from omnirl.algorithms.shared.values.config import ErrorConfig, data_flow
from omnirl.api import Fraction, Linear, Positive

__all__ = ["Config", "MemoryConfig", "data_flow"]


class MemoryConfig(ReplayConfig):
    """The prioritized replay and the rollouts that fill it."""

    # priorities
    alpha: Fraction = Field(
        default=0.6, description="exponent of the priorities: 0 draws all transitions alike, 1 in proportion"
    )
    beta: FractionSchedule = Field(
        default=Linear(kind="linear", start=0.4, end=1.0),
        description="exponent of the importance weights, over the updates of the whole run",
    )
    priority_epsilon: Positive = Field(
        default=1e-6, description="what is added to every |error|, so that each can be drawn again"
    )


class Config(ErrorConfig):
    """PER-DQN's four sections."""

    memory: MemoryConfig = Field(default=MemoryConfig(), description="the prioritized replay")
