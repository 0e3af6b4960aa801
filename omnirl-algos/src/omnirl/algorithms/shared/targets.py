"""What value learners bootstrap from, and how target networks follow.

Letters: N transitions, n actions.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from omnirl.algorithms.shared.flat_parameters import FlatParameters

Values = Callable[[Tensor], Tensor]
"""A network: observations [N, ...] -> action values [N, n]."""
NextValue = Callable[[Tensor, Values, Values], Tensor]
"""``(next observations, online network, target network) -> value [N]`` of the next state, without a
gradient."""


def greatest_target_value(next_obs: Tensor, online: Values, target: Values) -> Tensor:
    """max_a Q_target(s', a) [N]: Mnih et al. 2015 (Nature 518), algorithm 1. The online network has no part
    in it."""
    return target(next_obs).amax(1)


@torch.no_grad()
def double_target_value(next_obs: Tensor, online: Values, target: Values) -> Tensor:
    """Q_target(s', argmax_a Q_online(s', a)) [N]: van Hasselt et al. 2016 (arXiv:1509.06461), eq. 4."""
    best = online(next_obs).argmax(1, keepdim=True)
    return target(next_obs).gather(1, best).squeeze(1)


def bootstrapped(reward: Tensor, discount: Tensor, next_value: Tensor) -> Tensor:
    """reward + discount V(s') [N]; ``discount`` is gamma^k, and 0 only where the episode terminated."""
    return reward + discount * next_value


def follow_(target: FlatParameters, online: FlatParameters, share: Tensor) -> None:
    """target <- share online + (1 - share) target, in one operation; ``share`` is 0-dimensional, 1 copies
    exactly."""
    target.values.lerp_(online.values, share)
