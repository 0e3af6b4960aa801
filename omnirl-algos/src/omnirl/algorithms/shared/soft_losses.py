"""The losses of SAC and TQC: what the critics aim at, what the actor gains, and the temperature between them.

Letters: M critics, N transitions, n discrete actions, A size of a continuous action; ``...`` what a critic says
of one action: nothing (a value) or its quantiles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from omnirl.algorithms.shared.critic_losses import Critics, Reduction
from omnirl.algorithms.shared.off_policy_learner import Losses, LossFunction
from omnirl.algorithms.shared.squashed_gaussian import squashed_sample
from omnirl.algorithms.shared.targets import bootstrapped
from omnirl.algorithms.shared.temperature import Temperature, temperature_loss
from omnirl.algorithms.shared.transition_tensors import TransitionTensors

FIGURES = ("critic_loss", "actor_loss", "q_value", "entropy", "temperature")


class SoftTerms(NamedTuple):
    """Of one batch: critic loss per transition [N]; the actor's loss, the mean value of the actions taken and the
    policy's entropy in nats, 0-dimensional. The two losses have gradients."""

    critic: Tensor
    actor: Tensor
    value: Tensor
    entropy: Tensor


Objective = Callable[[TransitionTensors, Tensor, Generator], SoftTerms]
"""``(batch, temperature, random numbers) -> SoftTerms``"""


def soft_losses(objective: Objective, temperature: Temperature, target_entropy: float | None) -> LossFunction:
    """The losses of an update; without ``target_entropy`` the temperature has none."""

    def losses(batch: TransitionTensors, rng: Generator, moves: bool) -> Losses:
        alpha = temperature()
        terms = objective(batch, alpha, rng)
        critic = (terms.critic * batch.weight).mean()
        total = critic + terms.actor
        if target_entropy is not None:
            total = total + temperature_loss(temperature.log_value, terms.entropy, target_entropy)
        return Losses(total, (critic.detach(), terms.actor.detach(), terms.value, terms.entropy, alpha))

    return losses


def reparameterized(
    actor: Callable[[Tensor], Tensor],
    critics: Critics,
    target_critics: Callable[[Tensor], Tensor],
    *,
    next_value: Reduction,
    critic_loss: Callable[[Tensor, Tensor], Tensor],
    actor_value: Reduction,
) -> Objective:
    """Of continuous actions: Haarnoja et al. 2018 (arXiv:1812.05905), eq. 5-9.

    next_value   what of the target critics' outputs [M, N, O] to bootstrap from: [N, ...]
    critic_loss  of the critics' outputs [M, N, O] and the targets [N, ...]: [N]
    actor_value  what of the critics' outputs [M, N, O] the actor is to make great: [N]
    """

    def objective(batch: TransitionTensors, alpha: Tensor, rng: Generator) -> SoftTerms:
        noise = torch.randn((2, *batch.action.shape), generator=rng).to(alpha.device)
        with torch.no_grad():
            next_action, next_log_prob = squashed_sample(actor(batch.next_obs), noise[0])
            following = next_value(target_critics(torch.cat((batch.next_obs, next_action), 1)))
            target = soft_target(batch.reward, batch.discount, following, alpha * next_log_prob)
        outputs = critics(torch.cat((batch.obs, batch.action), 1))
        action, log_prob = squashed_sample(actor(batch.obs), noise[1])
        gain = actor_value(critics.frozen(torch.cat((batch.obs, action), 1)))
        return SoftTerms(
            critic_loss(outputs, target),
            actor_loss(alpha, log_prob, gain),
            outputs.detach().mean(),
            -log_prob.detach().mean(),
        )

    return objective


def soft_target(reward: Tensor, discount: Tensor, following: Tensor, penalty: Tensor) -> Tensor:
    """r + discount (Q - alpha log pi), [N, ...]; the entropy belongs to the next state, so a terminal one has
    none. reward, discount and penalty = alpha log pi [N]; following = Q [N, ...]."""
    rest = (-1,) + (1,) * (following.dim() - 1)
    return bootstrapped(reward.view(rest), discount.view(rest), following - penalty.view(rest))


def actor_loss(alpha: Tensor, log_prob: Tensor, value: Tensor) -> Tensor:
    """mean of alpha log pi - Q, a scalar (eq. 7); log_prob and value [N]."""
    return (alpha * log_prob - value).mean()
