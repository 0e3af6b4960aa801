"""Dueling DQN's keys, and the numbers that pace a run. Imports no torch."""

from __future__ import annotations

from pydantic import Field

from omnirl.algorithms.shared.values.config import ErrorConfig, data_flow
from omnirl.networks.config import DuelingNetworkConfig

__all__ = ["Config", "data_flow"]


class Config(ErrorConfig):
    """Dueling DQN's four sections."""

    network: DuelingNetworkConfig = Field(
        default=DuelingNetworkConfig(), description="the network of a value and advantages"
    )
