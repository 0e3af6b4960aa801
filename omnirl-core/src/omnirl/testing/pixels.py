"""Environments of small pictures whose best return is known, for tests of image networks and of stacked frames."""

from __future__ import annotations

import numpy as np

from omnirl.api.data import Array
from omnirl.api.specs import ArraySpec, DiscreteAction


class Pixels:
    """A bright dot on a dark picture, uint8 [1, size, size]; the action says which half it is in.

    Action 1 is the right half, 0 the left; right answers are rewarded with 1, others with 0, and the dot appears
    anywhere anew. Truncated after ``length`` steps: the best return is ``length``, that of chance half of it.
    """

    action = DiscreteAction(2)

    def __init__(self, length: int = 8, size: int = 10) -> None:
        self.observation = ArraySpec((1, size, size), "uint8", layout="image")
        self._length = length
        self._size = size
        self._rng = np.random.default_rng(0)
        self._column = 0
        self._t = 0

    def reset(self, seed: int) -> Array:
        """The first picture that belongs to ``seed``."""
        self._rng = np.random.default_rng(seed)
        self._t = 0
        return self._appear()

    def step(self, action: Array) -> tuple[Array, float, bool, bool]:
        """Answer, and see the next picture."""
        right = int(self._column >= self._size // 2)
        reward = float(int(action) == right)
        self._t += 1
        return self._appear(), reward, False, self._t >= self._length

    def _appear(self) -> Array:
        row, self._column = self._rng.integers(self._size, size=2).tolist()
        picture = np.zeros(self.observation.shape, np.uint8)
        picture[0, row, self._column] = 255
        return picture


class Motion:
    """A dot that wanders left or right, round the edge, uint8 [1, size, size]; the action says which way it goes.

    A single picture does not tell: with ``frame_stack`` 2 or more the best return is ``length - 1``, as the first
    answer of an episode is not rewarded; without, half of that. Truncated after ``length`` steps.
    """

    action = DiscreteAction(2)

    def __init__(self, length: int = 8, size: int = 10) -> None:
        self.observation = ArraySpec((1, size, size), "uint8", layout="image")
        self._length = length
        self._size = size
        self._row = self._column = self._direction = 0
        self._t = 0

    def reset(self, seed: int) -> Array:
        """Draw place and direction."""
        rng = np.random.default_rng(seed)
        self._row, self._column = rng.integers(self._size, size=2).tolist()
        self._direction = int(rng.integers(2))
        self._t = 0
        return self._observe()

    def step(self, action: Array) -> tuple[Array, float, bool, bool]:
        """Answer: 1 for right, 0 for left."""
        reward = float(self._t > 0 and int(action) == self._direction)
        self._column = (self._column + (1 if self._direction else -1)) % self._size
        self._t += 1
        return self._observe(), reward, False, self._t >= self._length

    def _observe(self) -> Array:
        picture = np.zeros(self.observation.shape, np.uint8)
        picture[0, self._row, self._column] = 255
        return picture
