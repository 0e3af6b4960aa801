"""What value learners bootstrap from, and how target networks follow.

Targets are made of numpy arrays or torch tensors, whatever the networks answer with; see
:mod:`omnirl.algorithms.shared.training.likelihoods`.

Letters: N transitions, n actions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

from omnirl.algorithms.shared.training.flat_parameters import FlatParameters
from omnirl.algorithms.shared.training.likelihoods import ArrayOrTensor, namespace
from omnirl.api import Array

Values = Callable[[Tensor], ArrayOrTensor]
"""A network: observations [N, ...] -> action values [N, n]."""
_Kind = TypeVar("_Kind", Tensor, Array)
NextValue = Callable[[Tensor, Values, Values], ArrayOrTensor]
"""``(next observations, online network, target network) -> value [N]`` of the next state, without a
gradient."""


def greatest_target_value(next_obs: Tensor, online: Values, target: Values) -> ArrayOrTensor:
    """max_a Q_target(s', a) [N]: Mnih et al. 2015 (Nature 518), algorithm 1. The online network has no part
    in it."""
    values = target(next_obs)
    return namespace(values).amax(values, 1)


@torch.no_grad()
def double_target_value(next_obs: Tensor, online: Values, target: Values) -> ArrayOrTensor:
    """Q_target(s', argmax_a Q_online(s', a)) [N]: van Hasselt et al. 2016 (arXiv:1509.06461), eq. 4."""
    best, values = online(next_obs).argmax(1), target(next_obs)
    return values[namespace(values).arange(len(best)), best]


def bootstrapped(reward: _Kind, discount: _Kind, next_value: _Kind) -> _Kind:
    """reward + discount V(s') [N]; ``discount`` is gamma^k, and 0 only where the episode terminated."""
    target: _Kind = reward + discount * next_value
    return target


def follow_(target: FlatParameters, online: FlatParameters, share: Tensor) -> None:
    """target <- share online + (1 - share) target, in one operation; ``share`` is 0-dimensional, 1 copies
    exactly."""
    target.values.lerp_(online.values, share)
