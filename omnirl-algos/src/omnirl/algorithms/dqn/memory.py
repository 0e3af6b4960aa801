"""DQN's memory: uniform replay of n-step transitions. Imports no torch."""

from __future__ import annotations

from omnirl.algorithms.dqn.config import Config
from omnirl.api import EnvSpec, MemoryContext
from omnirl.buffers.replay import ReplayMemory


class Memory(ReplayMemory):
    """Batches are :class:`omnirl.api.Transitions`; see :class:`omnirl.buffers.replay.ReplayMemory`."""

    def __init__(self, config: Config, spec: EnvSpec, context: MemoryContext) -> None:
        super().__init__(
            spec.observation,
            spec.action,
            capacity=config.memory.capacity,
            batch_size=config.memory.batch_size,
            n_step=config.memory.n_step,
            gamma=config.learner.gamma,
            rank=context.rank,
        )
