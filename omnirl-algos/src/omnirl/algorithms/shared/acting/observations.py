"""How networks take observations. Imports no torch.

Letters: N rows (any leading axes in one); V numbers of all vectors together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from omnirl.api import Array, ArraySpec, ConfigError, DictSpec, EnvSpec, Obs
from omnirl.networks.config import NetworkConfig
from omnirl.networks.joined import JoinedSpec, joined


def network_observation(config: NetworkConfig, spec: EnvSpec) -> ArraySpec:
    """What the configured network takes: the observation's spec, or that of its entries joined, see
    :mod:`omnirl.networks.joined`. ConfigError with the way out where it cannot take it."""
    observation = spec.observation.stacked()
    config = config.for_observation(observation)
    images = observation.layout == "image" if isinstance(observation, ArraySpec) else False
    if isinstance(observation, DictSpec):
        observation = joined(observation)
        images = bool(observation.images)
    if config.class_ is not None:
        return observation
    if images and config.kind == "mlp":
        raise ConfigError(
            "modules.network.kind: mlp takes vectors, and the observations are images (use cnn)"
        )
    if not images and config.kind != "mlp":
        raise ConfigError(
            f"modules.network.kind: {config.kind} takes images, and the observations are vectors (use mlp)"
        )
    return observation


def network_input(obs: Obs, spec: ArraySpec) -> Array:
    """Observations [..., *obs] as a network takes them: float32 [N, size], images unchanged [N, C, H, W], and
    dictionaries joined [N, ...]."""
    if isinstance(spec, JoinedSpec):
        assert isinstance(obs, Mapping)
        return spec.join(obs)
    assert isinstance(obs, np.ndarray)
    if spec.layout == "image":
        return obs.reshape(-1, *spec.shape)
    return np.asarray(obs.reshape(-1, math.prod(spec.shape)), np.float32)


def vector_size(spec: ArraySpec) -> int:
    """V: how many numbers of a row a normaliser of observations sees; those of images are none."""
    if isinstance(spec, JoinedSpec):
        return spec.vector_size
    return 0 if spec.layout == "image" else spec.size


def vectors_of(rows: Array, spec: ArraySpec) -> Array:
    """The vectors [N, V] of rows that :func:`network_input` gave, a view."""
    return spec.vectors_of(rows) if isinstance(spec, JoinedSpec) else rows


def with_vectors(rows: Array, spec: ArraySpec, change: Callable[[Array], Array]) -> Array:
    """The rows with their vectors [N, V] replaced by ``change`` of them, which is float32; images stay."""
    if spec.layout != "joined":
        return change(rows)
    part = vectors_of(rows, spec)
    part[:] = change(part)
    return rows


def time_rows(obs: Obs, rows: slice) -> Obs:
    """``obs[rows]`` along the first axis, entry by entry; views."""
    return {name: array[rows] for name, array in obs.items()} if isinstance(obs, Mapping) else obs[rows]
