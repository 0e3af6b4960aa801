"""The dueling network in numpy, for acting. Imports no torch.

Letters: n actions, h units of the last hidden layer of each stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from omnirl.api import Array
from omnirl.networks.config import Activation
from omnirl.networks.numpy_mlp import NumpyMLP

_STREAMS = ("value", "advantage")
_PARTS = ("weight", "bias")


class NumpyDueling:
    """The same function as :class:`omnirl.networks.dueling.DuelingNetwork` on vectors, equal to 1e-5.

    Both streams are linear above their hidden layer, and so is subtracting the mean: side by side they are the last
    two layers of one plain MLP. Where layers are ``normalized`` the hidden layer of each stream is so by itself.
    """

    def __init__(
        self,
        inputs: int,
        hidden_sizes: Sequence[int],
        actions: int,
        activation: Activation,
        normalized: bool = False,
    ) -> None:
        *trunk, hidden = hidden_sizes
        self._trunk = len(trunk)
        self._normalized = normalized
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._add("features", (inputs, *trunk), self._trunk)
        for stream, outputs in zip(_STREAMS, (1, actions)):
            self._add(stream, ((inputs, *trunk)[-1], hidden, outputs), 1)
        sizes = (inputs, *trunk, 2 * hidden, actions)
        norms = [1] * self._trunk + [len(_STREAMS)] if normalized else []
        self._network = NumpyMLP(sizes, activation, "", norms)

    def _add(self, part: str, sizes: Sequence[int], hidden: int) -> None:
        """The shapes of an MLP with so many hidden layers."""
        for i, (d_in, d_out) in enumerate(pairwise(sizes)):
            self._shapes[f"{part}.layers.{i}.weight"] = (d_out, d_in)
            self._shapes[f"{part}.layers.{i}.bias"] = (d_out,)
        for i, size in enumerate(sizes[1 : hidden + 1] if self._normalized else ()):
            for name in _PARTS:
                self._shapes[f"{part}.norms.{i}.{name}"] = (size,)

    def names(self) -> list[str]:
        """The names that ``set_weights`` takes."""
        return list(self._shapes)

    def set_weights(self, weights: Mapping[str, Array]) -> None:
        """Take a copy. Raises ValueError on a wrong shape."""
        for name, shape in self._shapes.items():
            if weights[name].shape != shape:
                raise ValueError(f"{name}: shape {weights[name].shape} does not fit {shape}")
        kinds = ("layers", "norms") if self._normalized else ("layers",)
        plain = {}
        for kind in kinds:
            for part in _PARTS:
                for i in range(self._trunk):
                    plain[f"{kind}.{i}.{part}"] = weights[f"features.{kind}.{i}.{part}"]
                plain[f"{kind}.{self._trunk}.{part}"] = np.concatenate(
                    [weights[f"{stream}.{kind}.0.{part}"] for stream in _STREAMS]
                )
        for part in _PARTS:
            value, advantage = (weights[f"{stream}.layers.1.{part}"] for stream in _STREAMS)
            advantage = advantage - advantage.mean(axis=0)  # linear, so on weights as well as on outputs
            plain[f"layers.{self._trunk + 1}.{part}"] = (
                np.hstack((np.broadcast_to(value, advantage.shape), advantage))
                if part == "weight"
                else value + advantage
            )
        self._network.set_weights(plain)

    def __call__(self, x: Array) -> Array:
        """float32 [B, D] -> a new array float32 [B, n]."""
        return self._network(x)
