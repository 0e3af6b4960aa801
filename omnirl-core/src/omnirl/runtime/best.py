"""The best agents of a run: which evaluated versions are kept beside the last ones, and ``best.json``, which says so.

``best.json`` is ``{"updates": 40, "return_mean": 487.5}``: the version of the best evaluation so far, whose agent
file survives pruning. The list itself is part of the driver's state, so a resumed run goes on with it; the file is
written anew then, since a killed run may have got further than its last checkpoint.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omnirl.api.errors import CheckpointError

BEST_FILE = "best.json"


class BestAgents:
    """The versions of the ``keep`` best evaluations by mean return, the best first; of equal ones the earlier."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._entries: list[tuple[int, float]] = []

    @property
    def versions(self) -> tuple[int, ...]:
        """The best first."""
        return tuple(version for version, _ in self._entries)

    def admits(self, return_mean: float) -> bool:
        """Whether an evaluation with this mean would be among the best; one that is not finite never is."""
        if not math.isfinite(return_mean):
            return False
        return sum(mean >= return_mean for _, mean in self._entries) < self._keep

    def add(self, version: int, return_mean: float) -> None:
        """Put a version among the best; the worst one beyond ``keep`` falls out."""
        others = [entry for entry in self._entries if entry[0] != version]
        self._entries = sorted([*others, (version, return_mean)], key=lambda entry: (-entry[1], entry[0]))
        del self._entries[self._keep :]

    def write(self, folder: Path) -> None:
        """Write ``best.json`` in one step; without a best version there is none. Raises OSError."""
        path = folder / BEST_FILE
        if not self._entries:
            path.unlink(missing_ok=True)
            return
        version, return_mean = self._entries[0]
        unfinished = path.with_name(path.name + ".tmp")
        unfinished.write_text(
            json.dumps({"updates": version, "return_mean": return_mean}) + "\n", encoding="utf-8"
        )
        os.replace(unfinished, path)

    def state_dict(self) -> list[list[Any]]:
        """``[version, mean return]`` of each, the best first."""
        return [[version, return_mean] for version, return_mean in self._entries]

    def load_state_dict(self, state: Sequence[Sequence[Any]]) -> None:
        """Restore; ``keep`` may have changed since."""
        self._entries = [(int(version), float(mean)) for version, mean in state][: self._keep]


def best_version(folder: Path) -> tuple[int, float] | None:
    """``(version, mean return)`` of the best agent of a run's folder, None where there is no ``best.json``.

    Raises CheckpointError (exit 5) where the file is damaged.
    """
    path = folder / BEST_FILE
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return int(data["updates"]), float(data["return_mean"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise CheckpointError(f"{path}: damaged: {type(error).__name__}: {error}") from error
