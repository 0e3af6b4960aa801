"""SAC for discrete actions: Christodoulou 2019 (arXiv:1910.07207). Every expectation over actions is a sum.

Letters: M critics, N transitions, n actions.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Generator, Tensor

from omnirl.algorithms.shared.soft_losses import Objective, SoftTerms
from omnirl.algorithms.shared.targets import bootstrapped
from omnirl.algorithms.shared.transition_tensors import TransitionTensors

REDUCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "min": lambda values: values.amin(0),
    "mean": lambda values: values.mean(0),
}
"""From the values of M critics [M, N, n] to [N, n]."""


def expected(
    actor: Callable[[Tensor], Tensor],
    critics: Callable[[Tensor], Tensor],
    target_critics: Callable[[Tensor], Tensor],
    reduction: Callable[[Tensor], Tensor],
) -> Objective:
    """The objective with exact expectations; ``reduction`` makes one value of the critics'."""

    def objective(batch: TransitionTensors, alpha: Tensor, rng: Generator) -> SoftTerms:
        with torch.no_grad():
            following = soft_value(actor(batch.next_obs), reduction(target_critics(batch.next_obs)), alpha)
            target = bootstrapped(batch.reward, batch.discount, following)
        values = critics(batch.obs)
        taken = values.gather(2, batch.action.expand(len(values), -1, 1)).squeeze(2)
        logits = actor(batch.obs)
        gain = soft_value(logits, reduction(values.detach()), alpha)
        return SoftTerms(
            (target - taken).square().sum(0), -gain.mean(), taken.detach().mean(), entropy(logits.detach())
        )

    return objective


def soft_value(logits: Tensor, values: Tensor, alpha: Tensor) -> Tensor:
    """sum_a pi(a) (Q(a) - alpha log pi(a)), [N] (eq. 10); logits and values [N, n].

    Its mean is also what the actor makes great (eq. 12).
    """
    log_probs = torch.log_softmax(logits, 1)
    return (log_probs.exp() * (values - alpha * log_probs)).sum(1)


def entropy(logits: Tensor) -> Tensor:
    """The mean entropy of softmax(logits [N, n]) in nats, 0-dimensional."""
    log_probs = torch.log_softmax(logits, 1)
    return -(log_probs.exp() * log_probs).sum(1).mean()
