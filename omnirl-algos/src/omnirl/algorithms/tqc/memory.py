"""TQC's memory: uniform replay of n-step transitions. Imports no torch."""

from __future__ import annotations

from omnirl.algorithms.shared.uniform_replay import UniformReplay


class Memory(UniformReplay):
    """See :class:`omnirl.algorithms.shared.uniform_replay.UniformReplay`."""
