"""Network classes as users write them, right and wrong ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from omnirl.api import DictSpec, ObservationSpec

if TYPE_CHECKING:
    from acme_nowhere import Unknown


def flat(observation: Tensor | dict[str, Tensor]) -> Tensor:
    """All that is observed side by side, [N, D]."""
    parts = observation.values() if isinstance(observation, dict) else [observation]
    return torch.cat([part.flatten(1) for part in parts], 1)


def size(observation: ObservationSpec) -> int:
    """D."""
    return (
        sum(e.size for _, e in observation.entries) if isinstance(observation, DictSpec) else observation.size
    )


class Anything(nn.Module):
    """Takes every observation."""

    def __init__(
        self,
        observation: ObservationSpec,
        *,
        width: int = 8,
        sizes: tuple[int, ...] = (),
        gain: float | None = None,
        mode: Literal["plain", "gated"] = "plain",
        note: Unknown = None,
    ) -> None:
        super().__init__()
        self.observation = observation
        self.given = {"width": width, "sizes": sizes, "gain": gain, "mode": mode}
        self.layer = nn.Linear(size(observation), width)

    def forward(self, observation: Any) -> Tensor:
        return torch.tanh(self.layer(flat(observation)))


class Needy(Anything):
    """Cannot do without an argument."""

    def __init__(self, observation: ObservationSpec, width: int) -> None:
        super().__init__(observation, width=width)


class Echo(nn.Module):
    """Features are the observation; without a parameter."""

    def __init__(self, observation: ObservationSpec, **anything: Any) -> None:
        super().__init__()
        self.anything = anything

    def forward(self, observation: Any) -> Tensor:
        return flat(observation)


class PartlyFrozen(Anything):
    """One layer does not learn, another is never used."""

    def __init__(self, observation: ObservationSpec) -> None:
        super().__init__(observation)
        self.frozen = nn.Linear(8, 5).requires_grad_(False)
        self.unused = nn.Linear(2, 2)

    def forward(self, observation: Any) -> Tensor:
        return self.frozen(super().forward(observation))


class Constant(Anything):
    """A random projection that is the same everywhere: a buffer that is no state."""

    def __init__(self, observation: ObservationSpec) -> None:
        super().__init__(observation)
        self.register_buffer("projection", torch.randn(8, 4), persistent=False)

    def forward(self, observation: Any) -> Tensor:
        return super().forward(observation) @ self.projection


class BatchNormed(Anything):
    """Its statistics are in no weights."""

    def __init__(self, observation: ObservationSpec) -> None:
        super().__init__(observation)
        self.norm = nn.BatchNorm1d(8)

    def forward(self, observation: Any) -> Tensor:
        return self.norm(super().forward(observation))


class Dropping(Anything):
    """Random."""

    def forward(self, observation: Any) -> Tensor:
        return nn.functional.dropout(super().forward(observation), 0.5)


class Mixing(Anything):
    """A row sees the others."""

    def forward(self, observation: Any) -> Tensor:
        features = super().forward(observation)
        return features - features.mean(0)


class Unflat(Anything):
    """No features, but something of three axes."""

    def forward(self, observation: Any) -> Tensor:
        return super().forward(observation)[:, :, None]


class Doubled(Anything):
    """float64."""

    def __init__(self, observation: ObservationSpec) -> None:
        super().__init__(observation)
        self.extra = nn.Parameter(torch.zeros(3, dtype=torch.float64))


class Raising(Anything):
    """A slip in forward."""

    def forward(self, observation: Any) -> Tensor:
        return self.layers(observation)


class Dividing(Anything):
    """No numbers."""

    def forward(self, observation: Any) -> Tensor:
        return super().forward(observation) / 0.0


class Exiting(Anything):
    """Ends the process in its constructor, or means to."""

    def __init__(self, observation: ObservationSpec) -> None:
        raise SystemExit(0)


class NoNetwork:
    """Not a module."""
