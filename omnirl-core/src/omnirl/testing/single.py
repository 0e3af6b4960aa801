"""One environment at a time: what the testing backend vectorises.

An environment is any object with these members; the ones here are in :mod:`omnirl.testing.probes` and
:mod:`omnirl.testing.faults`.
"""

from __future__ import annotations

from typing import Protocol

from omnirl.api.data import Array
from omnirl.api.specs import ActionSpec, ArraySpec

VECTOR_1 = ArraySpec((1,))
"""One float32 number."""


class SingleEnvironment(Protocol):
    """One sub-environment. It may return the same array again and again: whoever keeps it copies it."""

    @property
    def observation(self) -> ArraySpec:
        """What it observes."""

    @property
    def action(self) -> ActionSpec:
        """What it takes."""

    def reset(self, seed: int) -> Array:
        """Begin an episode; its first observation [*obs]."""

    def step(self, action: Array) -> tuple[Array, float, bool, bool]:
        """``action`` [*act] -> observation [*obs], reward, terminated, truncated."""
