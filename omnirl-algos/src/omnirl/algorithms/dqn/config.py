"""DQN's keys, and the numbers that pace a run. Imports no torch."""

from __future__ import annotations

from omnirl.algorithms.shared.values.config import ErrorConfig, data_flow

__all__ = ["Config", "data_flow"]


class Config(ErrorConfig):
    """DQN's four sections."""
