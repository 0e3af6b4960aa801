"""From a ``network`` section and an observation to a network."""

from __future__ import annotations

from omnirl.api import ArraySpec
from omnirl.networks.cnn import ImageNetwork
from omnirl.networks.combined import CombinedNetwork
from omnirl.networks.config import NetworkConfig
from omnirl.networks.features import FeaturesUnderHead
from omnirl.networks.joined import JoinedSpec
from omnirl.networks.mlp import MLP
from omnirl.networks.own_network import OwnNetwork


def build_network(config: NetworkConfig, observation: ArraySpec, outputs: int) -> MLP | FeaturesUnderHead:
    """A network from a batch of observations to [N, outputs], its parameters not yet initialised.

    ``observation`` is what ``network_observation`` gave. The parameters' names depend on the network's kind alone, so
    a policy can be given them by name.
    """
    config = config.for_observation(observation)
    if config.class_ is not None:
        return OwnNetwork(config, observation, outputs)
    if isinstance(observation, JoinedSpec) and observation.images:
        return CombinedNetwork(config, observation, outputs)
    if config.kind != "mlp":
        assert config.kind != "auto"
        return ImageNetwork(
            observation.shape,
            config.hidden_sizes,
            outputs,
            config.activation,
            kind=config.kind,
            dtype=observation.dtype,
            normalized=config.layer_norm,
        )
    sizes = (observation.size, *config.hidden_sizes, outputs)
    return MLP(sizes, config.activation, normalized=config.layer_norm)
