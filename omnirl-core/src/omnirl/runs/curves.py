"""From the rows of one log to the lines of a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from omnirl.runs.log import figure

Axis = Literal["steps", "time", "updates"]
COLUMN_OF: dict[Axis, str] = {"steps": "env_steps", "time": "wall_time", "updates": "updates"}
EVALUATION, TRAINING = "eval_return_mean", "train_return"
RETURN_LABEL = "undiscounted return per episode"
BLUE, ORANGE = "#1f5fb4", "#e08214"


@dataclass(frozen=True)
class Line:
    """A line of a picture, x rising. low, high: the edges of its band, empty where it has none; band: the band's
    entry in the legend, none where empty; marked: whether each point shows."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    color: str
    low: Sequence[float] = field(default=())
    high: Sequence[float] = field(default=())
    band: str = ""
    marked: bool = False
    dashed: bool = False


def points(rows: Iterable[Mapping[str, str]], axis: Axis, column: str) -> list[tuple[float, float]]:
    """``(x, figure)`` of each row that has both, finite; time in seconds."""
    found = ((figure(row.get(COLUMN_OF[axis])), figure(row.get(column))) for row in rows)
    return [(x, y) for x, y in found if x is not None and y is not None]


def lines_of_run(rows: Sequence[Mapping[str, str]], axis: Axis) -> list[Line]:
    """A run's two curves: training's recent episodes, and evaluations with one standard deviation about them."""
    lines = []
    training = points(rows, axis, TRAINING)
    if training:
        x, y = zip(*training, strict=True)
        lines.append(Line("training, recent episodes", x, y, ORANGE))
    evaluation = points(rows, axis, EVALUATION)
    if evaluation:
        x, y = zip(*evaluation, strict=True)
        spread = dict(points(rows, axis, "eval_return_std"))
        deviation = [spread.get(place, 0.0) for place in x]
        low = [mean - std for mean, std in zip(y, deviation, strict=True)]
        high = [mean + std for mean, std in zip(y, deviation, strict=True)]
        lines.append(Line("evaluation, mean", x, y, BLUE, low, high, band="± 1 std", marked=True))
    return lines


def title(algorithm: str, env_id: str, seed: int | None = None) -> str:
    """``PPO on CartPole-v1, seed 0``."""
    return f"{algorithm.upper()} on {env_id}" + ("" if seed is None else f", seed {seed}")


def scaled(lines: Sequence[Line], axis: Axis) -> tuple[list[Line], str]:
    """The lines with x in a unit that reads well, and the axis' label."""
    if axis != "time":
        return list(lines), {"steps": "environment steps", "updates": "updates"}[axis]
    longest = max((line.x[-1] for line in lines), default=0.0)
    unit, seconds = ("s", 1.0) if longest <= 300 else ("min", 60.0) if longest <= 3 * 3600 else ("h", 3600.0)
    return [replace(line, x=[x / seconds for x in line.x]) for line in lines], f"wall time ({unit})"
