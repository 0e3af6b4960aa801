"""Means of training figures, summed on the learner's device and brought to the host once per
``metrics()``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor


class MetricSums:
    """Sums over updates. ``names`` are figures on the device; further ones are given as floats by name."""

    def __init__(self, names: Sequence[str], device: torch.device) -> None:
        self._names = tuple(names)
        self._sums = torch.zeros(
            len(names) + 1, dtype=torch.float64, device=device
        )  # the last counts finite updates
        self._in_row = torch.zeros((), device=device)
        self._one = torch.ones((), device=device)
        self._zero = torch.zeros((), device=device)
        self._host: dict[str, tuple[float, int]] = {}
        self._added = 0
        self._nonfinite = 0

    def add(self, values: Sequence[Tensor], finite: Tensor, host: Mapping[str, float]) -> None:
        """One update: ``values`` (0-dimensional, in the order of the names) count only where ``finite`` is
        1."""
        row = torch.stack((*values, self._one))
        self._sums.add_(torch.where(finite > 0, row, self._zero))
        self._in_row.add_(1.0).mul_(1.0 - finite)
        self._added += 1
        for name, value in host.items():
            if math.isfinite(value):
                total, count = self._host.get(name, (0.0, 0))
                self._host[name] = (total + value, count + 1)

    @property
    def nonfinite_in_row(self) -> int:
        """The number of the latest updates without a finite one; one transfer to the host."""
        return int(self._in_row)

    def take(self) -> dict[str, float]:
        """The means since the last call, and the counts of non-finite updates: ``nonfinite_updates`` of all
        time, ``nonfinite_in_row`` up to now. Figures without a finite update are left out."""
        *sums, finite, in_row = torch.cat((self._sums, self._in_row.double().reshape(1))).tolist()
        means = {name: total / finite for name, total in zip(self._names, sums)} if finite else {}
        means.update({name: total / count for name, (total, count) in self._host.items()})
        self._nonfinite += self._added - int(finite)
        self._sums.zero_()
        self._host, self._added = {}, 0
        return {
            **means,
            "nonfinite_updates": float(self._nonfinite),
            "nonfinite_in_row": in_row,
        }

    def state_dict(self) -> dict[str, Any]:
        """The sums behind the unfinished row of the log, and the counts."""
        return {
            "sums": self._sums.cpu().numpy().copy(),
            "in_row": float(self._in_row),
            "host": {name: [total, count] for name, (total, count) in self._host.items()},
            "added": self._added,
            "nonfinite": self._nonfinite,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what ``state_dict`` gave."""
        sums = np.asarray(state["sums"])
        if sums.shape != tuple(self._sums.shape):
            raise ValueError(f"metric sums: shape {sums.shape} does not fit {tuple(self._sums.shape)}")
        self._sums.copy_(torch.tensor(sums))
        self._in_row.fill_(float(state["in_row"]))
        self._host = {name: (float(total), int(count)) for name, (total, count) in state["host"].items()}
        self._added, self._nonfinite = int(state["added"]), int(state["nonfinite"])
