"""A network for dictionaries of images and vectors.

Each image goes through convolutions and a hidden layer of its own, the vectors join what comes out, and hidden layers
and a linear head follow. Rows are those of :class:`omnirl.networks.joined.JoinedSpec`.

Letters: N batch rows; V numbers of all vectors together; C channels, H height, W width of an image.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from omnirl.networks.cnn import ImageFeatures
from omnirl.networks.config import NetworkConfig
from omnirl.networks.features import Features, FeaturesUnderHead
from omnirl.networks.joined import JoinedSpec
from omnirl.networks.rows import JoinedRows


class CombinedFeatures(Features):
    """Bytes [N, bytes] -> float32 [N, output_size]; ``hidden_sizes[0]`` units for each image before it is joined."""

    def __init__(self, config: NetworkConfig, observation: JoinedSpec) -> None:
        sizes, activation, kind, normalized = (
            config.hidden_sizes,
            config.activation,
            config.kind,
            config.layer_norm,
        )
        assert kind != "auto"
        assert kind != "mlp"
        images = [
            ImageFeatures(
                entry.shape, sizes[:1], activation, kind=kind, dtype=entry.dtype, normalized=normalized
            )
            for _, entry in observation.images
        ]
        joined = observation.vector_size + sum(image.output_size for image in images)
        super().__init__("images", nn.ModuleList(images), joined, sizes, activation, normalized)
        self._rows = JoinedRows(observation)

    def encode(self, x: Tensor) -> Tensor:
        """[N, bytes] -> [N, encoded]."""
        seen = (image(part) for image, part in zip(self.encoders, self._rows.images(x)))
        return torch.cat([self._rows.vectors(x), *seen], 1)


class CombinedNetwork(FeaturesUnderHead):
    """Combined features under one linear head: [N, bytes] -> [N, outputs]."""

    def __init__(self, config: NetworkConfig, observation: JoinedSpec, outputs: int) -> None:
        super().__init__(CombinedFeatures(config, observation), outputs, config.activation)
