"""All parameters of a network as views of one flat float32 buffer, and their gradients of another.

On small networks the Python between operations is the cost: with one buffer an optimizer step, a gradient
clip, a target update and publishing the weights are one operation each, however many layers there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

import torch
from torch import Tensor, nn

from omnirl.algorithms.shared.names import check_names
from omnirl.api import Array

_ALIGNMENT = (
    16  # float32 elements: every view begins on a 64-byte line, so results do not depend on neighbours
)


class FlatParameters:
    """Moves the parameters of ``module`` to ``device`` and into one buffer; they stay the module's
    parameters.

    ``values`` and ``gradient`` are the flat buffers [size]. ``backward`` of a loss adds into ``gradient``,
    which must be zeroed before: ``gradient.zero_()``. Parameters that are not ``learned`` have no gradient.
    """

    def __init__(self, module: nn.Module, device: torch.device, learned: bool = True) -> None:
        module.to(device)
        named = dict(module.named_parameters())
        self._places: dict[str, tuple[int, tuple[int, ...]]] = {}
        size = 0
        for name, parameter in named.items():
            self._places[name] = (size, tuple(parameter.shape))
            size += -(-parameter.numel() // _ALIGNMENT) * _ALIGNMENT
        self.values = torch.zeros(size, device=device)
        self.gradient = torch.zeros(size if learned else 0, device=device)
        for name, parameter in named.items():
            self._view(self.values, name).copy_(parameter.detach())
            parameter.data = self._view(self.values, name)
            if learned:
                parameter.grad = self._view(self.gradient, name)
            else:
                parameter.requires_grad_(False)

    def _view(self, flat: Tensor, name: str) -> Tensor:
        offset, shape = self._places[name]
        return flat[offset : offset + prod(shape)].view(shape)

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names in the order of the buffer."""
        return tuple(self._places)

    def arrays(self, names: Iterable[str] | None = None) -> dict[str, Array]:
        """Copies of the parameters, of those in ``names`` or of all, in one transfer to the host."""
        host = self.values.detach().cpu().numpy().copy()
        result = {}
        for name in self.names if names is None else names:
            offset, shape = self._places[name]
            result[name] = host[offset : offset + prod(shape)].reshape(shape)
        return result

    def load(self, arrays: Mapping[str, Array]) -> None:
        """Set the parameters. Strict: KeyError for a missing or extra name, ValueError for a wrong shape."""
        check_names(arrays, self.names)
        for name, (_, shape) in self._places.items():
            if arrays[name].shape != shape:
                raise ValueError(f"{name}: shape {arrays[name].shape} does not fit {shape}")
        for name in self.names:
            self._view(self.values, name).copy_(torch.tensor(arrays[name]))


def clip_gradient_(gradient: Tensor, max_norm: float | None) -> Tensor:
    """Scale the flat gradient to at most ``max_norm`` (None: leave it) and return its norm before,
    0-dimensional.

    The same as torch.nn.utils.clip_grad_norm_: the factor is max_norm / (norm + 1e-6), at most 1.
    """
    norm: Tensor = torch.linalg.vector_norm(gradient)
    if max_norm is not None:
        if gradient.device.type == "cpu":
            # Nothing to wait for: a look at the number is less work than three operations on it.
            factor = max_norm / (float(norm) + 1e-6)
            if factor < 1.0:
                gradient.mul_(factor)
        else:
            # A norm that is no number leaves the gradient too: it would stay for ever in the gaps between parameters.
            gradient.mul_((max_norm / (norm + 1e-6)).nan_to_num_(1.0).clamp_(max=1.0))
    return norm
