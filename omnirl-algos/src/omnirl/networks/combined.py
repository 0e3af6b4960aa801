"""A network for dictionaries of images and vectors.

Each image goes through convolutions and a hidden layer of its own, the vectors join what comes out, and hidden layers
and a linear head follow. Rows are those of :class:`omnirl.networks.joined.JoinedSpec`.

Letters: N batch rows; V numbers of all vectors together; C channels, H height, W width of an image.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn

from omnirl.networks.cnn import ImageFeatures
from omnirl.networks.config import NetworkConfig
from omnirl.networks.features_under_head import FeaturesUnderHead
from omnirl.networks.joined import JoinedSpec
from omnirl.networks.mlp import MLP
from omnirl.networks.rows import JoinedRows


class CombinedFeatures(nn.Module):
    """Bytes [N, bytes] -> float32 [N, output_size]; ``hidden_sizes[0]`` units for each image before it is joined."""

    def __init__(self, config: NetworkConfig, observation: JoinedSpec) -> None:
        super().__init__()
        sizes, activation, kind = config.hidden_sizes, config.activation, config.kind
        assert kind != "auto"
        assert kind != "mlp"
        images = [
            ImageFeatures(
                entry.shape,
                sizes[:1],
                activation,
                kind=kind,
                dtype=entry.dtype,
                normalized=config.layer_norm,
            )
            for _, entry in observation.images
        ]
        self.images = nn.ModuleList(images)
        self._images = tuple(images)
        self._rows = JoinedRows(observation)
        joined = observation.vector_size + sum(image.output_size for image in images)
        self.hidden = MLP((joined, *sizes), activation, output_activation=True, normalized=config.layer_norm)
        self.output_size = (joined, *sizes)[-1]

    def forward(self, x: Tensor) -> Tensor:
        """[N, bytes] -> [N, output_size]."""
        seen = (image(part) for image, part in zip(self._images, self._rows.images(x)))
        parts = [self._rows.vectors(x), *seen]
        hidden: Tensor = self.hidden(torch.cat(parts, 1))
        return hidden

    def init_orthogonal(self, rng: Generator) -> None:
        """Orthogonal weights with gain sqrt(2), zero biases (PPO)."""
        for image in self._images:
            image.init_orthogonal(rng)
        self.hidden.init_orthogonal(rng, output_gain=2.0**0.5)

    def init_uniform(self, rng: Generator) -> None:
        """torch's own default, drawn from ``rng`` (DQN)."""
        for image in self._images:
            image.init_uniform(rng)
        self.hidden.init_uniform(rng)


class CombinedNetwork(FeaturesUnderHead):
    """Combined features under one linear head: [N, bytes] -> [N, outputs]."""

    def __init__(self, config: NetworkConfig, observation: JoinedSpec, outputs: int) -> None:
        super().__init__()
        self.features = CombinedFeatures(config, observation)
        self.head = MLP((self.features.output_size, outputs), config.activation)
