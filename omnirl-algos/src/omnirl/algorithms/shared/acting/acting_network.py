"""Which implementation of a network acts: numpy for an MLP, torch for images and a user's own class. Imports no torch
itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from omnirl.api import Array, ArraySpec
from omnirl.api.plugin import load_object
from omnirl.networks.config import NetworkConfig
from omnirl.networks.numpy_dueling import NumpyDueling
from omnirl.networks.numpy_mlp import NumpyMLP


class ActingNetwork(Protocol):
    """A network without gradients."""

    def names(self) -> list[str]:
        """The names that ``set_weights`` takes."""

    def set_weights(self, weights: Mapping[str, Array]) -> None:
        """Take a copy of the named arrays; others are ignored. ValueError on a wrong shape."""

    def __call__(self, x: Array) -> Array:
        """Rows of observations [B, ...] -> a new array float32 [B, outputs]."""


def acting_network(
    config: NetworkConfig, observation: ArraySpec, outputs: int, prefix: str = ""
) -> ActingNetwork:
    """The network for acting; its weights' names are those of the learner's, after ``prefix``."""
    config = config.for_observation(observation)
    if config.kind != "mlp" or config.class_ is not None:
        return _torch_network(config, observation, outputs, prefix)
    norms = [1] * len(config.hidden_sizes) if config.layer_norm else []
    sizes = (observation.size, *config.hidden_sizes, outputs)
    return NumpyMLP(sizes, config.activation, prefix, norms)


def acting_dueling_network(config: NetworkConfig, observation: ArraySpec, outputs: int) -> ActingNetwork:
    """The same for the dueling network."""
    shape = config.for_observation(observation)
    if shape.kind != "mlp" or shape.class_ is not None:
        return _torch_network(config, observation, outputs, "", "omnirl.networks.dueling:build_dueling")
    return NumpyDueling(observation.size, shape.hidden_sizes, outputs, shape.activation, shape.layer_norm)


def _torch_network(*args: Any) -> ActingNetwork:
    # By name: an import here, even inside the function, would tie every policy to torch.
    network: ActingNetwork = load_object("omnirl.algorithms.shared.training.torch_network:TorchNetwork")(
        *args
    )
    return network
