"""The losses of SAC and TQC: what the critics aim at, what the actor gains, and the temperature between them.

Letters: M critics, N transitions, A size of a continuous action; ``...`` what a critic says of one action: nothing
(a value) or its quantiles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from omnirl.algorithms.shared.bounded_actions.critic_losses import CriticLoss, Reduction
from omnirl.algorithms.shared.bounded_actions.squashed_gaussian import squashed_sample
from omnirl.algorithms.shared.bounded_actions.temperature import Temperature, temperature_loss
from omnirl.algorithms.shared.off_policy.batch_part import BatchPart
from omnirl.algorithms.shared.off_policy.learner import Losses, LossFunction
from omnirl.algorithms.shared.off_policy.targets import bootstrapped
from omnirl.algorithms.shared.off_policy.transition_tensors import TransitionTensors
from omnirl.networks.actor_critic_passes import Passes

FIGURES = ("critic_loss", "actor_loss", "q_value", "entropy", "temperature")


class SoftTerms(NamedTuple):
    """Of one batch, or a part's share of it, 0-dimensional: the critics' loss, the actor's, the mean value of the
    actions taken and the policy's entropy in nats."""

    critic: Tensor
    actor: Tensor
    value: Tensor
    entropy: Tensor


Objective = Callable[[TransitionTensors, BatchPart, Tensor, Generator], SoftTerms]
"""``(batch, which samples it has, temperature, random numbers) -> SoftTerms``; the gradients of actor and critics are
written."""


def soft_losses(objective: Objective, temperature: Temperature, target_entropy: float | None) -> LossFunction:
    """The losses of an update; without ``target_entropy`` the temperature does not learn."""

    def losses(batch: TransitionTensors, part: BatchPart, rng: Generator, moves: bool) -> Losses:
        alpha = temperature()
        terms = objective(batch, part, alpha, rng)
        if target_entropy is not None:
            temperature_loss(temperature.log_value, terms.entropy, target_entropy * part.share)
        return Losses((*terms, alpha * part.share))

    return losses


def reparameterized(
    passes: Passes,
    *,
    next_value: Reduction,
    critic_loss: CriticLoss,
    actor_value: Reduction,
    actor_slope: Reduction,
) -> Objective:
    """Of continuous actions: Haarnoja et al. 2018 (arXiv:1812.05905), eq. 5-9.

    next_value   what of the target critics' outputs [M, N, O] to bootstrap from: [N, ...]
    critic_loss  of the critics' outputs [M, N, O] and the targets [N, ...]
    actor_value  what of the critics' outputs [M, N, O] the actor is to make great, [N], and its slope by them
    """
    actor, next_actor, critics, frozen_critics, target_critics = passes

    def objective(batch: TransitionTensors, part: BatchPart, alpha: Tensor, rng: Generator) -> SoftTerms:
        size = batch.action.shape[1]
        noise = part.normal(2, size, rng).to(alpha.device)
        upcoming = squashed_sample(next_actor(batch.next_obs), noise[0])
        following = next_value(target_critics.forward(torch.cat((batch.next_obs, upcoming.action), 1)))
        target = soft_target(batch.reward, batch.discount, following, alpha * upcoming.log_prob)
        outputs = critics.forward(torch.cat((batch.obs, batch.action), 1))
        loss, slope = critic_loss(outputs, target)
        share = batch.weight / part.total
        critics.backward(slope * share.unsqueeze(1))

        sample = squashed_sample(actor.forward(batch.obs), noise[1])
        values = frozen_critics.forward(torch.cat((batch.obs, sample.action), 1))
        d_action = frozen_critics.input_gradient(actor_slope(values).mul_(-1.0 / part.total), size)
        actor.backward(sample.gradient(d_action, alpha / part.total))
        return SoftTerms(
            torch.dot(loss, share),
            part.mean(actor_loss(alpha, sample.log_prob, actor_value(values))),
            part.mean(outputs),
            -part.mean(sample.log_prob),
        )

    return objective


def soft_target(reward: Tensor, discount: Tensor, following: Tensor, penalty: Tensor) -> Tensor:
    """r + discount (Q - alpha log pi), [N, ...]; the entropy belongs to the next state, so a terminal one has
    none. reward, discount and penalty = alpha log pi [N]; following = Q [N, ...]."""
    rest = (-1,) + (1,) * (following.dim() - 1)
    return bootstrapped(reward.view(rest), discount.view(rest), following - penalty.view(rest))


def actor_loss(alpha: Tensor, log_prob: Tensor, value: Tensor) -> Tensor:
    """alpha log pi - Q (eq. 7); log_prob and value [N]."""
    return alpha * log_prob - value
