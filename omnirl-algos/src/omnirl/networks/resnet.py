"""The residual network of IMPALA for images.

Letters: N batch rows; C channels, H height, W width.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import conv2d, max_pool2d

from omnirl.networks.initialization import uniform_fan_in_
from omnirl.networks.mlp import Layer

CHANNELS = (16, 32, 32)
"""Espeholt et al. 2018 (arXiv:1802.01561), figure 3, right: three sections."""


class _Section(nn.Module):
    """Convolution, pooling that halves the picture, two residual blocks of two convolutions each."""

    def __init__(self, channels_in: int, channels: int) -> None:
        super().__init__()
        self.entry = Layer((channels, channels_in, 3, 3))
        blocks = [Layer((channels, channels, 3, 3)) for _ in range(4)]
        self.blocks = nn.ModuleList(blocks)
        pairs = tuple((layer.weight, layer.bias) for layer in blocks)
        self._blocks = (pairs[:2], pairs[2:])

    def forward(self, x: Tensor) -> Tensor:
        """[N, channels_in, H, W] -> [N, channels, ceil(H / 2), ceil(W / 2)]."""
        x = max_pool2d(conv2d(x, self.entry.weight, self.entry.bias, padding=1), 3, stride=2, padding=1)
        for (weight_1, bias_1), (weight_2, bias_2) in self._blocks:
            y = conv2d(torch.relu(x), weight_1, bias_1, padding=1)
            x = x + conv2d(torch.relu(y), weight_2, bias_2, padding=1)
        return x


class ResidualConvolutions(nn.Module):
    """float32 [N, C, H, W] of any size -> [N, output_size]; parameters ``sections.<i>.entry|blocks.<j>.weight|bias``.

    Both initialisations draw torch's own default: orthogonal convolutions of gain sqrt(2) would let the sums of the
    residual blocks grow.
    """

    def __init__(self, shape: tuple[int, ...], channels: Sequence[int] = CHANNELS) -> None:
        super().__init__()
        before, height, width = shape
        sections = []
        for after in channels:
            sections.append(_Section(before, after))
            before, height, width = after, -(-height // 2), -(-width // 2)
        self.sections = nn.ModuleList(sections)
        self.output_size = before * height * width

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] -> [N, output_size]."""
        for section in self.sections:
            x = section(x)
        return torch.relu(x).flatten(1)

    def init_orthogonal(self, rng: Generator) -> None:
        """As :meth:`init_uniform`."""
        self.init_uniform(rng)

    def init_uniform(self, rng: Generator) -> None:
        """torch's own default, drawn from ``rng``."""
        for module in self.modules():
            if isinstance(module, Layer):
                uniform_fan_in_(module.weight, module.bias, rng)
