"""Networks for images [C, H, W]: convolutions of a published kind, hidden layers, a linear head.

Letters: N batch rows; C channels, H height, W width.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from omnirl.api import ConfigError
from omnirl.networks.config import Activation, ImageKind
from omnirl.networks.convolutions import MINATAR, NATURE, Convolutions, smallest
from omnirl.networks.features import Features, FeaturesUnderHead
from omnirl.networks.resnet import ResidualConvolutions
from omnirl.networks.rows import pixels

_PLAIN = {"cnn": NATURE, "minatar": MINATAR}


class ImageFeatures(Features):
    """Convolutions and hidden layers, ``normalized`` or not: [N, C, H, W] -> float32 [N, output_size].

    Raises ConfigError where the image is smaller than the convolutions need (36 x 36 for cnn).
    """

    convolutions: Convolutions | ResidualConvolutions

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
        convolutions = _convolutions(shape, kind)
        size = convolutions.output_size
        super().__init__("convolutions", convolutions, size, hidden_sizes, activation, normalized)
        self.dtype = dtype

    def encode(self, x: Tensor) -> Tensor:
        """[N, C, H, W] -> [N, encoded]."""
        encoded: Tensor = self.encoders[0](pixels(x, self.dtype))
        return encoded


def _convolutions(shape: tuple[int, ...], kind: ImageKind) -> Convolutions | ResidualConvolutions:
    if kind == "resnet":
        return ResidualConvolutions(shape)
    side = smallest(_PLAIN[kind])
    if min(shape[1:]) < side:
        raise ConfigError(
            f"modules.network.kind: {kind} needs images of at least {side} x {side} pixels, "
            f"not {shape[1]} x {shape[2]} (minatar and resnet take smaller ones)"
        )
    return Convolutions(shape, _PLAIN[kind])


class ImageNetwork(FeaturesUnderHead):
    """Image features under one linear head: [N, C, H, W] -> [N, outputs]."""

    features: ImageFeatures

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
        features = ImageFeatures(
            shape, hidden_sizes, activation, kind=kind, dtype=dtype, normalized=normalized
        )
        super().__init__(features, outputs, activation)
