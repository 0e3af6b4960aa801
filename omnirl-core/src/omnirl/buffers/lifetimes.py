"""How long transitions live whose frames are written over by others: until the oldest of their frames is gone.

Letters: N transitions that are appended together.
"""

from __future__ import annotations

import numpy as np

from omnirl.api.data import Array


class Lifetimes:
    """For each row of a ring of ``capacity`` transitions the number of its oldest frame, never less than that of a
    row appended before: so the rows that are gone are always the oldest ones.

    Where a transition refers further back than one that was appended before it (the first of a sampler that was
    slower than others), that one is counted as if it did too.
    """

    def __init__(self, capacity: int) -> None:
        self._oldest = np.empty(capacity, np.int64)

    def append(self, rows: Array, oldest: Array, held: int) -> None:
        """Note ``oldest`` [N] for the ring's ``rows`` [N], in order, after the ``held`` newest of those before."""
        if not len(rows):
            return
        oldest = np.minimum.accumulate(oldest[::-1])[::-1]
        self._lower(int(rows[0]), int(oldest[0]), held)
        self._oldest[rows] = oldest

    def remaining(self, end: int, held: int, oldest: int) -> int:
        """How many of the ``held`` rows before row ``end`` still have all frames from number ``oldest`` on."""
        capacity = len(self._oldest)
        while held:
            start = (end - held) % capacity
            part = self._oldest[start : min(start + held, capacity)]
            gone = int(np.searchsorted(part, oldest))
            held -= gone
            if gone < len(part):
                break
        return held

    def _lower(self, end: int, bound: int, held: int) -> None:
        """Lower the newest of the ``held`` rows before ``end`` to ``bound``, as far back as they are above it."""
        while held:
            end = end or len(self._oldest)
            part = self._oldest[max(0, end - held) : end]
            keep = int(np.searchsorted(part, bound, side="right"))
            part[keep:] = bound
            if keep:
                return
            held -= len(part)
            end -= len(part)
