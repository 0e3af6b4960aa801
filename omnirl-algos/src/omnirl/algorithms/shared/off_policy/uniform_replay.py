"""Uniform replay as a ``memory`` section sets it up. Imports no torch."""

from __future__ import annotations

from typing import Protocol

from omnirl.algorithms.shared.off_policy.replay_config import ReplayConfig
from omnirl.api import EnvSpec, MemoryContext
from omnirl.buffers.replay import ReplayMemory, reserved_bytes


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


class UniformReplay(ReplayMemory):
    """Batches are :class:`omnirl.api.Transitions`; see :class:`omnirl.buffers.replay.ReplayMemory`."""

    @staticmethod
    def reserved(config: Replaying, spec: EnvSpec) -> int:
        """The bytes that are reserved at once."""
        return reserved_bytes(spec.observation, spec.action, config.memory.capacity)

    def __init__(self, config: Replaying, spec: EnvSpec, context: MemoryContext) -> None:
        super().__init__(
            spec.observation,
            spec.action,
            capacity=config.memory.capacity,
            batch_size=config.memory.batch_size,
            n_step=config.memory.n_step,
            gamma=config.learner.gamma,
            rank=context.rank,
        )
