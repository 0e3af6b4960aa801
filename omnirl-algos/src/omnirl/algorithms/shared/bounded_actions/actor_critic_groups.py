"""The two groups that every actor-critic algorithm with replay learns, actor and critics, and their targets."""

from __future__ import annotations

import torch
from torch import nn

from omnirl.algorithms.shared.off_policy.config import OffPolicyLearnerConfig
from omnirl.algorithms.shared.training.flat_parameters import FlatParameters
from omnirl.algorithms.shared.training.learned_group import LearnedGroup
from omnirl.networks.actor_critics import ActorCritics


def critics_group(
    networks: ActorCritics, settings: OffPolicyLearnerConfig, device: torch.device
) -> LearnedGroup:
    """The critics with their own learning rate, or the actor's."""
    return LearnedGroup(
        networks.critics,
        device,
        settings.lr if settings.critic_lr is None else settings.critic_lr,
        adam_epsilon=settings.adam_epsilon,
        max_grad_norm=settings.max_grad_norm,
    )


def actor_group(
    networks: ActorCritics, settings: OffPolicyLearnerConfig, device: torch.device
) -> LearnedGroup:
    """The actor."""
    return LearnedGroup(
        networks.actor,
        device,
        settings.lr,
        adam_epsilon=settings.adam_epsilon,
        max_grad_norm=settings.max_grad_norm,
    )


def target_parameters(network: nn.Module, device: torch.device) -> FlatParameters:
    """The parameters of a network that follows another and has no gradient."""
    return FlatParameters(network, device, learned=False)
