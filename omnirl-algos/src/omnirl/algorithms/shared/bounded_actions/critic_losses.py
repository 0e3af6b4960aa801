"""The squared error of an ensemble of critics, and how their values become one, with the slopes.

Letters: M critics, N transitions, O outputs of a critic.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Reduction = Callable[[Tensor], Tensor]
"""From the critics' outputs [M, N, O] to one thing per transition."""
CriticLoss = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""``(outputs [M, N, O], targets [N, ...]) -> (loss [N], its slope by the outputs [M, N, O])``"""


def summed_squares(outputs: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """(Q - y)^2 summed over the critics; outputs [M, N, 1], target [N]."""
    error = outputs - target.unsqueeze(1)
    return error.square().sum((0, 2)), 2.0 * error


def least(outputs: Tensor) -> Tensor:
    """The least of the critics [M, N, 1] -> [N] (Fujimoto et al. 2018, clipped double Q-learning)."""
    return outputs.squeeze(2).amin(0)


def least_slope(outputs: Tensor) -> Tensor:
    """Of :func:`least` by the outputs: 1 for the critic that is it."""
    return torch.zeros_like(outputs).scatter_(0, outputs.argmin(0, keepdim=True), 1.0)


def average(outputs: Tensor) -> Tensor:
    """The mean of all outputs [M, N, O] -> [N]."""
    return outputs.mean((0, 2))


def average_slope(outputs: Tensor) -> Tensor:
    """Of :func:`average` by the outputs: the same for all."""
    return torch.full_like(outputs, 1.0 / (outputs.shape[0] * outputs.shape[2]))
