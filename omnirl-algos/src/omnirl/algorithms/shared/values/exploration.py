"""Epsilon-greedy exploration. Imports no torch.

Letters: B environments, n actions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from omnirl.algorithms.shared.acting.distributions import NoiseBlock
from omnirl.api import ActContext, Array, PolicyContext, Schedule, value_at


def ladder_exponent(alpha: float, index: int, count: int) -> float:
    """1 + alpha i / (N - 1): sampler i of N explores with epsilon to this power.

    Horgan et al. 2018 (Ape-X, arXiv:1803.00933), section 4.1, with epsilon 0.4 and alpha 7. 1 for a single
    sampler.
    """
    return 1.0 if count == 1 else 1.0 + alpha * index / (count - 1)


def nth_legal(mask: Array, share: Array) -> Array:
    """The legal action at a ``share`` [B] in [0, 1) of the way through all of ``mask`` [B, n] bool: [B] int64."""
    before = mask.cumsum(axis=1)  # legal actions up to each
    result: Array = (before > np.floor(share * before[:, -1])[:, None]).argmax(axis=1)
    return result


class EpsilonGreedy:
    """A random action with probability epsilon, the greedy one otherwise, for each of B environments by
    itself.

    ``epsilon`` is a function of the whole run's environment steps, not of one sampler's.
    """

    def __init__(
        self, epsilon: Schedule, ladder_alpha: float, num_actions: int, rows: int, context: PolicyContext
    ) -> None:
        self._epsilon = epsilon
        self._exponent = ladder_exponent(ladder_alpha, context.index, context.count)
        self._chance = NoiseBlock(lambda rng, shape: rng.random(shape), rows, (context.num_envs,))
        self._action = NoiseBlock(
            lambda rng, shape: rng.integers(num_actions, size=shape), rows, (context.num_envs,)
        )
        self._share = NoiseBlock(lambda rng, shape: rng.random(shape), rows, (context.num_envs,))

    def epsilon(self, act: ActContext) -> float:
        """The probability of a random action at this moment."""
        return float(value_at(self._epsilon, act) ** self._exponent)

    def __call__(self, greedy: Callable[[], Array], act: ActContext, mask: Array | None = None) -> Array:
        """The actions [B]; ``greedy`` is asked for its [B] only where one of them is needed.

        ``mask`` [B, n] bool: random actions are drawn from the legal ones alone, all alike.
        """
        explores: Array = self._chance.next(act.rng) < self.epsilon(act)
        exploring = np.count_nonzero(explores)  # quicker than any() and all() on a few environments
        if exploring == 0:
            return greedy()
        if mask is None:
            random: Array = self._action.next(act.rng)
        else:
            random = nth_legal(mask, self._share.next(act.rng))
        result: Array = random.copy() if exploring == len(explores) else np.where(explores, random, greedy())
        return result
