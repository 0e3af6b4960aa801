"""Replay as a ``memory`` section sets it up, and the uniform one. Imports no torch."""

from __future__ import annotations

from typing import Protocol

from omnirl.algorithms.shared.off_policy.replay_config import ReplayConfig
from omnirl.api import EnvSpec, MemoryContext
from omnirl.buffers.replay import ReplayMemory, ReplaySettings, reserved_bytes


class Discounting(Protocol):
    """A ``learner`` section with a discount."""

    @property
    def gamma(self) -> float:
        """Discount per environment step."""


class Replaying(Protocol):
    """A configuration of a replay algorithm."""

    @property
    def learner(self) -> Discounting:
        """The update."""

    @property
    def memory(self) -> ReplayConfig:
        """The replay."""


def replay_settings(config: Replaying) -> ReplaySettings:
    """What the memory is made of."""
    memory = config.memory
    return ReplaySettings(memory.capacity, memory.batch_size, memory.n_step, config.learner.gamma)


class UniformReplay(ReplayMemory):
    """Batches are :class:`omnirl.api.Transitions`; see :class:`omnirl.buffers.replay.ReplayMemory`."""

    @staticmethod
    def reserved(config: Replaying, spec: EnvSpec) -> int:
        """The bytes that are reserved at once, by all learners together."""
        return reserved_bytes(spec.observation, spec.action, config.memory.capacity)

    def __init__(self, config: Replaying, spec: EnvSpec, context: MemoryContext) -> None:
        super().__init__(spec.observation, spec.action, replay_settings(config), context)
