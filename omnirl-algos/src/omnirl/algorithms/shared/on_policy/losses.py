"""Losses of the on-policy learners with their gradients, and the figures that go with them.

The losses take numpy arrays or torch tensors and answer in kind; see
:mod:`omnirl.algorithms.shared.training.likelihoods`.

Letters: N samples of a minibatch.
"""

from __future__ import annotations

import torch
from torch import Tensor

from omnirl.algorithms.shared.training.likelihoods import ArrayOrTensor, namespace


def clipped_surrogate(
    log_ratio: ArrayOrTensor, advantages: ArrayOrTensor, clip: float
) -> tuple[ArrayOrTensor, ArrayOrTensor]:
    """-min(r A, clip(r, 1 - clip, 1 + clip) A) of each sample [N], and the gradient [N] of their mean by log r.

    PPO: Schulman et al. 2017 (arXiv:1707.06347), eq. 7. d(r A) / d(log r) is r A itself; a clipped ratio is a
    constant.
    """
    xp = namespace(log_ratio)
    ratio = xp.exp(log_ratio)
    gain = advantages * ratio
    least = xp.minimum(gain, advantages * ratio.clip(1.0 - clip, 1.0 + clip))
    return -least, gain * (gain <= least) * (-1.0 / len(gain))


def policy_gradient(
    log_prob: ArrayOrTensor, advantages: ArrayOrTensor
) -> tuple[ArrayOrTensor, ArrayOrTensor]:
    """-A log pi of each sample [N], and the gradient [N] of their mean by log pi; A is a constant.

    Mnih et al. 2016 (arXiv:1602.01783), section 4.
    """
    return -advantages * log_prob, advantages * (-1.0 / len(advantages))


def squared_error(values: ArrayOrTensor, returns: ArrayOrTensor) -> tuple[ArrayOrTensor, ArrayOrTensor]:
    """(V - R)^2 of each sample [N], and the gradient [N] of their mean by V."""
    error = values - returns
    return error * error, error * (2.0 / len(error))


def half_squared_error(values: ArrayOrTensor, returns: ArrayOrTensor) -> tuple[ArrayOrTensor, ArrayOrTensor]:
    """1/2 (V - R)^2 of each sample [N], and the gradient [N] of their mean by V."""
    error = values - returns
    return 0.5 * error * error, error * (1.0 / len(error))


def clipped_half_squared_error(
    values: ArrayOrTensor, returns: ArrayOrTensor, old_values: ArrayOrTensor, clip: float
) -> tuple[ArrayOrTensor, ArrayOrTensor]:
    """1/2 max((V - R)^2, (V_clipped - R)^2) of each sample [N], V held within ``clip`` of ``old_values``, and
    the gradient [N] of their mean by V.

    Huang et al. 2022, "The 37 implementation details", detail 9 (which finds no evidence that it helps).
    """
    xp = namespace(values)
    change = values - old_values
    held = change.clip(-clip, clip)
    error, held_error = values - returns, old_values + held - returns
    free = error * error >= held_error * held_error
    greater = xp.where(free, error, held_error)
    # A value beyond the clip is a constant there.
    return 0.5 * greater * greater, greater * (free | (held == change)) * (1.0 / len(greater))


def standardize_minibatches(advantages: Tensor, size: int) -> Tensor:
    """Each run of ``size`` advantages [N] to mean 0 and (unbiased) standard deviation 1; the last run may be
    shorter.

    A run of one sample has no deviation and stays as it is.
    """
    result = advantages.clone()
    whole = len(advantages) - len(advantages) % size
    for part in (result[:whole].view(-1, size), result[whole:].view(1, -1)):
        if part.numel() and part.shape[1] > 1:
            part.sub_(part.mean(1, keepdim=True))
            # The deviation from what is there already: torch.std would take the mean again.
            norm = torch.linalg.vector_norm(part, dim=1, keepdim=True)
            part.div_(norm.mul_((part.shape[1] - 1) ** -0.5).add_(1e-8))
    return result


def kl_estimates(log_ratio: Tensor) -> tuple[Tensor, Tensor]:
    """Two estimates of KL(old || new) from log r [N]: k1 = mean(-log r), k3 = mean(r - 1 - log r).

    Schulman 2020, "Approximating KL divergence": k3 has far less variance and is never negative.
    """
    return -log_ratio.mean(), (log_ratio.expm1() - log_ratio).mean()
