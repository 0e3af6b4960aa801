"""The picture of one run or of several: what is drawn where nothing is asked for, and what cannot be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from omnirl.api.errors import ConfigError, NotFoundError
from omnirl.runs.curves import (
    BLUE,
    EVALUATION,
    ORANGE,
    RETURN_LABEL,
    TRAINING,
    Axis,
    Line,
    lines_of_run,
    points,
    scaled,
    title,
)
from omnirl.runs.folder import Run
from omnirl.runs.log import EVALUATIONS
from omnirl.runs.picture import PALETTE, Picture
from omnirl.runs.seeds import Curve, Group, band_note, curve, grouped

_MOST_MARKED = 30
"""Evaluations of a line that are marked one by one; more would run into each other."""


@dataclass(frozen=True)
class Plot:
    """A picture, the curves in it as data for programs, and a line for each run that is not in it."""

    picture: Picture
    curves: list[dict[str, Any]]
    left_out: tuple[str, ...]


def plot(runs: Sequence[Run], axis: Axis, metric: str | None) -> Plot:
    """The picture of ``runs``. Without a metric: the return.

    One run then shows both its curves, several show that of the evaluations, or of training where some run has
    fewer than two evaluations. Raises ConfigError for a column that no log has, NotFoundError where there is nothing
    to draw.
    """
    if metric is None and len(runs) == 1:
        return _both_curves(runs[0], axis)
    column = _usual(runs, axis) if metric is None else metric
    if metric is not None:
        _check_column(runs, metric)
    drawn = [run for run in runs if points(run.rows, axis, column)]
    left_out = tuple(f"{run.path}: not drawn: {_nothing(run, column)}" for run in runs if run not in drawn)
    if not drawn:
        raise NotFoundError([f"{run.path}: nothing to plot: {_nothing(run, column)}" for run in runs])
    groups = grouped(drawn)
    curves = [item for group in groups for item in _curves(group, axis, column)]
    lines, x_label = scaled([_line(part, found, column, n) for n, (part, found) in enumerate(curves)], axis)
    y_label = RETURN_LABEL if column in (EVALUATION, TRAINING) else column
    note = "; ".join(text for text in (_what(column), band_note([part for part, _ in curves])) if text)
    data = [
        _data(
            part.label_with_count,
            column,
            part.runs,
            found.x.tolist(),
            found.mean.tolist(),
            found.low.tolist(),
            found.high.tolist(),
        )
        for part, found in curves
    ]
    return Plot(Picture(_title(drawn), x_label, y_label, lines, note), data, left_out)


def _both_curves(run: Run, axis: Axis) -> Plot:
    found = lines_of_run(run.rows, axis)
    if not found:
        raise NotFoundError(f"{run.path}: nothing to plot: {_nothing(run, TRAINING)}")
    lines, x_label = scaled(found, axis)
    columns = {ORANGE: TRAINING, BLUE: EVALUATION}
    data = [
        _data(line.label, columns[line.color], [run], line.x, line.y, line.low, line.high) for line in found
    ]
    return Plot(Picture(_title([run]), x_label, RETURN_LABEL, lines), data, ())


def _usual(runs: Sequence[Run], axis: Axis) -> str:
    """What is compared where no metric is asked for."""
    if all(len(points(run.rows, axis, EVALUATION)) >= 2 for run in runs):
        return EVALUATION
    if any(points(run.rows, axis, TRAINING) for run in runs):
        return TRAINING
    return EVALUATION


def _check_column(runs: Sequence[Run], metric: str) -> None:
    """Refuse a column that no log has, with the nearest name. A log without a row may get every column yet."""
    columns = list(dict.fromkeys(name for run in runs for row in run.rows[:1] for name in row))
    if not columns or metric in columns:
        return
    near = get_close_matches(metric, columns, n=1, cutoff=0.5)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    raise ConfigError(f"--metric {metric}: no such column{hint}; there are: {', '.join(columns)}")


def _nothing(run: Run, column: str) -> str:
    if run.problem:
        return run.problem
    if not run.rows:
        return f"{run.log_path.name} has no row yet"
    return f"{run.log_path.name} has no figure in the column {column}"


def _curves(group: Group, axis: Axis, column: str) -> list[tuple[Group, Curve]]:
    """The group's curve, or one for each of its runs where they have no stretch in common."""
    series = [points(run.rows, axis, column) for run in group.runs]
    found = curve(series)
    if found is not None:
        return [(group, found)]
    single = []
    for run, own in zip(group.runs, series, strict=True):
        found = curve([own])
        if found is not None:
            single.append((Group((run,), f"{group.label}, {run.path.name}"), found))
    return single


def _line(group: Group, found: Curve, column: str, number: int) -> Line:
    return Line(
        label=group.label_with_count,
        x=found.x.tolist(),
        y=found.mean.tolist(),
        color=PALETTE[number % len(PALETTE)],
        low=found.low.tolist(),
        high=found.high.tolist(),
        marked=column.startswith(EVALUATIONS) and len(found.x) <= _MOST_MARKED,
        dashed=number // len(PALETTE) % 2 == 1,
    )


def _data(
    label: str,
    metric: str,
    runs: Sequence[Run],
    x: Sequence[float],
    mean: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
) -> dict[str, Any]:
    return {
        "label": label,
        "metric": metric,
        "runs": [str(run.path) for run in runs],
        "seeds": [run.seed for run in runs],
        "x": list(x),
        "mean": list(mean),
        "low": list(low),
        "high": list(high),
    }


def _what(column: str) -> str:
    return {EVALUATION: "evaluations", TRAINING: "training episodes since the row before"}.get(column, "")


def _title(runs: Sequence[Run]) -> str:
    """``PPO on CartPole-v1, seed 0``, or what all runs have in common of it."""
    algorithms = {run.algorithm.upper() for run in runs}
    envs = {run.env_id for run in runs}
    if len(envs) > 1:
        return " and ".join(sorted(algorithms)) if len(algorithms) == 1 else ""
    (env,) = envs
    if len(algorithms) > 1:
        return env
    return title(runs[0].algorithm, env, runs[0].seed if len(runs) == 1 else None)
