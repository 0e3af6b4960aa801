"""The squashed Gaussian of SAC and TQC for learning, with its gradient: actions tanh(u) with u normal.

Letters: N samples, A size of an action.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softplus

from omnirl.algorithms.shared.acting.bounded_heads import LOG_STD_MAX, LOG_STD_MIN
from omnirl.algorithms.shared.acting.distributions import LOG_SQRT_2PI

_CONSTANT = LOG_SQRT_2PI + 2.0 * math.log(2.0)


class SquashedSample(NamedTuple):
    """Actions in [-1, 1].

    action      [N, A]
    log_prob    their log density [N]
    gradient    ``(d_action [N, A], d_log_prob)`` -> the gradient of the outputs [N, 2 A]; ``d_log_prob`` is the same
                number for all samples, 0-dimensional
    """

    action: Tensor
    log_prob: Tensor
    gradient: Callable[[Tensor, Tensor], Tensor]


def squashed_log_prob(u: Tensor, z: Tensor, log_std: Tensor) -> Tensor:
    """log density [N] of tanh(u) in [-1, 1]^A; u, z = (u - mean) / std and log_std [N, A].

    Haarnoja et al. 2018 (arXiv:1812.05905), eq. 21, with log(1 - tanh(u)^2) = 2 (log 2 - u - softplus(-2 u)),
    which is exact where tanh(u) rounds to 1. It takes u: the action does not tell it any more.
    """
    return (2.0 * (u + softplus(-2.0 * u)) - 0.5 * z.square() - log_std - _CONSTANT).sum(1)


def squashed_sample(outputs: Tensor, noise: Tensor) -> SquashedSample:
    """Samples of outputs [N, 2 A], mean and log deviation, by ``noise`` [N, A], standard normal (eq. 6).

    With u = mean + std noise: d log pi / d u = 2 tanh(u), and d log pi / d log_std has a further -1.
    """
    mean, raw = outputs.chunk(2, 1)
    log_std = raw.clamp(LOG_STD_MIN, LOG_STD_MAX)
    spread = log_std.exp() * noise
    u = mean + spread
    action = u.tanh()

    def gradient(d_action: Tensor, d_log_prob: Tensor) -> Tensor:
        d_u = d_action * (1.0 - action.square()) + 2.0 * d_log_prob * action
        d_log_std = (d_u * spread - d_log_prob) * (log_std == raw)
        return torch.cat((d_u, d_log_std), 1)

    return SquashedSample(action, squashed_log_prob(u, noise, log_std), gradient)
