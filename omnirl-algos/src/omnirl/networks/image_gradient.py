"""The gradients of a network for small images, written out: one convolution, hidden layers and a head.

On MinAtar's pictures of 10 x 10 an update so takes three quarters of the time: nothing is autograd's own work, and the
convolution's gradient as a product with the windows that it sees takes a third of the general one's.

Letters: N batch rows; C channels, H height, W width; O outputs; F filters, P places of the convolution.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from omnirl.networks.backpropagation import MLPBackpropagation, gradient_of
from omnirl.networks.cnn import ImageNetwork
from omnirl.networks.config import Activation
from omnirl.networks.convolutions import Convolutions, windows
from omnirl.networks.rows import pixels


class _Layers(NamedTuple):
    pairs: Sequence[tuple[Tensor, Tensor]]
    activation: Activation


def written_out(network: ImageNetwork) -> bool:
    """Whether :class:`ImageBackpropagation` can differentiate ``network``."""
    convolutions, hidden = network.features.convolutions, network.features.hidden
    return isinstance(convolutions, Convolutions) and len(convolutions.pairs) == 1 and hidden.plain


class ImageBackpropagation:
    """See :class:`omnirl.networks.output_gradient.OutputGradient`."""

    def __init__(self, network: ImageNetwork) -> None:
        features, convolutions = network.features, network.features.convolutions
        assert isinstance(convolutions, Convolutions)
        ((weight, bias),) = convolutions.pairs
        (self._stride,) = convolutions.strides
        self._kernel, self._dtype = weight.shape[-1], features.dtype
        # Plain tensors that share the parameters' memory: autograd sees nothing of what is done here.
        self._weight, self._bias = weight.detach().flatten(1), bias.detach()[:, None]
        self._d_weight, self._d_bias = gradient_of(weight).view(self._weight.shape), gradient_of(bias)
        self._layers = MLPBackpropagation(
            _Layers((*features.hidden.pairs, *network.head.pairs), features.hidden.activation)
        )
        self._seen: Tensor  # by each place [N, C kernel kernel, P]
        self._map: Tensor  # what the convolution makes of it [N, F, P]

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] -> the outputs [N, O], a new tensor."""
        self._seen = windows(pixels(x, self._dtype), self._kernel, self._stride)
        weight = self._weight.expand(len(x), -1, -1)
        self._map = torch.baddbmm(self._bias, weight, self._seen).relu_()
        return self._layers.forward(self._map.flatten(1))

    @torch.no_grad()
    def backward(self, d: Tensor) -> None:
        """From the gradient of the outputs [N, O] to those of all parameters."""
        d_map = self._layers.backward_to_input(d).view(self._map.shape)
        torch.ops.aten.threshold_backward.grad_input(d_map, self._map, 0, grad_input=d_map)
        torch.sum(torch.bmm(d_map, self._seen.transpose(1, 2)), 0, out=self._d_weight)
        torch.sum(d_map, (0, 2), out=self._d_bias)
