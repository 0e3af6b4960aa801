"""Convolutions one after the other, as the published networks for images have them.

Letters: N batch rows; C channels, H height, W width.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import conv2d

from omnirl.networks.initialization import orthogonal_, uniform_fan_in_
from omnirl.networks.mlp import Layer

# (output channels, kernel, stride) of each convolution.
NATURE = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
"""Mnih et al. 2015 (Nature 518), "Model architecture"."""
MINATAR = ((16, 3, 1),)
"""Young and Tian 2019 (arXiv:1903.03176), section 3: for the 10 x 10 pictures of MinAtar."""


class Convolutions(nn.Module):
    """Convolutions with ReLU, without padding: float32 [N, C, H, W] -> [N, output_size]; parameters
    ``layers.<i>.weight|bias``. The picture must be at least ``smallest(sizes)`` pixels high and wide."""

    def __init__(self, shape: tuple[int, ...], sizes: Sequence[tuple[int, int, int]]) -> None:
        super().__init__()
        channels, height, width = shape
        layers = []
        for out_channels, kernel, stride in sizes:
            layers.append(Layer((out_channels, channels, kernel, kernel)))
            channels = out_channels
            height, width = (height - kernel) // stride + 1, (width - kernel) // stride + 1
        self.layers = nn.ModuleList(layers)
        self.pairs = tuple((layer.weight, layer.bias) for layer in layers)
        self.strides = tuple(stride for _, _, stride in sizes)
        self.output_size = channels * height * width

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] -> [N, output_size]."""
        for (weight, bias), stride in zip(self.pairs, self.strides):
            x = torch.relu(conv2d(x, weight, bias, stride))
        return x.flatten(1)

    def init_orthogonal(self, rng: Generator) -> None:
        """Orthogonal weights with gain sqrt(2), zero biases (PPO)."""
        for weight, bias in self.pairs:
            orthogonal_(weight, 2.0**0.5, rng)
            nn.init.zeros_(bias)

    def init_uniform(self, rng: Generator) -> None:
        """torch's own default, drawn from ``rng`` (DQN)."""
        for weight, bias in self.pairs:
            uniform_fan_in_(weight, bias, rng)


def windows(x: Tensor, kernel: int, stride: int) -> Tensor:
    """What each place of a convolution without padding sees: [N, C, H, W] -> [N, C kernel kernel, places], new.

    Weights [O, C kernel kernel] times this are the convolution.
    """
    x = x.contiguous()
    (count, channels, height, width), (by_row, by_channel, by_line, by_pixel) = x.shape, x.stride()
    places = [(side - kernel) // stride + 1 for side in (height, width)]
    view = x.as_strided(
        (count, channels, kernel, kernel, *places),
        (by_row, by_channel, by_line, by_pixel, stride * by_line, stride * by_pixel),
    )
    return view.reshape(count, channels * kernel * kernel, places[0] * places[1])


def smallest(sizes: Sequence[tuple[int, int, int]]) -> int:
    """The least height and width, in pixels, that the convolutions can take."""
    side = 1
    for _, kernel, stride in reversed(sizes):
        side = (side - 1) * stride + kernel
    return side
