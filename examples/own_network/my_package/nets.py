"""A network of the user's own: features of an observation, under the hidden layers and heads of any algorithm."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from omnirl.api import ArraySpec


class MyNet(nn.Module):
    """Fourier features of a vector (Tancik et al. 2020, arXiv:2006.10739) with frequencies that are learned."""

    def __init__(self, observation: ArraySpec, *, width: int = 64, scale: float = 0.5) -> None:
        super().__init__()
        self.frequencies = nn.Linear(observation.size, width)
        nn.init.normal_(self.frequencies.weight, std=scale)

    def forward(self, observation: Tensor) -> Tensor:
        """Observations [N, *shape] -> features [N, 2 width]."""
        phase = self.frequencies(observation.flatten(1))
        return torch.cat((phase.sin(), phase.cos()), dim=1)
