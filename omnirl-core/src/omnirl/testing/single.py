"""One environment at a time: what the testing backend vectorises.

An environment is any object with these members; the ones here are in :mod:`omnirl.testing.probes`,
:mod:`omnirl.testing.dictionaries`, :mod:`omnirl.testing.pixels` and :mod:`omnirl.testing.faults`.
"""

from __future__ import annotations

from typing import Protocol

from omnirl.api.data import Array, Obs
from omnirl.api.specs import ActionSpec, ArraySpec, ObservationSpec

VECTOR_1 = ArraySpec((1,))
"""One float32 number."""


class SingleEnvironment(Protocol):
    """One sub-environment. It may return the same array again and again: whoever keeps it copies it."""

    @property
    def observation(self) -> ObservationSpec:
        """What it observes."""

    @property
    def action(self) -> ActionSpec:
        """What it takes."""

    def reset(self, seed: int) -> Obs:
        """Begin an episode; its first observation [*obs]."""

    def step(self, action: Array) -> tuple[Obs, float, bool, bool]:
        """``action`` [*act] -> observation [*obs], reward, terminated, truncated."""
