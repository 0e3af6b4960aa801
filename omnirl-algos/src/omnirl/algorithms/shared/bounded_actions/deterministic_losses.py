"""The losses of DDPG and TD3, whose actor is a function of the observation alone.

Letters: M critics, N transitions, A size of an action.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Generator, Tensor

from omnirl.algorithms.shared.bounded_actions.critic_losses import Reduction, summed_squares
from omnirl.algorithms.shared.off_policy.batch_part import BatchPart
from omnirl.algorithms.shared.off_policy.learner import Losses, LossFunction
from omnirl.algorithms.shared.off_policy.targets import bootstrapped
from omnirl.algorithms.shared.off_policy.transition_tensors import TransitionTensors
from omnirl.networks.actor_critic_passes import Passes

FIGURES = ("critic_loss", "q_value")
WAITING_FIGURES = ("actor_loss",)
NextAction = Callable[[Tensor, BatchPart, Generator], Tensor]
"""``(the target actor's action [N, A], which samples these are, random numbers) -> the action to bootstrap from``"""


def deterministic_losses(passes: Passes, *, next_action: NextAction, next_value: Reduction) -> LossFunction:
    """Silver et al. 2014, Lillicrap et al. 2016 (arXiv:1509.02971), eq. 4-6; actors end before their tanh.

    The actor makes the first critic's value great. ``next_value`` reduces the target critics' [M, N, 1].
    """
    actor, next_actor, critics, frozen_critics, target_critics = passes

    def losses(batch: TransitionTensors, part: BatchPart, rng: Generator, moves: bool) -> Losses:
        size = batch.action.shape[1]
        upcoming = next_action(next_actor(batch.next_obs).tanh(), part, rng)
        following = next_value(target_critics.forward(torch.cat((batch.next_obs, upcoming), 1)))
        outputs = critics.forward(torch.cat((batch.obs, batch.action), 1))
        loss, slope = summed_squares(outputs, bootstrapped(batch.reward, batch.discount, following))
        share = batch.weight / part.total
        critics.backward(slope * share.unsqueeze(1))
        figures = (torch.dot(loss, share), part.mean(outputs))
        if not moves:
            return Losses(figures)
        action = actor.forward(batch.obs).tanh()
        values = frozen_critics.forward(torch.cat((batch.obs, action), 1))
        d_action = frozen_critics.input_gradient(torch.full_like(values, -1.0 / part.total), size)
        actor.backward(d_action * (1.0 - action.square()))
        return Losses(figures, (-part.mean(values),))

    return losses


def unchanged(action: Tensor, part: BatchPart, rng: Generator) -> Tensor:
    """The target actor's action as it is: DDPG."""
    return action


def smoothing(std: float, clip: float) -> NextAction:
    """Noise on actions in [-1, 1]: TD3. Each sample has its own."""

    def next_action(action: Tensor, part: BatchPart, rng: Generator) -> Tensor:
        noise = part.normal(1, action.shape[1], rng)[0].to(action.device)
        return smoothed(action, noise, std=std, clip=clip, low=-1.0, high=1.0)

    return next_action


def smoothed(action: Tensor, noise: Tensor, *, std: float, clip: float, low: float, high: float) -> Tensor:
    """clamp(a + clamp(std noise, +-clip), low, high): Fujimoto et al. 2018 (arXiv:1802.09477), eq. 14. All in one
    unit."""
    return (action + (std * noise).clamp(-clip, clip)).clamp(low, high)
