"""From the gradient of a network's outputs to those of its parameters: by hand where it is an MLP or a small
image network, else by autograd.

Letters: N batch rows, O outputs.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from omnirl.networks.backpropagation import mlp_gradient
from omnirl.networks.cnn import ImageNetwork
from omnirl.networks.image_gradient import ImageBackpropagation, written_out
from omnirl.networks.mlp import MLP


class OutputGradient(Protocol):
    """One forward pass, then at most one backward pass of the same batch."""

    def forward(self, x: Tensor) -> Tensor:
        """The outputs [N, O], without a graph."""

    def backward(self, d: Tensor) -> None:
        """From the gradient of the outputs [N, O] to those of the parameters, over what was in their ``grad``."""


def output_gradient(network: nn.Module) -> OutputGradient:
    """The way to differentiate ``network``, whose parameters must have their ``grad`` by now, and keep it."""
    if isinstance(network, MLP) and network.plain:
        return mlp_gradient(network)
    if isinstance(network, ImageNetwork) and written_out(network):
        return ImageBackpropagation(network)
    return AutogradOutputs(network)


class AutogradOutputs:
    """Any network, through autograd's graph."""

    def __init__(self, network: nn.Module) -> None:
        self._network = network
        self._gradients = [parameter.grad for parameter in network.parameters()]
        self._outputs: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """The outputs [N, O], without a graph."""
        with torch.enable_grad():
            self._outputs = self._network(x)
        return self._outputs.detach()

    def backward(self, d: Tensor) -> None:
        """To the gradients of all parameters."""
        for gradient in self._gradients:
            assert gradient is not None
            gradient.zero_()
        self._outputs.backward(d)  # type: ignore[no-untyped-call]
