"""What learns in SAC and TQC: the critics, the actor and, unless it is fixed, the temperature."""

from __future__ import annotations

import torch

from omnirl.algorithms.shared.bounded_actions.actor_critic_groups import (
    actor_group,
    critics_group,
    target_parameters,
)
from omnirl.algorithms.shared.bounded_actions.temperature import LOG_BOUNDS, Temperature
from omnirl.algorithms.shared.off_policy.config import SoftLearnerConfig
from omnirl.algorithms.shared.off_policy.learner import Groups
from omnirl.algorithms.shared.training.learned_group import LearnedGroup
from omnirl.networks.actor_critics import ActorCritics


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
        targets={"critics": target_parameters(networks.target_critics, device)},
        tau=settings.tau,
    )


def make_temperature(settings: SoftLearnerConfig) -> Temperature:
    """Where it is fixed or begins."""
    return Temperature(settings.initial_temperature if settings.temperature is None else settings.temperature)
