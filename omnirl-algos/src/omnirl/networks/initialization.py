"""Initial weights, as the references draw them, from a generator of their own.

torch's global generator is never touched: two networks built from one seed are equal, whatever else runs.
"""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor


def generator(seed: int) -> Generator:
    """A CPU generator for this seed (taken modulo 2**63)."""
    return torch.Generator().manual_seed(seed % 2**63)


@torch.no_grad()
def orthogonal_(weight: Tensor, gain: float, rng: Generator) -> None:
    """Fill ``weight`` [out, ...] with rows or columns that are orthogonal, scaled by ``gain``.

    Saxe et al. 2014 (arXiv:1312.6120); the gains for PPO are in Huang et al. 2022, "The 37 implementation
    details".
    """
    rows = weight.shape[0]
    columns = weight.numel() // rows
    sample = torch.randn(max(rows, columns), min(rows, columns), generator=rng)
    q, r = torch.linalg.qr(sample)
    q *= r.diagonal().sign()  # makes the distribution uniform over orthogonal matrices
    weight.copy_((q if rows >= columns else q.T).reshape(weight.shape) * gain)


@torch.no_grad()
def uniform_fan_in_(weight: Tensor, bias: Tensor, rng: Generator) -> None:
    """Fill with U(-1/sqrt(fan_in), 1/sqrt(fan_in)): what torch.nn.Linear and Conv2d start from, and so the
    value learners of Stable-Baselines3 and CleanRL."""
    bound = 1.0 / math.sqrt(weight.numel() / weight.shape[0])
    for tensor in (weight, bias):
        tensor.copy_(torch.rand(tensor.shape, generator=rng) * (2.0 * bound) - bound)
