"""Networks for images [C, H, W]: convolutions of a published kind, hidden layers, a linear head.

Letters: N batch rows; C channels, H height, W width.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Generator, Tensor, nn

from omnirl.api import ConfigError
from omnirl.networks.config import Activation, ImageKind
from omnirl.networks.convolutions import MINATAR, NATURE, Convolutions, smallest
from omnirl.networks.features_under_head import FeaturesUnderHead
from omnirl.networks.mlp import MLP
from omnirl.networks.resnet import ResidualConvolutions
from omnirl.networks.rows import pixels

_PLAIN = {"cnn": NATURE, "minatar": MINATAR}


class ImageFeatures(nn.Module):
    """Convolutions and hidden layers, ``normalized`` or not: [N, C, H, W] -> float32 [N, output_size].

    Raises ConfigError where the image is smaller than the convolutions need (36 x 36 for cnn).
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        hidden_sizes: Sequence[int],
        activation: Activation,
        *,
        kind: ImageKind = "cnn",
        dtype: str = "uint8",
        normalized: bool = False,
    ) -> None:
        super().__init__()
        self.convolutions: Convolutions | ResidualConvolutions
        if kind == "resnet":
            self.convolutions = ResidualConvolutions(shape)
        else:
            side = smallest(_PLAIN[kind])
            if min(shape[1:]) < side:
                raise ConfigError(
                    f"modules.network.kind: {kind} needs images of at least {side} x {side} pixels, "
                    f"not {shape[1]} x {shape[2]} (minatar and resnet take smaller ones)"
                )
            self.convolutions = Convolutions(shape, _PLAIN[kind])
        self.dtype = dtype
        sizes = (self.convolutions.output_size, *hidden_sizes)
        self.hidden = MLP(sizes, activation, output_activation=True, normalized=normalized)
        self.output_size = sizes[-1]

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] -> [N, output_size]."""
        hidden: Tensor = self.hidden(self.convolutions(pixels(x, self.dtype)))
        return hidden

    def init_orthogonal(self, rng: Generator) -> None:
        """Orthogonal weights with gain sqrt(2), zero biases (PPO)."""
        self.convolutions.init_orthogonal(rng)
        self.hidden.init_orthogonal(rng, output_gain=2.0**0.5)

    def init_uniform(self, rng: Generator) -> None:
        """torch's own default, drawn from ``rng`` (DQN)."""
        self.convolutions.init_uniform(rng)
        self.hidden.init_uniform(rng)


class ImageNetwork(FeaturesUnderHead):
    """Image features under one linear head: [N, C, H, W] -> [N, outputs]."""

    def __init__(
        self,
        shape: tuple[int, ...],
        hidden_sizes: Sequence[int],
        outputs: int,
        activation: Activation,
        *,
        kind: ImageKind = "cnn",
        dtype: str = "uint8",
        normalized: bool = False,
    ) -> None:
        super().__init__()
        self.features = ImageFeatures(
            shape, hidden_sizes, activation, kind=kind, dtype=dtype, normalized=normalized
        )
        self.head = MLP((self.features.output_size, outputs), activation)
