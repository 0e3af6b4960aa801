"""Losses of the learners of return distributions: categorical (C51) and by quantiles (QR-DQN).

Letters: N transitions, n actions, Z atoms or quantiles (i of the estimate, j of the target).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from omnirl.algorithms.shared.off_policy.targets import Values, bootstrapped
from omnirl.algorithms.shared.off_policy.transition_tensors import TransitionTensors
from omnirl.algorithms.shared.training.torch_masks import legal_values
from omnirl.algorithms.shared.values.losses import LossFunction, ValueLoss

Distribution = Callable[[Tensor], Tensor]
"""A network's outputs [N, n, Z] as action values [N, n]."""


@torch.no_grad()
def next_row(
    batch: TransitionTensors, chooser: Values, target: Values, atoms: int, values: Distribution
) -> Tensor:
    """The target network's outputs [N, Z] of the legal action that ``chooser`` finds best in the next state.

    ``chooser`` is the target network itself, or the online one as in double DQN.
    """
    outputs = target(batch.next_obs)
    judged = outputs if chooser is target else chooser(batch.next_obs)
    rows = outputs.view(len(outputs), -1, atoms)
    best = legal_values(lambda obs: values(judged.view_as(rows)), batch.next_mask)(batch.next_obs).argmax(1)
    chosen: Tensor = rows[torch.arange(len(best), device=best.device), best]
    return chosen


# ---------------------------------------------------------------- categorical


def projected(
    reward: Tensor, discount: Tensor, probabilities: Tensor, support: Tensor, low: float, high: float
) -> Tensor:
    """The distribution [N, Z] of reward + discount Z', moved to the atoms of ``support`` [Z], evenly spaced from
    ``low`` to ``high``; ``probabilities`` [N, Z] are those of Z'.

    Bellemare et al. 2017 (arXiv:1707.06887), algorithm 1. Each mass goes to the two atoms about it in proportion; one
    that meets an atom goes there whole, none is lost.
    """
    last = support.shape[0] - 1
    moved = torch.addcmul(reward.unsqueeze(1), discount.unsqueeze(1), support).clamp_(low, high)
    place = moved.sub_(low).mul_(last / (high - low)).clamp_(0.0, last)
    below = place.floor()
    share = place - below  # of the atom above; 0 on an atom, the last among them
    below = below.nan_to_num_(
        0.0
    ).long()  # a reward that is no number makes masses that are none, and no index
    result = torch.zeros_like(probabilities)
    result.scatter_add_(1, below, probabilities * (1.0 - share))
    return result.scatter_add_(1, (below + 1).clamp_(max=last), probabilities * share)


def categorical_values(logits: Tensor, support: Tensor) -> Tensor:
    """The expectations [...] of the distributions softmax(logits) [..., Z] over ``support`` [Z]."""
    return logits.softmax(-1) @ support


def categorical_loss(low: float, high: float, atoms: int, *, online_chooses: bool) -> LossFunction:
    """Cross-entropy of the projected target distribution and softmax of the taken action's logits [N, Z]:
    Bellemare et al. 2017, algorithm 1. The error is that of the expectations."""

    def loss(batch: TransitionTensors, taken: Tensor, online: Values, target: Values) -> ValueLoss:
        support = torch.linspace(low, high, atoms, device=taken.device)
        chooser = online if online_chooses else target
        row = next_row(batch, chooser, target, atoms, lambda logits: categorical_values(logits, support))
        goal = projected(batch.reward, batch.discount, row.softmax(1), support, low, high)
        log_probabilities = taken.log_softmax(1)
        probabilities = log_probabilities.exp()
        value = probabilities @ support
        return ValueLoss(
            loss=-(goal * log_probabilities).sum(1),
            slope=probabilities - goal,
            error=goal @ support - value,
            value=value,
        )

    return loss


# ---------------------------------------------------------------- quantiles


def midpoints(quantiles: int, device: torch.device) -> Tensor:
    """The fractions (2 i - 1) / (2 Z) [Z] that the quantiles stand for: Dabney et al. 2018 (arXiv:1710.10044),
    lemma 2."""
    return (torch.arange(quantiles, device=device) + 0.5) / quantiles


def quantile_huber_loss(quantiles: Tensor, goals: Tensor, kappa: float) -> tuple[Tensor, Tensor]:
    """sum_i mean_j |tau_i - 1{u_ij < 0}| H_kappa(u_ij) / kappa, [N], with u_ij = ``goals``_j - ``quantiles``_i, and its
    derivative by the quantiles [N, Z].

    Dabney et al. 2018 (arXiv:1710.10044), eq. 9 and 10 and algorithm 1: the fractions tau are those of the estimate
    [N, Z], never of the target [N, Z']. ``kappa`` 0 is the plain quantile loss, eq. 8.
    """
    error = goals.unsqueeze(1) - quantiles.unsqueeze(2)
    tau = midpoints(quantiles.shape[1], quantiles.device).view(1, -1, 1)
    # In place as far as it goes: [N, Z, Z'] is so large that making room for it costs more than filling it.
    if kappa > 0:
        pull = error.clamp(-kappa, kappa)
        error.sub_(pull, alpha=0.5)  # H(u) = clip(u) (u - clip(u) / 2)
    else:
        pull, kappa = error.sign(), 1.0
    # The pull is weighted by tau upwards and by 1 - tau downwards.
    downwards = pull.clamp(max=0.0).mul_(1.0 - 2.0 * tau)
    pull.mul_(tau).add_(downwards)
    share = 1.0 / (kappa * goals.shape[1])
    return error.mul_(pull).sum((1, 2)).mul_(share), pull.sum(2).mul_(-share)


def quantile_loss(quantiles: int, kappa: float, *, online_chooses: bool) -> LossFunction:
    """The quantile Huber loss of the taken action's quantiles [N, Z]: Dabney et al. 2018, algorithm 1. The error is
    that of the means."""

    def loss(batch: TransitionTensors, taken: Tensor, online: Values, target: Values) -> ValueLoss:
        chooser = online if online_chooses else target
        row = next_row(batch, chooser, target, quantiles, lambda outputs: outputs.mean(-1))
        goals = bootstrapped(batch.reward.unsqueeze(1), batch.discount.unsqueeze(1), row)
        losses, slope = quantile_huber_loss(taken, goals, kappa)
        value = taken.mean(1)
        return ValueLoss(losses, slope, goals.mean(1) - value, value)

    return loss
