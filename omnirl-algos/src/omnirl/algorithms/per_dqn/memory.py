"""PER-DQN's memory: prioritized replay of n-step transitions. Imports no torch."""

from __future__ import annotations

from omnirl.algorithms.per_dqn.config import Config
from omnirl.algorithms.shared.off_policy.uniform_replay import replay_settings
from omnirl.api import EnvSpec, MemoryContext
from omnirl.buffers.prioritized import PrioritizedReplay
from omnirl.buffers.replay import reserved_bytes


class Memory(PrioritizedReplay):
    """Batches are :class:`omnirl.api.Transitions`; see :class:`omnirl.buffers.prioritized.PrioritizedReplay`."""

    @staticmethod
    def reserved(config: Config, spec: EnvSpec) -> int:
        """The bytes that are reserved at once, by all learners together; the trees of priorities add less than 40 per
        transition."""
        return reserved_bytes(spec.observation, spec.action, config.memory.capacity)

    def __init__(self, config: Config, spec: EnvSpec, context: MemoryContext) -> None:
        memory = config.memory
        super().__init__(
            spec.observation,
            spec.action,
            replay_settings(config),
            context,
            alpha=memory.alpha,
            beta=memory.beta,
            epsilon=memory.priority_epsilon,
        )
