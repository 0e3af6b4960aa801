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
        layers = [EnsembleLayer(members, d_in, d_out) for d_in, d_out in pairwise(sizes)]
        self.layers = nn.ModuleList(layers)
        self.members = members
        self.activation = activation
        self._activate = ACTIVATIONS[activation]
        self.pairs = tuple((layer.weight, layer.bias) for layer in layers)

    def forward(self, x: Tensor) -> Tensor:
        """[N, D] -> [M, N, O]."""
        hidden = x.expand(self.members, *x.shape)
        for weight, bias in self.pairs[:-1]:
            hidden = self._activate(torch.baddbmm(bias, hidden, weight))
        weight, bias = self.pairs[-1]
        return torch.baddbmm(bias, hidden, weight)

    def init_uniform(self, rng: Generator) -> None:
        """torch's own default for a linear layer, each member drawn from ``rng`` by itself."""
        with torch.no_grad():
            for weight, bias in self.pairs:
                for member in range(self.members):
                    uniform_fan_in_(weight[member].T, bias[member, 0], rng)
