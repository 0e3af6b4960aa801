"""Several MLPs of one shape, each layer one batched product: the critics of the actor-critic value learners.

On small networks a product per member costs as much Python as arithmetic; one for all members costs it once.

Letters: M members, N batch rows, D input size, O outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Generator, Tensor, nn

from omnirl.networks.config import Activation
from omnirl.networks.initialization import uniform_fan_in_
from omnirl.networks.mlp import ACTIVATIONS

Pairs = tuple[tuple[Tensor, Tensor], ...]


class EnsembleLayer(nn.Module):
    """A weight [M, inputs, outputs] and a bias [M, 1, outputs], not yet initialised."""

    def __init__(self, members: int, d_in: int, d_out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(members, d_in, d_out))
        self.bias = nn.Parameter(torch.empty(members, 1, d_out))


class EnsembleMLP(nn.Module):
    """[N, D] -> [M, N, sizes[-1]]; parameters ``layers.<i>.weight|bias`` hold all members'."""

    def __init__(self, members: int, sizes: Sequence[int], activation: Activation) -> None:
        super().__init__()
        self.members = members
        layers = [EnsembleLayer(members, d_in, d_out) for d_in, d_out in pairwise(sizes)]
        self.layers = nn.ModuleList(layers)
        self._activation = ACTIVATIONS[activation]
        self._pairs: Pairs = tuple((layer.weight, layer.bias) for layer in layers)

    def forward(self, x: Tensor) -> Tensor:
        """[N, D] -> [M, N, O]."""
        return self._through(x, self._pairs)

    def frozen(self, x: Tensor, members: int | None = None) -> Tensor:
        """The same of the first ``members`` (all), with a gradient for ``x`` alone: none is computed for parameters
        that are not to move."""
        return self._through(
            x, tuple((weight.detach()[:members], bias.detach()[:members]) for weight, bias in self._pairs)
        )

    def _through(self, x: Tensor, pairs: Pairs) -> Tensor:
        hidden = x.expand(len(pairs[0][0]), *x.shape)
        for weight, bias in pairs[:-1]:
            hidden = self._activation(torch.baddbmm(bias, hidden, weight))
        weight, bias = pairs[-1]
        return torch.baddbmm(bias, hidden, weight)

    def init_uniform(self, rng: Generator) -> None:
        """torch's own default for a linear layer, each member drawn from ``rng`` by itself."""
        with torch.no_grad():
            for weight, bias in self._pairs:
                for member in range(self.members):
                    uniform_fan_in_(weight[member].T, bias[member, 0], rng)
