"""Fixtures for the tests of every distribution: what the folder of a run holds."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

WALL_CLOCK = {"wall_time", "steps_per_s", "updates_per_s"}


def rows(folder: Path) -> list[dict[str, str]]:
    """The rows of a run's log."""
    path = folder / "log.csv"
    if not path.exists():
        return []
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def comparable(folder: Path) -> list[dict[str, str]]:
    """The rows without their wall-clock columns."""
    return [{key: value for key, value in row.items() if key not in WALL_CLOCK} for row in rows(folder)]


def content(folder: Path) -> dict[str, Any]:
    """What a run's checkpoint holds, flat, without wall time: weights, optimizer, memory, counters, samplers."""
    from omnirl.runtime import checkpoint

    _, tree = checkpoint.read(folder / checkpoint.CURRENT)
    flat: dict[str, Any] = {}

    def walk(prefix: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                walk(f"{prefix}/{key}", item)
        else:
            flat[prefix] = (value.dtype.str, value.tobytes()) if isinstance(value, np.ndarray) else value

    walk("", tree)
    flat.pop("/driver/wall")
    return flat


@pytest.fixture
def read() -> Any:
    """``read.rows(folder)``, ``read.comparable(folder)``, ``read.content(folder)``: the functions of this module."""

    class Readers:
        rows = staticmethod(rows)
        comparable = staticmethod(comparable)
        content = staticmethod(content)

    return Readers
