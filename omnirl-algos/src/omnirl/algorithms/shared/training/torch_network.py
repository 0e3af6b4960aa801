"""A network of images, or of a user's own class, as a policy runs it: torch on the sampler's one thread.

A module of its own, loaded by its name, so that policies of small networks never import torch.

Letters: B environments, O outputs.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from omnirl.api import Array, ArraySpec
from omnirl.api.plugin import load_object
from omnirl.networks.config import NetworkConfig


class TorchNetwork:
    """The same interface as :class:`omnirl.networks.numpy_mlp.NumpyMLP` for any network: that which
    ``build``, the import string of a function, makes."""

    def __init__(
        self,
        config: NetworkConfig,
        observation: ArraySpec,
        outputs: int,
        prefix: str,
        build: str = "omnirl.networks.build:build_network",
    ) -> None:
        torch.set_num_threads(1)
        self._network = load_object(build)(config, observation, outputs).requires_grad_(False)
        self._parameters = {f"{prefix}{name}": tensor for name, tensor in self._network.named_parameters()}

    def names(self) -> list[str]:
        """The names that ``set_weights`` takes."""
        return list(self._parameters)

    def set_weights(self, weights: Mapping[str, Array]) -> None:
        """Take a copy. Raises ValueError on a wrong shape."""
        for name, parameter in self._parameters.items():
            if weights[name].shape != tuple(parameter.shape):
                raise ValueError(f"{name}: shape {weights[name].shape} does not fit {tuple(parameter.shape)}")
        for name, parameter in self._parameters.items():
            parameter.copy_(torch.tensor(weights[name]))

    def __call__(self, x: Array) -> Array:
        """Rows of observations [B, ...] -> a new array float32 [B, O]."""
        outputs: Array = self._network(torch.from_numpy(np.ascontiguousarray(x))).numpy()
        return outputs
