"""The MLP's forward pass in numpy, for acting: a third of torch's time on small batches, and no torch at all.

Letters: B rows (environments), D input size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from omnirl.api import Array
from omnirl.networks.config import Activation


def _relu(x: Array) -> None:
    np.maximum(x, 0.0, out=x)


def _tanh(x: Array) -> None:
    np.tanh(x, out=x)


def _elu(x: Array) -> None:
    below = np.expm1(np.minimum(x, 0.0))
    np.maximum(x, 0.0, out=x)
    x += below


def _silu(x: Array) -> None:
    # x sigmoid(x), where nothing overflows.
    x *= 0.5 + 0.5 * np.tanh(0.5 * x)


_ACTIVATIONS: dict[Activation, Callable[[Array], None]] = {
    "relu": _relu,
    "tanh": _tanh,
    "elu": _elu,
    "silu": _silu,
}
"""In place."""


_EPSILON = 1e-5  # torch's


class _Norm:
    """Layer normalisation of ``parts`` equal parts of a layer, each by itself, in place."""

    def __init__(self, parts: int, scale: Array, shift: Array) -> None:
        self._parts = parts
        self._scale, self._shift = np.array(scale, np.float32), np.array(shift, np.float32)

    def __call__(self, x: Array) -> None:
        """float32 [B, size]."""
        rows = x.reshape(len(x) * self._parts, -1)
        rows -= rows.mean(axis=1, keepdims=True)
        rows /= np.sqrt(np.square(rows).mean(axis=1, keepdims=True) + _EPSILON)
        x *= self._scale
        x += self._shift


class NumpyMLP:
    """The same function as :class:`omnirl.networks.mlp.MLP`, equal to 1e-5, with hidden layers in reused
    arrays.

    ``prefix`` is what precedes ``layers.<i>.weight`` in the weights' names. ``norms`` says for each hidden layer of
    how many parts it consists that are normalised, each by itself; without it none is.
    """

    def __init__(
        self, sizes: Sequence[int], activation: Activation, prefix: str, norms: Sequence[int] = ()
    ) -> None:
        self._sizes = tuple(sizes)
        self._activate = _ACTIVATIONS[activation]
        self._prefix = prefix
        self._parts = tuple(norms)
        self._layers: list[tuple[Array, Array]] = []
        self._norms: list[_Norm] = []
        self._rows = -1  # those that what follows is made for
        self._hidden: list[Array] = []
        self._biases: list[Array] = []

    def names(self) -> list[str]:
        """The names that ``set_weights`` takes."""
        counts = {"layers": len(self._sizes) - 1, "norms": len(self._parts)}
        return [
            f"{self._prefix}{kind}.{i}.{part}"
            for kind, count in counts.items()
            for i in range(count)
            for part in ("weight", "bias")
        ]

    def set_weights(self, weights: Mapping[str, Array]) -> None:
        """Take a copy. Raises ValueError on a wrong shape."""
        layers = []
        for i, (d_in, d_out) in enumerate(pairwise(self._sizes)):
            weight, bias = (
                weights[f"{self._prefix}layers.{i}.weight"],
                weights[f"{self._prefix}layers.{i}.bias"],
            )
            if weight.shape != (d_out, d_in) or bias.shape != (d_out,):
                raise ValueError(
                    f"{self._prefix}layers.{i}: shapes {weight.shape} and {bias.shape} "
                    f"do not fit {d_in} inputs and {d_out} outputs"
                )
            layers.append((np.ascontiguousarray(weight.T, np.float32), np.array(bias, np.float32)))
        norms = []
        for i, (parts, size) in enumerate(zip(self._parts, self._sizes[1:-1])):
            pair = [weights[f"{self._prefix}norms.{i}.{part}"] for part in ("weight", "bias")]
            if any(array.shape != (size,) for array in pair):
                shapes = f"{pair[0].shape} and {pair[1].shape}"
                raise ValueError(f"{self._prefix}norms.{i}: shapes {shapes} do not fit {size} units")
            norms.append(_Norm(parts, *pair))
        self._layers, self._norms = layers, norms
        self._rows = -1

    def __call__(self, x: Array) -> Array:
        """float32 [B, D] -> a new array float32 [B, sizes[-1]]."""
        if len(x) != self._rows:
            self._fit(len(x))
        # np.dot takes half of np.matmul's time on a few rows, and adding equal shapes half of broadcasting.
        for index, ((weight, _), bias, hidden) in enumerate(zip(self._layers, self._biases, self._hidden)):
            np.dot(x, weight, hidden)
            np.add(hidden, bias, out=hidden)
            if self._norms:
                self._norms[index](hidden)
            self._activate(hidden)
            x = hidden
        output: Array = x.dot(self._layers[-1][0])
        output += self._biases[-1]
        return output

    def _fit(self, rows: int) -> None:
        self._rows = rows
        self._hidden = [np.empty((rows, size), np.float32) for size in self._sizes[1:-1]]
        self._biases = [np.empty((rows, len(bias)), np.float32) for _, bias in self._layers]
        for rows_of_bias, (_, bias) in zip(self._biases, self._layers):
            rows_of_bias[:] = bias
