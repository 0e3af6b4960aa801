"""Losses as functions of tensors.

Letters: N samples of a minibatch.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import mse_loss


def clipped_surrogate_loss(ratio: Tensor, advantages: Tensor, clip: float) -> Tensor:
    """mean of -min(r A, clip(r, 1 - clip, 1 + clip) A), a scalar; both inputs [N].

    PPO: Schulman et al. 2017 (arXiv:1707.06347), eq. 7.
    """
    return -torch.minimum(advantages * ratio, advantages * ratio.clamp(1.0 - clip, 1.0 + clip)).mean()


def half_mse_loss(values: Tensor, returns: Tensor) -> Tensor:
    """1/2 mean (V - R)^2, a scalar; both inputs [N]."""
    return 0.5 * mse_loss(values, returns)


def clipped_value_loss(values: Tensor, returns: Tensor, old_values: Tensor, clip: float) -> Tensor:
    """1/2 mean of max((V - R)^2, (V_clipped - R)^2), V held within ``clip`` of ``old_values``; all [N].

    Huang et al. 2022, "The 37 implementation details", detail 9 (which finds no evidence that it helps).
    """
    clipped = old_values + (values - old_values).clamp(-clip, clip)
    return 0.5 * torch.maximum((values - returns).square(), (clipped - returns).square()).mean()


def standardize_minibatches(advantages: Tensor, size: int) -> Tensor:
    """Each run of ``size`` advantages [N] to mean 0 and (unbiased) standard deviation 1; the last run may be
    shorter.

    A run of one sample has no deviation and stays as it is.
    """
    result = advantages.clone()
    whole = len(advantages) - len(advantages) % size
    for part in (result[:whole].view(-1, size), result[whole:].view(1, -1)):
        if part.numel() and part.shape[1] > 1:
            part.sub_(part.mean(1, keepdim=True)).div_(part.std(1, keepdim=True) + 1e-8)
    return result


def kl_estimates(log_ratio: Tensor) -> tuple[Tensor, Tensor]:
    """Two estimates of KL(old || new) from log r [N]: k1 = mean(-log r), k3 = mean(r - 1 - log r).

    Schulman 2020, "Approximating KL divergence": k3 has far less variance and is never negative.
    """
    return -log_ratio.mean(), (log_ratio.expm1() - log_ratio).mean()


def huber_loss(error: Tensor) -> Tensor:
    """0.5 e^2 where |e| <= 1, |e| - 0.5 elsewhere, per sample [N] (Mnih et al. 2015, error clipping)."""
    return torch.nn.functional.huber_loss(error, torch.zeros_like(error), reduction="none")


def squared_loss(error: Tensor) -> Tensor:
    """e^2 per sample [N]."""
    return error.square()
