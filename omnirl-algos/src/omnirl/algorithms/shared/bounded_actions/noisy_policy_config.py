"""The ``policy`` section of DDPG and TD3. Imports no torch."""

from __future__ import annotations

from pydantic import Field

from omnirl.algorithms.shared.bounded_actions.action_noise import GaussianNoiseConfig, NoiseConfig
from omnirl.algorithms.shared.off_policy.config import RandomStartConfig


class NoisyPolicyConfig(RandomStartConfig):
    """Acting."""

    noise: NoiseConfig = Field(
        default=GaussianNoiseConfig(),
        description="exploration: {kind: gaussian, std}, or {kind: ou, std, theta, dt}, which drifts",
    )
