"""The Nature DQN network for images, uint8 [C, H, W].

Letters: N batch rows; C channels, H height, W width.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import conv2d

from omnirl.api import ConfigError
from omnirl.networks.config import Activation
from omnirl.networks.initialization import orthogonal_, uniform_fan_in_
from omnirl.networks.mlp import MLP, Layer

# (output channels, kernel, stride): Mnih et al. 2015 (Nature 518), "Model architecture".
_CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))


class ImageFeatures(nn.Module):
    """Three convolutions with ReLU and hidden layers: uint8 [N, C, H, W] -> float32 [N, output_size].

    Pixels are scaled by 1/255 here and nowhere else. Raises ConfigError where the image is smaller than the
    convolutions need (36 x 36).
    """

    def __init__(self, shape: tuple[int, ...], hidden_sizes: Sequence[int], activation: Activation) -> None:
        super().__init__()
        channels, height, width = shape
        convolutions = []
        for out_channels, kernel, stride in _CONVOLUTIONS:
            if min(height, width) < kernel:
                raise ConfigError(
                    "modules.network.kind: cnn needs images of at least 36 x 36 pixels, "
                    f"not {shape[1]} x {shape[2]}"
                )
            convolutions.append(Layer((out_channels, channels, kernel, kernel)))
            channels, height, width = (
                out_channels,
                (height - kernel) // stride + 1,
                (width - kernel) // stride + 1,
            )
        self.convolutions = nn.ModuleList(convolutions)
        self._pairs = tuple((layer.weight, layer.bias) for layer in convolutions)
        sizes = (channels * height * width, *hidden_sizes)
        self.hidden = MLP(sizes, activation, output_activation=True)
        self.output_size = sizes[-1]

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] -> [N, output_size]."""
        x = x.to(torch.float32) * (1.0 / 255.0)
        for (weight, bias), (_, _, stride) in zip(self._pairs, _CONVOLUTIONS):
            x = torch.relu(conv2d(x, weight, bias, stride))
        hidden: Tensor = self.hidden(x.flatten(1))
        return hidden

    def init_orthogonal(self, rng: Generator) -> None:
        """Orthogonal weights with gain sqrt(2), zero biases (PPO)."""
        for weight, bias in self._pairs:
            orthogonal_(weight, 2.0**0.5, rng)
            nn.init.zeros_(bias)
        self.hidden.init_orthogonal(rng, output_gain=2.0**0.5)

    def init_uniform(self, rng: Generator) -> None:
        """torch's own default, drawn from ``rng`` (DQN)."""
        for weight, bias in self._pairs:
            uniform_fan_in_(weight, bias, rng)
        self.hidden.init_uniform(rng)


class ImageNetwork(nn.Module):
    """Image features under one linear head: uint8 [N, C, H, W] -> [N, outputs]."""

    def __init__(
        self, shape: tuple[int, ...], hidden_sizes: Sequence[int], outputs: int, activation: Activation
    ) -> None:
        super().__init__()
        self.features = ImageFeatures(shape, hidden_sizes, activation)
        self.head = MLP((self.features.output_size, outputs), activation)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] -> [N, outputs]."""
        outputs: Tensor = self.head(self.features(x))
        return outputs

    def init_orthogonal(self, rng: Generator, output_gain: float) -> None:
        """As :meth:`ImageFeatures.init_orthogonal`, the head with ``output_gain``."""
        self.features.init_orthogonal(rng)
        self.head.init_orthogonal(rng, output_gain)

    def init_uniform(self, rng: Generator) -> None:
        """torch's own default, drawn from ``rng``."""
        self.features.init_uniform(rng)
        self.head.init_uniform(rng)
