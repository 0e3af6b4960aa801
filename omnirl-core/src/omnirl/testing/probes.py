"""Probe environments: so small that the right answer is a number one can write down.

P1-P7 are the probes of Andy Jones ("Debugging RL, Without the Agonizing Pain", 2021) extended by truncation
and termination, C1-C4 their continuous counterparts; each isolates one mistake. gamma is 0.9.

========  =============================================  ===========================  =======================
id        observation, reward, end                       right answer                 what fails if it is not
========  =============================================  ===========================  =======================
probe_p1  0; +1; 1 step                                  V = 1                        value loss
probe_p2  +-1; the observation; 1 step                   V = +-1                      backpropagation
probe_p3  0 then 1; 0 then 1; 2 steps                    V(1) = 1, V(0) = 0.9         discounting
probe_p4  0; +1 if action 1 else -1; 1 step              Q = [-1, 1]                  advantage, policy loss
probe_p5  +-1; +1 if (action 1) = (obs > 0) else -1      V = 1                        batching, staleness
probe_p6  0; +1; truncated after 3 steps                 V = 10 (at most 2.71 else)   bootstrapping
probe_p7  t / 3; +1; terminated after 3 steps            V = 2.71, 1.9, 1             the termination mask
probe_c1  0; -(a - 0.5)^2, a in [-1, 1]; 1 step          a = 0.5                      policy gradient
probe_c2  +-1; -(a - 0.5 obs)^2, a in [-1, 1]; 1 step    a = 0.5 obs                  ... that sees the state
probe_c3  0; -(a - 2.5)^2, a in [-2, 4]; 1 step          a = 2.5                      scaling of actions
probe_c4  0; a, a in [-1, 3]; 1 step                     a = 3                        saturation at the bound
========  =============================================  ===========================  =======================

Where the only discrete action makes no difference (P2, P3, P6, P7 and the two steps of ``two_step``),
``..._continuous`` is the same with a continuous action that makes none.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from omnirl.api.data import Array
from omnirl.api.specs import ActionSpec, ContinuousAction, DiscreteAction
from omnirl.testing.single import VECTOR_1

ONLY = DiscreteAction(1)
"""The one discrete action."""
IGNORED = ContinuousAction((-1.0,), (1.0,))
"""A continuous action that makes no difference: for algorithms that take no other."""

Reward = Callable[[float, float], float]
"""``(observation, action) -> reward``"""


class OneStep:
    """Episodes of one step. The observation is 0, or +-1 drawn from the episode's seed where ``signed``."""

    observation = VECTOR_1

    def __init__(self, action: ActionSpec, reward: Reward, signed: bool = False) -> None:
        self.action = action
        self._reward = reward
        self._signed = signed
        self._obs = 0.0

    def reset(self, seed: int) -> Array:
        """Draw the observation."""
        self._obs = float(np.random.default_rng(seed).choice((-1.0, 1.0))) if self._signed else 0.0
        return np.array([self._obs], np.float32)

    def step(self, action: Array) -> tuple[Array, float, bool, bool]:
        """One reward and the end; a continuous action is brought inside its bounds."""
        if isinstance(self.action, ContinuousAction):
            action = np.clip(action, *self.action.bounds())
        return np.array([self._obs], np.float32), self._reward(self._obs, float(np.sum(action))), True, False


class Sequence:
    """Episodes of fixed observations and rewards, whatever the action; ``truncated`` cuts instead of ends them.

    ``observations`` [T+1] holds the final one too, ``rewards`` [T].
    """

    observation = VECTOR_1

    def __init__(
        self,
        observations: tuple[float, ...],
        rewards: tuple[float, ...],
        truncated: bool = False,
        action: ActionSpec = ONLY,
    ) -> None:
        self.action = action
        self._observations = observations
        self._rewards = rewards
        self._truncated = truncated
        self._t = 0

    def reset(self, seed: int) -> Array:
        """Back to the first observation; nothing here is random."""
        self._t = 0
        return np.array([self._observations[0]], np.float32)

    def step(self, action: Array) -> tuple[Array, float, bool, bool]:
        """The next row."""
        reward = self._rewards[self._t]
        self._t += 1
        ended = self._t == len(self._rewards)
        obs = np.array([self._observations[self._t]], np.float32)
        return obs, reward, ended and not self._truncated, ended and self._truncated


class TwoStep:
    """s0 -(0)-> s1 -(+1 with probability 0.3, else -1)-> end, whatever the action: a known distribution of
    returns."""

    observation = VECTOR_1

    def __init__(self, action: ActionSpec = ONLY) -> None:
        self.action = action
        self._t = 0
        self._last = 0.0

    def reset(self, seed: int) -> Array:
        """Draw the episode's outcome."""
        self._t = 0
        self._last = 1.0 if np.random.default_rng(seed).random() < 0.3 else -1.0
        return np.zeros(1, np.float32)

    def step(self, action: Array) -> tuple[Array, float, bool, bool]:
        """To s1 without a reward, then to the end with one."""
        self._t += 1
        ended = self._t == 2
        return np.ones(1, np.float32), self._last if ended else 0.0, ended, False


def bandit(low: float, high: float, reward: Reward, signed: bool = False) -> OneStep:
    """One step with one continuous action in [low, high]."""
    return OneStep(ContinuousAction((low,), (high,)), reward, signed)


def sign_matches(obs: float, action: float) -> float:
    """+1 where action 1 meets a positive observation or action 0 a negative one, else -1."""
    return 1.0 if (action == 1.0) == (obs > 0.0) else -1.0
