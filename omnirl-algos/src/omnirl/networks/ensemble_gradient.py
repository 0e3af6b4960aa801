"""Forward and backward passes of an ensemble of MLPs, by hand and in arrays that are reused.

Autograd would allocate every hidden layer anew in each update, half a megabyte at a time, which costs as much as a
third of the products themselves; and it cannot be told that critics are not to move while an actor is.

Letters: M members, N batch rows, D input size, O outputs.
"""

from __future__ import annotations

import torch
from torch import Tensor

from omnirl.networks.backpropagation import gradient_of
from omnirl.networks.ensemble import EnsembleMLP
from omnirl.networks.mlp import tanh_


class EnsemblePass:
    """One forward pass of the first ``members`` (all), then at most one way back of the same batch.

    The parameters must be where they will stay by now; for :meth:`backward` they must have their ``grad``.
    """

    def __init__(self, network: EnsembleMLP, members: int | None = None) -> None:
        self._pairs = network.pairs
        # Plain tensors that share the parameters' memory: autograd sees nothing of what is done here.
        self._weights = [weight.detach()[:members] for weight, _ in network.pairs]
        self._transposed = [weight.transpose(1, 2) for weight in self._weights]
        self._biases = [bias.detach()[:members] for _, bias in network.pairs]
        self._tanh = network.activation == "tanh"
        self._rows = -1
        self._hidden: list[Tensor] = []  # the hidden layers' values [M, N, size] ...
        self._d_hidden: list[Tensor] = []  # ... and their gradients
        self._x: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """[N, D] -> [M, N, O], a new tensor. ``x`` is kept for the way back."""
        if len(x) != self._rows:
            self._rows = len(x)
            self._hidden, self._d_hidden = (
                [x.new_empty(len(bias), self._rows, bias.shape[2]) for bias in self._biases[:-1]]
                for _ in range(2)
            )
        self._x = x = x.expand(len(self._weights[0]), *x.shape)
        for bias, weight, hidden in zip(self._biases, self._weights, self._hidden):
            torch.baddbmm(bias, x, weight, out=hidden)
            x = tanh_(hidden) if self._tanh else hidden.relu_()
        return torch.baddbmm(self._biases[-1], x, self._weights[-1])

    def backward(self, d: Tensor) -> None:
        """From the gradient of the outputs [M, N, O] to those of the parameters, over what was in their ``grad``."""
        inputs = [self._x, *self._hidden]
        for layer in range(len(inputs) - 1, -1, -1):
            weight, bias = self._pairs[layer]
            torch.bmm(inputs[layer].transpose(1, 2), d, out=gradient_of(weight))
            torch.sum(d, 1, keepdim=True, out=gradient_of(bias))
            if layer:
                d = self._through(layer, d)

    def input_gradient(self, d: Tensor, columns: int) -> Tensor:
        """From the gradient of the outputs [M, N, O] to that of the last ``columns`` inputs, [N, columns]."""
        for layer in range(len(self._hidden), 0, -1):
            d = self._through(layer, d)
        return torch.bmm(d, self._transposed[0][:, :, -columns:]).sum(0)

    def _through(self, layer: int, d: Tensor) -> Tensor:
        """From the gradient of ``layer``'s sums to that of the sums of the layer before."""
        hidden, d_hidden = self._hidden[layer - 1], self._d_hidden[layer - 1]
        torch.bmm(d, self._transposed[layer], out=d_hidden)
        if self._tanh:
            torch.ops.aten.tanh_backward.grad_input(d_hidden, hidden, grad_input=d_hidden)
        else:
            torch.ops.aten.threshold_backward.grad_input(d_hidden, hidden, 0, grad_input=d_hidden)
        return d_hidden
