"""Log-probabilities and entropies of action distributions, for learning.

Plain functions: ``torch.distributions`` takes ten times as long on small batches.

Letters: N samples; n actions; A size of a continuous action; P positions of a multi-discrete one.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from omnirl.algorithms.shared.distributions import LOG_SQRT_2PI


def categorical(logits: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
    """log pi(action) [N] and the entropy [N]; logits [N, n] need not be normalised, action [N, 1] int64."""
    log_probs = torch.log_softmax(logits, 1)
    return log_probs.gather(1, action).squeeze(1), -(log_probs.exp() * log_probs).sum(1)


def multi_categorical(logits: Tensor, action: Tensor, nvec: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Sums over independent positions; logits [N, sum(nvec)], action [N, P] int64."""
    parts = [
        categorical(part, action[:, i : i + 1])
        for i, part in enumerate(torch.split(logits, list(nvec), dim=1))
    ]
    log_probs, entropies = zip(*parts)
    return torch.stack(log_probs).sum(0), torch.stack(entropies).sum(0)


def gaussian(mean: Tensor, log_std: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
    """log density [N] of independent normals and the entropy, a scalar as it depends on ``log_std`` [A]
    alone."""
    z = (action - mean) * torch.exp(-log_std)
    total = log_std.sum()
    constant = LOG_SQRT_2PI * log_std.shape[0]
    return -0.5 * z.square().sum(1) - (total + constant), total + (constant + 0.5 * log_std.shape[0])
