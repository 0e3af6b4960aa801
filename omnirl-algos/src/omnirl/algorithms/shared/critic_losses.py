"""What an ensemble of critics is asked, and the squared error of its values.

Letters: M critics, N transitions, D numbers that a critic takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from torch import Tensor

Reduction = Callable[[Tensor], Tensor]
"""From the critics' outputs [M, N, O] to one thing per transition."""


class Critics(Protocol):
    """Critics that can be asked with and without a gradient of their own."""

    def __call__(self, x: Tensor) -> Tensor:
        """[N, D] -> [M, N, outputs]."""

    def frozen(self, x: Tensor, members: int | None = None) -> Tensor:
        """The same of the first ``members`` (all), with a gradient for ``x`` alone."""


def summed_squares(outputs: Tensor, target: Tensor) -> Tensor:
    """(y - Q)^2 summed over the critics: outputs [M, N, 1], target [N] -> [N]."""
    return (target - outputs.squeeze(2)).square().sum(0)


def least(outputs: Tensor) -> Tensor:
    """The least of the critics [M, N, 1] -> [N] (Fujimoto et al. 2018, clipped double Q-learning)."""
    return outputs.squeeze(2).amin(0)


def average(outputs: Tensor) -> Tensor:
    """The critics' mean [M, N, 1] -> [N]."""
    return outputs.squeeze(2).mean(0)
