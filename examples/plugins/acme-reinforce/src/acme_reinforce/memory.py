"""The memory: OmniRL's queue, which hands every rollout to the one update that it is due for."""

from __future__ import annotations

from acme_reinforce.config import ReinforceConfig
from omnirl.api import EnvSpec, MemoryContext
from omnirl.buffers.rollout_queue import RolloutQueue


class Memory(RolloutQueue):
    """Batches are tuples of rollouts."""

    def __init__(self, config: ReinforceConfig, spec: EnvSpec, context: MemoryContext) -> None:
        super().__init__()
