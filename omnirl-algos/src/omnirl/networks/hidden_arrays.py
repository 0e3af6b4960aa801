"""The hidden layers of a pass that is written out: arrays that are reused from batch to batch, and the non-linearity.

Letters: N batch rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from omnirl.networks.config import Activation
from omnirl.networks.mlp import tanh_


class HiddenArrays:
    """The values of each hidden layer, and their gradients: [N, size], or [M, N, size] of M networks together.

    ``biases`` are those of the hidden layers, [size] or [M, 1, size]; ``activation`` is one of ``WRITTEN_OUT``.
    """

    def __init__(self, biases: Sequence[Tensor], activation: Activation) -> None:
        self._biases = biases
        self._tanh = activation == "tanh"
        self._rows = -1
        self.values: list[Tensor] = []
        self.gradients: list[Tensor] = []

    def fit(self, rows: int) -> None:
        """Make room for a batch of ``rows``, where the last one had another number."""
        if rows != self._rows:
            self._rows = rows
            shapes = [(*bias.shape[:-2], rows, bias.shape[-1]) for bias in self._biases]
            self.values, self.gradients = (
                [bias.new_empty(shape) for bias, shape in zip(self._biases, shapes)] for _ in range(2)
            )

    def activate_(self, sums: Tensor) -> Tensor:
        """The non-linearity of a layer's sums, in place; returns it."""
        return tanh_(sums) if self._tanh else sums.relu_()

    def slope_(self, layer: int) -> Tensor:
        """From the gradient of a layer's values, in ``gradients``, to that of its sums, in place; returns it."""
        values, gradient = self.values[layer], self.gradients[layer]
        if self._tanh:
            torch.ops.aten.tanh_backward.grad_input(gradient, values, grad_input=gradient)
        else:
            torch.ops.aten.threshold_backward.grad_input(gradient, values, 0, grad_input=gradient)
        return gradient
