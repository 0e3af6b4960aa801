"""Forward and backward pass of a plain MLP: by numpy where a batch has few rows and is on the CPU, else by torch.

What a product of fifty rows costs is the way to it, and numpy's is half of torch's. Beyond ``MOST_WORK`` numpy's
library of products would take threads of its own, whatever the learner may use, so there torch takes over.

Letters: N batch rows, D input size.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from omnirl.api import Array
from omnirl.networks.mlp import MLP

MOST_WORK = 2**18
"""Multiplications of the largest product: up to here OpenBLAS stays on the thread that it is called from."""


class MLPPass(Protocol):
    """One forward pass, then at most one backward pass of the same batch."""

    def forward(self, x: Tensor) -> Tensor:
        """[N, D] -> [N, outputs], a new tensor without a graph. ``x`` is kept for the backward pass."""

    def backward(self, d: Tensor) -> None:
        """From the gradient of the outputs [N, outputs] to those of all parameters, over what was in their ``grad``."""


class ByRows:
    """A pass of ``network`` on the CPU: numpy's where the batch has few rows, else ``large``."""

    def __init__(self, network: MLP, large: MLPPass) -> None:
        self._few = MOST_WORK // max(weight.numel() for weight, _ in network.pairs)
        self._small, self._large = NumpyPass(network), large
        self._taken: MLPPass = large

    def forward(self, x: Tensor) -> Tensor:
        """See :class:`MLPPass`."""
        self._taken = self._small if len(x) <= self._few else self._large
        return self._taken.forward(x)

    def backward(self, d: Tensor) -> None:
        """See :class:`MLPPass`."""
        self._taken.backward(d)


class NumpyPass:
    """The same function as :class:`omnirl.networks.backpropagation.MLPBackpropagation`, equal to 1e-5.

    The parameters must be where they will stay by now, with their ``grad``.
    """

    def __init__(self, network: MLP) -> None:
        # Arrays that share the parameters' memory, and that of their gradients.
        self._weights = [weight.detach().numpy() for weight, _ in network.pairs]
        self._transposed = [weight.T for weight in self._weights]
        self._biases = [bias.detach().numpy() for _, bias in network.pairs]
        self._gradients = [(_shared(weight.grad), _shared(bias.grad)) for weight, bias in network.pairs]
        self._tanh = network.activation == "tanh"
        self._rows = -1
        self._hidden: list[Array] = []  # the hidden layers' values [N, size] ...
        self._d_hidden: list[Array] = []  # ... and their gradients
        self._x: Array

    def forward(self, x: Tensor) -> Tensor:
        """[N, D] -> [N, outputs]."""
        if len(x) != self._rows:
            self._rows = len(x)
            self._hidden, self._d_hidden = (
                [np.empty((self._rows, len(bias)), np.float32) for bias in self._biases[:-1]]
                for _ in range(2)
            )
        self._x = into = x.numpy()
        for bias, weight, hidden in zip(self._biases, self._transposed, self._hidden):
            np.dot(into, weight, out=hidden)
            np.add(hidden, bias, out=hidden)
            if self._tanh:
                np.tanh(hidden, out=hidden)
            else:
                np.maximum(hidden, 0.0, out=hidden)
            into = hidden
        outputs = into.dot(self._transposed[-1])
        outputs += self._biases[-1]
        return torch.from_numpy(outputs)

    def backward(self, d: Tensor) -> None:
        """To all parameters."""
        gradient: Array = d.numpy()
        inputs = [self._x, *self._hidden]
        for layer in range(len(inputs) - 1, -1, -1):
            d_weight, d_bias = self._gradients[layer]
            np.dot(gradient.T, inputs[layer], out=d_weight)
            np.add.reduce(gradient, 0, out=d_bias)
            if layer:
                gradient = self._through(layer - 1, gradient)

    def _through(self, index: int, d: Array) -> Array:
        """From the gradient of the sums of the layer after hidden layer ``index`` to that of its own sums."""
        hidden, d_hidden = self._hidden[index], self._d_hidden[index]
        np.dot(d, self._weights[index + 1], out=d_hidden)
        if self._tanh:
            slope = hidden * hidden
            np.subtract(1.0, slope, out=slope)
            d_hidden *= slope
        else:
            d_hidden *= hidden > 0.0
        return d_hidden


def _shared(gradient: Tensor | None) -> Array:
    """An array in the memory of a parameter's gradient."""
    assert gradient is not None
    array: Array = gradient.numpy()
    return array
