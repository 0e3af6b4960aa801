"""How random SAC's policy is to stay. Imports no torch."""

from __future__ import annotations

import math

from omnirl.api import ActionSpec, ContinuousAction, DiscreteAction


def target_entropy(action: ActionSpec, ratio: float) -> float:
    """-A nats for continuous actions of size A; ``ratio`` ln n for one of n discrete ones.

    The first is that of actions scaled to [-1, 1] (Haarnoja et al. 2018, arXiv:1812.05905, table 1), whatever
    the environment's units. The second is ``ratio`` of the entropy of random play: the paper's 0.98
    (Christodoulou 2019, arXiv:1910.07207) keeps the better of two actions below a probability of 0.583, 0.7
    below 0.81, 0.5 below 0.89.
    """
    if isinstance(action, ContinuousAction):
        return -float(len(action.low))
    assert isinstance(action, DiscreteAction)
    return ratio * math.log(action.n)
