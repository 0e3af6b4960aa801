"""Several MLPs of one shape, each layer one batched product: the critics of the actor-critic value learners.

On small networks a product per member costs as much Python as arithmetic; one for all members costs it once.

Letters: M members, N batch rows, D input size, O outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import layer_norm

from omnirl.networks.config import Activation
from omnirl.networks.initialization import uniform_fan_in_
from omnirl.networks.mlp import ACTIVATIONS, WRITTEN_OUT


class EnsembleLayer(nn.Module):
    """A weight [M, inputs, outputs] and a bias [M, 1, outputs], not yet initialised."""

    def __init__(self, members: int, d_in: int, d_out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(members, d_in, d_out))
        self.bias = nn.Parameter(torch.empty(members, 1, d_out))


class EnsembleNorm(nn.Module):
    """A scale and a shift [M, 1, size] of normalised layers, 1 and 0 at first."""

    def __init__(self, members: int, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(members, 1, size))
        self.bias = nn.Parameter(torch.zeros(members, 1, size))


class EnsembleMLP(nn.Module):
    """[N, D] -> [M, N, sizes[-1]]; parameters ``layers.<i>.weight|bias`` hold all members'.

    Where ``normalized`` each hidden layer is normalised before its non-linearity (Ba et al. 2016, arXiv:1607.06450),
    by ``norms.<i>.weight|bias``.
    """

    def __init__(
        self, members: int, sizes: Sequence[int], activation: Activation, normalized: bool = False
    ) -> None:
        super().__init__()
        layers = [EnsembleLayer(members, d_in, d_out) for d_in, d_out in pairwise(sizes)]
        self.layers = nn.ModuleList(layers)
        norms = [EnsembleNorm(members, size) for size in sizes[1:-1]] if normalized else []
        self.norms = nn.ModuleList(norms)
        self.activation = activation
        self._activate = ACTIVATIONS[activation]
        self.pairs = tuple((layer.weight, layer.bias) for layer in layers)
        self._norm_pairs = tuple((norm.weight, norm.bias) for norm in norms)

    @property
    def plain(self) -> bool:
        """Whether it is linear layers alone and a non-linearity whose gradient is written out."""
        return not self._norm_pairs and self.activation in WRITTEN_OUT

    def forward(self, x: Tensor, members: int | None = None) -> Tensor:
        """[N, D], or each member's own [M, N, D], -> [M, N, O], of the first ``members`` (all)."""
        hidden = x if x.dim() == 3 else x.expand(len(self.pairs[0][0][:members]), *x.shape)
        for index, (weight, bias) in enumerate(self.pairs):
            hidden = torch.baddbmm(bias[:members], hidden, weight[:members])
            if index < len(self._norm_pairs):
                scale, shift = self._norm_pairs[index]
                normal = layer_norm(hidden, hidden.shape[2:])
                hidden = torch.addcmul(shift[:members], normal, scale[:members])
            if index < len(self.pairs) - 1:
                hidden = self._activate(hidden)
        return hidden

    def init_uniform(self, rng: Generator) -> None:
        """torch's own default for a linear layer, each member drawn from ``rng`` by itself."""
        with torch.no_grad():
            for weight, bias in self.pairs:
                for member in range(len(weight)):
                    uniform_fan_in_(weight[member].T, bias[member, 0], rng)
