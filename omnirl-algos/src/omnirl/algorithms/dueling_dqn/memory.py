"""Dueling DQN's memory: uniform replay of n-step transitions. Imports no torch."""

from __future__ import annotations

from omnirl.algorithms.shared.off_policy.uniform_replay import UniformReplay


class Memory(UniformReplay):
    """See :class:`omnirl.algorithms.shared.off_policy.uniform_replay.UniformReplay`."""
