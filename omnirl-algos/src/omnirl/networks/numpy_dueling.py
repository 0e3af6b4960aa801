"""The dueling network in numpy, for acting. Imports no torch.

Letters: n actions, h units of the last hidden layer of each stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from omnirl.api import Array
from omnirl.networks.config import Activation
from omnirl.networks.numpy_mlp import NumpyMLP


class NumpyDueling:
    """The same function as :class:`omnirl.networks.dueling.DuelingNetwork` on vectors, equal to 1e-5.

    Both streams are linear above their hidden layer, and so is subtracting the mean: side by side they are the last
    two layers of one plain MLP.
    """

    def __init__(
        self, inputs: int, hidden_sizes: Sequence[int], actions: int, activation: Activation
    ) -> None:
        *trunk, hidden = hidden_sizes
        self._trunk = len(trunk)
        self._shapes: dict[str, tuple[int, ...]] = {}
        for i, (d_in, d_out) in enumerate(zip((inputs, *trunk), trunk)):
            self._add(f"features.layers.{i}", d_in, d_out)
        for stream, outputs in (("value", 1), ("advantage", actions)):
            self._add(f"{stream}.layers.0", (inputs, *trunk)[-1], hidden)
            self._add(f"{stream}.layers.1", hidden, outputs)
        self._network = NumpyMLP((inputs, *trunk, 2 * hidden, actions), activation, "")

    def _add(self, layer: str, d_in: int, d_out: int) -> None:
        self._shapes[f"{layer}.weight"] = (d_out, d_in)
        self._shapes[f"{layer}.bias"] = (d_out,)

    def names(self) -> list[str]:
        """The names that ``set_weights`` takes."""
        return list(self._shapes)

    def set_weights(self, weights: Mapping[str, Array]) -> None:
        """Take a copy. Raises ValueError on a wrong shape."""
        for name, shape in self._shapes.items():
            if weights[name].shape != shape:
                raise ValueError(f"{name}: shape {weights[name].shape} does not fit {shape}")
        plain = {
            f"layers.{i}.{part}": weights[f"features.layers.{i}.{part}"]
            for i in range(self._trunk)
            for part in ("weight", "bias")
        }
        for part in ("weight", "bias"):
            plain[f"layers.{self._trunk}.{part}"] = np.concatenate(
                [weights[f"{stream}.layers.0.{part}"] for stream in ("value", "advantage")]
            )
            value, advantage = (weights[f"{stream}.layers.1.{part}"] for stream in ("value", "advantage"))
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
