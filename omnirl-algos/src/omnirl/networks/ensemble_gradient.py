"""Forward and backward passes of an ensemble of MLPs: where they are plain by hand, in arrays that are reused.

Autograd would allocate every hidden layer anew in each update, half a megabyte at a time, which costs as much as a
third of the products themselves; and it cannot be told that critics are not to move while an actor is.

Letters: M members, N batch rows, D input size, O outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor, nn

from omnirl.networks.backpropagation import gradient_of
from omnirl.networks.ensemble import EnsembleMLP
from omnirl.networks.hidden_arrays import HiddenArrays


class Ensemble(Protocol):
    """A network of members."""

    def __call__(self, x: Tensor, members: int | None = None) -> Tensor:
        """[N, D] -> [M, N, O], of the first ``members`` (all)."""

    def parameters(self) -> Iterator[nn.Parameter]:
        """All of them."""


class EnsemblePass(Protocol):
    """One forward pass, then at most one way back of the same batch."""

    def forward(self, x: Tensor) -> Tensor:
        """[N, D] -> [M, N, O], a new tensor without a graph. ``x`` is kept for the way back."""

    def backward(self, d: Tensor) -> None:
        """From the gradient of the outputs [M, N, O] to those of the parameters, over what was in their ``grad``."""

    def input_gradient(self, d: Tensor, columns: int) -> Tensor:
        """From the gradient of the outputs [M, N, O] to that of the last ``columns`` inputs, [N, columns]."""


def ensemble_pass(network: Ensemble, members: int | None = None) -> EnsemblePass:
    """A pass of the first ``members`` (all).

    The parameters must be where they will stay by now; for ``backward`` they must have their ``grad``.
    """
    if isinstance(network, EnsembleMLP) and network.plain:
        return PlainPass(network, members)
    return AutogradPass(network, members)


class PlainPass:
    """Linear layers and non-linearities, differentiated operation for operation as autograd does."""

    def __init__(self, network: EnsembleMLP, members: int | None) -> None:
        self._pairs = network.pairs
        # Plain tensors that share the parameters' memory: autograd sees nothing of what is done here.
        self._weights = [weight.detach()[:members] for weight, _ in network.pairs]
        self._transposed = [weight.transpose(1, 2) for weight in self._weights]
        self._biases = [bias.detach()[:members] for _, bias in network.pairs]
        self._hidden = HiddenArrays(self._biases[:-1], network.activation)
        self._x: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """[N, D] -> [M, N, O]."""
        self._hidden.fit(len(x))
        self._x = x = x.expand(len(self._weights[0]), *x.shape)
        for bias, weight, sums in zip(self._biases, self._weights, self._hidden.values):
            torch.baddbmm(bias, x, weight, out=sums)
            x = self._hidden.activate_(sums)
        bias, weight = self._biases[-1], self._weights[-1]
        if bias.shape[2] == 1:  # a product with one column takes five times as long as its transpose
            return torch.baddbmm(bias, weight.transpose(1, 2), x.transpose(1, 2)).transpose(1, 2)
        return torch.baddbmm(bias, x, weight)

    def backward(self, d: Tensor) -> None:
        """To the parameters."""
        inputs = [self._x, *self._hidden.values]
        for layer in range(len(inputs) - 1, -1, -1):
            weight, bias = self._pairs[layer]
            if d.shape[2] == 1:
                torch.bmm(d.transpose(1, 2), inputs[layer], out=gradient_of(weight).transpose(1, 2))
            else:
                torch.bmm(inputs[layer].transpose(1, 2), d, out=gradient_of(weight))
            torch.sum(d, 1, keepdim=True, out=gradient_of(bias))
            if layer:
                d = self._through(layer, d)

    def input_gradient(self, d: Tensor, columns: int) -> Tensor:
        """To the last ``columns`` inputs [N, columns]."""
        for layer in range(len(self._weights) - 1, 0, -1):
            d = self._through(layer, d)
        return torch.bmm(d, self._transposed[0][:, :, -columns:]).sum(0)

    def _through(self, layer: int, d: Tensor) -> Tensor:
        """From the gradient of ``layer``'s sums to that of the sums of the layer before."""
        d_hidden = self._hidden.gradients[layer - 1]
        if d.shape[2] == 1:
            torch.mul(d, self._transposed[layer], out=d_hidden)
        else:
            torch.bmm(d, self._transposed[layer], out=d_hidden)
        return self._hidden.slope_(layer - 1)


class AutogradPass:
    """Any ensemble, through autograd's graph."""

    def __init__(self, network: Ensemble, members: int | None) -> None:
        self._network, self._members = network, members
        self._parameters = list(network.parameters())
        self._learned = [parameter for parameter in self._parameters if parameter.requires_grad]
        self._x: Tensor
        self._outputs: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """[N, D] -> [M, N, O]."""
        self._x = x.detach().requires_grad_()
        with torch.enable_grad():
            self._outputs = self._network(self._x, self._members)
        return self._outputs.detach()

    def backward(self, d: Tensor) -> None:
        """To the parameters."""
        for parameter in self._parameters:
            gradient_of(parameter).zero_()
        torch.autograd.backward(self._outputs, d, inputs=self._learned)

    def input_gradient(self, d: Tensor, columns: int) -> Tensor:
        """To the last ``columns`` inputs [N, columns]."""
        (gradient,) = torch.autograd.grad(self._outputs, self._x, d)
        return gradient[:, -columns:]
