"""Environments of a few states: counting, the chain with a known Q*, and a recorder of actions."""

from __future__ import annotations

import numpy as np

from omnirl.api.data import Array
from omnirl.api.specs import ArraySpec, ContinuousAction, DiscreteAction
from omnirl.testing.single import VECTOR_1


class Count:
    """Observes t = 0, 1, 2, ...; ``reward`` each step; ends after ``length`` steps.

    The end is a truncation unless ``terminate``. ``reuse`` returns the same array every time, as fast
    simulators do.
    """

    observation = VECTOR_1
    action = DiscreteAction(2)

    def __init__(
        self, length: int = 10, terminate: bool = False, reuse: bool = False, reward: float = 1.0
    ) -> None:
        self._length = length
        self._terminate = terminate
        self._reuse = reuse
        self._reward = reward
        self._array = np.zeros(1, np.float32)
        self._t = 0

    def reset(self, seed: int) -> Array:
        """Back to 0."""
        self._t = 0
        return self._observe()

    def step(self, action: Array) -> tuple[Array, float, bool, bool]:
        """Count on, whatever the action."""
        self._t += 1
        ended = self._t >= self._length
        return self._observe(), self._reward, ended and self._terminate, ended and not self._terminate

    def _observe(self) -> Array:
        if not self._reuse:
            return np.array([self._t], np.float32)
        self._array[0] = self._t
        return self._array


class Chain:
    """Five states in a row, observed one-hot. Action 1 goes right, 0 left (at the left end it stays).

    Going right at the right end terminates with reward 1; all other rewards are 0. An episode begins in a
    state drawn from its seed, so that every state is visited, and is truncated after 50 steps. Q*(s, right)
    = gamma^(4-s), Q*(s, left) = gamma^(5 - max(s-1, 0)).
    """

    observation = ArraySpec((5,))
    action = DiscreteAction(2)

    def __init__(self) -> None:
        self._state = 0
        self._t = 0

    def reset(self, seed: int) -> Array:
        """Draw the first state."""
        self._state = int(np.random.default_rng(seed).integers(5))
        self._t = 0
        return self._observe()

    def step(self, action: Array) -> tuple[Array, float, bool, bool]:
        """One state left or right."""
        self._t += 1
        if int(action) == 1 and self._state == 4:
            return self._observe(), 1.0, True, False
        self._state = min(4, self._state + 1) if int(action) == 1 else max(0, self._state - 1)
        return self._observe(), 0.0, False, self._t == 50

    def _observe(self) -> Array:
        row = np.zeros(5, np.float32)
        row[self._state] = 1.0
        return row


class Box:
    """Keeps what it was given: ``actions`` lists every action [1] float32, clipped to [low, high] as a
    simulator's backend does. Observes 0, rewards the action, truncated after 10 steps."""

    observation = VECTOR_1

    def __init__(self, low: float = -1.0, high: float = 1.0) -> None:
        self.action = ContinuousAction((low,), (high,))
        self.actions: list[Array] = []
        self._t = 0

    def reset(self, seed: int) -> Array:
        """A new episode; the record goes on."""
        self._t = 0
        return np.zeros(1, np.float32)

    def step(self, action: Array) -> tuple[Array, float, bool, bool]:
        """Record the action."""
        low, high = self.action.bounds()
        clipped = np.clip(np.asarray(action, np.float32), low, high)
        self.actions.append(clipped)
        self._t += 1
        return np.zeros(1, np.float32), float(clipped[0]), False, self._t == 10
