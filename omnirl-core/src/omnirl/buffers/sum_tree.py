"""A tree of sums: changes single values and finds the one under a given mass, in time logarithmic in their number.

Proportional prioritization (Schaul et al. 2016, arXiv:1511.05952, appendix B.2.1) needs both for every batch. Here
whole batches go through the tree level by level, as arrays; with 16 children to a node a million values take five
levels. Every sum is made anew from its children, never adjusted, so nothing drifts, and a tree that is filled with
saved values equals the one that they were saved from.

Letters: N values changed or looked for together.
"""

from __future__ import annotations

import numpy as np

from omnirl.api.data import Array

_CHILDREN = 16


class SumTree:
    """``size`` values, float64, at first 0, none ever negative."""

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError(f"a sum tree holds at least 1 value, not {size}")
        # From the values up to the root; each level is padded with zeros to whole nodes.
        self._levels: list[Array] = []
        count = size
        while not self._levels or count > 1:
            nodes = -(-count // _CHILDREN)
            self._levels.append(np.zeros((nodes, _CHILDREN)))
            count = nodes
        self._size = size

    @property
    def total(self) -> float:
        """The sum of all values."""
        return float(self._levels[-1].sum())

    def get(self, index: Array) -> Array:
        """The values [N] at ``index`` [N], a copy."""
        values: Array = self._levels[0].reshape(-1)[index]
        return values

    def set(self, index: Array, values: Array | float) -> None:
        """Change the values at ``index`` [N] to ``values`` [N]; of equal indices the last counts."""
        nodes = index
        self._levels[0].reshape(-1)[nodes] = values
        for level, above in zip(self._levels, self._levels[1:]):
            nodes = nodes // _CHILDREN  # an index that comes twice is summed twice, to the same
            above.reshape(-1)[nodes] = level[nodes].sum(axis=1)

    def find(self, mass: Array) -> Array:
        """For each ``mass`` [N] in [0, total) the index [N] int64 of the value in whose share of the sum it lies.

        A value of 0 has no share and is never found. Raises ValueError where all values are 0.
        """
        if not self.total > 0.0:
            raise ValueError("all values of the sum tree are 0: there is nothing to find")
        left = np.asarray(mass, np.float64)
        found = np.zeros(len(left), np.int64)
        rows = np.arange(len(left))
        for level in reversed(self._levels):
            sums = level[found].cumsum(axis=1)
            # Sums are rounded differently from level to level: what is left must end before the last of them.
            left = np.minimum(left, np.nextafter(sums[:, -1], 0.0))
            child = (sums <= left[:, None]).sum(axis=1)
            left = left - np.where(child > 0, sums[rows, child - 1], 0.0)
            found = found * _CHILDREN + child
        return found
