"""SAC for discrete actions: Christodoulou 2019 (arXiv:1910.07207). Every expectation over actions is a sum.

Letters: M critics, N transitions, n actions.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Generator, Tensor

from omnirl.algorithms.shared.bounded_actions.critic_losses import summed_squares
from omnirl.algorithms.shared.bounded_actions.soft_losses import Objective, SoftTerms
from omnirl.algorithms.shared.off_policy.batch_part import BatchPart
from omnirl.algorithms.shared.off_policy.targets import bootstrapped
from omnirl.algorithms.shared.off_policy.transition_tensors import TransitionTensors
from omnirl.networks.actor_critic_passes import Passes

REDUCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "min": lambda values: values.amin(0),
    "mean": lambda values: values.mean(0),
}
"""From the values of M critics [M, N, n] to [N, n]."""


def expected(passes: Passes, reduction: Callable[[Tensor], Tensor]) -> Objective:
    """The objective with exact expectations; ``reduction`` makes one value of the critics'."""
    actor, next_actor, critics, _, target_critics = passes

    def objective(batch: TransitionTensors, part: BatchPart, alpha: Tensor, rng: Generator) -> SoftTerms:
        upcoming, _, _ = soft_value(
            next_actor(batch.next_obs), reduction(target_critics.forward(batch.next_obs)), alpha
        )
        target = bootstrapped(batch.reward, batch.discount, upcoming)
        values = critics.forward(batch.obs)
        action = batch.action.expand(len(values), -1, 1)
        taken = values.gather(2, action)
        loss, slope = summed_squares(taken, target)
        share = batch.weight / part.total
        critics.backward(torch.zeros_like(values).scatter_(2, action, slope * share.unsqueeze(1)))

        value, entropy, slope = soft_value(actor.forward(batch.obs), reduction(values), alpha)
        actor.backward(slope.mul_(-1.0 / part.total))
        return SoftTerms(torch.dot(loss, share), -part.mean(value), part.mean(taken), part.mean(entropy))

    return objective


def soft_value(logits: Tensor, values: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """V = sum_a pi(a) (Q(a) - alpha log pi(a)) [N] (eq. 10), the entropy of pi in nats [N], and dV / dlogits [N, n].

    logits and values Q [N, n]. The mean of V is also what the actor makes great (eq. 12); with f = Q - alpha log pi
    its slope is pi (f - V).
    """
    log_probs = torch.log_softmax(logits, 1)
    probs = log_probs.exp()
    gain = values - alpha * log_probs
    value = (probs * gain).sum(1)
    return value, -(probs * log_probs).sum(1), probs * (gain - value.unsqueeze(1))
