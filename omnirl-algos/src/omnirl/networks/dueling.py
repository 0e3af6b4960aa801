"""The dueling network: a value of the state and an advantage of each action on one trunk.

Wang et al. 2016 (arXiv:1511.06581), eq. 9: Q(s, a) = V(s) + A(s, a) - mean_a' A(s, a').

Letters: N batch rows, n actions.
"""

from __future__ import annotations

from typing import TypeAlias

import torch
from torch import Generator, Tensor, nn

from omnirl.api import ArraySpec
from omnirl.networks.build import build_network
from omnirl.networks.config import DuelingNetworkConfig
from omnirl.networks.features import Features
from omnirl.networks.mlp import MLP

Trunk: TypeAlias = MLP | Features


def build_dueling(config: DuelingNetworkConfig, observation: ArraySpec, actions: int) -> DuelingNetwork:
    """The network to [N, actions], its parameters not yet initialised. The trunk has all layers but the last of
    ``hidden_sizes``, after the convolutions if there are any; each stream has the last."""
    rescale = config.rescale_gradient
    shape = config.for_observation(observation)
    *trunk, hidden = shape.hidden_sizes
    features: Trunk
    if shape.kind == "mlp" and shape.class_ is None:
        sizes = (observation.size, *trunk)
        features = MLP(sizes, shape.activation, output_activation=True, normalized=shape.layer_norm)
        size = sizes[-1]
    else:
        whole = build_network(shape.model_copy(update={"hidden_sizes": tuple(trunk)}), observation, 1)
        assert not isinstance(whole, MLP)
        features, size = whole.features, whole.features.output_size
    return DuelingNetwork(
        features,
        value=MLP((size, hidden, 1), shape.activation, normalized=shape.layer_norm),
        advantage=MLP((size, hidden, actions), shape.activation, normalized=shape.layer_norm),
        trunk_scale=0.5**0.5 if rescale else None,
    )


def aggregated(value: Tensor, advantage: Tensor) -> Tensor:
    """V [N, 1] and A [N, n] -> Q [N, n], eq. 9."""
    return value + (advantage - advantage.mean(1, keepdim=True))


class DuelingNetwork(nn.Module):
    """Observations -> action values [N, n].

    The gradient that enters ``features`` is multiplied by ``trunk_scale``, if any: the paper's 1/sqrt(2), since two
    streams add to it (section 4.2).
    """

    def __init__(self, features: Trunk, value: MLP, advantage: MLP, trunk_scale: float | None) -> None:
        super().__init__()
        self.features, self.value, self.advantage = features, value, advantage
        self._scale = trunk_scale

    def forward(self, x: Tensor) -> Tensor:
        """[N, ...] -> [N, n]."""
        features: Tensor = self.features(x)
        if self._scale is not None and features.requires_grad:
            features = torch.lerp(features.detach(), features, self._scale)
        return aggregated(self.value(features), self.advantage(features))

    def init_uniform(self, rng: Generator) -> None:
        """torch's own default, drawn from ``rng``."""
        for part in (self.features, self.value, self.advantage):
            part.init_uniform(rng)
