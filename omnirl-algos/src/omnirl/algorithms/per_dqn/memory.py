"""PER-DQN's memory: prioritized replay of n-step transitions. Imports no torch."""

from __future__ import annotations

from omnirl.algorithms.per_dqn.config import Config
from omnirl.api import EnvSpec, MemoryContext
from omnirl.buffers.prioritized import PrioritizedReplay
from omnirl.buffers.replay import reserved_bytes


class Memory(PrioritizedReplay):
    """Batches are :class:`omnirl.api.Transitions`; see :class:`omnirl.buffers.prioritized.PrioritizedReplay`."""

    @staticmethod
    def reserved(config: Config, spec: EnvSpec) -> int:
        """The bytes that are reserved at once; the tree of priorities adds less than 40 per transition."""
        return reserved_bytes(spec.observation, spec.action, config.memory.capacity)

    def __init__(self, config: Config, spec: EnvSpec, context: MemoryContext) -> None:
        memory = config.memory
        super().__init__(
            spec.observation,
            spec.action,
            capacity=memory.capacity,
            batch_size=memory.batch_size,
            n_step=memory.n_step,
            gamma=config.learner.gamma,
            rank=context.rank,
            alpha=memory.alpha,
            beta=memory.beta,
            epsilon=memory.priority_epsilon,
        )
