"""Means of training figures, kept on the learner's device and brought to the host once per ``metrics()``.

An update only appends its figures to a list; they are stacked, transferred and summed together later. The sums
go through the updates in order, so they do not depend on when that was.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

_MOST_WAITING = 2048  # updates, so that the list stays small whoever forgets to look
_FEW = 8  # updates whose floats are summed one by one in less time than numpy takes to begin


class MetricSums:
    """Sums over updates. ``names`` are figures on the device; further ones are given as floats by name."""

    def __init__(self, names: Sequence[str], device: torch.device) -> None:
        self._names = tuple(names)
        self._device = device
        self._waiting: list[Tensor | float] = []  # per update: its figures, then whether it is finite
        self._sums = np.zeros(len(names) + 1)  # the last counts finite updates
        self._in_row = 0
        self._host: dict[str, tuple[float, int]] = {}
        self._added = 0
        self._nonfinite = 0

    def add(
        self, values: Sequence[Tensor | float], finite: Tensor | float, host: Mapping[str, float]
    ) -> None:
        """One update: ``values`` (0-dimensional, in the order of the names) count only where ``finite`` is
        1. The tensors are kept: they must not be written to afterwards. All are tensors, or all are floats."""
        self._waiting.extend(values)
        self._waiting.append(finite)
        self._added += 1
        for name, value in host.items():
            if math.isfinite(value):
                total, count = self._host.get(name, (0.0, 0))
                self._host[name] = (total + value, count + 1)
        if len(self._waiting) >= _MOST_WAITING * len(self._sums):
            self._sum()

    def _sum(self) -> None:
        """Add what waits to the sums, with one transfer to the host."""
        if not self._waiting:
            return
        if len(self._waiting) <= _FEW * len(self._sums) and not isinstance(self._waiting[0], Tensor):
            self._sum_few()
            return
        if isinstance(self._waiting[0], Tensor):
            flat = torch.stack(self._waiting).cpu().numpy()  # type: ignore[arg-type]
        else:
            flat = np.array(self._waiting)
        rows = flat.reshape(-1, len(self._sums)).astype(np.float64)
        self._waiting.clear()
        finite = rows[:, -1] > 0
        rows[~finite] = 0.0
        # A running sum, row after row: the same whether the rows come together or one by one.
        self._sums = np.cumsum(np.vstack((self._sums, rows)), axis=0)[-1]
        last = np.flatnonzero(finite)
        self._in_row = len(rows) - 1 - int(last[-1]) if len(last) else self._in_row + len(rows)

    def _sum_few(self) -> None:
        """The same for floats."""
        size = len(self._sums)
        sums = self._sums.tolist()
        for begin in range(0, len(self._waiting), size):
            row = self._waiting[begin : begin + size]
            if row[-1] > 0:
                sums = [total + float(value) for total, value in zip(sums, row)]
                self._in_row = 0
            else:
                self._in_row += 1
        self._sums = np.array(sums)
        self._waiting.clear()

    @property
    def nonfinite_in_row(self) -> int:
        """The number of the latest updates without a finite one; one transfer to the host."""
        self._sum()
        return self._in_row

    def take(self) -> dict[str, float]:
        """The means since the last call, and the counts of non-finite updates: ``nonfinite_updates`` of all
        time, ``nonfinite_in_row`` up to now. Figures without a finite update are left out."""
        self._sum()
        *sums, finite = self._sums.tolist()
        means = {name: total / finite for name, total in zip(self._names, sums)} if finite else {}
        means.update({name: total / count for name, (total, count) in self._host.items()})
        self._nonfinite += self._added - int(finite)
        self._sums = np.zeros_like(self._sums)
        self._host, self._added = {}, 0
        return {
            **means,
            "nonfinite_updates": float(self._nonfinite),
            "nonfinite_in_row": float(self._in_row),
        }

    def state_dict(self) -> dict[str, Any]:
        """The sums behind the unfinished row of the log, and the counts."""
        self._sum()
        return {
            "sums": self._sums.copy(),
            "in_row": self._in_row,
            "host": {name: [total, count] for name, (total, count) in self._host.items()},
            "added": self._added,
            "nonfinite": self._nonfinite,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what ``state_dict`` gave."""
        sums = np.asarray(state["sums"])
        if sums.shape != self._sums.shape:
            raise ValueError(f"metric sums: shape {sums.shape} does not fit {self._sums.shape}")
        self._waiting.clear()
        self._sums = np.array(sums, np.float64)
        self._in_row = int(state["in_row"])
        self._host = {name: (float(total), int(count)) for name, (total, count) in state["host"].items()}
        self._added, self._nonfinite = int(state["added"]), int(state["nonfinite"])
