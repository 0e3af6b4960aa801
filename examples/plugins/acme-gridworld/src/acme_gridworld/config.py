"""What may stand under ``env`` in a configuration file; needs no simulator, so that files are checked at once."""

from __future__ import annotations

from pydantic import Field, field_validator

from omnirl.api import Config, NonNegative, PositiveInt


class GridworldConfig(Config):
    """One line of description per key: it is what ``omnirl envs show acme_gridworld`` prints."""

    size: PositiveInt = Field(default=5, description="cells along each side, at least 2")
    step_cost: NonNegative = Field(default=0.02, description="reward that every step but the last one costs")
    max_steps: PositiveInt = Field(default=40, description="steps after which an episode is cut")

    @field_validator("size")
    @classmethod
    def _room_to_move(cls, size: int) -> int:
        if size < 2:
            raise ValueError("must be at least 2: one cell is all goal")
        return size
