"""Features of any observation, and the network with one linear head on them: what networks of images, dictionaries and
own classes share.

Letters: N batch rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from torch import Generator, Tensor, nn

from omnirl.networks.config import Activation
from omnirl.networks.mlp import MLP


class Features(nn.Module, ABC):
    """Encoders and hidden layers: [N, ...] -> float32 [N, output_size]; a subclass has ``encode``.

    encoders: what comes before the hidden layers, one or a list of several; name: theirs among the parameters' names;
    encoded: how many numbers they make together.
    """

    def __init__(
        self,
        name: str,
        encoders: nn.Module,
        encoded: int,
        hidden_sizes: Sequence[int],
        activation: Activation,
        normalized: bool,
    ) -> None:
        super().__init__()
        self.add_module(name, encoders)
        # A tuple is quicker to reach than a module's submodule.
        self.encoders: tuple[Any, ...] = (
            tuple(encoders) if isinstance(encoders, nn.ModuleList) else (encoders,)
        )
        sizes = (encoded, *hidden_sizes)
        self.hidden = MLP(sizes, activation, output_activation=True, normalized=normalized)
        self.output_size = sizes[-1]

    @abstractmethod
    def encode(self, x: Tensor) -> Tensor:
        """[N, ...] -> [N, encoded]."""

    def forward(self, x: Tensor) -> Tensor:
        """[N, ...] -> [N, output_size]."""
        hidden: Tensor = self.hidden(self.encode(x))
        return hidden

    def init_orthogonal(self, rng: Generator) -> None:
        """Orthogonal weights with gain sqrt(2), zero biases (PPO)."""
        for encoder in self.encoders:
            encoder.init_orthogonal(rng)
        self.hidden.init_orthogonal(rng, output_gain=2.0**0.5)

    def init_uniform(self, rng: Generator) -> None:
        """torch's own default, drawn from ``rng`` (DQN)."""
        for encoder in self.encoders:
            encoder.init_uniform(rng)
        self.hidden.init_uniform(rng)


class FeaturesUnderHead(nn.Module):
    """Features under one linear head: [N, ...] -> [N, outputs]."""

    def __init__(self, features: Features, outputs: int, activation: Activation) -> None:
        super().__init__()
        self.features = features
        self.head = MLP((features.output_size, outputs), activation)

    @property
    def num_features(self) -> int:
        """What enters the head."""
        return self.features.output_size

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
