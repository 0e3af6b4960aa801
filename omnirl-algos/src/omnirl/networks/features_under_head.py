"""Features of any observation under one linear head: what networks of images, dictionaries and own classes share.

Letters: N batch rows.
"""

from __future__ import annotations

from typing import Any

from torch import Generator, Tensor, nn

from omnirl.networks.mlp import MLP


class FeaturesUnderHead(nn.Module):
    """Features under one linear head; a subclass makes ``features`` and ``head``."""

    features: Any
    head: MLP

    @property
    def num_features(self) -> int:
        """What enters the head."""
        size: int = self.features.output_size
        return size

    def forward(self, x: Tensor) -> Tensor:
        """[N, ...] -> [N, outputs]."""
        outputs: Tensor = self.head(self.features(x))
        return outputs

    def init_orthogonal(self, rng: Generator, output_gain: float) -> None:
        """As the features', the head with ``output_gain``."""
        self.features.init_orthogonal(rng)
        self.head.init_orthogonal(rng, output_gain)

    def init_uniform(self, rng: Generator) -> None:
        """torch's own default, drawn from ``rng``."""
        self.features.init_uniform(rng)
        self.head.init_uniform(rng)
