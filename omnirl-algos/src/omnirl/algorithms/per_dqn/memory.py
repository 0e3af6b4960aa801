"""PER-DQN's memory: prioritized replay of n-step transitions. Imports no torch."""

from __future__ import annotations

from omnirl.algorithms.per_dqn.config import Config
from omnirl.api import EnvSpec, MemoryContext
from omnirl.buffers.prioritized import PrioritizedReplay


class Memory(PrioritizedReplay):
    """Batches are :class:`omnirl.api.Transitions`; see :class:`omnirl.buffers.prioritized.PrioritizedReplay`."""

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
