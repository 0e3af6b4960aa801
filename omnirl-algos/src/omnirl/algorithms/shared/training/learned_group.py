"""A network with an optimizer of its own: the actor, the critics or the temperature of an update."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from omnirl.algorithms.shared.training.flat_optimizers import FlatAdam
from omnirl.algorithms.shared.training.flat_parameters import FlatParameters, clip_gradient_
from omnirl.api import Clock, Schedule, value_at


class LearnedGroup:
    """The parameters of ``module`` in one buffer on ``device``, moved by an Adam of their own.

    ``bounds`` are the least and the greatest value that a parameter may take.
    """

    def __init__(
        self,
        module: nn.Module,
        device: torch.device,
        lr: Schedule,
        *,
        adam_epsilon: float = 1e-8,
        max_grad_norm: float | None = None,
        bounds: tuple[float, float] | None = None,
    ) -> None:
        self.parameters = FlatParameters(module, device)
        self.optimizer = FlatAdam(self.parameters, adam_epsilon)
        self._lr = lr
        self._max_grad_norm = max_grad_norm
        self._bounds = bounds

    def clip(self) -> Tensor:
        """Clip the gradient; its norm before, 0-dimensional."""
        return clip_gradient_(self.parameters.gradient, self._max_grad_norm)

    def lr(self, clock: Clock) -> float:
        """The learning rate of this moment."""
        return value_at(self._lr, clock)

    def step(self, clock: Clock, finite: Tensor) -> None:
        """Move the parameters where ``finite`` is 1."""
        self.optimizer.step(self.lr(clock), finite)
        if self._bounds is not None:
            self.parameters.values.clamp_(*self._bounds)

    def state_dict(self) -> dict[str, Any]:
        """Parameters and running averages."""
        return {"parameters": self.parameters.arrays(), "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore. KeyError or ValueError where the state is of another network."""
        self.parameters.load(state["parameters"])
        self.optimizer.load_state_dict(state["optimizer"])
