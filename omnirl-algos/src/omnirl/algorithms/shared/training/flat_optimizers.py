"""Adam and RMSprop over one flat tensor, equal to torch.optim's.

``torch.optim`` is never imported: constructing its Adam costs 2 s and 72 MB of imports at start, and over a
dozen tensors each step costs ten times one over a flat one.

``step(lr, finite)`` takes a 0-dimensional float tensor ``finite``, 1 or 0: where it is 0 nothing changes, the
gradient notwithstanding. The decision is made on the tensor, so a loop on a GPU never waits for the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor

from omnirl.algorithms.shared.training.flat_parameters import FlatParameters
from omnirl.api import Array


class FlatOptimizer(Protocol):
    """What learners ask of an optimizer."""

    def step(self, lr: float, finite: Tensor) -> None:
        """Move the parameters along the gradient in their buffer, where ``finite`` is 1."""

    def tensors(self) -> tuple[Tensor, ...]:
        """What a step changes beside the parameters: to put back after a failed update."""

    def state_dict(self) -> dict[str, Array]:
        """Copies of the running averages."""

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Restore what ``state_dict`` gave."""


def _copies(**tensors: Tensor) -> dict[str, Array]:
    return {name: tensor.cpu().numpy().copy() for name, tensor in tensors.items()}


def _restore(state: Mapping[str, Array], **tensors: Tensor) -> None:
    for name, tensor in tensors.items():
        if state[name].shape != tuple(tensor.shape):
            raise ValueError(
                f"optimizer {name}: shape {state[name].shape} does not fit {tuple(tensor.shape)}"
            )
    for name, tensor in tensors.items():
        tensor.copy_(torch.tensor(state[name]))


class FlatAdam:
    """Adam: Kingma & Ba 2015 (arXiv:1412.6980), algorithm 1, epsilon outside the corrected square root."""

    def __init__(
        self, parameters: FlatParameters, epsilon: float = 1e-8, betas: tuple[float, float] = (0.9, 0.999)
    ) -> None:
        self._values, self._gradient = parameters.values, parameters.gradient
        self._epsilon, self._betas = epsilon, betas
        self._first = torch.zeros_like(self._values)
        self._second = torch.zeros_like(self._values)
        self._steps = torch.zeros((), device=self._values.device)

    def step(self, lr: float, finite: Tensor) -> None:
        """One step with learning rate ``lr``."""
        self._steps.add_(finite)
        # The kernel behind torch.optim.Adam(fused=True): one pass over the buffer instead of six.
        torch._fused_adam_(
            [self._values],
            [self._gradient],
            [self._first],
            [self._second],
            [],
            [self._steps],
            lr=lr,
            beta1=self._betas[0],
            beta2=self._betas[1],
            weight_decay=0.0,
            eps=self._epsilon,
            amsgrad=False,
            maximize=False,
            grad_scale=None,
            found_inf=1.0 - finite,
        )

    def tensors(self) -> tuple[Tensor, ...]:
        """The moments [size] and the number of steps."""
        return self._first, self._second, self._steps

    def state_dict(self) -> dict[str, Array]:
        """Copies of the moments [size] and of the number of steps."""
        return _copies(first=self._first, second=self._second, steps=self._steps)

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Restore. ValueError where a shape does not fit."""
        _restore(state, first=self._first, second=self._second, steps=self._steps)


class FlatRMSprop:
    """RMSprop (Tieleman & Hinton 2012) in one of two forms.

    ``form="torch"``: the average of squares starts at 0 and the step is lr g / (sqrt(s) + epsilon).
    ``form="tf"``: it starts at 1 and the step is lr g / sqrt(s + epsilon); the A2C and IMPALA papers were
    tuned with this one, and the first hundred steps differ by an order of magnitude.
    """

    def __init__(
        self, parameters: FlatParameters, form: str, epsilon: float = 1e-5, decay: float = 0.99
    ) -> None:
        if form not in ("torch", "tf"):
            raise ValueError(f"form must be 'torch' or 'tf', not {form!r}")
        self._values, self._gradient = parameters.values, parameters.gradient
        self._tf, self._epsilon, self._decay = form == "tf", epsilon, decay
        self._square = torch.full_like(self._values, 1.0 if self._tf else 0.0)

    def step(self, lr: float, finite: Tensor) -> None:
        """One step with learning rate ``lr``."""
        gradient = self._gradient
        if gradient.device.type == "cpu":
            # Nothing to wait for: a look at the number is less work than the operations that do without one.
            if float(finite) == 0.0:
                return
            square = self._square.mul_(self._decay).addcmul_(gradient, gradient, value=1.0 - self._decay)
        else:
            ok = finite > 0
            gradient = torch.where(ok, gradient, 0.0)
            square = self._decay * self._square
            square.addcmul_(gradient, gradient, value=1.0 - self._decay)
            self._square.copy_(torch.where(ok, square, self._square))
        root = (square + self._epsilon).sqrt_() if self._tf else square.sqrt().add_(self._epsilon)
        self._values.addcdiv_(gradient, root, value=-lr)

    def tensors(self) -> tuple[Tensor, ...]:
        """The average of squares [size]."""
        return (self._square,)

    def state_dict(self) -> dict[str, Array]:
        """A copy of the average of squares [size]."""
        return _copies(square=self._square)

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Restore. ValueError where the shape does not fit."""
        _restore(state, square=self._square)
