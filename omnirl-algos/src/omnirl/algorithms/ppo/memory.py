"""PPO's memory: a queue that hands each rollout to the one update that it is due for. Imports no torch."""

from __future__ import annotations

from omnirl.algorithms.ppo.config import Config
from omnirl.api import EnvSpec, MemoryContext
from omnirl.buffers.rollout_queue import RolloutQueue


class Memory(RolloutQueue):
    """Batches are tuples of rollouts; see :class:`omnirl.buffers.rollout_queue.RolloutQueue`."""

    def __init__(self, config: Config, spec: EnvSpec, context: MemoryContext) -> None:
        super().__init__()
