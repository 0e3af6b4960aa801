"""Environments of named observations, action masks and several choices at once, with known best returns.

==============  =======================================================================================  ============
id              what it is                                                                               best, chance
==============  =======================================================================================  ============
compare         entries ``left`` and ``pair/0``, each [1]: action 1 where the first is the greater       1, 0
signpost        ``picture`` [1, 10, 10] bright on one side, ``flip`` [1] of either sign: which of four   1, 1/4
menu            two of four actions are legal, drawn anew; action a is worth a / 3                       7/9, 1/2
fork            see :class:`Fork`; with gamma 0.9 the first values are [0, 0.9]                          1, 1/2
digits          two choices, of 3 and of 2; one point for each that is right                             2, 5/6
masked_digits   the same; the greatest legal digit of each choice is right                               2, 5/4
==============  =======================================================================================  ============

Each but ``fork`` ends after one step. One that is given an illegal action raises ValueError: nobody may ever take one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from omnirl.api.data import Array
from omnirl.api.specs import ACTION_MASK, ArraySpec, DictSpec, DiscreteAction, MultiDiscreteAction
from omnirl.testing.single import VECTOR_1

_Row = Mapping[str, Array]


def _check(mask: Array, action: int) -> None:
    if not mask[action]:
        raise ValueError(f"action {action} is illegal, {np.flatnonzero(mask).tolist()} are legal")


class Compare:
    """+1 where action 1 meets ``left`` > ``pair/0`` or action 0 the opposite, else -1."""

    observation = DictSpec((("left", VECTOR_1), ("pair/0", VECTOR_1)))
    action = DiscreteAction(2)

    def __init__(self) -> None:
        self._numbers: Array = np.zeros(2, np.float32)

    def reset(self, seed: int) -> _Row:
        """Draw both numbers from [-1, 1]."""
        self._numbers = np.random.default_rng(seed).uniform(-1.0, 1.0, 2).astype(np.float32)
        return self._observe()

    def step(self, action: Array) -> tuple[_Row, float, bool, bool]:
        """One answer and the end."""
        right = (int(action) == 1) == bool(self._numbers[0] > self._numbers[1])
        return self._observe(), 1.0 if right else -1.0, True, False

    def _observe(self) -> _Row:
        return {"left": self._numbers[:1].copy(), "pair/0": self._numbers[1:].copy()}


class Signpost:
    """Action 2 * (the right half of the picture is bright) + (``flip`` is positive) is rewarded with 1, others with
    0: the picture or the number alone is worth 1/2."""

    observation = DictSpec((("picture", ArraySpec((1, 10, 10), "uint8", layout="image")), ("flip", VECTOR_1)))
    action = DiscreteAction(4)

    def __init__(self) -> None:
        self._answer = 0

    def reset(self, seed: int) -> _Row:
        """Draw the answer."""
        self._answer = int(np.random.default_rng(seed).integers(4))
        return self._observe()

    def step(self, action: Array) -> tuple[_Row, float, bool, bool]:
        """One answer and the end."""
        return self._observe(), float(int(action) == self._answer), True, False

    def _observe(self) -> _Row:
        right, flip = divmod(self._answer, 2)
        picture = np.zeros((1, 10, 10), np.uint8)
        picture[:, :, 5 * right : 5 * right + 5] = 255
        return {"picture": picture, "flip": np.array([2.0 * flip - 1.0], np.float32)}


class Menu:
    """What is legal is no input, so all that can be learned is what each action is worth: the best legal one wins."""

    observation = DictSpec((("nothing", VECTOR_1), (ACTION_MASK, ArraySpec((4,), "bool"))))
    action = DiscreteAction(4)

    def __init__(self) -> None:
        self._mask: Array = np.ones(4, np.bool_)

    def reset(self, seed: int) -> _Row:
        """Draw two legal actions."""
        self._mask = np.zeros(4, np.bool_)
        self._mask[np.random.default_rng(seed).permutation(4)[:2]] = True
        return {"nothing": np.zeros(1, np.float32), ACTION_MASK: self._mask.copy()}

    def step(self, action: Array) -> tuple[_Row, float, bool, bool]:
        """The action's worth and the end, where nothing is legal."""
        _check(self._mask, int(action))
        self._mask = np.zeros(4, np.bool_)
        return (
            {"nothing": np.zeros(1, np.float32), ACTION_MASK: self._mask.copy()},
            int(action) / 3,
            True,
            False,
        )


class Fork:
    """Two steps; the second state looks alike whatever came before, but only the action taken first is legal there.

    The second action is the reward. In the second state action 1 is worth 1 and action 0 nothing, so the first
    action 0 leads to nothing: a target that takes the maximum over illegal actions too thinks it as good as action 1.
    """

    observation = DictSpec((("step", VECTOR_1), (ACTION_MASK, ArraySpec((2,), "bool"))))
    action = DiscreteAction(2)

    def __init__(self) -> None:
        self._step = 0
        self._mask: Array = np.ones(2, np.bool_)

    def reset(self, seed: int) -> _Row:
        """To the first state; nothing here is random."""
        self._step, self._mask = 0, np.ones(2, np.bool_)
        return self._observe()

    def step(self, action: Array) -> tuple[_Row, float, bool, bool]:
        """To the second state without a reward, then to the end with one."""
        taken = int(action)
        _check(self._mask, taken)
        self._step += 1
        self._mask = np.arange(2) == taken
        return self._observe(), float(taken) if self._step == 2 else 0.0, self._step == 2, False

    def _observe(self) -> _Row:
        return {"step": np.array([self._step], np.float32), ACTION_MASK: self._mask.copy()}


class Digits:
    """``sign`` [1] +1: digits 2 and 1 are right; -1: digits 0 and 0. With ``masked`` the greatest legal ones are, of
    two legal digits for the first choice, and of one or two for the second."""

    action = MultiDiscreteAction((3, 2))

    def __init__(self, masked: bool = False) -> None:
        mask = ((ACTION_MASK, ArraySpec((5,), "bool")),) if masked else ()
        self.observation = DictSpec((("sign", VECTOR_1), *mask))
        self._masked = masked
        self._sign = 1.0
        self._mask: Array = np.ones(5, np.bool_)

    def reset(self, seed: int) -> _Row:
        """Draw the sign, or what is legal."""
        rng = np.random.default_rng(seed)
        self._sign = 0.0 if self._masked else float(rng.choice((-1.0, 1.0)))
        self._mask = np.ones(5, np.bool_)
        if self._masked:
            self._mask[rng.integers(3)] = False
            self._mask[4] = rng.random() < 0.5
        return self._observe()

    def step(self, action: Array) -> tuple[_Row, float, bool, bool]:
        """The points and the end."""
        first, second = self._mask[:3], self._mask[3:]
        for mask, digit in zip((first, second), action, strict=True):
            _check(mask, int(digit))
        right = [int(np.flatnonzero(mask)[-1]) for mask in (first, second)] if self._sign >= 0 else [0, 0]
        points = sum(int(digit) == answer for digit, answer in zip(action, right, strict=True))
        return self._observe(), float(points), True, False

    def _observe(self) -> _Row:
        mask = {ACTION_MASK: self._mask.copy()} if self._masked else {}
        return {"sign": np.array([self._sign], np.float32), **mask}
