"""The memory of the on-policy learners: a queue that hands each rollout to the one update that it is due for. Imports
no torch."""

from __future__ import annotations

from omnirl.algorithms.shared.on_policy.config import OnPolicyConfig
from omnirl.api import EnvSpec, MemoryContext
from omnirl.buffers.rollout_queue import RolloutQueue


class RolloutMemory(RolloutQueue):
    """Batches are tuples of rollouts; see :class:`omnirl.buffers.rollout_queue.RolloutQueue`."""

    def __init__(self, config: OnPolicyConfig, spec: EnvSpec, context: MemoryContext) -> None:
        super().__init__()
