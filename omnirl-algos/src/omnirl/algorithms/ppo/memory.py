"""PPO's memory: a queue of rollouts. Imports no torch."""

from __future__ import annotations

from omnirl.algorithms.shared.on_policy.rollout_memory import RolloutMemory


class Memory(RolloutMemory):
    """See :class:`omnirl.algorithms.shared.on_policy.rollout_memory.RolloutMemory`."""
