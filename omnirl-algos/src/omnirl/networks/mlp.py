"""A multi-layer perceptron whose forward pass is as few operations as possible.

Letters: N batch rows, D input size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import elu, layer_norm, linear, silu

from omnirl.networks.config import Activation
from omnirl.networks.initialization import orthogonal_, uniform_fan_in_


def tanh_(x: Tensor) -> Tensor:
    """tanh of a tensor without a graph, in place; returns it.

    On the CPU by numpy, which has a vectorised one for float32: a sixth of torch's time.
    """
    if x.device.type != "cpu":
        return x.tanh_()
    array = x.numpy()
    np.tanh(array, out=array)
    return x


def _tanh(x: Tensor) -> Tensor:
    # x is fresh from a linear layer, so where no graph needs it, it may be overwritten.
    return torch.tanh(x) if x.requires_grad else tanh_(x)


ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "tanh": _tanh,
    "relu": torch.relu,
    "elu": elu,
    "silu": silu,
}
WRITTEN_OUT: tuple[Activation, ...] = ("tanh", "relu")
"""Those whose gradient is written out; a network with another one goes through autograd."""


class Layer(nn.Module):
    """A weight [outputs, ...] and a bias [outputs], not yet initialised.

    ``nn.Linear`` and ``nn.Conv2d`` hold the same, but draw initial values from torch's global generator.
    """

    def __init__(self, weight_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(weight_shape))
        self.bias = nn.Parameter(torch.empty(weight_shape[0]))


class Norm(nn.Module):
    """A scale and a shift [size] of a normalised layer, 1 and 0 at first."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size))


class MLP(nn.Module):
    """``linear, activation, ..., linear``: [N, D] -> [N, sizes[-1]]; parameters
    ``layers.<i>.weight|bias``.

    Where ``normalized`` each hidden layer is normalised before its non-linearity (Ba et al. 2016, arXiv:1607.06450),
    by ``norms.<i>.weight|bias``. With one size there is no layer, and what comes in goes out.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        activation: Activation,
        output_activation: bool = False,
        normalized: bool = False,
    ) -> None:
        super().__init__()
        layers = [Layer((d_out, d_in)) for d_in, d_out in pairwise(sizes)]
        self.layers = nn.ModuleList(layers)
        self.activation = activation
        self.num_features = tuple(sizes)[-2:][0]  # what enters the last layer
        self._activate = ACTIVATIONS[activation]
        self._activated = len(layers) if output_activation else len(layers) - 1
        norms = [Norm(size) for size in sizes[1 : self._activated + 1]] if normalized else []
        self.norms = nn.ModuleList(norms)
        # Plain tuples: reaching a parameter through three modules costs as much as a small operation.
        self.pairs = tuple((layer.weight, layer.bias) for layer in layers)
        self.norm_pairs = tuple((norm.weight, norm.bias) for norm in norms)

    @property
    def plain(self) -> bool:
        """Whether it is linear layers alone and a non-linearity whose gradient is written out."""
        return not self.norm_pairs and self.activation in WRITTEN_OUT

    def forward(self, x: Tensor) -> Tensor:
        """[N, D] -> [N, sizes[-1]]."""
        return self._through(x, self.pairs)

    def features(self, x: Tensor) -> Tensor:
        """What the last layer is given: [N, D] -> [N, num_features]."""
        return self._through(x, self.pairs[:-1])

    def _through(self, x: Tensor, pairs: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        for index, (weight, bias) in enumerate(pairs):
            x = linear(x, weight, bias)
            if index < self._activated:
                if self.norm_pairs:
                    x = layer_norm(x, x.shape[1:], *self.norm_pairs[index])
                x = self._activate(x)
        return x

    def head(self, features: Tensor) -> Tensor:
        """The last layer: [N, num_features] -> [N, sizes[-1]]."""
        return linear(features, *self.pairs[-1])

    def init_orthogonal(self, rng: Generator, output_gain: float) -> None:
        """Orthogonal weights with gain sqrt(2), ``output_gain`` in the last layer, zero biases (PPO)."""
        for index, (weight, bias) in enumerate(self.pairs, 1):
            orthogonal_(weight, output_gain if index == len(self.pairs) else 2.0**0.5, rng)
            nn.init.zeros_(bias)

    def init_uniform(self, rng: Generator) -> None:
        """torch's own default, drawn from ``rng`` (DQN)."""
        for weight, bias in self.pairs:
            uniform_fan_in_(weight, bias, rng)
