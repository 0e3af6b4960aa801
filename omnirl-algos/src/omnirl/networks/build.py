"""From a ``network`` section and an observation to a network."""

from __future__ import annotations

from omnirl.api import ArraySpec
from omnirl.networks.cnn import ImageNetwork
from omnirl.networks.config import NetworkConfig
from omnirl.networks.mlp import MLP


def build_network(config: NetworkConfig, observation: ArraySpec, outputs: int) -> MLP | ImageNetwork:
    """A network from a batch of observations to [N, outputs], its parameters not yet initialised.

    The parameters' names depend on ``config.kind`` alone, so a policy can be given them by name.
    """
    if config.kind == "cnn":
        return ImageNetwork(observation.shape, config.hidden_sizes, outputs, config.activation)
    return MLP((observation.size, *config.hidden_sizes, outputs), config.activation)
