"""What TQC does with the quantiles of its critics: Kuznetsov et al. 2020 (arXiv:2005.04269), section 3.

Letters: M critics, N transitions, Q quantiles of a critic, K atoms kept.
"""

from __future__ import annotations

from torch import Tensor

from omnirl.algorithms.shared.bounded_actions.critic_losses import CriticLoss, Reduction
from omnirl.algorithms.shared.values.distributional_losses import quantile_huber_loss


def truncated(dropped: int) -> Reduction:
    """The K = M Q - ``dropped`` M smallest of all critics' quantiles in one pool: [M, N, Q] -> [N, K], rising."""

    def pool(quantiles: Tensor) -> Tensor:
        members, rows, count = quantiles.shape
        atoms = quantiles.transpose(0, 1).reshape(rows, members * count)
        return atoms.sort(1).values[:, : members * (count - dropped)]

    return pool


def quantile_loss(kappa: float) -> CriticLoss:
    """The mean over critics, quantiles and atoms: (loss [N], slope [M, N, Q]) of quantiles [M, N, Q], atoms [N, K]."""

    def loss(quantiles: Tensor, atoms: Tensor) -> tuple[Tensor, Tensor]:
        members, rows, count = quantiles.shape
        goals = atoms.expand(members, *atoms.shape).reshape(members * rows, -1)
        each, slope = quantile_huber_loss(quantiles.view(members * rows, count), goals, kappa)
        share = 1.0 / (members * count)
        return each.view(members, rows).sum(0).mul_(share), slope.view_as(quantiles).mul_(share)

    return loss
