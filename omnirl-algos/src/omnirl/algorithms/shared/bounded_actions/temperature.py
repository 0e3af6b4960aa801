"""SAC's temperature: the weight of the entropy, fixed or learned."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

LOG_BOUNDS = (-20.0, 10.0)
"""The least and the greatest logarithm of a learned temperature: a policy that cannot reach its target entropy
would drive it without end."""


class Temperature(nn.Module):
    """Its logarithm is the parameter (as in the code of Haarnoja et al. 2018), so that it stays positive."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.log_value = nn.Parameter(torch.tensor(math.log(value)))

    def forward(self) -> Tensor:
        """The temperature, 0-dimensional, without a gradient."""
        return self.log_value.detach().exp()


def temperature_loss(log_temperature: Tensor, entropy: Tensor, target_entropy: float) -> Tensor:
    """log alpha (H - target), and its gradient H - target into ``log_temperature.grad``: alpha falls while the
    policy's entropy H is above its target.

    Haarnoja et al. 2018 (arXiv:1812.05905), eq. 18, with log alpha for alpha, as their code has it; H is the
    mean of -log pi. All 0-dimensional. Of a part of a batch H and the target are its shares of them.
    """
    excess = entropy - target_entropy
    assert log_temperature.grad is not None
    log_temperature.grad.copy_(excess)
    return log_temperature.detach() * excess
