"""The rows of the ladder: reading them, choosing among them, and judging a row by its seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

LADDER = Path(__file__).with_name("ladder.yaml")
_OF_TWO_WORDS = ("lunarlander-continuous", "minatar-breakout", "mountaincar-continuous")  # environments


@dataclass(frozen=True)
class Row:
    """One preset on the ladder; see the head of ``ladder.yaml``."""

    preset: str
    tier: int
    seeds: int
    target: float
    floor: float
    reference: str
    overrides: tuple[str, ...] = ()

    @property
    def published(self) -> float:
        """The figure that ``reference`` begins with."""
        return float(self.reference.split()[0])

    @property
    def words(self) -> tuple[str, ...]:
        """What names the row: the preset, and its environment and algorithm."""
        named = (name for name in _OF_TWO_WORDS if self.preset.startswith(f"{name}-"))
        environment = next(named, self.preset.partition("-")[0])
        return self.preset, environment, self.preset.removeprefix(f"{environment}-")


def read_ladder(path: Path = LADDER) -> list[Row]:
    """All rows. Raises TypeError for a row with an unknown or a missing key."""
    rows = yaml.safe_load(path.read_text(encoding="utf-8"))["rows"]
    return [Row(**{**row, "overrides": tuple(row.get("overrides", ()))}) for row in rows]


def chosen(rows: Iterable[Row], words: Sequence[str], tier: int | None) -> list[Row]:
    """The rows that any of ``words`` names (all rows without one), of ``tier`` where it is given.

    Raises ValueError for a word that names no row.
    """
    rows = list(rows)
    known = sorted({word for row in rows for word in row.words})
    strange = [word for word in words if word not in known]
    if strange:
        raise ValueError(f"no row is called {', '.join(strange)}; there are: {', '.join(known)}")
    return [
        row
        for row in rows
        if (not words or set(words) & set(row.words)) and (tier is None or row.tier == tier)
    ]


def verdict(row: Row, scores: Sequence[float]) -> str:
    """``reached``, or what is missed, of a row whose seeds ended at ``scores``."""
    if not scores:
        return "not run"
    mean, lowest = sum(scores) / len(scores), min(scores)
    missed = []
    if mean < row.target:
        missed.append(f"mean below {row.target:g}")
    if lowest < row.floor:
        missed.append(f"a seed below {row.floor:g}")
    return ", ".join(missed) or "reached"


def points_of_log(rows: Sequence[dict[str, Any]], most: int = 60) -> dict[str, list[list[float]]]:
    """``training`` and ``evaluation``: (environment steps, return) of a log, at most ``most`` points of each."""
    found: dict[str, list[list[float]]] = {"training": [], "evaluation": []}
    for name, column in (("training", "train_return"), ("evaluation", "eval_return_mean")):
        points = [
            [float(row["env_steps"]), round(float(row[column]), 2)]
            for row in rows
            if row.get(column) is not None
        ]
        step = max(1, -(-len(points) // most))
        kept = points[::-1][::step][::-1]  # the last point always stays
        found[name] = kept
    return found
