"""How networks take observations. Imports no torch.

Letters: N rows (any leading axes in one).
"""

from __future__ import annotations

import math

import numpy as np

from omnirl.api import Array, ArraySpec, ConfigError, EnvSpec, Obs
from omnirl.networks.config import NetworkConfig


def network_observation(config: NetworkConfig, spec: EnvSpec) -> ArraySpec:
    """The observation's spec, where the configured network can take it. ConfigError with the way out
    otherwise."""
    observation = spec.observation
    if not isinstance(observation, ArraySpec):
        raise ConfigError("modules.network: takes one array of observations, not a dictionary of them")
    if observation.layout == "image" and config.kind != "cnn":
        raise ConfigError(
            "modules.network.kind: mlp takes vectors, and the observations are images (use cnn)"
        )
    if observation.layout != "image" and config.kind == "cnn":
        raise ConfigError(
            "modules.network.kind: cnn takes images, and the observations are vectors (use mlp)"
        )
    return observation


def network_input(obs: Obs, spec: ArraySpec) -> Array:
    """Observations [..., *obs] as a network takes them: float32 [N, size], or for images unchanged [N, C, H,
    W]."""
    assert isinstance(obs, np.ndarray)
    if spec.layout == "image":
        return obs.reshape(-1, *spec.shape)
    return np.asarray(obs.reshape(-1, math.prod(spec.shape)), np.float32)
