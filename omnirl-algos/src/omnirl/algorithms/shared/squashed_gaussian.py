"""The squashed Gaussian of SAC and TQC for learning: actions tanh(u) with u normal.

Letters: N samples, A size of an action.
"""

from __future__ import annotations

import math

from torch import Tensor
from torch.nn.functional import softplus

from omnirl.algorithms.shared.bounded_heads import LOG_STD_MAX, LOG_STD_MIN
from omnirl.algorithms.shared.distributions import LOG_SQRT_2PI

_CONSTANT = LOG_SQRT_2PI + 2.0 * math.log(2.0)


def squashed_log_prob(u: Tensor, z: Tensor, log_std: Tensor) -> Tensor:
    """log density [N] of tanh(u) in [-1, 1]^A; u, z = (u - mean) / std and log_std [N, A].

    Haarnoja et al. 2018 (arXiv:1812.05905), eq. 21, with log(1 - tanh(u)^2) = 2 (log 2 - u - softplus(-2 u)),
    which is exact where tanh(u) rounds to 1. It takes u: the action does not tell it any more.
    """
    return (2.0 * (u + softplus(-2.0 * u)) - 0.5 * z.square() - log_std - _CONSTANT).sum(1)


def squashed_sample(outputs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Actions [N, A] in [-1, 1] and their log density [N]; outputs [N, 2 A], mean and log deviation; noise
    [N, A] standard normal. Both have a gradient for the outputs (the reparametrization of eq. 6)."""
    mean, log_std = outputs.chunk(2, 1)
    log_std = log_std.clamp(LOG_STD_MIN, LOG_STD_MAX)
    u = mean + log_std.exp() * noise
    return u.tanh(), squashed_log_prob(u, noise, log_std)
