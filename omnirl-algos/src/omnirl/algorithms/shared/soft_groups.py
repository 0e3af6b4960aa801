"""What learns in SAC and TQC: the critics, the actor and, unless it is fixed, the temperature."""

from __future__ import annotations

import torch

from omnirl.algorithms.shared.learned_group import LearnedGroup
from omnirl.algorithms.shared.off_policy_config import OffPolicyLearnerConfig, SoftLearnerConfig
from omnirl.algorithms.shared.off_policy_learner import Groups
from omnirl.algorithms.shared.temperature import LOG_BOUNDS, Temperature
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


def soft_groups(
    networks: ActorCritics, temperature: Temperature, settings: SoftLearnerConfig, device: torch.device
) -> Groups:
    """All of them, moving in every update; the target critics follow."""
    waiting = {"actor": actor_group(networks, settings, device)}
    if settings.temperature is None:
        waiting["temperature"] = LearnedGroup(
            temperature,
            device,
            settings.temperature_lr,
            adam_epsilon=settings.adam_epsilon,
            bounds=LOG_BOUNDS,
        )
    else:
        temperature.to(device)
    return Groups(
        critics_group(networks, settings, device),
        waiting,
        targets={"critics": networks.target_critics},
        tau=settings.tau,
    )


def make_temperature(settings: SoftLearnerConfig) -> Temperature:
    """Where it is fixed or begins."""
    return Temperature(settings.initial_temperature if settings.temperature is None else settings.temperature)
