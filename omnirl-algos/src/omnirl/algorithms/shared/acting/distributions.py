"""Action distributions in numpy, for acting. Imports no torch.

Sampling draws its noise in blocks, once per rollout and not once per step.

Letters: B environments, n actions, A size of a continuous action; ``...`` any leading axes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from omnirl.api import Array

LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


def categorical_log_prob(logits: Array, action: Array) -> Array:
    """log pi(action), [...]; logits [..., n] need not be normalised, action [...] int."""
    # The actions' axis first: numpy reduces over a short last axis ten times as slowly.
    by_action = logits.reshape(-1, logits.shape[-1]).T.copy()
    by_action -= by_action.max(axis=0)
    chosen = by_action[action.reshape(-1), np.arange(action.size)]
    result: Array = chosen - np.log(np.exp(by_action).sum(axis=0))
    return result.reshape(action.shape)


def gaussian_log_prob(mean: Array, log_std: Array, action: Array) -> Array:
    """log density of independent normals, summed over the action's axis: [..., A] -> [...]."""
    z = (action - mean) * np.exp(-log_std)
    result: Array = -(0.5 * z * z + log_std + LOG_SQRT_2PI).sum(axis=-1)
    return result


Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]
"""``(generator, shape) -> noise``"""


def gumbel(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Gumbel noise, float32: argmax(logits + noise) is a sample of softmax(logits)."""
    # -log of a standard exponential is Gumbel; the tiny number keeps an exponential of 0 finite.
    result: Array = -np.log(rng.standard_exponential(shape, np.float32) + np.float32(1e-37))
    return result


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Standard normal noise, float32."""
    return rng.standard_normal(shape, np.float32)


class NoiseBlock:
    """Rows of noise [*shape], drawn ``rows`` at a time from the generator of the moment.

    A generator belongs to one rollout: when another is given, what is left of the block is dropped, so that
    the noise of a rollout depends on its own generator alone.
    """

    def __init__(self, draw: Draw, rows: int, shape: tuple[int, ...]) -> None:
        self._draw = draw
        self._shape = (rows, *shape)
        self._rng: np.random.Generator | None = None
        self._block: Array = np.empty(0)
        self._used = 0

    def next(self, rng: np.random.Generator) -> Array:
        """The next row, a view."""
        if rng is not self._rng or self._used == len(self._block):
            self._rng = rng
            self._block = self._draw(rng, self._shape)
            self._used = 0
        row: Array = self._block[self._used]
        self._used += 1
        return row
