"""How random SAC's policy is to stay. Imports no torch."""

from __future__ import annotations

import math

from omnirl.api import ActionSpec, ContinuousAction, DiscreteAction


def target_entropy(action: ActionSpec, ratio: float) -> float:
    """:func:`continuous_target_entropy`, or ``ratio`` ln n nats for one of n discrete actions.

    The latter is ``ratio`` of the entropy of random play: the paper's 0.98 (Christodoulou 2019, arXiv:1910.07207)
    keeps the better of two actions below a probability of 0.583, 0.7 below 0.81, 0.5 below 0.89.
    """
    if isinstance(action, ContinuousAction):
        return continuous_target_entropy(action)
    assert isinstance(action, DiscreteAction)
    return ratio * math.log(action.n)


def continuous_target_entropy(action: ContinuousAction) -> float:
    """-A nats for actions of size A scaled to [-1, 1], whatever the environment's units (Haarnoja et al. 2018,
    arXiv:1812.05905, table 1)."""
    return -float(len(action.low))
